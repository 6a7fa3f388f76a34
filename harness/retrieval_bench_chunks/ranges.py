"""Ranges of documents: how ids name them, and how many characters they have in common.

A chunk is called ``DOCUMENT#START-END``, half-open, in characters (code points) of the text of its
document, so that a saved ranking says by itself what was delivered.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_RANGE = re.compile(r"(.*)#(\d{1,12})-(\d{1,12})", re.DOTALL)


class Place(NamedTuple):
    """A range of a document.

    Attributes:
        doc_id: the document.
        start, end: characters of its text, half-open.
    """

    doc_id: str
    start: int
    end: int

    @property
    def id(self) -> str:
        """The id of a chunk that is this range."""
        return f"{self.doc_id}#{self.start}-{self.end}"


def as_range(hit_id: str) -> Place | None:
    """The range that the id of a chunk names; None where it names none."""
    named = _RANGE.fullmatch(hit_id)
    if named is None or int(named[2]) > int(named[3]):
        return None
    return Place(named[1], int(named[2]), int(named[3]))


class KnownRanges(Collection[str]):
    """Ids of documents, and of any range of them."""

    def __init__(self, doc_ids: Collection[str]) -> None:
        self._doc_ids = doc_ids

    def __contains__(self, hit_id: object) -> bool:
        if hit_id in self._doc_ids:
            return True
        place = as_range(hit_id) if isinstance(hit_id, str) else None
        return place is not None and place.doc_id in self._doc_ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._doc_ids)

    def __len__(self) -> int:
        return len(self._doc_ids)


class DocumentOf(Mapping[str, str]):
    """Id of a chunk -> its document, or the unit of that, where judgements are on units."""

    def __init__(self, unit_of: Mapping[str, str]) -> None:
        self._unit_of = unit_of

    def __getitem__(self, hit_id: str) -> str:
        if hit_id in self._unit_of:
            return self._unit_of[hit_id]
        place = as_range(hit_id)
        if place is None:
            raise KeyError(hit_id)
        return self._unit_of.get(place.doc_id, place.doc_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._unit_of)

    def __len__(self) -> int:
        return len(self._unit_of)

    def __bool__(self) -> bool:
        return True


Stretches = list[tuple[int, int]]
"""Ranges of one document, apart from each other and rising."""


def union(ranges: Iterable[tuple[int, int]]) -> Stretches:
    """Join ranges of one document that touch or overlap; empty ones are left out."""
    joined: Stretches = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            if end > joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
        elif end > start:
            joined.append((start, end))
    return joined


def by_document(places: Iterable[Place]) -> dict[str, Stretches]:
    """Unions of places, by document."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for doc_id, start, end in places:
        ranges.setdefault(doc_id, []).append((start, end))
    return {doc_id: union(of) for doc_id, of in ranges.items()}


def length(stretches: Iterable[tuple[int, int]]) -> int:
    """The number of their characters."""
    return sum(end - start for start, end in stretches)


def common(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> int:
    """The number of characters that two unions have in common."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def covered(stretches: Stretches, start: int, end: int) -> bool:
    """Say whether a range lies whole in one stretch of a union."""
    at = bisect_right(stretches, (start, 1 << 60)) - 1
    return at >= 0 and stretches[at][1] >= end
