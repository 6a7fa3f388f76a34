"""How often the intervals of ``load`` hold the percentiles of queues whose theory is known, and
how often a growing queue is found: ``python -m tests.benchmarks.load [SEEDS] [SECONDS]``. With the
word ``slo`` before: how often the bracket of ``--slo`` holds the capacity."""

from __future__ import annotations

import sys
from itertools import product
from statistics import median

from retrieval_bench.load.capacity import Capacity, Evidence, Limit, Search
from retrieval_bench.load.levels import State, judged
from tests.builders.queued import SERVICE_S, queue, sojourn_ms


def main(seeds: int = 200, seconds: float = 120.0) -> None:
    held_all = printed_all = 0
    print("queue  load  percentile  printed  hold the theory")
    for constant, load in product((False, True), (0.5, 0.7, 0.85)):
        levels = [
            judged(queue(load, seconds, seed, constant=constant), in_process=True)
            for seed in range(seeds)
        ]
        wrong = sum(level.state is not State.MEASURED for level in levels)
        for at, p in enumerate((50.0, 95.0, 99.0)):
            truth = sojourn_ms(load, p, constant=constant)
            tails = [level.latency[at] for level in levels if level.latency]
            ends = [tail.ci95 for tail in tails if tail.ci95 is not None]
            held = sum(low <= truth and (high is None or truth <= high) for low, high in ends)
            held_all, printed_all = held_all + held, printed_all + len(ends)
            share = f"{held / len(ends):.3f}" if ends else "-"
            name = "M/D/1" if constant else "M/M/1"
            print(f"{name}  {load:4}  p{p:<9g}  {len(ends):7}  {share}   not measured: {wrong}")
    print(f"over all: {held_all} of {printed_all}, {held_all / max(1, printed_all):.3f}")
    for load in (1.02, 1.05, 1.1):
        found = sum(
            judged(queue(load, 30.0, seed), in_process=True).state is State.OVERLOADED
            for seed in range(seeds)
        )
        print(f"growing at {load}: overloaded in {found} of {seeds}")


def searched(
    *, load: float, level: float, seed: int, first: float, seconds: float = 20.0
) -> tuple[Capacity, float]:
    """The bracket of an M/M/1 queue for the limit that it just keeps at ``load``, and the rate of
    that; no call is made."""
    limit = Limit(level, sojourn_ms(load, level, constant=False))

    def measure(rate: float, number: int) -> Evidence:
        made = queue(rate * SERVICE_S, seconds, 1_000 * seed + number, warm_up_s=2.0)
        return Evidence.of(made, judged(made, in_process=True), limit)

    return Search(limit, measure).run(first), load / SERVICE_S


def brackets(seeds: int = 200, seconds: float = 20.0) -> None:
    """Limits of p95 and p99 that are reached at a load of .54 to .82."""
    held = 0
    widths, levels, rough = [], [], 0
    for seed in range(seeds):
        load = 0.54 + 0.28 * seed / max(1, seeds - 1)
        found, capacity = searched(
            load=load, level=(95.0, 99.0)[seed % 2], seed=seed, first=250.0, seconds=seconds
        )
        if found.keeps is None or found.breaks is None:
            rough += 1
            continue
        held += found.keeps <= capacity <= found.breaks
        widths.append(found.breaks / found.keeps - 1)
        levels.append(found.levels)
    print(
        f"bracket holds the capacity in {held} of {seeds}; without both ends {rough}; width "
        f"{median(widths):.1%} in the median; {median(levels):g} levels, at most {max(levels)}"
    )


if __name__ == "__main__" and sys.argv[1:2] == ["slo"]:
    brackets(*(float(one) if "." in one else int(one) for one in sys.argv[2:]))  # type: ignore[arg-type]
elif __name__ == "__main__":
    main(*(float(one) if "." in one else int(one) for one in sys.argv[1:]))  # type: ignore[arg-type]
