"""The samples of the guide: what the comment above a block says, its command prints.

``<!-- file: NAME -->``: the block is a file. ``<!-- static: WHY -->``: nothing makes it here.
``<!-- sample: COMMAND -->``: the block is what a shell prints for the command; what it needs is in
the folder ``$SETUPS``.

All blocks of a page share one empty folder, where files lie and commands run in their order.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

from tests.builders.processes import completed
from tests.builders.quiet import sitecustomize as quiet

BLOCK = re.compile(
    r"^<!-- (?P<kind>sample|file|static)(?P<about>: .*?) -->\n"
    r"```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

_SETUPS = Path(__file__).parent / "setups"
_HOME = "/home/you"
_WHO = {"GIT_CONFIG_GLOBAL": os.devnull} | {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}

NOISE = re.compile(
    r"times (had not settled|still changed)|settled is not known|whether times had settled"
    r"|other processes used|answers may be remembered|asking the server takes",
    re.IGNORECASE,
)
"""Warnings on times and on company that come and go; those on the machine are switched off."""

_TIMED = re.compile(
    r"\bp\d\d\b|\bms\b|\bs\b|MB\b|faster|slower|calls|latency|seconds|launches|revision|slowest-fifth"
    r"|^\w[\w ]+: b = |picture|20\d\d-|\d\.\d+s\b|figures are those"
)
_NUMBER = re.compile(r"(?<![\w#])[-+]?\d[\d,]*(\.\d+)?(?=[xs]?\b)")
_SHOWN_FASTER = re.compile(
    r"(?<![^. ] )\b[\w.-]+ is (\S+x )?faster( \(\S+ to \S+\))? than [\w.-]+\.(?= |$)"
)
"""A sentence of its own, which is only there where times show it."""
_VERDICT = re.compile(r"\b(PASS|FAIL|INCONCLUSIVE|NOT MEASURED)\b")
_ID = re.compile(r"\d{8}T\d{6}Z-([\w.-]+)-[0-9a-f]{8}|\b(?=[a-z]*\d)[0-9a-f]{7,40}\b")


class Sample(NamedTuple):
    """One block: where its text stands in the page, and what is to be shown there."""

    start: int
    shown: str
    printed: str


def samples(page: Path, folder: Path) -> list[Sample]:
    """Every sample of ``page``, whose commands are run in ``folder``."""
    found = []
    for block in BLOCK.finditer(page.read_text("utf-8")):
        about = block["about"].removeprefix(": ")
        if block["kind"] == "file":
            (folder / about).parent.mkdir(parents=True, exist_ok=True)
            (folder / about).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "sample":
            done = _shell(about, folder)
            assert done.stdout, done.stderr
            printed = _without_noise(done.stdout.replace(str(folder), _HOME)).strip("\n") + "\n"
            found.append(Sample(block.start("text"), block["text"], printed))
    return found


def steady(text: str) -> str:
    """What of ``text`` is the same each time: without times, dates, ids and the machine."""
    parts: list[str] = []
    for line in _without_noise(text).splitlines():
        core = line.strip()
        mark = core.startswith(("i  ", "!  ", "Its price: "))  # a time of its own hides no figure
        prose = "  " not in (core[3:] if mark else core)
        if parts and parts[-1] and prose and core and not mark:
            parts[-1] += f" {core}"
        else:
            parts.append(core)
    n_times = 0
    for at, part in enumerate(parts):
        named = _ID.sub("ID", _SHOWN_FASTER.sub("", part))
        if named.endswith(" ms") and "  " in named:
            n_times = len(re.findall(r" ms(?= |$)", named))  # the last columns of a table
        elif not part:
            n_times = 0
        elif n_times:
            named = re.sub(rf"(\s+\S+){{{n_times}}}$", " #" * n_times, named)
        if _TIMED.search(named):
            named = _VERDICT.sub("VERDICT", _NUMBER.sub("#", named))
            named = re.sub(r" \[#, #\]| \(#x to #x\)|(?<= )-(?= |$)", "", named)
        parts[at] = " ".join(named.split())
    return "\n".join(part for part in parts if part)


def _without_noise(text: str) -> str:
    """Without warnings on the machine, each with the lines that it goes on in."""
    notes = re.findall(r"^ +!  .*\n(?: {5,}\S.*\n)*", text, re.MULTILINE)
    for note in notes:
        if NOISE.search(" ".join(note.split())):
            text = text.replace(note, "")
    return text


def _shell(script: str, folder: Path) -> CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "NUMBA_DISABLE_JIT": "0", "SETUPS": str(_SETUPS), **_WHO}
    paths = [str(Path(quiet.__file__).parent), os.environ.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return completed("bash", "-c", script, cwd=folder, check=False, **variables)
