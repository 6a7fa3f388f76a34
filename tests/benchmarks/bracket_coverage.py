"""How often the inverted randomisation test covers the mean difference, how wide it is beside
Student's t, and whether it ever says something else than the word beside it.

``python -m tests.benchmarks.bracket_coverage`` prints the table of the guide; about two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.brackets import WEIGHTY
from retrieval_bench.stats.paired import paired_tests
from tests.benchmarks.quality_coverage import PAIRED, Shape

Floats = NDArray[np.float64]

SIZES = (10, 30, 100, 300)
SETS = 4_000
ALPHA = 0.05
LEAST = 0.93
WIDEST = 1.15

SHAPES: Mapping[str, Shape] = {
    "normal": Shape(lambda rng, size: rng.normal(0.05, 0.2, size), 0.05),
    "gamma, a tail of gains": Shape(lambda rng, size: rng.gamma(0.5, 0.2, size), 0.1),
    **PAIRED,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape with ``n`` queries.

    Attributes:
        weight: how many of the queries carry the difference, over all sets together.
        beside: share of the sets in which the bound stands beside the interval.
        covered: share of the sets whose interval holds the mean.
        width: beside Student's interval, median of the sets that vary.
        contradictions: sets in which the interval and the word do not agree.
    """

    shape: str
    n: int
    weight: float
    beside: float
    covered: float
    width: float
    contradictions: int


def cells(
    shapes: Mapping[str, Shape] = SHAPES, sizes: tuple[int, ...] = SIZES, sets: int = SETS
) -> Iterator[Cell]:
    """Every shape with every number of queries."""
    for name, shape in shapes.items():
        for n in sizes:
            rng = np.random.default_rng([n, *name.encode()])
            values = shape.draw(rng, (sets, n)).T
            # Each set is a metric of the same two systems, so that all share their patterns.
            found = paired_tests(np.stack([np.zeros_like(values), values]), [(0, 1)])
            low, high = found.intervals(np.full((1, sets), ALPHA))[0].T
            excludes = (low > 0) | (high < 0)
            holds = (low <= shape.mean + 1e-9) & (shape.mean <= high + 1e-9)
            weight = n * np.abs(values).mean() ** 2 / (values**2).mean()
            yield Cell(
                name,
                n,
                float(weight),
                float((found.weighty[0] < WEIGHTY).mean()),
                float(holds.mean()),
                _beside_student(high - low, values),
                int(np.count_nonzero(excludes != (found.p[0] < ALPHA))),
            )


def _beside_student(widths: Floats, values: Floats) -> float:
    from scipy.stats import t

    n = len(values)
    theirs = 2 * t.ppf(1 - ALPHA / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    varies = theirs > 0
    return float(np.median(widths[varies] / theirs[varies]))


def missed(cell: Cell, sets: int = SETS) -> list[str]:
    """Which of the goals ``cell`` does not reach, allowing two standard errors of a share."""
    rare = 2 * float(np.sqrt(LEAST * (1 - LEAST) / sets))
    found = []
    if cell.contradictions:
        found.append(f"{cell.contradictions} contradictions")
    if cell.weight >= WEIGHTY and cell.covered < LEAST - rare:
        found.append(f"covered {cell.covered:.3f}")
    if cell.weight >= WEIGHTY and cell.n >= 30 and cell.width > WIDEST:
        found.append(f"width {cell.width:.2f}")
    return found


def main() -> int:
    """Print the table; exit code 1 where a goal is missed."""
    faults = 0
    print("| differences | n | carried by | covered | width / t | bound beside |")
    print("|---|---:|---:|---:|---:|---:|")
    for one in cells():
        faults += len(missed(one))
        shown = f"{one.weight:.1f} | {one.covered:.3f} | {one.width:.2f} | {one.beside:.3f}"
        print(f"| {one.shape} | {one.n} | {shown} |", flush=True)
        for fault in missed(one):
            print(f"{one.shape}, n = {one.n}: {fault}", file=sys.stderr)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
