"""How often the gate of ``regress`` passes a real drop, and how often it stops a change that is as
good, by policy.

``python -m tests.benchmarks.gate_power`` prints the table of the guide; some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics import parse_metric
from retrieval_bench_regress.gate import Regression, Subject
from retrieval_bench_regress.policy import Policy, Rise, Undecided
from retrieval_bench_regress.quality_gates import judge_quality
from tests.builders.baselines import quality

SIZES = (20, 40, 100, 300)
DROPS = (0.0, 0.01, 0.02, 0.05, 0.1)
SETS = 400
MOVED, SPREAD = 0.4, 0.2
"""Share of the queries whose value a change moves, and the standard deviation of these moves."""

METRIC = "nDCG@10"
LIMITS = {parse_metric(METRIC): 0.01}
POLICIES: Mapping[str, Policy] = {
    "rise: undecided": Policy(LIMITS, {}, rise=Rise.UNDECIDED),
    "as shipped": Policy(LIMITS, {}),
    "undecided: pass": Policy(LIMITS, {}, undecided=Undecided.PASS),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """``n`` questions and a change that lowers the mean of all such questions by ``drop``.

    Attributes:
        passed: policy -> share of the sets of questions with which ``regress`` exits with 0.
    """

    n: int
    drop: float
    passed: Mapping[str, float]


def cells(
    sizes: Sequence[int] = SIZES, drops: Sequence[float] = DROPS, sets: int = SETS
) -> Iterator[Cell]:
    """Every number of questions with every drop."""
    for n in sizes:
        for drop in drops:
            rng = np.random.default_rng([n, round(1_000 * drop)])
            codes = np.array([_codes(_changes(rng, n, drop)) for _ in range(sets)])
            shares = (codes == 0).mean(axis=0).tolist()
            yield Cell(n, drop, dict(zip(POLICIES, shares, strict=True)))


def _changes(rng: np.random.Generator, n: int, drop: float) -> NDArray[np.float64]:
    moves = np.clip(rng.normal(-drop / MOVED, SPREAD, n), -1, 1)
    return np.where(rng.random(n) < MOVED, moves, 0.0)


def _codes(changes: NDArray[np.float64]) -> list[int]:
    """The exit code of ``regress`` by each policy."""
    before = quality({METRIC: [0.0] * len(changes)}, ["then"] * len(changes))
    now = quality({METRIC: changes.tolist()}, ["now"] * len(changes))
    strict = judge_quality(before, now, LIMITS, rise=Rise.UNDECIDED)
    found = {Rise.UNDECIDED: strict, Rise.PASS: strict}
    if strict.gates[0].verdict.open and changes.mean() > 0:  # all else is the same by both
        found[Rise.PASS] = judge_quality(before, now, LIMITS, rise=Rise.PASS)
    policies = POLICIES.values()
    return [
        Regression(cast("Subject", {}), one, {}, found[one.rise], None).code for one in policies
    ]


def row(cell: Cell) -> str:
    """The row of the guide."""
    what = "none" if cell.drop == 0 else f"{cell.drop:.2f} lower".replace("0.", ".")
    shares = [f"{100 * share:.0f} %" for share in cell.passed.values()]
    return f"| {cell.n} | {what} | {' | '.join(shares)} |"


def main() -> int:
    """Print the table."""
    print(f"| questions | the change is | {' | '.join(f'`{name}`' for name in POLICIES)} |")
    print(f"|---:|---|{'---:|' * len(POLICIES)}")
    for cell in cells():
        print(row(cell), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
