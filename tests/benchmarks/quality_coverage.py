"""How often intervals of quality cover the truth, and how wide they are beside the bootstrap's.

``python -m tests.benchmarks.quality_coverage`` prints the table of the guide: 10,000 sets of
queries a cell, of every shape and size, one sample and paired; about fifteen minutes. The rule
under test is that of :mod:`retrieval_bench.stats.intervals`, whole: a cell names what the metric
can be, and the rule picks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.stats.intervals import HIT, SHARE, Scale, mean_intervals, method
from retrieval_bench.stats.resampling import RESAMPLES

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

SIZES = (5, 10, 30, 100, 300)
SETS = 10_000
LEAST = 0.94
"""Of nominal 95 %, less two standard errors of a share in so many sets."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How values of queries are distributed.

    Attributes:
        draw: gives (sets, queries).
        mean: the truth.
        scale: what the metric's definition says of its values.
    """

    draw: Draw
    mean: float
    scale: Scale = SHARE


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape with ``n`` queries: shares of sets covered, mean widths; bootstrap beside."""

    shape: str
    n: int
    method: str
    covered: float
    width: float
    bootstrap_covered: float
    bootstrap_width: float


def _hits(p: float, scale: Scale = HIT) -> Shape:
    return Shape(lambda rng, size: (rng.random(size) < p).astype(np.float64), p, scale)


def _discrete(values: list[float], shares: list[float], scale: Scale = SHARE) -> Shape:
    ends = np.cumsum(shares)
    table = np.array(values)

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        return np.asarray(table[np.searchsorted(ends[:-1], rng.random(size), side="right")])

    return Shape(draw, float(np.dot(values, shares)), scale)


def _mixed(zero: float, one: float, a: float, b: float) -> Shape:
    """0 on a share of the queries, 1 on another, between them Beta(a, b)."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        u = rng.random(size)
        return np.where(u < zero, 0.0, np.where(u > 1 - one, 1.0, rng.beta(a, b, size=size)))

    return Shape(draw, one + (1 - zero - one) * a / (a + b))


def _found(of: int, p: float) -> Shape:
    return Shape(lambda rng, size: rng.binomial(of, p, size=size) / of, p)


def _precision(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return rng.binomial(10, rng.beta(1, 3, size=size)) / 10


_RANKS = [0.45 * 0.55**rank for rank in range(10)]
_RR = [1 / rank for rank in range(1, 11)] + [0.0]
_RR_SHARES = [*_RANKS, 1 - sum(_RANKS)]

ONE_SAMPLE: Mapping[str, Shape] = {
    **{f"hit, mean {p:g}": _hits(p) for p in (0.01, 0.03, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99)},
    **{f"recall of one, mean {p:g}": _hits(p, SHARE) for p in (0.05, 0.5, 0.95, 0.99)},
    "RR": _discrete(_RR, _RR_SHARES),
    "RR, nearly always 1": _discrete([1.0, 0.5, 0.25, 0.0], [0.95, 0.03, 0.01, 0.01]),
    "AP": _mixed(0.1, 0.05, 0.9, 1.2),
    "nDCG": _mixed(0.15, 0.25, 4.0, 2.0),
    "nDCG, high": _mixed(0.02, 0.6, 4.0, 2.0),
    "recall of several": _found(5, 0.6),
    "P@10": Shape(_precision, 0.25),
    "skewed, low": _mixed(0.0, 0.0, 0.5, 4.0),
    "skewed, high": _mixed(0.0, 0.0, 4.0, 0.5),
    "rare: 0 on 9 of 10": _mixed(0.9, 0.0, 2.0, 2.0),
    "rare: 0 on 99 of 100": _mixed(0.99, 0.0, 2.0, 2.0),
}

_BOTH = SHARE.of_differences


def _ties_and_noise(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    noise = np.clip(rng.normal(0.0, 0.25, size=size), -0.9, 0.9) + 0.05
    return np.where(rng.random(size) < 0.5, 0.0, noise)


def _rr_minus_rr(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    draw = ONE_SAMPLE["RR"].draw
    return draw(rng, size) - draw(rng, size)


PAIRED: Mapping[str, Shape] = {
    "hits: 8 % won, 3 % lost": _discrete([0.0, 1.0, -1.0], [0.89, 0.08, 0.03], HIT.of_differences),
    "hits: 1 % lost": _discrete([0.0, -1.0], [0.99, 0.01], HIT.of_differences),
    "nDCG: half tied": Shape(_ties_and_noise, 0.025, _BOTH),
    "RR of unlike systems": Shape(_rr_minus_rr, 0.0, _BOTH),
    "mostly a bit better, rarely far worse": _discrete([0.02, -0.98], [0.98, 0.02], _BOTH),
    "97 of 100 tied": _discrete([0.0, 0.3, -0.2], [0.97, 0.02, 0.01], _BOTH),
}


def cells(
    shapes: Mapping[str, Shape], sizes: tuple[int, ...] = SIZES, sets: int = SETS, *, beside: bool
) -> Iterator[Cell]:
    """Every shape with every number of queries.

    Args:
        beside: whether the bootstrap is tried on the same sets; it takes most of the time.
    """
    for name, shape in shapes.items():
        for n in sizes:
            rng = np.random.default_rng([n, *name.encode()])
            values = shape.draw(rng, (sets, n))
            ends = mean_intervals(values.T, [shape.scale] * sets)
            other = _bootstrap(values, rng) if beside else np.full((sets, 2), np.nan)
            yield Cell(
                name,
                n,
                method(shape.scale),
                _covered(ends, shape.mean),
                float((ends[:, 1] - ends[:, 0]).mean()),
                _covered(other, shape.mean),
                float((other[:, 1] - other[:, 0]).mean()),
            )


def least(sets: int = SETS) -> float:
    """The share of sets that a cell has to cover."""
    return LEAST - 2 * float(np.sqrt(LEAST * (1 - LEAST) / sets))


def _covered(ends: Floats, mean: float) -> float:
    return float(((ends[:, 0] <= mean + 1e-9) & (mean <= ends[:, 1] + 1e-9)).mean())


def _bootstrap(values: Floats, rng: np.random.Generator) -> Floats:
    """Percentile bootstrap of every row; all share their resamples."""
    sets, n = values.shape
    counts = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float32)
    table = values.astype(np.float32)
    found = [
        np.quantile(counts @ table[start : start + 500].T / n, [0.025, 0.975], axis=0).T
        for start in range(0, sets, 500)
    ]
    return np.concatenate(found).astype(np.float64)


def main() -> int:
    """Print the table; exit code 1 where a cell is not covered."""
    missed = 0
    print("| values | n | interval | covered | width | bootstrap | width | ratio |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for shapes in (ONE_SAMPLE, PAIRED):
        for one in cells(shapes, beside=True):
            missed += one.covered < least()
            ratio = one.width / one.bootstrap_width if one.bootstrap_width else float("inf")
            figures = f"{one.covered:.3f} | {one.width:.4f} | {one.bootstrap_covered:.3f} | "
            figures += f"{one.bootstrap_width:.4f} | {ratio:.2f}"
            print(f"| {one.shape} | {one.n} | {one.method} | {figures} |", flush=True)
    print(f"\n{missed} cells below {least():.4f}", file=sys.stderr)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
