"""The terms that other tools make of English text, for numbers that were published with them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from retrieval_bench.core.scripts import combining_marks
from retrieval_bench_retrievers.text.porter import porter_stem
from retrieval_bench_retrievers.text.terms import EMOJI, WordwiseTokenizer, stop_words

# Each character of these is a word of its own.
_HAN_AND_HIRAGANA = (
    "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
# What joins two letters, or two digits, where it stands between them (UAX 29, Unicode 12.1).
_BETWEEN_LETTERS = (
    ".:'\u00b7\u0387\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a"
)
_BETWEEN_DIGITS = (
    ".,;'\u037e\u0589\u060c\u060d\u066c\u07f8\u2018\u2019\u2024\u2044\ufe10\ufe14\ufe50\ufe52\ufe54"
    "\uff07\uff0c\uff0e\uff1b"
)
_INSIDE_WORDS = "\u00ad\u200d\u2060"
_APOSTROPHES = "'\u2019\uff07"


class LuceneTokenizer(WordwiseTokenizer):
    """English analysis of Lucene, as Anserini and Pyserini index with by default.

    StandardTokenizer (words of Unicode's annex 29, in which "p.m" and "1,000" are one word and
    "il-2" is two; each Han character and each Hiragana is a word), possessive "'s" removed, lower
    case, the 33 stop words, Porter's stemmer. Unlike there, words of more than 255 characters are
    not cut.
    """

    def __init__(self) -> None:
        self._stop_words = stop_words("english")
        super().__init__(self._expand)

    def words(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return _standard_words(ascii_only=text.isascii()).findall(text)

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {"name": "lucene", "stemmer": "porter", "stop_words": len(self._stop_words)}

    def _expand(self, word: str) -> tuple[str, ...]:
        if word[-2:-1] in _APOSTROPHES and word[-1] in "sS" and len(word) > 2:
            word = word[:-2]
        word = word.lower()
        return () if word in self._stop_words else (porter_stem(word),)


class BM25STokenizer(WordwiseTokenizer):
    """Terms as ``bm25s.tokenize`` makes them with its English stop words and Snowball's English
    stemmer: lower case, words of two characters or more."""

    def __init__(self) -> None:
        import Stemmer

        self._stop_words = stop_words("english")
        self._stem = Stemmer.Stemmer("english", maxCacheSize=0).stemWord
        self._version = Stemmer.version()
        self._words = re.compile(r"\b\w\w+\b")
        super().__init__(lambda word: () if word in self._stop_words else (self._stem(word),))

    def words(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return self._words.findall(text.lower())

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {
            "name": "bm25s",
            "stemmer": "english",
            "stop_words": len(self._stop_words),
            "pystemmer": self._version,
        }


@cache
def _standard_words(*, ascii_only: bool) -> re.Pattern[str]:
    """Words of Lucene's StandardTokenizer; the pattern for ASCII is several times faster."""
    if ascii_only:
        apart, mark = "", ""
    else:
        numbers = (chr(code) for code in range(0x10000) if unicodedata.category(chr(code)) == "No")
        apart = _HAN_AND_HIRAGANA + _KATAKANA + "".join(numbers)
        mark = f"[{combining_marks()}{_INSIDE_WORDS}]"
    letter, digit = f"[^\\W\\d_{apart}]", r"\d"
    marks = mark and f"{mark}*"
    behind = [f"(?<={letter})", f"(?<={mark})"] if mark else [f"(?<={letter})"]
    after_letter, after_digit = "|".join(behind), "|".join([rf"(?<={digit})", *behind[1:]])
    part = f"(?:[^\\W{apart}]{marks})+"
    joint = (
        f"(?:(?:{after_letter})[{_BETWEEN_LETTERS}](?={letter})"
        f"|(?:{after_digit})[{_BETWEEN_DIGITS}](?={digit}))"
    )
    # Underscores join, but make no word alone.
    word = f"(?=_*[^\\W_]){part}(?:{joint}{part})*"
    if ascii_only:
        return re.compile(word, re.ASCII)
    return re.compile(
        "|".join([f"[{_HAN_AND_HIRAGANA}]{marks}", f"[{_KATAKANA}]+", word, f"[{EMOJI}]"])
    )
