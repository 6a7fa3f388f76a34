"""Base of every tokenizer, and what several share: words that are remembered, stop words, marks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
"""For a character class."""

# Bounds of the memory of a tokenizer. When it is full nothing is replaced: frequent words come
# early, and throwing out is slower than computing a rare word again.
_REMEMBERED = 1 << 16
_LONGEST_REMEMBERED = 20


class Tokenizer(ABC):
    """Cuts a text into terms; the same function serves documents and queries."""

    @abstractmethod
    def __call__(self, text: str) -> list[str]:
        """Terms of ``text`` in reading order, repeated as often as they occur; never empty ones."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and everything that changes the terms, for the manifest."""

    def are_parts(self, terms: Sequence[str]) -> bool:
        """Return whether the ``terms`` of a query are single characters that documents hold as
        parts of longer terms: whatever term has one of them is asked for then."""
        return False


class Terms(dict[str, tuple[str, ...]]):
    """Word -> its terms, computed at the first look-up and remembered within bounds."""

    def __init__(self, expand: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._expand = expand
        self._lock = threading.Lock()  # a Snowball stemmer must not be entered twice at a time

    def __missing__(self, word: str) -> tuple[str, ...]:
        with self._lock:
            terms = self._expand(word)
            if len(word) <= _LONGEST_REMEMBERED and len(self) < _REMEMBERED:
                self[word] = terms
        return terms


@cache
def stop_words(stemmer: str) -> frozenset[str]:
    """Stop words for the language of a Snowball stemmer; empty where ``stop_words.txt``, which says
    where its lists come from, has none."""
    text = Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8")
    return frozenset(text.partition(f"[{stemmer}]\n")[2].partition("\n[")[0].split())
