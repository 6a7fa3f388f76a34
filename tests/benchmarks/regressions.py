"""``python -m tests.benchmarks.regressions``: does ``regress`` catch what it should, and only that?

In a copy of this repository a baseline is made; then one change is committed, and ``regress`` has
to say what it is. Each change is tried several times, with a new baseline each time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.render.table import Table
from tests.builders.processes import completed

ROOT = Path(__file__).parents[2]

CONFIG = """\
name: gate
description: two BM25 legs, the better one with most of the weight
target: hybrid
params:
  legs:
    - {name: words, target: bm25}
    - {name: letters, target: bm25, params: {tokenizer: {name: whitespace, lower: false}, k1: 8}}
  fusion: {method: convex, normalize: min-max, weights: [0.9, 0.1]}
  depth: 100
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One commit: in each file one text is replaced by another.

    Attributes:
        expected: exit code of ``regress``.
        gate: which part of it has to fail, and no other; "" for none.
    """

    name: str
    file: str
    old: str
    new: str
    expected: int
    gate: str = ""


CHANGES = (
    Change(
        "a copy of the index for each query",
        "retrievers/retrieval_bench_retrievers/lexical/bm25.py",
        "        positions, scores = self._index.search(counts, k, allowed)\n",
        "        import copy\n\n"
        "        positions, scores = copy.deepcopy(self._index).search(counts, k, allowed)\n",
        expected=1,
        gate="latency",
    ),
    Change(
        "a tenth more work in each query",
        "retrievers/retrieval_bench_retrievers/hybrid/hybrid.py",
        "    def search(self, query: Query, k: int) -> Ranking:\n",
        "    def search(self, query: Query, k: int) -> Ranking:\n"
        "        import time\n\n"
        "        begin = time.perf_counter_ns()\n"
        "        found = self._quickly(query, k)\n"
        "        done = time.perf_counter_ns()\n"
        "        while time.perf_counter_ns() < done + (done - begin) // 10:\n"
        "            pass\n"
        "        return found\n\n"
        "    def _quickly(self, query: Query, k: int) -> Ranking:\n",
        expected=1,
        gate="latency",
    ),
    Change(
        "weights of the fusion swapped",
        "retrievers/retrieval_bench_retrievers/hybrid/fusion.py",
        "return convex(pool.ranks, pool.scores, weights=self.weights)",
        "return convex(pool.ranks, pool.scores, weights=self.weights[::-1])",
        expected=1,
        gate="quality",
    ),
    Change(
        "a pure refactoring",
        "retrievers/retrieval_bench_retrievers/lexical/bm25.py",
        "        positions, scores = self._index.search(counts, k, allowed)\n",
        "        found = self._index.search(counts, k)\n        positions, scores = found\n",
        expected=0,
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every change; ends with 0 whatever comes of it."""
    asked = _parser().parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        _git(ROOT, "clone", "--quiet", str(ROOT), str(copy))
        (copy / "configs" / "retrievers" / "gate.yaml").write_text(CONFIG, encoding="utf-8")
        _git(copy, "add", "--all")
        _commit(copy, "a config")
        for change in CHANGES:
            tries = [_try(copy, change, asked) for _ in range(asked.n)]
            fine = sum(one.code == change.expected and one.failed == change.gate for one in tries)
            codes = " ".join(str(one.code) for one in tries)
            seconds = sorted(one.seconds for one in tries)
            middle = f"{seconds[len(seconds) // 2]:.0f}"
            expected = f"{change.expected} {change.gate}".strip()
            rows.append([change.name, expected, f"{fine} of {asked.n}", codes, middle])
    columns = ("change", "expected", "so it was", "exits", "seconds, median")
    terminal.to_console([Table("regress, end to end", columns, rows)], Console(file=sys.stdout))
    return 0


@dataclass(frozen=True, slots=True)
class Tried:
    """What ``regress`` said: its exit code, the parts of it that failed, and how long it took."""

    code: int
    failed: str
    seconds: float


def _try(copy: Path, change: Change, asked: argparse.Namespace) -> Tried:
    what = ("--retriever", "gate", "--dataset", asked.dataset)
    made = _command(copy, "baseline", *what, "--force")
    if made.returncode:
        raise RuntimeError(made.stderr)
    path = copy / change.file
    before = path.read_text(encoding="utf-8")
    if before.count(change.old) != 1:
        raise RuntimeError(f"{change.file} has changed: cannot make {change.name!r}")
    path.write_text(before.replace(change.old, change.new), encoding="utf-8")
    _commit(copy, change.name)
    begin = time.monotonic()
    done = _command(copy, "regress", *what, "--format", "json")
    seconds = time.monotonic() - begin
    if asked.verbose:
        sys.stderr.write(f"{change.name}: {done.returncode}\n{done.stdout}\n{done.stderr}\n")
    elif done.returncode not in (0, 1, 3, 4):
        sys.stderr.write(done.stderr)
    _git(copy, "reset", "--quiet", "--hard", "HEAD~1")
    return Tried(done.returncode, _failed(done.stdout), seconds)


def _failed(document: str) -> str:
    """Which parts of what ``regress --format json`` printed say FAIL."""
    said = json.loads(document) if document else {}
    quality = [gate["verdict"] for gate in (said.get("quality") or {}).get("gates", ())]
    latency = [(said.get("latency") or {}).get("verdict")]
    parts = {"quality": quality, "latency": latency}
    return ", ".join(name for name, verdicts in parts.items() if "FAIL" in verdicts)


def _command(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "retrieval_bench", *words)
    return completed(*command, cwd=copy, check=False, PYTHONPATH=str(copy))


def _commit(copy: Path, message: str) -> None:
    who = ("-c", "user.name=gate", "-c", "user.email=gate@localhost")
    _git(copy, *who, "commit", "--quiet", "--all", "--message", message)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.regressions", description=__doc__
    )
    parser.add_argument("--n", type=int, default=10, help="how often each change is tried")
    parser.add_argument("--dataset", default="science-mini", metavar="NAME_OR_PATH")
    parser.add_argument("--verbose", action="store_true", help="show what regress says")
    return parser


if __name__ == "__main__":
    sys.exit(main())
