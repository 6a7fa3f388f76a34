"""Calls of a duet that failed or stalled: what to tell of them, and when the others do not stand
for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.duet.launch import Measured
from harness.errors import counted
from harness.latency import stalls

MORE_STALLS = 0.01
"""So much larger a share of calls that stall is told."""

MOST_FAILED = 0.1
"""Where a larger share of the calls fails, what is left does not stand for the queries asked."""


def one_sided(launched: Sequence[Measured]) -> str:
    """Of queries that only one side answers; "" where there are none."""
    failing = _failing(launched)
    only = [len(failing[side] - failing[1 - side]) for side in (0, 1)]
    told = [
        f"side {name} fails on {counted(n, 'query')} that the other answers"
        for name, n in zip("ab", only, strict=True)
        if n
    ]
    return "; ".join(told)


def failures(launched: Sequence[Measured], asked: int) -> tuple[str, bool]:
    """How many pairs of calls failed, "" for none; and whether these are too many to go by.

    Args:
        asked: number of queries.
    """
    failed = sum(int((one.wall_ns < 0).any(axis=0).sum()) for one in launched)
    if not failed:
        return "", False
    calls = sum(one.wall_ns.shape[1] for one in launched)
    fine = asked - len(set.union(*_failing(launched)))
    told = (
        f"{failed:,} of {counted(calls, 'pair')} of calls failed: both sides always answered "
        f"{fine} of {counted(asked, 'query')}"
    )
    return told, failed > MOST_FAILED * calls


def stalled(launched: Sequence[Measured]) -> tuple[int, int] | None:
    """Calls of either side that took far longer than their query usually does there, as
    :func:`harness.latency.stalls` counts them; None where there are too few calls to say."""
    query = np.concatenate([one.query for one in launched] or [np.empty(0, dtype=np.int32)])
    found = []
    for side in (0, 1):
        wall = np.concatenate([one.wall_ns[side] for one in launched] or [np.empty(0, np.int64)])
        count = stalls(wall[wall >= 0], query[wall >= 0])
        if count is None:
            return None
        found.append(count)
    return found[0], found[1]


def more_stalls(counts: tuple[int, int] | None, calls: int) -> str:
    """That side b stalls more often, of so many calls of each side; "" where it does not. No gate
    looks at single calls."""
    if counts is None or counts[1] - counts[0] <= MORE_STALLS * calls:
        return ""
    a, b = counts
    return (
        f"{b:,} of {calls:,} calls of side b took far longer than their query usually does there, "
        f"of side a {a:,}: no gate sees that; `bench` shows it in p99 over calls"
    )


def _failing(launched: Sequence[Measured]) -> list[set[int]]:
    """Queries of which a call failed, by side."""
    return [
        {query for one in launched for query in one.query[one.wall_ns[side] < 0].tolist()}
        for side in (0, 1)
    ]
