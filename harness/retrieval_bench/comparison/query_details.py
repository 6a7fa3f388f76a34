"""What stood where for one query: documents with ranks, grades and titles, and what fusion did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrieval_bench.core.types import Dataset, Query

KEPT, RAISED, LOWERED = "kept", "raised", "lowered"
LOST, LEFT_BELOW, NO_LEG = "lost below k", "left below k", "found by no leg"
FATES = (KEPT, RAISED, LOWERED, LOST, LEFT_BELOW, NO_LEG)
"""What fusion did to a document, against the best rank that a leg gave it: the same rank, a better
one, a worse one; out of the first k though a leg had it there; not among the first k where no leg
had it; nothing, for no leg returned it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One document of one query.

    Attributes:
        title: its title, or the beginning of its text; empty where there is no corpus, where it is
            not in it, or where texts were not asked for.
        grade: None when it is not judged.
        ranks: in each of ``Explanation.systems``, from 1; 0 = not returned. A leg's whole list
            counts, so its ranks may be above k.
        fates: run -> one of ``FATES``; for relevant documents and runs whose legs are known.
    """

    doc_id: str
    title: str
    grade: int | None
    ranks: tuple[int, ...]
    fates: Mapping[str, str] = field(default_factory=dict)

    @property
    def relevant(self) -> bool:
        """Whether its grade is 1 or more."""
        return self.grade is not None and self.grade >= 1


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """All that is known of one query.

    Attributes:
        at: its place in ``Explanation.query_ids``.
        query: with its text and tags.
        values: of each of ``Explanation.systems``.
        groups: its label in each of ``Explanation.partitions``.
        status: of each run: "ok", or why the query failed.
        documents: those in the first k of any system, and all relevant ones; in the order of the
            last run, then of the first, then of the legs; those that nothing returned come last.
    """

    at: int
    query: Query
    values: tuple[float, ...]
    difference: float
    groups: tuple[str, ...]
    status: tuple[str, ...]
    documents: tuple[Placed, ...]

    def ranking(self, system: int, k: int) -> list[Placed]:
        """The first ``k`` of one system (its place in ``systems``), best first."""
        found = [one for one in self.documents if 0 < one.ranks[system] <= k]
        return sorted(found, key=lambda one: one.ranks[system])


def fate(fused: int, legs: Sequence[int], k: int) -> str:
    """What fusion did to a document: one of ``FATES``.

    Args:
        fused: its rank among the first ``k`` of the fused ranking, 0 = not there.
        legs: its rank in each leg's whole list, 0 = not there.
    """
    best = min((rank for rank in legs if rank), default=0)
    if not best:
        return NO_LEG
    if not fused:
        return LOST if best <= k else LEFT_BELOW
    if fused == best:
        return KEPT
    return RAISED if fused < best else LOWERED


_BEGINNING = 200
"""Characters of a text that stand for a missing title."""


def titles_of(dataset: Dataset, wanted: set[str]) -> dict[str, str]:
    """Title, or beginning of the text, of the documents or units in ``wanted``; of a unit, that of
    its first document. One walk, which ends as soon as all are found."""
    found: dict[str, str] = {}
    for document in dataset.documents or ():
        if len(found) == len(wanted):
            break
        doc_id = dataset.unit_of.get(document.id, document.id)
        if doc_id in wanted and doc_id not in found:
            found[doc_id] = document.title or document.text[:_BEGINNING]
    return found
