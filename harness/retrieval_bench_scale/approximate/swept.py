"""What a sweep found: recall against exact search and time at each value of a parameter, and the
cheapest value that is shown to find enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.stats.recall import TAIL


class Reach(StrEnum):
    """Whether a recall is as high as wanted, by its interval."""

    REACHED = "reached"
    BELOW = "below"
    OPEN = "can't tell"


class Wanted(NamedTuple):
    """Least that a value has to find.

    Attributes:
        share: the mean recall, or the share of queries with a recall of ``tail``.
        tail: of one query.
        by_tail: which of the two ``share`` is.
    """

    share: float = 0.95
    tail: float = TAIL
    by_tail: bool = False


@dataclass(frozen=True, slots=True)
class SweptValue(Documented):
    """The retriever at one value of the parameter.

    Attributes:
        value: of the parameter.
        recall: the mean over queries of the share of the exact search's first k that is found; null
            where no query has one.
        ci95: its 95 % interval.
        tail: the share of queries whose own recall is at least the ``tail`` of the sweep; a high
            mean hides queries that find nothing.
        tail_ci95: its 95 % interval.
        reach: "reached" where the lower end of the interval of what is ``decided_by`` is at least
            what is wanted, "below" where the upper end is less, else "can't tell".
        p50_ms: of a call.
        p50_ci95: its interval.
        search_ms: p50 of a call without encoding the query; null where the retriever does not say.
        search_ci95: its interval.
        failed: queries without an answer; they count as a recall of 0.
        leaked: hits that the filter of their query does not allow; null where no query has one.
        recalls: of each query, null where an exhaustive search finds nothing.
    """

    KEYS = (
        "value recall ci95 tail tail_ci95 reach p50_ms p50_ci95 search_ms search_ci95 failed "
        "leaked recalls"
    )

    value: float
    recall: float | None
    ci95: tuple[float, float] | None
    tail: float | None
    tail_ci95: tuple[float, float] | None
    reach: Reach
    p50_ms: float | None
    p50_ci95: tuple[float, float] | None
    search_ms: float | None
    search_ci95: tuple[float, float] | None
    failed: int
    leaked: int | None
    recalls: tuple[float | None, ...]

    @property
    def ms(self) -> float | None:
        """What values are compared by: without the encoding of the query, which no value of the
        parameter changes, where that is known."""
        return self.p50_ms if self.search_ms is None else self.search_ms

    @property
    def ms_ci95(self) -> tuple[float, float] | None:
        """The interval of ``ms``."""
        return self.p50_ci95 if self.search_ms is None else self.search_ci95


@dataclass(frozen=True, slots=True)
class SweptLevel(Documented):
    """All values under one kind of filter.

    Attributes:
        name: "as asked", a share such as "10 %", or "tenants".
        share: of the documents that fit, the mean over queries; null without filters.
        queries: with a recall: an exhaustive search finds something for them.
        clusters: that these are; null where queries are independent.
        exact_p50_ms: of a call of the exhaustive search.
        exact_search_ms: likewise without encoding the query.
        values: from low to high.
        cheapest: the value that finds enough in the least time; null where none is shown to.
        undecided: values that take less time, of which nobody can tell yet.
        partial: the user stopped it before every call was made.
    """

    name: str
    share: float | None
    queries: int
    exact_p50_ms: float | None
    exact_search_ms: float | None
    values: tuple[SweptValue, ...]
    cheapest: float | None
    undecided: tuple[float, ...]
    partial: bool = False
    clusters: int | None = None

    @property
    def exact_ms(self) -> float | None:
        """Of the exhaustive search, what ``ms`` is of a value."""
        return self.exact_p50_ms if self.exact_search_ms is None else self.exact_search_ms

    @property
    def chosen(self) -> SweptValue | None:
        """The cheapest value that finds enough."""
        return next((one for one in self.values if one.value == self.cheapest), None)


@dataclass(frozen=True, slots=True)
class Sweep(Documented):
    """What ``bench --sweep`` found.

    Attributes:
        retriever: its name.
        dataset: its name.
        fingerprint, split: of the dataset.
        k: hits asked for.
        parameter: that was changed.
        target_recall: that is to be reached, or the share of queries that are to reach ``tail``.
        tail: the recall of one query from which on it counts in the ``tail`` of a value.
        decided_by: "recall", the mean, or "tail": what is to reach ``target_recall``.
        status: "complete" or "partial".
        queries: their ids, in the order of ``recalls``.
        levels: as asked, and under further filters.
        config: of the retriever, as in a run's manifest.
        warnings: about the machine, and what a reader of the figures should know.
        environment: as in a run's manifest.
        folder: of the record; missing where it was not saved.
    """

    schema_version: ClassVar[int] = 1
    KEYS = (
        "retriever dataset fingerprint split k parameter target_recall tail decided_by status "
        "queries levels config warnings environment folder?"
    )

    retriever: str
    dataset: str
    fingerprint: str
    split: str
    k: int
    parameter: str
    target_recall: float
    tail: float
    decided_by: str
    status: str
    queries: tuple[str, ...]
    levels: tuple[SweptLevel, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None


def reach_of(ci95: tuple[float, float] | None, wanted: float) -> Reach:
    """What an interval shows."""
    if ci95 is None:
        return Reach.OPEN
    low, high = ci95
    return Reach.REACHED if low >= wanted else Reach.BELOW if high < wanted else Reach.OPEN


def cheapest(values: Sequence[SweptValue]) -> SweptValue | None:
    """Of those that find enough the one that takes the least time; the first of those whose
    intervals overlap that one's, since their order is chance."""
    timed = [one for one in values if one.reach is Reach.REACHED and one.ms is not None]
    if not timed:
        return None
    fastest = min(timed, key=lambda one: one.ms or 0.0)
    highest = fastest.ms_ci95[1] if fastest.ms_ci95 else fastest.ms or 0.0
    return next(one for one in timed if (one.ms_ci95 or (one.ms or 0.0,))[0] <= highest)


def undecided(values: Sequence[SweptValue], chosen: SweptValue | None) -> tuple[float, ...]:
    """Values of which nobody can tell, and that would be cheaper than the chosen one."""
    return tuple(
        one.value
        for one in values
        if one.reach is Reach.OPEN
        and (chosen is None or (one.ms is not None and one.ms < (chosen.ms or 0.0)))
    )
