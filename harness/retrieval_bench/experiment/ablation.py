"""What a measured retriever answers without each of its parts.

The lists that the measurement kept answer for whoever is asked again, so that most parts can be
left out without a call. Rewriting changes what is asked: without it the retriever must be asked,
which is done where it is wanted, untimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrieval_bench.core.document import document
from retrieval_bench.core.errors import counted
from retrieval_bench.core.foreign import message_of
from retrieval_bench.core.progress import Task
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.remembered import Memory, NotKeptError, Remembered
from retrieval_bench.core.retriever import Capabilities, Part, Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.core.units import UnitRetriever
from retrieval_bench.measure.calls import Measurement

Rankings = Sequence[Ranking | None]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One part that was left out.

    Attributes:
        part: which.
        rankings: of all queries without it; None for a query that is not known. None as a whole
            where somebody has to be asked who may not be.
        asked: calls that were made for it.
    """

    part: Part
    rankings: Rankings | None
    asked: int = 0

    def as_dict(self) -> dict[str, Any]:
        """An entry of ``parts`` in a summary."""
        names = "name kind instead stages beside share timed gets gives"
        known = self.rankings is not None
        return document(self.part, names) | {"known": known, "asked": self.asked}


@dataclass(frozen=True, slots=True)
class Ablation:
    """All parts of a retriever, each left out in turn.

    Attributes:
        parts: empty for a retriever that is made of nothing.
        warnings: what keeps figures from being what they seem.
    """

    parts: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


NOT_AFFORDED = "nobody was asked without parts: that might take more than --max-cost leaves"


def affordable(limit: float | None, measured: Measurement, parts: int, queries: int) -> bool:
    """Whether every query could be asked once more without each part, at the mean price of a
    measured call; without a part a call is seldom dearer."""
    spent = 0.0 if measured.spent is None else measured.spent.money or 0.0
    calls = len(measured.timings.wall_ns) + measured.warm_up_calls
    if limit is None or not calls:
        return True
    return spent + parts * queries * spent / calls <= limit


def can_be_left_out(retriever: Retriever, queries: Sequence[Query]) -> bool:
    """Whether it is made of parts, or gets filters."""
    try:
        filtered = any(query.filter for query in queries) and retriever.capabilities.filters
        return filtered or _is_made_of_parts(retriever.over(Memory(asks=False)))
    except Exception:  # told by whoever leaves them out
        return True


def left_out(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int,
    rankings: Rankings,
    *,
    asks: bool,
    task: Task | None = None,
) -> Ablation:
    """Leave out each part in turn.

    Args:
        retriever: as it was measured, still open.
        rankings: what it answered to ``queries``; None where it failed, or does not count.
        asks: whether it may be asked what its lists do not hold.
        task: is told how far it is.
    """
    try:
        return _left_out(retriever, queries, k, rankings, asks=asks, task=task)
    except Exception as problem:  # what was measured must not be lost for it
        return Ablation(warnings=(f"no part could be left out: {message_of(problem)}",))


def _left_out(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int,
    rankings: Rankings,
    *,
    asks: bool,
    task: Task | None,
) -> Ablation:
    filtered = any(query.filter for query in queries) and retriever.capabilities.filters
    memory = Memory(asks=asks)
    whole = retriever.over(memory)
    known, differing = _once_more(whole, memory, queries, k, rankings)
    parts = list(whole.parts(k))
    if filtered:
        parts.append(Part("filters", "filter", Unfiltered(whole), timed=False))
    found = []
    for at, part in enumerate(parts):
        if task is not None:
            task(at, len(parts))
        found.append(_without(part, memory, queries, k, known))
    warnings = []
    if differing:
        warnings.append(
            f"parts were not left out for {counted(differing, 'query')}: the lists that were kept "
            "come to another ranking"
        )
    return Ablation(tuple(found), tuple(warnings))


def _is_made_of_parts(whole: Retriever) -> bool:
    while isinstance(whole, UnitRetriever):
        whole = whole.inner
    return not isinstance(whole, Remembered)


def _once_more(
    whole: Retriever, memory: Memory, queries: Sequence[Query], k: int, rankings: Rankings
) -> tuple[list[bool], int]:
    """Fill ``memory`` with what was kept; for each query whether that comes to its ranking, and how
    many do not."""
    known, differing = [], 0
    for query, ranking in zip(queries, rankings, strict=True):
        same = False
        if ranking is not None:
            memory.open(ranking)
            try:
                again = _search(whole, query, k)
                same = list(again.doc_ids) == list(ranking.doc_ids)
                differing += not same
            except NotKeptError:
                same = True  # what is missing may be missing in few parts
        known.append(same)
    memory.open(None)
    return known, differing


def _without(
    part: Part, memory: Memory, queries: Sequence[Query], k: int, known: Sequence[bool]
) -> LeftOut:
    before, found = memory.asked, []
    for query, wanted in zip(queries, known, strict=True):
        try:
            found.append(_search(part.without, query, k) if wanted else None)
        except NotKeptError:
            return LeftOut(part, None)
        except Exception:  # counted: it has no ranking
            found.append(None)
    return LeftOut(part, found, memory.asked - before)


def _search(retriever: Retriever, query: Query, k: int) -> Ranking:
    raw = retriever.search(query, k)
    return checked_ranking(raw, k, has_scores=retriever.capabilities.has_scores)


class Unfiltered(Retriever):
    """A retriever that is asked without the filters of the queries."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner

    @property
    def capabilities(self) -> Capabilities:
        """Those of the retriever."""
        return self._inner.capabilities

    def search(self, query: Query, k: int) -> Any:
        """The answer to the query without its filter."""
        return self._inner.search(replace(query, filter=None), k)
