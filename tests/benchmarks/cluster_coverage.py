"""How often the interval of a difference holds the true one where queries come in clusters, by
clusters and, beside it, as if all queries were independent.

``python -m tests.benchmarks.cluster_coverage`` prints the table of the guide; some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.brackets import WEIGHTY
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.paired import paired_tests

Floats = NDArray[np.float64]

CORRELATIONS = (0.0, 0.2, 0.5)
CLUSTERS = (10, 30, 100)
SHAPES = ("symmetric", "skewed")
SETS = 1_500
MEAN = 0.05
SPREAD = 0.2
LEAST_ON_AVERAGE = 0.93
LEAST = {10: 0.90, 30: 0.91, 100: 0.91}


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape at one correlation within clusters, with so many of these.

    Attributes:
        covered: share of the sets whose interval by clusters holds the mean.
        as_queries: likewise of the interval that takes queries for independent.
        few: share of the sets in which fewer than 15 clusters carry the difference, so that the
            bound stands beside.
    """

    shape: str
    correlation: float
    clusters: int
    covered: float
    as_queries: float
    few: float


def drawn(
    rng: np.random.Generator, shape: str, correlation: float, clusters: int, sets: int
) -> tuple[Floats, Clusters]:
    """Differences (queries, sets) in clusters of 1 to 40 queries (about 8 on average), which share
    a part of what moves them; and the clusters."""
    sizes = np.clip(np.round(rng.lognormal(1.7, 0.9, clusters)), 1, 40).astype(int)
    of = np.repeat(np.arange(clusters), sizes)

    def noise(n: int) -> Floats:
        if shape == "symmetric":
            return rng.normal(0, 1, (n, sets))
        return rng.exponential(1, (n, sets)) - 1

    own, shared = noise(len(of)), noise(clusters)[of]
    mixed = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    found = Clusters.by(of.tolist())
    assert found is not None
    return MEAN + SPREAD * mixed, found


def cells(
    correlations: tuple[float, ...] = CORRELATIONS,
    counts: tuple[int, ...] = CLUSTERS,
    sets: int = SETS,
) -> Iterator[Cell]:
    """Every shape at every correlation with every number of clusters."""
    for shape in SHAPES:
        for correlation in correlations:
            for n in counts:
                seed = [n, int(100 * correlation), *shape.encode()]
                yield _cell(np.random.default_rng(seed), shape, correlation, n, sets)


_DRAWS = 10
"""Sets of one drawing of sizes: a tenth of all."""


def _cell(rng: np.random.Generator, shape: str, correlation: float, n: int, sets: int) -> Cell:
    held: list[NDArray[np.bool_]] = []
    bare: list[NDArray[np.bool_]] = []
    few: list[NDArray[np.bool_]] = []
    for _ in range(_DRAWS):
        values, clusters = drawn(rng, shape, correlation, n, sets // _DRAWS)
        systems = np.stack([np.zeros_like(values), values])
        # Each set is a metric of the same two systems, so that all share their patterns.
        for of, kept in ((clusters, held), (None, bare)):
            found = paired_tests(systems, [(0, 1)], clusters=of, resamples=2_000)
            low, high = found.intervals(np.full((1, values.shape[1]), 0.05))[0].T
            kept.append((low <= MEAN) & (high >= MEAN))
            if of is not None:
                few.append(found.weighty[0] < WEIGHTY)
    covered, as_queries, carried = (float(np.concatenate(one).mean()) for one in (held, bare, few))
    return Cell(shape, correlation, n, covered, as_queries, carried)


def main() -> int:
    """Print the table; 1 where a cell misses a goal."""
    print("| differences | correlation | clusters | by clusters | as independent | few |")
    print("|---|---|---|---|---|---|")
    found = []
    for cell in cells():
        found.append(cell)
        print(
            f"| {cell.shape} | {cell.correlation:g} | {cell.clusters} | {cell.covered:.3f} | "
            f"{cell.as_queries:.3f} | {cell.few:.2f} |",
            flush=True,
        )
    average = float(np.mean([cell.covered for cell in found]))
    print(f"on average {average:.3f}")
    missed = [cell for cell in found if cell.covered < LEAST[cell.clusters]]
    return int(bool(missed) or average < LEAST_ON_AVERAGE)


if __name__ == "__main__":
    sys.exit(main())
