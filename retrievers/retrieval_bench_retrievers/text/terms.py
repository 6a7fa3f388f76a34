"""Base of every tokenizer, and what several share: words that are remembered, stop words, marks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
"""For a character class."""

# Bounds of the memory of a tokenizer. When it is full nothing is replaced: frequent words come
# early, and throwing out is slower than computing a rare word again.
_REMEMBERED = 1 << 16
_LONGEST_REMEMBERED = 20

Made = TypeVar("Made")


class Tokenizer(ABC):
    """Cuts a text into terms; the same function serves documents and queries."""

    @abstractmethod
    def __call__(self, text: str) -> list[str]:
        """Terms of ``text`` in reading order, repeated as often as they occur; never empty ones."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and everything that changes the terms, for the manifest."""

    def words(self, text: str) -> Sequence[str]:
        """Parts of ``text`` that each give the same terms wherever they stand: those of
        :meth:`terms_of`."""
        return self(text)

    def terms_of(self, word: str) -> tuple[str, ...]:
        """Terms of one of :meth:`words`, computed anew: for whoever remembers them himself."""
        return (word,)

    def are_parts(self, terms: Sequence[str]) -> bool:
        """Return whether the ``terms`` of a query are single characters that documents hold as
        parts of longer terms: whatever term has one of them is asked for then."""
        return False


class Remembered(dict[str, Made]):
    """Word -> what is made of it, computed at the first look-up and remembered within bounds."""

    def __init__(self, make: Callable[[str], Made], most: int) -> None:
        super().__init__()
        self._make = make
        self._most = most
        self._lock = threading.Lock()  # a Snowball stemmer must not be entered twice at a time

    def __missing__(self, word: str) -> Made:
        made = self.made(word)
        if len(word) <= _LONGEST_REMEMBERED and len(self) < self._most:
            self[word] = made
        return made

    def made(self, word: str) -> Made:
        """Compute it anew."""
        with self._lock:
            return self._make(word)


class WordwiseTokenizer(Tokenizer):
    """Base of tokenizers that cut a text into words and make terms of each word alone.

    Args:
        expand: the terms of a word.
    """

    def __init__(self, expand: Callable[[str], tuple[str, ...]]) -> None:
        self._terms = Remembered(expand, _REMEMBERED)

    def __call__(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return list(chain.from_iterable(map(self._terms.__getitem__, self.words(text))))

    @abstractmethod
    def words(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""

    def terms_of(self, word: str) -> tuple[str, ...]:
        """See :class:`Tokenizer`."""
        return self._terms.made(word)


@cache
def stop_words(stemmer: str) -> frozenset[str]:
    """Stop words for the language of a Snowball stemmer; empty where ``stop_words.txt``, which says
    where its lists come from, has none."""
    text = Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8")
    return frozenset(text.partition(f"[{stemmer}]\n")[2].partition("\n[")[0].split())
