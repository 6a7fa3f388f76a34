"""How often the 95 % intervals of percentiles cover the truth, in simulated runs.

``python -m tests.benchmarks.coverage`` prints one row for each kind of machine, size of run and
family. The truth is known in closed form: a call's log time is the sum of its query's base time,
an effect of the launch, one of the round, and noise, all mixtures of normal distributions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from retrieval_bench.stats.percentiles import (
    FEWEST_LAUNCHES,
    CallSample,
    Percentile,
    clusters,
    needs,
    percentile,
)

Floats = NDArray[np.float64]
Ends = tuple[float, float]

LEVELS = (50.0, 95.0, 99.0)
LAUNCH_SD = 0.009


class Normal(NamedTuple):
    """A part of a mixture of normal distributions, on the log scale."""

    weight: float
    mean: float
    sd: float


Mixture = tuple[Normal, ...]


@dataclass(frozen=True)
class World:
    """How times come about: base times of queries, noise of calls, spread of rounds."""

    base: Mixture
    noise: Mixture
    round_sd: float


_SPIKES = Normal(0.03, 0.4, 0.4)
"""Three calls in a hundred take half as long again, give or take."""


def _noise(sd: float, *rare: Normal) -> Mixture:
    return (Normal(1 - sum(part.weight for part in rare), 0.0, sd), *rare)


WORLDS = {
    "usual": World((Normal(1, 0, 0.5),), _noise(0.05, _SPIKES), 0.02),
    "narrow": World((Normal(1, 0, 0.3),), _noise(0.1, _SPIKES), 0.01),
    "wide": World((Normal(1, 0, 1.0),), _noise(0.05, _SPIKES), 0.03),
    "bimodal": World((Normal(0.6, 0, 0.2), Normal(0.4, 1.5, 0.3)), _noise(0.05, _SPIKES), 0.02),
    "stalls": World(
        (Normal(1, 0, 0.5),), _noise(0.05, _SPIKES, Normal(0.02, np.log(10), 0.1)), 0.02
    ),
    "calm": World((Normal(1, 0, 0.5),), _noise(0.05, _SPIKES), 0.0),
}

SIZES = ((166, 7), (300, 4), (300, 17), (83, 13), (1000, 5), (30, 40), (100, 50))
"""(queries, rounds); the p99 of 100 and of 300 queries falls between two of them."""

FEW_ROUNDS = ((1_000, 1), (500, 2), (350, 3))
"""Too few rounds to see how they differ; such intervals never gate."""


def draw(mixture: Mixture, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Values of a mixture, on the log scale."""
    values = rng.normal(mixture[0].mean, mixture[0].sd, size)
    uniform, start = rng.random(size), mixture[0].weight
    for part in mixture[1:]:
        chosen = (uniform >= start) & (uniform < start + part.weight)
        values[chosen] = rng.normal(part.mean, part.sd, np.count_nonzero(chosen))
        start += part.weight
    return values


def _sum(one: Mixture, other: Mixture) -> Mixture:
    """The distribution of the sum of two independent values."""
    return tuple(
        Normal(a.weight * b.weight, a.mean + b.mean, float(np.hypot(a.sd, b.sd)))
        for a in one
        for b in other
    )


def quantile(p: float, shifts: Floats, mixture: Mixture, extra_sd: float) -> float:
    """The ``p``-quantile of shift + mixture + normal(0, extra_sd), over all shifts alike."""

    def share_below(x: float) -> float:
        return sum(
            part.weight * float(ndtr((x - shifts - part.mean) / np.hypot(part.sd, extra_sd)).mean())
            for part in mixture
        )

    lower, upper = float(shifts.min()) - 10, float(shifts.max()) + 10
    for _ in range(45):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if share_below(middle) < p else (lower, middle)
    return lower


@dataclass(frozen=True)
class Run:
    """One simulated measurement: log times of shape (launches, rounds, queries), and the truth."""

    log: Floats
    position: NDArray[np.int32]
    truth: Floats

    def sample(self) -> CallSample:
        launch, round_, query = np.indices(self.log.shape, dtype=np.int32).reshape(3, -1)
        groups = clusters(round_, self.position.ravel(), launch)
        return CallSample(np.exp(self.log).ravel(), query, groups)


def call_runs(
    world: World, size: tuple[int, int], launches: int, n: int, *, seed: int = 7, sets: int = 40
) -> Iterator[Run]:
    """Runs over fixed sets of queries; the truth is that of these queries, and, with few launches,
    of these launches."""
    rng = np.random.default_rng(seed)
    queries, rounds = size
    any_launch = launches >= FEWEST_LAUNCHES
    spread = float(np.hypot(world.round_sd, LAUNCH_SD if any_launch else 0))
    for _ in range(sets):
        base = draw(world.base, (queries,), rng)
        centre = np.array([quantile(p / 100, base, world.noise, spread) for p in LEVELS])
        for _ in range(n // sets):
            launch = rng.normal(0, LAUNCH_SD, (launches, 1, 1))
            log = base + launch + rng.normal(0, world.round_sd, (launches, rounds, 1))
            log = log + draw(world.noise, log.shape, rng)
            if any_launch or launches == 1:
                truth = centre + (0.0 if any_launch else float(launch[0, 0, 0]))
            else:
                shifts = (base + launch).ravel()
                truth = np.array([quantile(p / 100, shifts, world.noise, spread) for p in LEVELS])
            order = np.broadcast_to(np.arange(queries, dtype=np.int32), log.shape)
            yield Run(log, rng.permuted(order, axis=2), np.exp(truth))


def mix_runs(
    world: World, size: tuple[int, int], n: int, *, seed: int = 7, sets: int = 40
) -> Iterator[tuple[Floats, Floats]]:
    """Medians of each query over rounds, and the truth: percentiles over all queries of this kind
    that might have been asked in these rounds."""
    rng = np.random.default_rng(seed)
    queries, rounds = size
    for _ in range(sets):
        effects = rng.normal(0, LAUNCH_SD) + rng.normal(0, world.round_sd, (rounds, 1))
        if rounds == 1:
            medians, spread = effects[0], _sum(world.base, world.noise)
        else:
            drawn = np.median(effects + draw(world.noise, (rounds, 50_000), rng), axis=0)
            medians = np.sort(drawn).reshape(1_000, 50).mean(axis=1)  # as exact, and faster
            spread = world.base
        truth = np.array([quantile(p / 100, medians, spread, 0.0) for p in LEVELS])
        for _ in range(n // sets):
            log = draw(world.base, (queries,), rng) + effects
            log = log + draw(world.noise, (rounds, queries), rng)
            yield np.exp(np.median(log, axis=0)), np.exp(truth)


def call_percentiles(run: Run) -> list[Percentile]:
    """What the project says of a run."""
    sample = run.sample()
    return [sample.percentile(level) for level in LEVELS]


Method = Callable[[Run], list[Ends]]


def independent(run: Run) -> list[Ends]:
    """Order statistics, calls taken as independent."""
    found = [percentile(np.exp(run.log).ravel(), level).ci95 for level in LEVELS]
    return [ends or (np.nan, np.nan) for ends in found]


def _resampled(run: Run, weights: NDArray[np.int64]) -> Floats:
    """Log percentiles, (rows of weights, levels), with each round counted ``weights`` times."""
    queries = run.log.shape[2]
    order = np.argsort(run.log, axis=None)
    ordered = run.log.ravel()[order]
    total = weights[:, order // queries].cumsum(axis=1, dtype=np.int32)
    return np.array(
        [
            [ordered[np.searchsorted(row, level / 100 * row[-1])] for level in LEVELS]
            for row in total
        ]
    )


def _bootstrap(run: Run, resamples: int = 200) -> tuple[Floats, int]:
    n = run.log.shape[0] * run.log.shape[1]
    rng = np.random.default_rng(3)
    return _resampled(run, rng.multinomial(n, np.full(n, 1 / n), resamples)), n


def bootstrap(run: Run) -> list[Ends]:
    """Percentile bootstrap over rounds."""
    ends = np.exp(np.quantile(_bootstrap(run)[0], [0.025, 0.975], axis=0).T)
    return [(float(lower), float(upper)) for lower, upper in ends]


def bootstrap_t(run: Run) -> list[Ends]:
    """Bootstrap over rounds: its standard error on the log scale, Student's t, m / (m - 1)."""
    resampled, n = _bootstrap(run)
    return _around(run, resampled.std(axis=0) * np.sqrt(n / (n - 1)), n)


def jackknife(run: Run) -> list[Ends]:
    """Delete a round: standard error on the log scale, Student's t."""
    n = run.log.shape[0] * run.log.shape[1]
    left_out = _resampled(run, 1 - np.eye(n, dtype=np.int64))
    return _around(run, left_out.std(axis=0) * np.sqrt(n - 1), n)


def _around(run: Run, error: Floats, n: int) -> list[Ends]:
    centre = np.percentile(run.log, LEVELS)
    half = stdtrit(n - 1, 0.975) * error
    return [(float(np.exp(c - h)), float(np.exp(c + h))) for c, h in zip(centre, half, strict=True)]


OTHERS: dict[str, Method] = {
    "calls as independent": independent,
    "bootstrap of rounds": bootstrap,
    "bootstrap, log scale, t": bootstrap_t,
    "jackknife of rounds, t": jackknife,
}


class Tally:
    """Counts, for each level: intervals, those that cover, and their width relative to truth."""

    def __init__(self) -> None:
        self.n = np.zeros(len(LEVELS))
        self.covered = np.zeros(len(LEVELS))
        self.width = np.zeros(len(LEVELS))
        self.gates = np.zeros(len(LEVELS), dtype=bool)

    def add(self, ends: Sequence[Ends | None], truth: Floats) -> None:
        for i, pair in enumerate(ends):
            if pair is not None:
                self.n[i] += 1
                self.covered[i] += pair[0] <= truth[i] <= pair[1]
                self.width[i] += (pair[1] - pair[0]) / truth[i]

    def add_ours(self, found: Sequence[Percentile], truth: Floats) -> None:
        self.add([result.ci95 for result in found], truth)
        self.gates |= [result.gates for result in found]

    def row(self) -> str:
        cells = []
        for n, covered, width, gates in zip(
            self.n, self.covered, self.width, self.gates, strict=True
        ):
            mark = "*" if gates else " "
            cells.append(
                f"{100 * covered / n:6.1f}{mark} ({100 * width / n:5.1f})" if n else f"{'-':>15}"
            )
        return "  ".join(cells)


def call_tally(world: World, size: tuple[int, int], launches: int, n: int) -> Tally:
    tally = Tally()
    for run in call_runs(world, size, launches, n):
        tally.add_ours(call_percentiles(run), run.truth)
    return tally


def mix_tally(world: World, size: tuple[int, int], n: int) -> Tally:
    tally = Tally()
    for medians, truth in mix_runs(world, size, n):
        tally.add_ours([percentile(medians, level, "query") for level in LEVELS], truth)
    return tally


def other_tally(method: Method, world: World, size: tuple[int, int], n: int) -> Tally:
    tally = Tally()
    for run in call_runs(world, size, 1, n):
        ends: list[Ends | None] = [
            pair if run.log.size >= needs(level).printed else None
            for pair, level in zip(method(run), LEVELS, strict=True)
        ]
        tally.add(ends, run.truth)
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the study; ends with 0 whatever the figures are."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.coverage", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=2_000, help="simulated runs for each row")
    parser.add_argument("--only", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="WORLD")
    parser.add_argument("--families", nargs="+", choices=("call", "mix", "others"), default=None)
    asked = parser.parse_args(arguments)
    families = asked.families or ("call", "mix", "others")
    print("coverage in % (mean width in % of the truth); *: large enough to gate")
    print(f"{'':58} " + "  ".join(f"{f'p{level:g}':>15}" for level in LEVELS))
    for name in asked.only:
        for size in SIZES + FEW_ROUNDS:
            label = f"{name:8} {size[0]:5} queries x {size[1]:2} rounds"
            if "call" in families:
                for launches in (1, 5):
                    row = call_tally(WORLDS[name], size, launches, asked.runs).row()
                    print(f"{label} x {launches} call{'':16} {row}", flush=True)
            if "mix" in families:
                row = mix_tally(WORLDS[name], size, asked.runs).row()
                print(f"{label}     mix{'':17} {row}", flush=True)
    if "others" in families:
        for name in asked.only:
            for size in SIZES[:3]:
                for what, method in OTHERS.items():
                    row = other_tally(method, WORLDS[name], size, asked.runs).row()
                    print(f"{name:8} {size[0]:4} x {size[1]:2}: {what:26}{'':14} {row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
