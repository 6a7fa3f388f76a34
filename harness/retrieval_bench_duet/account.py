"""What a duet tells beside its verdict: of calls that failed or took far longer than others, of its
two sides, and of the machine meanwhile; and when it cannot pass because of such calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.measure.machine.disturbances import OTHERS, STOLEN
from retrieval_bench.runs.latency import stalls
from retrieval_bench_duet.decision import ALPHA, Judged
from retrieval_bench_duet.launch import Measured
from retrieval_bench_duet.result import SideFacts
from retrieval_bench_duet.sides import Side

MEAN_DELTA = 0.03
"""Side b does not pass when the mean of its calls is shown to be longer by more than this."""

MOST_FAILED = 0.1
"""Where a larger share of the calls fails, what is left does not stand for the queries asked."""


def one_sided(launched: Sequence[Measured]) -> str:
    """Warn of queries that only one side answers, or that fail there more than
    twice as often as on the other one; "" where there are none."""
    failing = _failing(launched)
    only = [
        sum(n > 2 * failing[1 - side][query] for query, n in failing[side].items())
        for side in (0, 1)
    ]
    messages = [
        f"side {name} fails on {counted(n, 'query')} that the other answers"
        for name, n in zip("ab", only, strict=True)
        if n
    ]
    return "; ".join(messages)


def failures(launched: Sequence[Measured], asked: int) -> tuple[str, bool]:
    """Return how many pairs of calls failed, "" for none; and whether these are too many to go by.

    Args:
        asked: number of queries.
    """
    failed = sum(int((launch.wall_ns < 0).any(axis=0).sum()) for launch in launched)
    if not failed:
        return "", False
    calls = sum(launch.wall_ns.shape[1] for launch in launched)
    fine = asked - len(set().union(*_failing(launched)))
    message = (
        f"{failed:,} of {counted(calls, 'pair')} of calls failed: both sides always answered "
        f"{fine} of {counted(asked, 'query')}"
    )
    return message, failed > MOST_FAILED * calls


def stalled(launched: Sequence[Measured]) -> tuple[int, int] | None:
    """Calls of either side that took far longer than their query usually does there, as
    :func:`.stalls` counts them; None where there are too few calls to say."""
    query = np.concatenate([launch.query for launch in launched] or [np.empty(0, dtype=np.int32)])
    messages = []
    for side in (0, 1):
        wall = np.concatenate(
            [launch.wall_ns[side] for launch in launched] or [np.empty(0, np.int64)]
        )
        count = stalls(wall[wall >= 0], query[wall >= 0])
        if count is None:
            return None
        messages.append(count)
    return messages[0], messages[1]


def slower_on_average(launched: Sequence[Measured]) -> str:
    """Say that the mean over all calls is shown to be longer on side b; "" where it is not.

    Every gate takes what is usual of a query, or of the slow ones. A side that takes far longer now
    and then, for whatever query, shows in none of them.
    """
    logs = []
    for launch in launched:
        fine = (launch.wall_ns >= 0).all(axis=0)
        if fine.any():
            a, b = launch.wall_ns[:, fine].sum(axis=1).tolist()
            logs.append(math.log(max(b, 1) / max(a, 1)))
    if len(logs) < 2:
        return ""
    seen = Judged.of(logs, MEAN_DELTA, MEAN_DELTA)
    if seen.p_worse >= ALPHA:
        return ""
    return (
        f"the mean call of side b takes {math.expm1(seen.mean):.0%} longer: `bench` tells its slow "
        "calls from its usual ones"
    )


def _failing(launched: Sequence[Measured]) -> list[Counter[int]]:
    """Return how many calls of each query failed, by side."""
    return [
        Counter(
            query
            for launch in launched
            for query in launch.query[launch.wall_ns[side] < 0].tolist()
        )
        for side in (0, 1)
    ]


OF_A_PROCESS = ("packages", "blas", "thread_pools", "variables", "imported_before")
"""What each side says of itself: the two may have other ones."""


def surroundings(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Select the facts on the process of a side; nothing where it did not come to that."""
    environment = facts.get("environment", {})
    return {name: environment[name] for name in OF_A_PROCESS if name in environment}


def about(side: Side, facts: Mapping[str, Any], of_a: Mapping[str, Any]) -> SideFacts:
    """A side, for the record.

    Args:
        facts, of_a: what its process said, and that of side a, from which surroundings are told
            only where they differ.
    """
    a, own = surroundings(of_a), surroundings(facts)
    return SideFacts(
        side.name,
        facts.get("name"),
        side.place.label,
        side.place.commit,
        list(side.overrides),
        facts.get("config"),
        {name: own[name] for name in own if a and own[name] != a.get(name)},
    )


def share_of_the_cores(noise: Sequence[Mapping[str, Any]], whose: str) -> float | None:
    """Return the share of the cores' time while it was measured, in the mean of
    launches; None where it is not known.

    Args:
        noise: records of :class:`retrieval_bench.measure.machine.noise.NoiseRecorder`.
        whose: "others" or "stolen".
    """
    shares = [item["cores"][whose] for item in noise if item.get("cores")]
    return float(np.mean(shares)) if shares else None


def machine_warnings(noise: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what else used the machine, in sentences; none on a quiet one."""
    warnings = []
    if (others := share_of_the_cores(noise, "others") or 0.0) > OTHERS:
        warnings.append(
            f"Other processes used {others:.0%} of the cores' time: end them to see smaller "
            "differences, and to be done sooner"
        )
    if (stolen := share_of_the_cores(noise, "stolen") or 0.0) > STOLEN:
        warnings.append(
            f"{stolen:.0%} of the cores' time went to other guests of the host: small "
            "differences are hidden, and it takes longer"
        )
    return warnings


def median_calls(launched: Sequence[Measured]) -> tuple[float, float] | None:
    """Return the median of a call of either side, in nanoseconds, failed ones left out; None
    without any launch."""
    if not launched:
        return None
    both = np.concatenate([launch.wall_ns for launch in launched], axis=1)
    a, b = (float(np.median(side[side >= 0])) if (side >= 0).any() else 0.0 for side in both)
    return a, b
