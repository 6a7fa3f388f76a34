"""How often the intervals of ``load`` hold the percentiles of queues whose theory is known, and
how often a growing queue is found: ``python -m tests.benchmarks.load [SEEDS] [SECONDS]``. With the
word ``slo`` before: how often the bracket of ``--slo`` holds the capacity; with ``duet``: how often
``duet --rate`` calls equal sides slower, and finds what is 10 % slower; with ``compare``: how often
two loads of the same are called different."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from statistics import median

import numpy as np

from retrieval_bench.core.types import Verdict
from retrieval_bench_load.engine.bracket import Capacity, Search
from retrieval_bench_load.engine.capacity import Evidence, Limit
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.levels import State, judged
from retrieval_bench_load.engine.schedule import Pace, due_ns
from retrieval_bench_load.load_duet import Blocks
from retrieval_bench_load.loads import PercentilePair
from tests.builders.queued import Service, level_of, queue, sojourn_ms


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


KINDS: Mapping[str, tuple[Service, Limit]] = {
    "one worker": (Service(), Limit(95.0, 20.0)),
    "four workers": (Service(4, 0.02, constant=False), Limit(95.0, 100.0)),
    "saturation at 300/s": (Service(1, 1 / 300, delay_s=0.02), Limit(99.0, 60.0)),
    "stall": (Service(stall_s=0.1, each_s=2.0), Limit(95.0, 60.0)),
    "endless": (Service(0, 0.4), Limit(95.0, 1_000.0)),
}
"""What is searched: a service, and the limit."""

_SLOTS, _LEVEL_S, _BEFORE_S, _AROUND_S = 256, 20.0, 2.0, 0.5
_SEARCH_S = 360.0 - 2 * (3.0 + 2.0)
"""Six minutes, less one call at a time and the clients in turn before the search."""


@cache
def capacity(name: str) -> float:
    """The true rate: that of theory would need one for each kind, so it is that of long queues."""
    service, limit = KINDS[name]
    if not service.workers:
        return math.inf
    low, high = 20.0, service.workers / service.takes_s
    for _ in range(12):
        rate = math.sqrt(low * high)
        due = due_ns(Pace(rate), 300_000 / rate, 5)
        calls = service.calls(due, 1 << 16, 5)
        above = np.mean((calls.done - calls.due)[1_000:] > limit.ms * 1e6)
        low, high = (rate, high) if above < 1 - limit.level / 100 else (low, rate)
    return math.sqrt(low * high)


def searched(
    service: Service,
    limit: Limit,
    seed: int,
    *,
    first: float | None = None,
    lost: float = 0.0,
    seconds: float = _SEARCH_S,
) -> Capacity:
    """The bracket of a search in simulated time.

    Args:
        lost: share of the levels that are not measured, at random.
    """
    rng, left = np.random.default_rng([seed, 11]), seconds
    turns = min(32 / (service.takes_s + service.delay_s), (service.workers or 32) / service.takes_s)
    turns *= 1 - service.stall_s / max(service.each_s, 1.0)
    search = Search(limit, first or turns / 2, _LEVEL_S + _BEFORE_S)
    while (rate := search.next(left)) is not None:
        number = 1_000 * seed + search.levels
        calls = service.calls(due_ns(Pace(rate), _LEVEL_S + _BEFORE_S, number), _SLOTS, number)
        made = level_of(calls, _LEVEL_S, _BEFORE_S, rate=rate, slots=_SLOTS)
        one = Evidence.of(made, judged(made), limit)
        if rng.uniform() < lost:
            one = replace(one, state=State.NOT_MEASURED)
        search.add(rate, one)
        after = max(0.0, float(calls.done.max()) / 1e9 - _LEVEL_S - _BEFORE_S)
        left -= _LEVEL_S + _BEFORE_S + _AROUND_S + min(10.0, after)
    return search.found()


def brackets(seeds: int = 40, lost: float = 0.0, first: int = 0) -> None:
    """Searches of each kind, with so many seeds from the first one on."""
    for name, (service, limit) in KINDS.items():
        truth = capacity(name)
        found = [searched(service, limit, seed, lost=lost) for seed in range(first, first + seeds)]
        ends = [(one.keeps, one.breaks or one.generator_ends, one.breaks) for one in found]
        both = [(low, high) for low, high, _ in ends if low and high]
        held = sum((low or math.inf) <= truth <= (high or math.inf) for low, _, high in ends)
        widths = [high / low for low, high in both]
        print(
            f"{name}, {limit}: {truth:.1f} a second; held in {held} of {seeds}, no lower end "
            f"{sum(not low for low, _, _ in ends)}, both ends {len(both)}, within 1.35 "
            f"{sum(width <= 1.35 for width in widths)}, within 2 "
            f"{sum(width <= 2 for width in widths)}, median {median(widths or [math.nan]):.2f}; "
            f"{median(one.levels for one in found):g} levels",
            flush=True,
        )


def duelled(slower: float, seed: int, *, load: float = 0.5, most_s: float = 300.0) -> Verdict:
    """The verdict of a duet of two queues in that time, blocks of 10 s; no call is made."""
    pairs = int(most_s / 22.0)

    def block(side: int, number: int) -> LevelCalls:
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
