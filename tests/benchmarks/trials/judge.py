"""Judge trials: ``python -m tests.benchmarks.trials.judge [NAME ...]``, all without names.

A trial is what was added to a toy repository, and ``eval.json`` with its commands: ``setup`` (a
list), ``bench``, ``gate`` and ``improves``. It is right where ``bench`` ends with 0; the gate with
0 after a change of nothing and with 1 after one that makes the search worse; and ``improves`` with
3 after one that wins one question of twelve.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.trials.toys import HERE, TOYS, Toy, make

MADE = HERE / "made"
PORT = 8321
CHECKS = (
    ("bench", "", 0),
    ("gate", "nothing", 0),
    ("gate", "worse", 1),
    ("improves", "one won", 3),
)
"""Command, change before it, and the exit code that is right."""


def judged(trial: Path) -> dict[str, tuple[int, int]]:
    """Exit code of each check of a trial, and what is right."""
    name = trial.name.partition("-")[0]
    toy, given = TOYS[name], json.loads((trial / "eval.json").read_text("utf-8"))
    codes = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "repository"
        make(name, folder)
        shutil.copytree(trial, folder, dirs_exist_ok=True)
        for words in (
            "init --quiet",
            "add --all",
            "-c user.name=a -c user.email=a@b.c commit --quiet -m start",
        ):
            _run(f"git {words}", folder)
        with _served(toy, folder):
            for command in given["setup"]:
                _run(command, folder)
        for command, change, right in CHECKS:
            if change:
                toy.edits[change].apply(folder)
            with _served(toy, folder):
                done = _run(given[command], folder, fails=True)
            codes[f"{command} {change}".strip()] = done, right
            _run("git checkout --quiet -- .", folder)
    return codes


def _run(command: str, folder: Path, *, fails: bool = False) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not fails:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode


@contextmanager
def _served(toy: Toy, folder: Path) -> Iterator[None]:
    """The service of a toy, as its files are now."""
    if not toy.serve:
        yield
        return
    with subprocess.Popen(toy.serve, cwd=folder, env={**os.environ, "PORT": str(PORT)}) as process:
        try:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                with socket.socket() as asking:
                    if asking.connect_ex(("127.0.0.1", PORT)) == 0:
                        break
                time.sleep(0.05)
            if process.poll() is not None:
                raise SystemExit(f"{shlex.join(toy.serve)} ended with {process.returncode}")
            yield
        finally:
            process.terminate()


def main(names: list[str]) -> int:
    """Print a row for each trial; 0 where all are right."""
    trials = [MADE / name for name in names] or sorted(
        path for path in MADE.iterdir() if path.is_dir()
    )
    right = 0
    for trial in trials:
        codes = judged(trial)
        good = all(code == expected for code, expected in codes.values())
        right += good
        shown = ", ".join(
            f"{check} {code}" + ("" if code == want else f" (not {want})")
            for check, (code, want) in codes.items()
        )
        print(f"{trial.name:<20} {'right' if good else 'WRONG'}: {shown}", flush=True)
    print(f"{right} of {len(trials)} right")
    return int(right < len(trials))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
