"""``python -m tests.benchmarks.duets``: what live duets say of equal sides and of real extra work.

Every duet measures the probe (a matrix product) on both sides; on side b, the kinds other than
``equal`` do more work in each call. One line of JSON for each duet goes to ``--json``, behind what
is there already, so that a long series can be made in parts; ``--summary`` prints what it holds.
``--keep`` saves each duet, so that what a change of the rules would do to it can be looked at.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench_duet.controller import DuetProtocol, duet
from retrieval_bench_duet.decision import SLOWEST
from retrieval_bench_duet.probe import Probe
from retrieval_bench_duet.result import DuetResult, write_duet
from retrieval_bench_duet.selftest import Kind, extra_work
from tests.builders.files import json_lines, save_all

KINDS = {
    "equal": Kind("equal"),
    "3": Kind("3", 0.03),
    "5": Kind("5", 0.05),
    "10": Kind("10", 0.10),
    "tail": Kind("tail", 0.10, slowest=True),
}
"""``tail``: +10 % on the slowest fifth of the queries."""

QUERIES = 200
WITHIN_S = {kind: 10.0 if kind == "10" else 15.0 for kind in KINDS}
"""Of measuring, within which the goals want an answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, or sum up; ends with 0 whatever the figures are."""
    asked = _parser().parse_args(arguments)
    if not asked.summary:
        with tempfile.TemporaryDirectory() as folder, _neighbours(asked.neighbours):
            _play(asked, _dataset(Path(folder)))
    terminal.to_console([summary(asked.json)], Console(file=sys.stdout))
    return 0


def _play(asked: argparse.Namespace, dataset: Path) -> None:
    ids = sorted((f"q{i}" for i in range(QUERIES)), key=Probe().rows_for)
    slow = ids[-int(SLOWEST * QUERIES) :]
    a, b = (extra_work(None, kind, slow) for kind in (KINDS["equal"], KINDS[asked.kind]))
    for number in range(asked.n):
        seed = asked.seed + number
        result = duet(a, b, dataset, protocol=DuetProtocol(seed=seed))
        if asked.keep:
            write_duet(result, asked.keep / f"{asked.kind}-{seed}")
        line = json.dumps(_line(result, asked, seed))
        with asked.json.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        sys.stderr.write(line + "\n")


def _line(result: DuetResult, asked: argparse.Namespace, seed: int) -> dict[str, Any]:
    return {
        "kind": asked.kind,
        "beside": asked.beside or f"{asked.neighbours} sorting",
        "seed": seed,
        "verdict": result.word,
        "launches": result.launches,
        "lost": len(result.lost),
        "measured_s": round(result.measured_s, 2),
        "total_s": round(result.total_s, 1),
        "others": round(result.others or 0.0, 3),
        "stolen": round(result.stolen or 0.0, 3),
        "median_ms": None if result.median_ns is None else round(result.median_ns[0] / 1e6, 3),
        "gates": {
            gate.gate: [gate.verdict.value, gate.ratio and round(gate.ratio, 4)]
            for gate in result.gates
        },
        "spread": _spread(result),
    }


def _spread(result: DuetResult) -> float:
    """Of the typical log ratio, from launch to launch."""
    from retrieval_bench_duet.decision import thetas

    values = thetas("p50", [one.pairs(0) for one in result.launched])
    return round(float(np.std(values, ddof=1)), 5) if len(values) > 1 else float("nan")


def summary(file: Path) -> Table:
    """Verdicts of the lines of a file, by kind and what ran beside them."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    groups = sorted({(line["kind"], line["beside"]) for line in lines})
    rows = []
    for kind, beside in groups:
        own = [line for line in lines if (line["kind"], line["beside"]) == (kind, beside)]
        words = [sum(line["verdict"] == word for line in own) for word in _WORDS]
        fails = [line for line in own if line["verdict"] == "FAIL"]
        soon = sum(line["measured_s"] <= WITHIN_S[kind] for line in fails)
        times = [line["measured_s"] for line in own]
        rows.append(
            [
                f"{kind}, beside {beside}",
                str(len(own)),
                *map(str, words),
                str(soon),
                f"{np.median(times):.1f}",
                f"{np.max(times):.1f}",
                f"{100 * np.median([line['spread'] for line in own]):.2f}",
                *(f"{100 * np.mean([line[who] for line in own]):.0f}" for who in _TAKEN),
            ]
        )
    columns = ("side b", "n", "F", "P", "I", "N", "soon", "s", "most", "sd", *_TAKEN)
    notes = (
        "F: FAIL, P: PASS, I: INCONCLUSIVE, N: NOT MEASURED",
        f"soon: FAIL within {WITHIN_S['5']:g} s of measuring, 10 within {WITHIN_S['10']:g} s",
        "s, most: median and longest measuring in seconds",
        "sd: of the typical log ratio from launch to launch, in %",
        "others, stolen: time of the cores that other processes and guests of the host took, in %",
    )
    return Table("Live duets of the probe", columns, rows, notes=notes)


_TAKEN = ("others", "stolen")
_WORDS = ("FAIL", "PASS", "INCONCLUSIVE", "NOT MEASURED")


@contextmanager
def _neighbours(n: int) -> Iterator[None]:
    """Other processes that use the processor and its caches."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_busy, daemon=True) for _ in range(n)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def _busy() -> None:
    values = np.random.default_rng(0).standard_normal(1_000_000)
    while True:
        np.sort(values)


def _dataset(folder: Path) -> Path:
    """A BEIR folder of made texts."""
    rows = "".join(f"q{i}\tc{i}\t1\n" for i in range(QUERIES))
    files = {"qrels/test.tsv": "query-id\tcorpus-id\tscore\n" + rows}
    for name, n in (("corpus", 300), ("queries", QUERIES)):
        lines = ({"_id": f"{name[0]}{i}", "text": f"text {i}"} for i in range(n))
        files[f"{name}.jsonl"] = json_lines(lines)
    return save_all(folder, files)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.duets", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="equal")
    parser.add_argument("--n", type=int, default=10, help="how many duets")
    parser.add_argument("--neighbours", type=int, default=0, help="sorting processes beside them")
    parser.add_argument("--beside", metavar="TEXT", help="what else runs, for the record")
    parser.add_argument("--seed", type=int, default=1, help="of the first duet")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="save every duet there, with all its times"
    )
    parser.add_argument("--summary", action="store_true", help="only sum up what the file holds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
