"""The command line: how soon it answers, what it loads, and what it does besides searching."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks import children
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle, race

_HEAVY = ("torch", "faiss", "sentence_transformers")
_BENCH = ["bench", "--retriever", "bm25", "--dataset", "science-mini"]
_LOADED = """
import json, sys
from retrieval_bench.cli import main
if main(sys.argv[1:]):
    sys.exit(1)
names = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps(names))
"""


def measure(options: Options) -> Group:
    """Rows for ``--help`` and for ``bench`` with bm25 on the bundled collection."""
    turns = 1 if options.quick else 15
    command = _command()
    with tempfile.TemporaryDirectory() as folder:
        loaded = set(_loaded(Path(folder) / "loaded"))
        walls = race(
            {
                "help": lambda _: children.run([*command, "--help"]),
                "nothing": lambda _: children.run([sys.executable, "-c", "pass"]),
            },
            turns,
        )
        own = [_own_work(command, Path(folder) / f"run{turn}") for turn in range(turns)]
    total, searching = np.array(own).T
    heavy = [name for name in _HEAVY if name in loaded]
    return Group(
        "Command line",
        [
            Row(
                "--help",
                middle(walls["help"]),
                "s",
                middle(walls["nothing"]),
                "python -c pass",
                at_most=0.25,
                absolute=True,
            ),
            Row(
                "bench bm25: heavy libraries loaded", len(heavy), "count", at_most=0, absolute=True
            ),
            Row(
                "bench bm25: its own work",
                middle(total - searching),
                "s",
                middle(searching),
                "in timed calls",
                at_most=3.0,
                absolute=True,
            ),
        ],
        [
            f"medians of {turns} fresh processes; files are in the system's cache",
            (
                f"own work: from start to end of the process, less the sum of all timed calls; "
                f"the warm-up counts; slowest {(total - searching).max():.2f} s"
            ),
            f"looked for: {', '.join(_HEAVY)}; found: {', '.join(heavy) or 'none'}",
        ],
    )


def _command() -> list[str]:
    """The installed console command, which is what users start."""
    script = Path(sys.executable).with_name("retrieval-bench")
    return [str(script)] if script.exists() else [sys.executable, "-m", "retrieval_bench"]


def _loaded(out: Path) -> list[str]:
    """Top-level names in ``sys.modules`` after a run."""
    printed = children.run([sys.executable, "-c", _LOADED, *_BENCH, "--out", str(out)])
    names: list[str] = json.loads(printed.splitlines()[-1])
    return names


def _own_work(command: list[str], out: Path) -> tuple[float, float]:
    """Seconds of one process, and how many of them were in timed calls."""
    start = time.perf_counter()
    children.run([*command, *_BENCH, "--out", str(out)])
    total = time.perf_counter() - start
    with np.load(out / "timings.npz") as timings:
        return total, float(timings["wall_ns"].sum()) / 1e9
