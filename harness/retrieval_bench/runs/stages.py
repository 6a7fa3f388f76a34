"""Where the time of a call goes: the stages that a retriever reports, what they leave over, and for
a hybrid its legs one after the other against side by side.

Stages may be parts of stages. What a call is directly made of: of a pipeline ``step:NAME``; of a
hybrid ``leg:NAME`` and ``fuse``; of an adapter of foreign code ``wrapper`` and ``function``, or the
library's name and ``factory``, or ``step:NAME`` of a chain; of one that asks a service ``encode``,
``request`` and ``wrapper``; of any other retriever all its stages. The rest of a call is ``other``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.document import Documented, document
from retrieval_bench.core.errors import distinct_names
from retrieval_bench.stats.percentiles import needs

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
class Times(Documented):
    """Milliseconds over calls.

    Attributes:
        mean: of all.
        p50: the median.
        p95: None for fewer calls than it takes to print one.
        n: calls.
    """

    mean: float
    p50: float
    p95: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage over the calls that report it.

    Attributes:
        name: as the retriever calls it.
        times: over the calls that report it.
        share: its time in all calls, as a part of the time of all calls; a stage that few calls
            have has a small one.
        direct: the call is directly made of it; False = it is a part of another stage.
    """

    name: str
    times: Times
    share: float
    direct: bool

    def as_dict(self) -> dict[str, Any]:
        """An entry of ``stages_ms``."""
        return self.times.as_dict() | document(self, "share direct")


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg of a hybrid.

    Attributes:
        name: in the hybrid.
        times: of the leg's call.
        longest: calls in which no other leg takes longer; a tie goes to the leg named first.
        longest_in_tail: the same among the calls of the tail.
        extra_in_tail: milliseconds that the leg takes in the tail above its own median, on average;
            None without a tail.
    """

    name: str
    times: Times
    longest: int
    longest_in_tail: int
    extra_in_tail: float | None

    def as_dict(self) -> dict[str, Any]:
        """An entry of ``legs.of``."""
        return self.times.as_dict() | document(self, "longest longest_in_tail extra_in_tail")


@dataclass(frozen=True, slots=True)
class Legs:
    """Legs one after the other against side by side, call by call.

    One of the two was measured. The other is computed from it: the call without its legs, plus
    their sum (serial) or the longest of them (parallel). It takes the legs as they were measured:
    legs that run together slow each other down and wait for threads, so that a computed
    ``parallel`` is what cannot be beaten, and a computed ``serial`` is too high.

    Attributes:
        n: calls in which every leg answered.
        tail: calls among them above the 95th percentile of the call time.
        overlapping: calls that are shorter than their legs and fusion together.
        parallel_measured: legs ran side by side; ``serial`` is computed.
        serial: the call with one leg after the other.
        parallel: the call with all legs side by side.
        of: the legs in their order.
    """

    n: int
    tail: int
    overlapping: int
    parallel_measured: bool
    serial: Times
    parallel: Times
    of: tuple[Leg, ...]

    @property
    def decisive(self) -> Leg | None:
        """The leg that makes slow calls slow; None without a tail, or where no leg takes longer in
        it than usual.

        Side by side a call waits for its longest leg: the one that is it in most calls of the tail.
        One after the other it is the leg that takes most above its own median there, which a long
        leg of constant time does not.
        """
        slower = [leg for leg in self.of if (leg.extra_in_tail or 0.0) > 0]
        if not slower:
            return None
        if self.parallel_measured:
            return max(self.of, key=lambda leg: leg.longest_in_tail)
        return max(slower, key=lambda leg: leg.extra_in_tail or 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The ``legs`` of a summary."""
        return document(self, "n tail overlapping") | {
            "decisive": None if self.decisive is None else self.decisive.name,
            "measured": "parallel" if self.parallel_measured else "serial",
            **document(self, "serial parallel"),
            "of": {leg.name: leg.as_dict() for leg in self.of},
        }


@dataclass(frozen=True, slots=True)
class StageReport:
    """The stages of one retriever.

    Attributes:
        call: the calls that report stages, as measured from outside; None when there are none.
        stages: in the order reported, the last one what is left over; empty without stages.
        legs: for a hybrid, None for others.
        overlapping: calls that are shorter than what they are directly made of, which then ran at
            the same time: shares add up to more than 1.
    """

    call: Times | None
    stages: tuple[Stage, ...]
    legs: Legs | None
    overlapping: int

    def as_dict(self) -> dict[str, Any]:
        """``stages_ms`` of a summary, and ``legs`` for a hybrid."""
        report: dict[str, Any] = {"stages_ms": {s.name: s.as_dict() for s in self.stages}}
        if self.legs is not None:
            report["legs"] = self.legs.as_dict()
        return report


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
        return StageReport(None, (), None, 0)
    wall = wall_ns[reported]
    given = {name: values[reported] for name, values in stages.items()}
    given = {name: values for name, values in given.items() if (values >= 0).any()}
    spent = {name: np.maximum(values, 0) for name, values in given.items()}
    names = _legs_among(given)
    legs = _legs(wall, given, names, parallel) if names else None
    direct = _direct(given)
    total = _sum([spent[name] for name in direct], wall)
    covered = total
    if legs is not None and legs.parallel_measured and not direct.isdisjoint(names):
        waited = np.max([spent[name] for name in names], axis=0)
        covered = waited + _sum([spent[name] for name in direct if name not in names], wall)
    # Of the same clock, parts read inside of a call cannot be longer than it: then they overlap.
    other = np.maximum(wall - covered, 0)
    whole = int(wall.sum())
    found = [
        Stage(name, _times(values[values >= 0]), _share(spent[name], whole), name in direct)
        for name, values in given.items()
    ]
    own = distinct_names([*given, OTHER])[-1]
    found.append(Stage(own, _times(other), _share(other, whole), direct=True))
    return StageReport(_times(wall), tuple(found), legs, int(np.count_nonzero(total > wall)))


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
) -> Legs | None:
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
    tail = call > np.percentile(call, TAIL)
    winner = legs.argmax(axis=0)
    return Legs(
        n=len(call),
        tail=int(np.count_nonzero(tail)),
        overlapping=overlapping,
        parallel_measured=side_by_side,
        serial=_times(serial),
        parallel=_times(at_once),
        of=tuple(
            Leg(
                name.removeprefix(LEG),
                _times(legs[i]),
                int(np.count_nonzero(winner == i)),
                int(np.count_nonzero(winner[tail] == i)),
                _excess(legs[i], tail),
            )
            for i, name in enumerate(names)
        ),
    )


def _excess(leg: Nanoseconds, tail: NDArray[np.bool_]) -> float | None:
    if not tail.any():
        return None
    return (int(leg[tail].sum()) / int(tail.sum()) - float(np.median(leg))) / _NS_PER_MS


def _times(ns: Nanoseconds) -> Times:
    n = len(ns)
    p95 = float(np.percentile(ns, TAIL)) / _NS_PER_MS if n >= needs(TAIL).printed else None
    # A sum of whole numbers: the order of the calls cannot show.
    return Times(int(ns.sum()) / n / _NS_PER_MS, float(np.median(ns)) / _NS_PER_MS, p95, n)


def _share(ns: Nanoseconds, whole: int) -> float:
    return int(ns.sum()) / whole if whole else 0.0


def _sum(parts: list[Nanoseconds], like: Nanoseconds) -> Nanoseconds:
    total = np.zeros_like(like)
    for part in parts:
        total += part
    return total
