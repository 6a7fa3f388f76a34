"""What a duet looks at: three figures, each a log ratio of the two sides in every launch.

Which queries are slow is a matter of all launches that are judged together: in one of them, with a
call or two of each query, those that happened to be interrupted look slowest (decision record
0036)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.call_pairs import Pairs, tail_thetas, theta
from retrieval_bench.stats.percentiles import medians

SLOWEST = 0.2
"""Share of the queries that are the slow ones."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class Gate:
    """One figure.

    Attributes:
        name: as in a policy.
        about: what it is, in words.
        delta: slower by no more than this counts as no difference.
        limit: slower by less than this is acceptable, where no policy says otherwise.
        queries: fewest queries it can be told from.
        same: these queries are the same ones in every launch.
        of: launches -> the log ratio of each; their mean is the figure.
    """

    name: str
    about: str
    delta: float
    limit: float
    queries: int
    same: bool
    of: Callable[[Sequence[Pairs]], NDArray[np.float64]]


def _typical(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    return np.array([theta(one.log_ratio, one.query) for one in launches])


def _slowest(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    """The typical log ratio of the queries that take longest on both sides together: neither side
    has a say of its own in which they are."""
    slow = slow_queries(launches)
    return _typical([one.take(np.isin(one.query, slow)) for one in launches])


def slow_queries(launches: Sequence[Pairs]) -> NDArray[np.int32]:
    """Numbers of the queries that take longest, of those that every launch has an answer to."""
    whole = Pairs.joined(launches)
    answers = np.concatenate([np.unique(one.query) for one in launches])
    queries, in_launches = np.unique(answers, return_counts=True)
    together = medians(whole.log_a + whole.log_b, whole.query)[in_launches == len(launches)]
    queries = queries[in_launches == len(launches)]
    n = max(1, int(SLOWEST * len(queries)))
    return np.asarray(queries[np.argsort(-together, kind="stable")[:n]], dtype=np.int32)


def _tail(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    return tail_thetas(Pairs.joined(launches))


GATES = {
    gate.name: gate
    for gate in (
        Gate("p50", "usual queries", 0.01, 0.05, 10, False, _typical),
        Gate("p95", "95th percentile over queries", 0.03, 0.10, 200, False, _tail),
        Gate("slowest-fifth", "the slowest fifth of the queries", 0.02, 0.10, 50, True, _slowest),
    )
}
"""By name. The figures delta are those of the measuring protocol, ``harness/docs/measuring.md``."""


def thetas(gate: str, launches: Sequence[Pairs]) -> list[float]:
    """The log ratio of each launch, by the name of the gate."""
    found: list[float] = GATES[gate].of(launches).tolist()
    return found


def acceptable(gate: str, text: object) -> float:
    """A largest acceptable slow-down such as "5%", as a share.

    Raises:
        ValueError: anything else, or less than the gate can tell from no difference.
    """
    match = _PERCENT.fullmatch(text.strip()) if isinstance(text, str) else None
    share = float(match[1]) / 100 if match else 0.0
    if not share > 0:
        raise ValueError(f"{text!r} is no largest acceptable slow-down: write one such as 5%")
    delta = GATES[gate].delta
    if share <= delta:
        raise ValueError(
            f"{text} is too small: two measurements of the same code differ by up to {delta:.0%}; "
            "write more than that"
        )
    return share
