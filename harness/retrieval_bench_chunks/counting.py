"""Tokens of delivered texts: how many there are, and where in a text each of them ends.

A text is taken apart into pieces, roughly its words, which no token goes across; the tokens of a
piece are counted once, wherever it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import accumulate
from math import ceil, isnan, nan

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
        pieces: of the text.
        counts: tokens of each piece.
        blanks: number of those between two pieces, counted with the second.
        within: the characters of a piece that hold so many of its tokens.

    Attributes:
        total: number of tokens.
    """

    def __init__(
        self,
        pieces: list[str],
        counts: list[float],
        blanks: int,
        within: Callable[[str, float], int],
    ) -> None:
        self._pieces, self._blanks, self._within = pieces, blanks, within
        self._tokens = list(accumulate(counts, initial=0))
        self._passed = self._length = 0
        self.total = self._tokens[-1]

    def at(self, n: float) -> int:
        """The characters that the first ``n`` tokens hold; one that a token ends within is not
        among them."""
        whole = bisect_right(self._tokens, n + _EPSILON) - 1
        low, high = sorted((self._passed, whole))  # counted on from where the last answer ended
        step = len("".join(self._pieces[low:high])) + (high - low) * self._blanks
        self._length += step if whole == high else -step
        self._passed = whole
        rest = n - self._tokens[whole]
        inside = rest >= 1 - _EPSILON and whole < len(self._pieces)
        blank = " " if self._blanks and whole else ""
        more = self._within(blank + self._pieces[whole], rest) if inside else 0
        return max(0, self._length - self._blanks) + more


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
        of_word = _Known(lambda word: nan if _LINKED.match(word) else count(" " + word))
        self._of_word = of_word.__getitem__

    @property
    def sign(self) -> str:
        """What stands before a number that is no count."""
        return "~" if self.name == tokens.ESTIMATE else ""

    def count(self, text: str) -> float:
        """The tokens of a text."""
        return sum(self._counted(text)[1])

    def ends(self, text: str) -> Ends:
        """Find the ends of the tokens of a text."""
        return Ends(*self._counted(text), self._within)

    def within(self, text: str, budget: float) -> int:
        """The number of characters of ``text`` that so many tokens hold: all, where it has no more.

        A long text is counted as far as it must be, so a document costs no more than its head.
        """
        n = min(len(text), 64 + 8 * ceil(budget))
        while (ends := self.ends(text[:n])).total <= budget and n < len(text):
            n = min(len(text), 2 * n)
        return ends.at(budget)

    def _counted(self, text: str) -> tuple[list[str], list[float], int]:
        """The pieces of a text, the tokens of each, and the number of blanks between two.

        Most texts are cut at their blanks, which is fastest: no token of o200k_base goes across
        one unless white space follows, which is not a number here.
        """
        if self.name == tokens.ENCODING:
            # Half a pair, as a faulty escape in JSON leaves it, has no tokens: it counts as "?".
            text = text if text.isascii() else text.encode("utf-8", "replace").decode()
            if 12 * text.count(" ") >= len(text):
                words = text.split(" ")
                counts = list(map(self._of_word, words))
                if len(words[0]) < _LONGEST:
                    counts[0] = self._tokens_of(words[0])
                if not isnan(sum(counts)):
                    return words, counts, 1
        pieces = list[str]()
        for block in [text] if len(text) <= _BLOCK else _blocks(text):
            pieces += self._apart(block)
        if max(map(len, pieces), default=0) > _LONGEST:
            cuts = ((piece, at) for piece in pieces for at in range(0, len(piece), _LONGEST))
            pieces = [piece[at : at + _LONGEST] for piece, at in cuts]
        return pieces, list(map(self._tokens_of, pieces)), 0


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
