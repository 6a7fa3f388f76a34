"""Delivery: what a reader gets of the hits within a budget, and how much of it is truth.

*found* are the characters of truth in the union of the delivered ranges, *paid* the sum of their
lengths, overlaps and other documents included. The hit in which the budget ends is cut there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.ranges import Place, Stretches, common, length, union


class Hit(NamedTuple):
    """A delivered text.

    Attributes:
        places: where it stands, none where that is not known; of a text that stands several times
            all of them, which count as the same.
        text: itself.
    """

    places: tuple[Place, ...]
    text: str

    def first(self, n: int) -> Hit:
        """Its first ``n`` characters; places of another length are cut in proportion."""
        if n >= len(self.text):
            return self
        places = tuple(
            Place(doc_id, start, start + round((end - start) * n / len(self.text)))
            for doc_id, start, end in self.places
        )
        return Hit(places, self.text[:n])


class Delivered(NamedTuple):
    """Characters that were delivered for a query.

    Attributes:
        covered: of truth: what is found.
        paid: in all.
        truth: of the spans of the query.
        filled: whether the budget was used up.
    """

    covered: int
    paid: int
    truth: int
    filled: bool

    @property
    def recall(self) -> float:
        """The share of truth that was found."""
        return self.covered / self.truth if self.truth else 0.0

    @property
    def precision(self) -> float:
        """The share of what was paid for that is truth; 0 where nothing was delivered."""
        return self.covered / self.paid if self.paid else 0.0

    @property
    def iou(self) -> float:
        """Found, of all that is paid for or missing."""
        whole = self.paid + self.truth - self.covered
        return self.covered / whole if whole else 0.0


class Delivery:
    """The hits of a query, whose tokens are counted once, as far as a budget needs them.

    Args:
        hits: best first.
        truth: the spans of the query, by document.
    """

    def __init__(
        self, hits: Sequence[Hit], truth: Mapping[str, Stretches], counter: Counter
    ) -> None:
        self.hits = hits
        self.truth = truth
        self._counter = counter
        self._counts: dict[int, float] = {}
        self._truth = sum(map(length, truth.values()))
        self._known: dict[tuple[object, ...], Delivered] = {}

    def tokens_of(self, at: int) -> float:
        """The tokens of a hit."""
        if at not in self._counts:
            self._counts[at] = self._counter.count(self.hits[at].text)
        return self._counts[at]

    def within(
        self,
        cut: int | None = None,
        tokens: float | None = None,
        characters: int | None = None,
        *,
        once: bool = False,
    ) -> Delivered:
        """What is delivered until a budget is used up.

        Args:
            cut: number of hits; None = all.
            tokens, characters: of the budget; None = no limit.
            once: characters that several hits share are paid for once.
        """
        asked = (cut, tokens, characters, once)
        if asked in self._known:
            return self._known[asked]
        given, filled = self._given(cut, tokens, characters)
        places = (place for hit in given for place in hit.places)
        joined = _joined(place for place in places if place.doc_id in self.truth)
        got = sum(common(of, self.truth[doc_id]) for doc_id, of in joined.items())
        paid = sum(len(hit.text) for hit in given)
        if once:  # of a text that stands several times one place is paid for
            distinct = _joined(place for hit in given for place in hit.places[:1])
            placed = sum(map(length, distinct.values()))
            paid = placed + sum(len(hit.text) for hit in given if not hit.places)
        self._known[asked] = Delivered(got, paid, self._truth, filled)
        return self._known[asked]

    def _given(
        self, cut: int | None, tokens: float | None, characters: int | None
    ) -> tuple[list[Hit], bool]:
        """The delivered texts, and whether the budget was used up."""
        given = list[Hit]()
        for at, hit in enumerate(self.hits[:cut]):
            part = hit
            if characters is not None:
                part = part.first(max(0, characters))
                characters -= len(hit.text)
            if tokens is not None:
                known = self._counts.get(at)
                if known is None or known > tokens:
                    part = part.first(self._counter.within(hit.text, tokens))
                tokens -= self.tokens_of(at) if len(part.text) == len(hit.text) else tokens
            given.append(part)
            if any(left is not None and left <= 0 for left in (tokens, characters)):
                return given, True
        return given, False

    def tokens_to(self, share: float) -> float | None:
        """The tokens of the first hits that find ``share`` of what all of them find; None where
        they find nothing."""
        goal, total = share * self.within().covered, 0.0
        if not goal:
            return None
        for at in range(len(self.hits)):
            total += self.tokens_of(at)
            if self.within(at + 1).covered >= goal:
                break
        return total


def _joined(places: Iterator[Place]) -> dict[str, Stretches]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    for doc_id, start, end in places:
        ranges.setdefault(doc_id, []).append((start, end))
    return {doc_id: union(of) for doc_id, of in ranges.items()}
