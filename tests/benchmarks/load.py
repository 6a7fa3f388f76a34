"""How often the intervals of ``load`` hold the percentiles of queues whose theory is known, and
how often a growing queue is found: ``python -m tests.benchmarks.load [SEEDS] [SECONDS]``."""

from __future__ import annotations

import sys
from itertools import product

from retrieval_bench.load.levels import State, judged
from tests.builders.queued import queue, sojourn_ms


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


if __name__ == "__main__":
    main(*(float(one) if "." in one else int(one) for one in sys.argv[1:]))  # type: ignore[arg-type]
