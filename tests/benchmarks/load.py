"""How often the intervals of ``load`` hold the percentiles of queues whose theory is known, and
how often a growing queue is found: ``python -m tests.benchmarks.load [SEEDS] [SECONDS]``. With the
word ``slo`` before: how often the bracket of ``--slo`` holds the capacity; with ``duet``: how often
``duet --rate`` calls equal sides slower, and finds what is 10 % slower; with ``compare``: how often
two loads of the same are called different."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from statistics import median

from retrieval_bench.core.types import Verdict
from retrieval_bench.load.capacity import Capacity, Evidence, Limit, Search
from retrieval_bench.load.generator import Made
from retrieval_bench.load.levels import State, judged
from retrieval_bench.regression.load_duet import Blocks
from retrieval_bench.regression.loads import PercentilePair
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


def duelled(slower: float, seed: int, *, load: float = 0.5, most_s: float = 300.0) -> Verdict:
    """The verdict of a duet of two queues in that time, blocks of 10 s; no call is made."""
    pairs = int(most_s / 22.0)

    def block(side: int, number: int) -> Made:
        ratio = slower if side else 1.0
        return queue(load, 10.0, number, warm_up_s=1.0, slower=ratio, server=1 + side)

    blocks = Blocks(block, (True, True), 0.05, 1_000_000 * seed)
    blocks.more = lambda: len(blocks.medians) < pairs
    (gate,) = blocks.play().results()
    return gate.verdict


def duets(seeds: int = 100) -> None:
    """Equal sides, and one that is 10 % slower, at three loads."""
    for load, slower in product((0.3, 0.5, 0.7), (1.0, 1.02, 1.1)):
        found = Counter(duelled(slower, seed, load=load) for seed in range(seeds))
        told = ", ".join(f"{verdict} {n}" for verdict, n in found.most_common())
        print(f"load {load}, service {slower - 1:+.0%}: {told}")


def compared(seeds: int = 200, seconds: float = 30.0) -> None:
    """Two loads of one queue, each percentile by itself."""
    for load, at in product((0.5, 0.7), (0, 1, 2)):
        found: Counter[str] = Counter()
        for seed in range(seeds):
            a, b = (judged(queue(load, seconds, 2 * seed + n), in_process=True) for n in (0, 1))
            if a.latency and b.latency:
                found[PercentilePair.of(a.latency[at], b.latency[at]).verdict] += 1
        print(f"load {load}, {('p50', 'p95', 'p99')[at]}: {dict(found)}")


if __name__ == "__main__":
    studies: dict[str, Callable[..., None]] = {"slo": brackets, "duet": duets, "compare": compared}
    named = sys.argv[1:2] and sys.argv[1] in studies
    study: Callable[..., None] = studies[sys.argv[1]] if named else main
    study(*(float(one) if "." in one else int(one) for one in sys.argv[2 if named else 1 :]))
