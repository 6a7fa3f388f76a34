"""Account of where the time of a call goes: the stages that a retriever reports, what they leave
over, and for a hybrid its legs one after the other against side by side.

Stages may be parts of stages. What a call is directly made of: of a pipeline ``step:NAME``; of a
hybrid ``leg:NAME`` and ``fuse``; of an adapter of foreign code ``wrapper`` and ``function``, or the
library's name and ``factory``, or ``step:NAME`` of a chain; of one that asks a service ``encode``,
``request`` and ``wrapper``; of any other retriever all its stages. The rest of a call is ``other``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import distinct_names
from retrieval_bench.runs.timing_facts import LegFacts, LegsFacts, StageFacts, TimesFacts
from retrieval_bench.stats.percentiles import needs, quantiles

LEG = "leg:"
"""What the stage of a whole leg begins with."""

STEP = "step:"
"""Likewise of a step of a pipeline."""

OTHER = "other"

TAIL = 95.0
"""Calls above this percentile of the call time are the tail."""

_FUSE = "fuse"
_WRAPPER = "wrapper"
_WRAPPED = ("function", "langchain", "llamaindex", "haystack", "factory")
_ASKED = "request"
_SERVER = "server"
"""What a service says it took itself, a part of the request."""
_NS_PER_MS = 1e6

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageReport(Documented):
    """The stages of one retriever.

    Attributes:
        call: the calls that report stages, as measured from outside; None when there are none.
        stages: by name in the order reported, the last one what is left over; empty without stages.
        legs: for a hybrid, None for others.
        overlapping: calls that are shorter than what they are directly made of, which then ran at
            the same time: shares add up to more than 1.
    """

    KEYS = "stages_ms=stages legs?"

    call: TimesFacts | None
    stages: Mapping[str, StageFacts]
    legs: LegsFacts | None
    overlapping: int


def stage_report(
    wall_ns: Nanoseconds, stages: Mapping[str, Nanoseconds], *, parallel: bool | None = None
) -> StageReport:
    """All figures of one retriever's stages. The order of the calls does not matter.

    Args:
        wall_ns: nanoseconds of each call.
        stages: nanoseconds of each stage by name, as long as ``wall_ns``; -1 = not reported. Calls
            without any stage, such as failed ones, count nowhere.
        parallel: whether a hybrid's legs ran side by side. None: they did if most calls are shorter
            than their legs and fusion together.
    """
    reported = np.zeros(len(wall_ns), dtype=bool)
    for values in stages.values():
        reported |= values >= 0
    if not reported.any():
        return StageReport(None, {}, None, 0)
    wall = wall_ns[reported]
    given = {name: values[reported] for name, values in stages.items()}
    given = {name: values for name, values in given.items() if (values >= 0).any()}
    spent = {name: np.maximum(values, 0) for name, values in given.items()}
    names = _legs_among(given)
    legs = _legs(wall, given, names, parallel) if names else None
    direct = _direct(given)
    total = _sum([spent[name] for name in direct], wall)
    covered = total
    if legs is not None and legs.measured == "parallel" and not direct.isdisjoint(names):
        waited = np.max([spent[name] for name in names], axis=0)
        covered = waited + _sum([spent[name] for name in direct if name not in names], wall)
    # Of the same clock, parts read inside of a call cannot be longer than it: then they overlap.
    other = np.maximum(wall - covered, 0)
    whole = int(wall.sum())
    by_stage = {
        name: _stage(values[values >= 0], _share(spent[name], whole), direct=name in direct)
        for name, values in given.items()
    }
    own = distinct_names([*given, OTHER])[-1]
    by_stage[own] = _stage(other, _share(other, whole), direct=True)
    return StageReport(_times(wall), by_stage, legs, int(np.count_nonzero(total > wall)))


def _stage(ns: Nanoseconds, share: float, *, direct: bool) -> StageFacts:
    return StageFacts(**dict(_times(ns)), share=share, direct=direct)


def _legs_among(names: Collection[str]) -> list[str]:
    return [name for name in names if name.startswith(LEG)]


def _direct(names: Collection[str]) -> set[str]:
    steps = {name for name in names if name.startswith(STEP)}
    if steps:
        return steps | ({_WRAPPER} & set(names))
    if _legs_among(names):
        return {name for name in names if name.startswith(LEG) or name == _FUSE}
    if _WRAPPER in names and not set(_WRAPPED).isdisjoint(names):
        return {name for name in names if name == _WRAPPER or name in _WRAPPED}
    if _WRAPPER in names and _ASKED in names:
        return set(names) - {_SERVER}
    return set(names)


def _legs(
    wall: Nanoseconds, given: Mapping[str, Nanoseconds], names: list[str], parallel: bool | None
) -> LegsFacts | None:
    answered = np.all([given[name] >= 0 for name in names], axis=0)
    if len(names) < 2 or not answered.any():
        return None
    call = wall[answered]
    legs = np.stack([given[name][answered] for name in names])
    fuse = np.maximum(given.get(_FUSE, np.zeros_like(wall))[answered], 0)
    together, longest = legs.sum(axis=0), legs.max(axis=0)
    overlapping = int(np.count_nonzero(together + fuse > call))
    side_by_side = 2 * overlapping > len(call) if parallel is None else parallel
    if side_by_side:
        serial, at_once = call - np.minimum(longest, call) + together, call
    else:
        serial, at_once = call, call - np.minimum(together, call) + longest
    tail = call > quantiles(call, TAIL / 100)
    winner = legs.argmax(axis=0)
    of = {
        name.removeprefix(LEG): LegFacts(
            **dict(_times(legs[i])),
            longest=int(np.count_nonzero(winner == i)),
            longest_in_tail=int(np.count_nonzero(winner[tail] == i)),
            extra_in_tail=_excess(legs[i], tail),
        )
        for i, name in enumerate(names)
    }
    return LegsFacts(
        n=len(call),
        tail=int(np.count_nonzero(tail)),
        overlapping=overlapping,
        decisive=_decisive(of, side_by_side),
        measured="parallel" if side_by_side else "serial",
        serial=_times(serial),
        parallel=_times(at_once),
        of=of,
    )


def _decisive(legs: Mapping[str, LegFacts], side_by_side: bool) -> str | None:
    """The leg that makes slow calls slow; None without a tail, or where no leg takes longer in it
    than usual.

    Side by side a call waits for its longest leg: the one that is it in most calls of the tail. One
    after the other it is the leg that takes most above its own median there, which a long leg of
    constant time does not.
    """
    slower = {name: leg.extra_in_tail for name, leg in legs.items() if (leg.extra_in_tail or 0) > 0}
    if not slower:
        return None
    if side_by_side:
        return max(legs, key=lambda name: legs[name].longest_in_tail)
    return max(slower, key=lambda name: slower[name] or 0.0)


def _excess(leg: Nanoseconds, tail: NDArray[np.bool_]) -> float | None:
    if not tail.any():
        return None
    return (int(leg[tail].sum()) / int(tail.sum()) - float(np.median(leg))) / _NS_PER_MS


def _times(ns: Nanoseconds) -> TimesFacts:
    n = len(ns)
    p95 = float(quantiles(ns, TAIL / 100)) / _NS_PER_MS if n >= needs(TAIL).printed else None
    # A sum of whole numbers: the order of the calls cannot show.
    mean, p50 = int(ns.sum()) / n / _NS_PER_MS, float(np.median(ns)) / _NS_PER_MS
    return TimesFacts(mean=mean, p50=p50, p95=p95, n=n)


def _share(ns: Nanoseconds, whole: int) -> float:
    return int(ns.sum()) / whole if whole else 0.0


def _sum(parts: list[Nanoseconds], like: Nanoseconds) -> Nanoseconds:
    total = np.zeros_like(like)
    for part in parts:
        total += part
    return total
