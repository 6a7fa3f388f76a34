"""Percentiles of raw call times: two families of percentiles that are never mixed, and what
surrounds them.

Family ``call`` is over all measured calls, nothing removed and failed ones included: what a user
waits. Family ``mix`` is over queries, each by its median over its calls: which queries are slow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.timing_facts import (
    FirstVisitFacts,
    LatencyFacts,
    MixFacts,
    PercentileFacts,
)
from retrieval_bench.stats.percentiles import (
    FEWEST_LAUNCHES,
    CallSample,
    Clusters,
    Percentile,
    clusters,
    medians,
    percentile,
)

LEVELS = (50.0, 95.0, 99.0)
"""Percentiles that are reported unless others are asked for."""

STALL_Z = 14.826
"""Modified z-score from which a call is a stall: ten robust standard deviations of 1.4826 MAD."""

_LEAST_MAD = 0.01
_FEWEST_VISITS = 3
_NS_PER_MS = 1e6


def _entry(percentile: Percentile) -> PercentileFacts:
    reason = {"reason": percentile.reason} if percentile.reason else {}
    return PercentileFacts(
        value=percentile.value, ci95=percentile.ci95, gates=percentile.gates, **reason
    )


def _name(level: float) -> str:
    return f"p{np.format_float_positional(level, trim='-')}"


def latency_report(timings: Timings, levels: Sequence[float] = LEVELS) -> LatencyFacts:
    """All figures of one retriever's calls, without those on warm-up and overhead. The order of the
    calls does not matter.

    Args:
        levels: percentiles to report, above 0 and below 100.

    Raises:
        ConfigError: a level that is no percentile.
    """
    wall_ns, query, launch = timings.wall_ns, timings.query, timings.launch
    n, n_launches = len(wall_ns), len(np.unique(launch))
    ms = wall_ns / _NS_PER_MS
    groups = clusters(timings.round, timings.position, launch)
    sample = CallSample(ms, query, groups)
    ordered = sample.ordered  # sums in one order, so that the order of the calls cannot show
    mean = float(ordered.mean()) if n else None
    typical = medians(ms, query)
    return LatencyFacts(
        family="call",
        n=n,
        rounds=int(timings.round.max(initial=-1)) + 1,
        launches=n_launches,
        failed_calls=int(timings.failed.sum()),
        mean=mean,
        min=float(ordered[0]) if n else None,
        max=float(ordered[-1]) if n else None,
        sd=float(ordered.std(ddof=1)) if n > 1 else None,
        throughput=1_000 / mean if mean else None,
        stalls=stalls(wall_ns, query),
        first_visit=first_visit(wall_ns, query, timings.round, launch, timings.first_ns),
        levels={_name(level): _entry(sample.percentile(level)) for level in levels},
        intervals=_intervals(groups, n_launches),
        mix=MixFacts(
            n=len(typical),
            levels={_name(level): _entry(percentile(typical, level, "query")) for level in levels},
        ),
    )


def without_times(report: LatencyFacts, reason: str) -> LatencyFacts:
    """The same counts without any time, for calls whose times say nothing of the retriever."""
    none = dict.fromkeys(("mean", "min", "max", "sd", "throughput", "stalls"))
    levels = dict.fromkeys(
        report.levels, PercentileFacts(value=None, ci95=None, gates=False, reason=reason)
    )
    return report.replace(
        **none,
        first_visit=FirstVisitFacts(ratio=None, n=0),
        levels=levels,
        intervals=reason,
        mix=MixFacts(n=report.mix.n, levels=levels),
    )


def stalls(wall_ns: NDArray[np.int64], query: NDArray[np.int32]) -> int | None:
    """Return how many calls took far longer than their query usually does. They stay in every
    figure.

    A call's log time less the median log time of its query, over the median absolute deviation of
    all such differences, is above :data:`STALL_Z`. Only queries with at least three calls are
    judged (None when there is none): of one or two calls nothing says which is the usual one. The
    deviation counts as at least 1 %, so that a call is never a stall for less than 16 % more.

    Source: Iglewicz & Hoaglin (1993), How to Detect and Handle Outliers, with the limit of
    hyperfine, 1.4826 x 10 in units of the MAD.
    """
    visits = np.bincount(query)
    judged = visits[query] >= _FEWEST_VISITS
    if not judged.any():
        return None
    log, of = np.log(np.maximum(wall_ns[judged], 1)), query[judged]
    present, index = np.unique(of, return_inverse=True)
    excess = log - medians(log, of)[index]
    # The median of an odd number of calls is one of them: its difference of 0 says nothing.
    own = int(np.count_nonzero(visits[present] % 2))
    mad = float(np.median(np.sort(np.abs(excess))[own:]))
    return int(np.count_nonzero(excess > STALL_Z * max(mad, _LEAST_MAD)))


def first_visit(
    wall_ns: NDArray[np.int64],
    query: NDArray[np.int32],
    round_: NDArray[np.int32],
    launch: NDArray[np.int32],
    first_ns: NDArray[np.int64] | None = None,
) -> FirstVisitFacts:
    """Compare the first call of a query with its later ones, as a multiple; arguments as those of
    :func:`latency_report`."""
    if first_ns is None or not (first_ns >= 0).any():
        return _first_measured(wall_ns, query, round_, launch)
    width = first_ns.shape[1]
    key = np.unique(launch, return_inverse=True)[1] * width + query
    first = first_ns.ravel()[np.unique(key)]
    later = medians(wall_ns / _NS_PER_MS, key)
    known = (first >= 0) & (later > 0)
    ratios = first[known] / _NS_PER_MS / later[known]
    return _median_of(ratios)


def _first_measured(
    wall_ns: NDArray[np.int64],
    query: NDArray[np.int32],
    round_: NDArray[np.int32],
    launch: NDArray[np.int32],
) -> FirstVisitFacts:
    width = int(query.max(initial=0)) + 1
    key = np.unique(launch, return_inverse=True)[1] * width + query
    order = np.lexsort((round_, key))
    key, ms = key[order], wall_ns[order] / _NS_PER_MS
    first = np.ones(len(key), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    repeated = np.zeros(len(key), dtype=bool)
    repeated[:-1] = ~first[1:]
    later = medians(ms[~first], key[~first])
    measurable = later > 0
    ratios = ms[first & repeated][measurable] / later[measurable]
    return _median_of(ratios)


def _median_of(ratios: NDArray[np.float64]) -> FirstVisitFacts:
    return FirstVisitFacts(ratio=float(np.median(ratios)) if len(ratios) else None, n=len(ratios))


def _intervals(groups: Clusters, launches: int) -> str:
    if launches >= FEWEST_LAUNCHES:
        return f"by {groups.words}: they hold for any launch of the same code"
    where = "one launch" if launches == 1 else f"{launches} launches"
    missing = "between launches, about 1 %, and what drifts more slowly than a run"
    if not groups.repeated:
        missing = "between rounds, between launches, and what drifts more slowly than a run"
    return f"by {groups.words} of {where}: not in them is the difference {missing}"
