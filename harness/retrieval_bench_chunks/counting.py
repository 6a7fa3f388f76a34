"""Tokens of delivered texts: how many there are, and where in a text each of them ends.

A text is taken apart into pieces, roughly its words, which no token goes across; the tokens of a
piece are counted once, wherever it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, islice
from math import ceil, isnan, nan

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.data.texts import tokens

_WHERE = "tokens of chunks"
_FINE = 8
"""Tokens of an estimated piece from which on it may be cut within."""

_BLOCK, _LONGEST = 500_000, 1_000
"""Characters that are taken apart at a time; a longer piece is counted in parts."""

_KEPT = 1 << 19
"""Pieces whose tokens are kept."""

_BETWEEN = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])")
_LINKED = re.compile(rf"\s|\Z|.{{{_LONGEST}}}", re.DOTALL)
"""Begins what is not counted as a word behind a blank: the blank is not its own, or it is long."""

_EPSILON = 1e-9


class _Known(dict[str, float]):
    """Piece -> its tokens, counted when they are asked for the first time."""

    def __init__(self, count: Callable[[str], float]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, piece: str) -> float:
        if len(self) >= _KEPT:
            self.clear()
        n = self[piece] = self._count(piece)
        return n


class Ends:
    """Ends of the tokens of a text.

    Args:
        text: of pieces.
        bounds: where each piece begins, and the end of the text.
        counts: tokens of all pieces before each, and of all.
        within: the characters of a piece that hold so many of its tokens.

    Attributes:
        total: number of tokens.
    """

    def __init__(
        self,
        text: str,
        bounds: Sequence[int] | NDArray[np.intp],
        counts: list[float],
        within: Callable[[str, float], int],
    ) -> None:
        self._text, self._bounds, self._tokens, self._within = text, bounds, counts, within
        self.total = counts[-1]

    def at(self, n: float) -> int:
        """The characters that the first ``n`` tokens hold; one that a token ends within is not
        among them."""
        whole = bisect_right(self._tokens, n + _EPSILON) - 1
        start, rest = int(self._bounds[whole]), n - self._tokens[whole]
        if rest < 1 - _EPSILON or start == len(self._text):
            return start
        return start + self._within(self._text[start : self._bounds[whole + 1]], rest)


class Counter:
    """Counts tokens in one way.

    Attributes:
        name: of the way: ``o200k_base``, or ``estimate``.
    """

    def __init__(self, way: str = "auto") -> None:
        counted = tokens.counter(way, _WHERE)
        if counted is None:
            raise ValueError(f"tokens counted as {way}")
        self.name, count = counted
        self._within: Callable[[str, float], int]
        if self.name == tokens.ENCODING:
            backend = tokens.encoding()._backend
            count, self._apart, self._within = backend.count, backend.pretokenize, _counted_within
        else:
            self._apart, self._within = tokens.estimated_pieces, _estimated_within
        self._tokens_of = _Known(count).__getitem__
        self._of_word = _Known(self._counted_word).__getitem__

    @property
    def sign(self) -> str:
        """What stands before a number that is no count."""
        return "~" if self.name == tokens.ESTIMATE else ""

    def count(self, text: str) -> float:
        """The tokens of a text."""
        return self._counted(_encodable(text))[0][-1]

    def ends(self, text: str) -> Ends:
        """Find the ends of the tokens of a text."""
        text = _encodable(text)
        counts, pieces = self._counted(text)
        if pieces:
            return Ends(text, [*accumulate(map(len, pieces), initial=0)], counts, self._within)
        signs = np.frombuffer(f" {text} ".encode("utf-32-le"), np.uint32)
        bounds = np.flatnonzero(signs == ord(" ")) - 1
        bounds[0] = 0
        return Ends(text, bounds, counts, self._within)

    def within(self, text: str, budget: float) -> int:
        """The number of characters of ``text`` that so many tokens hold: all, where it has no more.

        A long text is counted as far as it must be, so a document costs no more than its head.
        """
        n = min(len(text), 64 + 8 * ceil(budget))
        while (ends := self.ends(text[:n])).total <= budget and n < len(text):
            n = min(len(text), 2 * n)
        return ends.at(budget)

    def _counted(self, text: str) -> tuple[list[float], list[str]]:
        """The tokens before each piece of a text and of all, and these; none where each begins at a
        blank.

        Most texts are cut at their blanks, which is fastest: no token of o200k_base goes across
        one unless white space follows, which is not a number here.
        """
        words = text.split(" ") if self.name == tokens.ENCODING else []
        if 12 * len(words) > len(text) and len(words[0]) < _LONGEST:
            others = map(self._of_word, islice(words, 1, None))
            counts = [0, *accumulate(others, initial=self._tokens_of(words[0]))]
            if not isnan(counts[-1]):
                return counts, []
        pieces = list[str]()
        for block in [text] if len(text) <= _BLOCK else _blocks(text):
            pieces += self._apart(block)
        if max(map(len, pieces), default=0) > _LONGEST:
            cuts = ((piece, at) for piece in pieces for at in range(0, len(piece), _LONGEST))
            pieces = [piece[at : at + _LONGEST] for piece, at in cuts]
        return [*accumulate(map(self._tokens_of, pieces), initial=0)], pieces

    def _counted_word(self, word: str) -> float:
        """A word with the blank before it; that of the next line begins a token of its own."""
        if _LINKED.match(word):
            return nan
        before, line, rest = word.rpartition("\n")
        if line and rest[:1].isalpha():
            return self._of_word(before + line) + self._tokens_of(rest)
        return self._tokens_of(" " + word)


def _encodable(text: str) -> str:
    """Half a pair, as a faulty escape in JSON leaves it, has no tokens: it counts as "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _blocks(text: str) -> Iterator[str]:
    """Blocks of a long text, cut between words, where there are any."""
    start = 0
    while start < len(text):
        end = start + _BLOCK
        between = _BETWEEN.search(text, end, end + _BLOCK)
        end = between.end() if between else end
        yield text[start:end]
        start = end


@lru_cache(1 << 14)
def _counted_within(piece: str, n: float) -> int:
    encoding = tokens.encoding()
    whole = encoding.decode_bytes(encoding.encode_ordinary(piece)[: int(n + _EPSILON)])
    return len(whole.decode("utf-8", "ignore"))


def _estimated_within(piece: str, n: float) -> int:
    whole = tokens.estimated(piece)
    return int(len(piece) * n / whole + _EPSILON) if whole > _FINE else 0


@cache
def counter() -> Counter:
    """The way that tokens are counted here: exact where the extra ``tokens`` is installed."""
    return Counter()
