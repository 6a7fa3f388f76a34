"""Tokens of delivered texts: how many there are, and where in a text each of them ends.

A text is taken apart into pieces, roughly its words, which no token goes across; the tokens of a
piece are counted once, wherever it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate
from math import ceil

from retrieval_bench.data.texts import tokens

_WHERE = "tokens of chunks"
_FINE = 8
"""Tokens of an estimated piece from which on it may be cut within."""

_BLOCK, _LONGEST = 500_000, 1_000
"""Characters that are taken apart at a time; a longer piece is counted in parts."""

_KEPT = 1 << 19
"""Pieces whose tokens are kept."""

_BETWEEN = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])")
_LOOSE = re.compile("\0 (?=\0|\\s|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")
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
        tokens_of: a piece -> its tokens.
        within: the characters of a piece that hold so many of its tokens.

    Attributes:
        total: number of tokens.
    """

    def __init__(
        self,
        pieces: list[str],
        tokens_of: Callable[[str], float],
        within: Callable[[str, float], int],
    ) -> None:
        self._pieces, self._within = pieces, within
        self._characters = list(accumulate(map(len, pieces), initial=0))
        self._tokens = list(accumulate(map(tokens_of, pieces), initial=0))
        self.total = self._tokens[-1]

    def at(self, n: float) -> int:
        """The characters that the first ``n`` tokens hold; one that a token ends within is not
        among them."""
        whole = bisect_right(self._tokens, n + _EPSILON) - 1
        rest = n - self._tokens[whole]
        inside = rest >= 1 - _EPSILON and whole < len(self._pieces)
        return self._characters[whole] + (self._within(self._pieces[whole], rest) if inside else 0)


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
        if self.name == tokens.ENCODING:
            backend = tokens.encoding()._backend
            count, self._apart, self._within = backend.count, _words, _counted_within
        else:
            self._apart, self._within = tokens.estimated_pieces, _estimated_within
        self._tokens_of = _Known(count).__getitem__

    @property
    def sign(self) -> str:
        """What stands before a number that is no count."""
        return "~" if self.name == tokens.ESTIMATE else ""

    def count(self, text: str) -> float:
        """The tokens of a text."""
        return sum(map(self._tokens_of, self._pieces(text)))

    def ends(self, text: str) -> Ends:
        """Find the ends of the tokens of a text."""
        return Ends(self._pieces(text), self._tokens_of, self._within)

    def within(self, text: str, budget: float) -> int:
        """The number of characters of ``text`` that so many tokens hold: all, where it has no more.

        A long text is counted as far as it must be, so a document costs no more than its head.
        """
        n = min(len(text), 64 + 8 * ceil(budget))
        while (ends := self.ends(text[:n])).total <= budget and n < len(text):
            n = min(len(text), 2 * n)
        return ends.at(budget)

    def _pieces(self, text: str) -> list[str]:
        pieces = list[str]()
        for block in [text] if len(text) <= _BLOCK else _blocks(text):
            pieces += self._apart(block)
        if max(map(len, pieces), default=0) > _LONGEST:
            cuts = ((piece, at) for piece in pieces for at in range(0, len(piece), _LONGEST))
            pieces = [piece[at : at + _LONGEST] for piece, at in cuts]
        return pieces


def _words(text: str) -> list[str]:
    """Cut before blanks, which no token of o200k_base goes across unless white space follows;
    texts that have few of them are cut by the encoding, which takes longer."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a pair, as a faulty escape in JSON leaves it
        text = _SURROGATE.sub("\ufffd", text)
    if 12 * text.count(" ") >= len(text) and "\0" not in text:
        return _LOOSE.sub(" ", text.replace(" ", "\0 ")).split("\0")
    pieces: list[str] = tokens.encoding()._backend.pretokenize(text)
    return pieces


def _blocks(text: str) -> Iterator[str]:
    """Blocks of a long text, cut between words, where there are any."""
    start = 0
    while start < len(text):
        end = start + _BLOCK
        between = _BETWEEN.search(text, end, end + _BLOCK)
        end = between.end() if between else end
        yield text[start:end]
        start = end


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
