"""Relocation: where a text stands in documents that may have been edited since.

Three ways, in this order, each told: *exact*; *normalised*, by letters and digits alone, whatever
the case, accents, white space and markup; *fuzzy*, where at least :data:`BOUND` of its letters
stand in their order in one place. A text that stands several times is *ambiguous*, unless what
stood around it says which place is meant.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench_chunks.ranges import Place

EXACT, NORMALISED, FUZZY, AMBIGUOUS, LOST = "exact", "normalised", "fuzzy", "ambiguous", "lost"

BOUND = 0.7
"""Share of the letters of a text that must stand in one place, to be that text."""

_NEAR = 0.97
"""A second place with such a share of the letters of the first one is as good."""

_SEED, _SEEDS, _MOST, _TRIED, _FEW = 12, 24, 64, 6, 0.4
"""Letters of a seed, seeds of a text, places of a seed that are looked at, places of a text that
are compared, and the share of the seeds of the best one that another one has."""

_LEAST = 4
"""Letters of a seed at least, and of a text that is looked for among all documents: one that has
fewer, and stands several times, says nothing."""

_AGREES = 6
"""Letters around a text that must agree, to tell one place from another."""

_BLOCK = 3
"""Letters that match in a row, to mean anything."""

_LONGEST = 6_000
"""Letters of a text that are compared one by one; of a longer one its head and its tail are."""


class Found(NamedTuple):
    """Places of a text.

    Attributes:
        way: how it was found: one of the words of this module.
        places: one; of an ambiguous text all of them, of a lost one none.
    """

    way: str
    places: tuple[Place, ...]


class Letters:
    """A text by its letters and digits alone, with where each of them stands.

    Case, accents and compatibility forms are gone: equal letters in NFC and NFD are equal here.
    Vowel signs, as Indic scripts have them, are letters.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        distinct, inverse = np.unique(codes, return_inverse=True)
        forms = [_form(chr(code)) for code in distinct.tolist()]
        n_of = np.array([len(form) for form in forms], np.int64)[inverse] if forms else inverse
        self.places: NDArray[np.int64] = np.repeat(np.arange(len(codes)), n_of)
        if n_of.max(initial=0) <= 1:
            single = np.array([ord(form) if form else 0 for form in forms], np.uint32)
            kept = single[inverse][n_of == 1] if forms else codes
            self.letters = kept.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        else:
            self.letters = "".join([forms[at] for at in inverse.tolist()])

    def range_of(self, start: int, end: int) -> tuple[int, int]:
        """The characters from one letter up to another, which is not among them; with marks on the
        last one."""
        last = int(self.places[end - 1]) + 1
        while last < len(self._text) and unicodedata.category(self._text[last])[0] == "M":
            last += 1
        return int(self.places[start]), last

    def around(self) -> tuple[str, str]:
        """What stands in front of the first letter, and behind the last one."""
        start, end = self.range_of(0, len(self.letters))
        return self._text[:start], self._text[end:]


def _form(character: str) -> str:
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(letter for letter in folded if _is_letter(letter))


def _is_letter(character: str) -> bool:
    category = unicodedata.category(character)
    if category in ("Mn", "Mc"):  # what Latin, Greek and Cyrillic have is called COMBINING
        return not unicodedata.name(character, "").startswith(("COMBINING", "VARIATION"))
    return category[0] in "LN"


class Finder:
    """Finds texts in documents.

    Args:
        texts: of the documents, by id.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._letters: dict[str, Letters] = {}

    def anywhere(self, text: str, first: str = "") -> Found:
        """Find a text in all documents.

        Args:
            first: the document that is looked into first, and where it stands there, alone.
        """
        if first in self._texts:
            there = self.within(first, text)
            if there.way in (EXACT, NORMALISED):
                return there
        sought = self._sought(list(self._texts), text, "", "")
        few = sought.way == AMBIGUOUS and len(Letters(text).letters) < _LEAST
        return Found(LOST, ()) if few else sought

    def within(self, doc_id: str, text: str, before: str = "", after: str = "") -> Found:
        """Find a text in one document.

        Args:
            before, after: what stood around it.
        """
        return self._sought([doc_id], text, before, after)

    def letters_of(self, doc_id: str) -> Letters:
        """The letters of a document, made once."""
        if doc_id not in self._letters:
            self._letters[doc_id] = Letters(self._texts[doc_id])
        return self._letters[doc_id]

    def _sought(self, doc_ids: Sequence[str], text: str, before: str, after: str) -> Found:
        exact = [
            Place(doc_id, at, at + len(text))
            for doc_id in doc_ids
            for at in occurrences(self._texts[doc_id], text)
        ]
        agreed = [self._agreement(place, before, after) for place in exact if before or after]
        if exact and max(agreed, default=_AGREES) >= _AGREES:
            return self._chosen(EXACT, exact, before, after)
        own = Letters(text)
        letters = own.letters
        same = [
            self._widened(doc_id, at, at + len(letters), own)
            for doc_id in doc_ids
            for at in occurrences(self.letters_of(doc_id).letters, letters)
        ]
        if exact:  # elsewhere, as it seems: its own place may be one that was edited
            same = [place for place in same if self._agreement(place, before, after) >= _AGREES]
        if same:
            return self._chosen(NORMALISED, same, before, after)
        if exact or not letters:
            return self._chosen(EXACT, exact, before, after) if exact else Found(LOST, ())
        near = sorted(self._near(doc_ids, own), reverse=True)
        best = [place for share, place in near if share >= near[0][0] * _NEAR]
        return self._chosen(FUZZY, best, before, after) if best else Found(LOST, ())

    def _widened(self, doc_id: str, start: int, end: int, own: Letters) -> Place:
        """The place of some letters, with as much as stands there of what the text has around its
        own."""
        text = self._texts[doc_id]
        first, last = self.letters_of(doc_id).range_of(start, end)
        ahead, behind = own.around()
        first -= _alike(text[max(0, first - len(ahead)) : first][::-1], ahead[::-1])
        return Place(doc_id, first, last + _alike(text[last : last + len(behind)], behind))

    def _chosen(self, way: str, places: Sequence[Place], before: str, after: str) -> Found:
        """The only place, or the one whose surroundings agree best; else all of them."""
        if len(places) == 1:
            return Found(way, tuple(places))
        if before or after:
            agreed = [self._agreement(place, before, after) for place in places]
            best = max(agreed)
            if best >= _AGREES and agreed.count(best) == 1:
                return Found(way, (places[agreed.index(best)],))
        return Found(AMBIGUOUS, tuple(places))

    def _agreement(self, place: Place, before: str, after: str) -> int:
        """Count the letters around a place that stood there."""
        text, around = self._texts[place.doc_id], 4 * max(len(before), len(after))
        ahead = Letters(text[max(0, place.start - around) : place.start]).letters[::-1]
        behind = Letters(text[place.end : place.end + around]).letters
        return _alike(ahead, Letters(before).letters[::-1]) + _alike(behind, Letters(after).letters)

    def _near(self, doc_ids: Sequence[str], text: Letters) -> Iterator[tuple[float, Place]]:
        """Places with at least :data:`BOUND` of the letters, and their shares: where most seeds of
        the text stand at their distances."""
        letters, n = text.letters, len(text.letters)
        seed = min(_SEED, max(_LEAST, len(letters) // 4))
        starts = range(0, max(1, n - seed + 1), max(1, (n - seed) // _SEEDS))
        slack = max(16, n // 8)
        votes = Counter[tuple[str, int]]()
        for doc_id in doc_ids:
            own = self.letters_of(doc_id).letters
            for at in starts:
                places = occurrences(own, letters[at : at + seed])
                votes.update((doc_id, (place - at) // slack) for place in islice(places, _MOST))
        tried = set[tuple[str, int]]()
        most = max(votes.values(), default=0)
        for (doc_id, bucket), count in votes.most_common(_TRIED):
            if count < _FEW * most or (doc_id, bucket) in tried:
                continue
            tried |= {(doc_id, bucket + beside) for beside in (-1, 0, 1)}
            low = max(0, (bucket - 1) * slack)
            window = self.letters_of(doc_id).letters[low : (bucket + 2) * slack + n]
            share, start, end = _matched(letters, window)
            if share >= BOUND:
                yield share, self._widened(doc_id, low + start, low + end, text)


def occurrences(text: str, part: str) -> Iterator[int]:
    """Find where a part stands in a text, overlapping places included."""
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _alike(a: str, b: str) -> int:
    """The number of letters that two texts have alike from their beginning."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))


def _matched(letters: str, window: str) -> tuple[float, int, int]:
    """The share of ``letters`` that stand in a window in their order, and from where to where."""
    if len(letters) > _LONGEST:
        half = _LONGEST // 2
        reach = half + 3 * max(16, len(letters) // 8)  # so much more than its text a window has
        head, start, _ = _matched(letters[:half], window[:reach])
        tail, _, end = _matched(letters[-half:], window[-reach:])
        return min(head, tail), start, len(window[:-reach]) + end
    blocks = SequenceMatcher(None, letters, window, autojunk=False).get_matching_blocks()
    largest = max(blocks, key=lambda block: block.size)
    shift, slack = largest.b - largest.a, max(16, len(letters) // 8)
    kept = [  # shorter ones stand everywhere, and so do those of another shift
        block
        for block in blocks
        if block.size >= _BLOCK and abs(block.b - block.a - shift) <= slack
    ]
    if not kept:
        return 0.0, 0, 0
    share = sum(block.size for block in kept) / len(letters)
    return share, kept[0].b, kept[-1].b + kept[-1].size
