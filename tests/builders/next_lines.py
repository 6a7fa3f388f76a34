"""Every ``next:`` line that commands print, run where it is printed; also as a script, in an
environment that has nothing but the package: ``python -m tests.builders.next_lines``."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.cli import main
from retrieval_bench.cli.commands import parsed
from retrieval_bench.experiment.layers import lacking
from retrieval_bench_doctor import doctor
from tests.builders.files import beir, save_all

ONCE = "--rounds 1 --warm-up 0 --no-pictures"
_ASKING = ("label start", "label import")
"""They wait for a person: the parser alone reads them. What measures is run with --dry-run, which
builds all of it and asks one query."""
_COMMAND = re.compile(r"retrieval-bench (?:(?! \().)+")
_INSTALLS = re.compile(r"^(?:make|(?:uv )?pip|\S*python) .*?&& (?=retrieval-bench )")

RETRIEVERS = {
    "words.yaml": "target: bm25\nparams: {tokenizer: word}\n",
    "both.yaml": "target: hybrid\nparams: {legs: [bm25, words.yaml], depth: 20}\n",
    "steps.yaml": "target: pipeline\nparams:\n  steps: [{retrieve: bm25, depth: 20}, {rerank: "
    "'mine.py:overlap'}]\n",
    "mine.py": "def overlap(text, documents):\n"
    "    return [float(len(set(text.split()) & set(d.text.split()))) for d in documents]\n",
}
NAMES = ("bm25", "words.yaml", "both.yaml", "steps.yaml", "langchain-in-memory")
OPTIONS = (
    "--dataset 'my data'",
    "--dataset 'my data' --k 3",
    "--dataset 'my data' --split dev --k 4",
    "--dataset 'my data' --self-hits drop",
    "--dataset 'nothing judged'",
    "",
    "--dataset 'my data' --k 7",
    "--split dev --dataset 'my data' --k 2",
)
OF_BM25 = ("--set k1=1.2", "--set 'tokenizer={name: ngram, n: 3}' b=0.5", "--language de")


@dataclass(frozen=True)
class Told:
    """A line, the command that printed it, and what became of it: "run", "read" by the parser, or
    what is wrong."""

    line: str
    by: str
    became: str


def make_folder(folder: Path) -> None:
    """A user's folder: a dataset with two splits and a name that needs quotes, one that nothing
    judges, and retrievers."""
    documents = {f"d{at}": f"word{at} word{at % 7} common text of the town" for at in range(40)}
    queries = {f"q{at}": f"which word{at} has the common word{at % 5}" for at in range(12)}
    judged = [(f"q{at}", f"d{at}", 1) for at in range(12)]
    data = beir(folder / "my data", documents, queries, judged)
    dev = "".join(f"q{at}\td{at}\t1\n" for at in range(6))
    save_all(data, {"qrels/dev.tsv": f"query-id\tcorpus-id\tscore\n{dev}"})
    save_all(folder, RETRIEVERS)
    beir(folder / "nothing judged", documents, queries, [])
    (folder / "nothing judged" / "qrels" / "test.tsv").unlink()
    (folder / "nothing judged" / "qrels").rmdir()


def commands() -> Iterator[str]:
    """What a user types who goes through all commands that say what comes next."""
    for name in NAMES:
        for options in OPTIONS:
            yield f"bench {name} {options} {ONCE}"
            yield f"doctor {name} {options}"
    for setting in OF_BM25:
        yield f"bench bm25 --dataset 'my data' {setting} {ONCE}"
        yield f"doctor bm25 --dataset 'my data' {setting}"
        yield f"bench words.yaml --dataset 'my data' {setting} {ONCE}"
        yield f"doctor words.yaml --dataset 'my data' {setting} --k 2"
    for options in OPTIONS[:4]:
        yield f"data index bm25 {options.partition(' --k')[0].partition(' --self')[0]}"
        yield f"bench both.yaml {options} {ONCE} --out 'my run {len(options)}'"
        yield f"compare bm25 words.yaml {options} {ONCE}"
        if "--self-hits" not in options:
            yield f"explain both.yaml --by stage {options} --rounds 1"
    for name in NAMES[:3]:
        yield f"bench {name} --dataset 'my data' --probe 2"
        yield f"baseline {name} --dataset 'my data' --k 10"
    yield f"compare bm25 words.yaml --dataset 'nothing judged' {ONCE}"
    yield "label pool bm25 words.yaml --dataset 'nothing judged' --labels made"
    yield "label status --labels made"
    yield "data cache"


def typed(line: str) -> tuple[int, str]:
    """The exit code and what was printed, all of it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(shlex.split(line))
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue()


def next_lines(text: str) -> list[str]:
    """The ``next:`` lines of an output that name a command."""
    whole = re.sub(r"\n {4,6}(?=\S*retrieval-bench )", " ", text)  # of a line that was wrapped
    lines = [line.strip() for line in whole.splitlines()]
    return [x.removeprefix("next:").strip() for x in lines if x.startswith("next:") and _is(x)]


def _is(line: str) -> bool:
    return "retrieval-bench " in line


def became(line: str) -> str:
    """Run ``line`` as a shell would, but for what it installs: that is held against what lacks."""
    command = _COMMAND.search(_INSTALLS.sub("", line))
    if command is None:
        return "no command"
    words = shlex.split(command[0])[1:]
    try:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            parsed(words)
    except SystemExit:
        return f"not understood: {said.getvalue()}"
    installs = _INSTALLS.match(line)
    names = [word for word in words[1:] if not word.startswith("-")]
    needed = lacking(names)
    if installs or needed:
        told = installs[0] if installs else ""
        missing = [layer for layer in needed if layer not in told and layer != "bge-small"]
        return f"does not add {', '.join(missing)}" if missing else "read"
    if " ".join(words).startswith(_ASKING):
        return "read"
    planned = ["--dry-run"] if words[0] in ("bench", "compare") else []
    code, text = typed(shlex.join([*words, *planned]))
    return "run" if code in (0, 3) else f"exit {code}: {text[-600:]}"


def all_told(lines: Sequence[str] | None = None) -> list[Told]:
    """Run everything in the current folder, which :func:`make_folder` has filled."""
    doctor._WATCHED_S = 0.0  # the machine is not what is looked at
    told: dict[str, Told] = {}
    for by in commands() if lines is None else lines:
        code, text = typed(by)
        if code not in (0, 3):
            told[by] = Told("", by, f"exit {code}: {text[-600:]}")
        for line in next_lines(text):
            # At once: `@last` is what was measured last.
            told.setdefault(f"{line} {by}", Told(line, by, became(line)))
    return list(told.values())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        make_folder(Path(place))
        os.chdir(place)
        results = all_told()
        os.chdir("/")
    wrong = [one for one in results if one.became not in ("run", "read")]
    for one in wrong:
        sys.stdout.write(f"{one.line}\n  printed by {one.by}\n  {one.became}\n")
    counts = Counter(one.became for one in results if one not in wrong)
    sys.stdout.write(f"{len(results)} lines: {dict(counts)}, {len(wrong)} wrong\n")
    sys.exit(bool(wrong))
