"""Delivery: what a reader gets of the hits within a budget, and how much of it is truth.

*found* are the characters of truth in the union of the delivered ranges, *paid* the sum of their
lengths, overlaps and other documents included. The hit in which the budget ends is cut there. Of a
text whose places hold more than it, precision and IoU count as many characters as it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.ranges import Place, Stretches, by_document, length, union


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
        credited: of these, those that precision counts: of no hit more than its text has.
        paid: in all.
        truth: of the spans of the query.
    """

    covered: int
    credited: int
    paid: int
    truth: int

    @property
    def recall(self) -> float:
        """The share of truth that was found."""
        return self.covered / self.truth if self.truth else 0.0

    @property
    def precision(self) -> float:
        """The share of what was paid for that is truth; 0 where nothing was delivered."""
        return self.credited / self.paid if self.paid else 0.0

    @property
    def iou(self) -> float:
        """Found, of all that is paid for or missing."""
        whole = self.paid + self.truth - self.credited
        return self.credited / whole if whole else 0.0


class _Reached(NamedTuple):
    """What the first hits find: the first two of :class:`Delivered`, and where in the truth."""

    covered: int
    credited: int
    where: Mapping[str, Stretches]


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
        self._reached = [_Reached(0, 0, {})]

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
        given = self._given(cut, tokens, characters)
        while len(self._reached) < len(given):
            self._reached.append(self._with(self.hits[len(self._reached) - 1]))
        got = self._with(given[-1], len(given) - 1) if given else self._reached[0]
        paid = sum(len(hit.text) for hit in given)
        if once:  # of a text that stands several times one place is paid for
            distinct = by_document(place for hit in given for place in hit.places[:1])
            placed = sum(map(length, distinct.values()))
            lost = sum(len(hit.text) for hit in given if not hit.places)
            paid = max(got.credited, min(paid, placed + lost))
        self._known[asked] = Delivered(got.covered, got.credited, paid, self._truth)
        return self._known[asked]

    def _with(self, hit: Hit, behind: int = -1) -> _Reached:
        """What a hit behind so many of the first ones finds together with them."""
        before = self._reached[behind]
        own = by_document(
            Place(place.doc_id, max(place.start, start), min(place.end, end))
            for place in hit.places
            for start, end in self.truth.get(place.doc_id, ())
            if place.start < end and start < place.end
        )
        if not own:
            return before
        grown = {doc_id: union([*before.where.get(doc_id, ()), *of]) for doc_id, of in own.items()}
        where = {**before.where, **grown}
        covered = sum(map(length, where.values()))
        new = min(covered - before.covered, len(hit.text))
        return _Reached(covered, before.credited + new, where)

    def _given(self, cut: int | None, tokens: float | None, characters: int | None) -> list[Hit]:
        """The delivered texts."""
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
                break
        return given

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
