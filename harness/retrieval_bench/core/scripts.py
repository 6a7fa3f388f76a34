"""Scripts that a set of texts is written in: the first line of a health check.

A script is the first word of a character's Unicode name (Latin, Hangul, Arabic ...), with Chinese
characters as Han and both Japanese syllabaries as Kana. Only letters count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

BLANKLESS = ("Han", "Kana", "Thai", "Lao", "Khmer", "Myanmar")
"""Scripts that put no blanks between words."""

BLANKLESS_CHARACTERS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1100-\u11ff"
    "\u1780-\u17d3\u17dc-\u17dd\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u309a"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7fb\uf900-\ufaff\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
"""Their characters and Hangul, for a character class."""

_WORTH_NAMING = 0.05
_CHARACTERS_READ = 400
_GROUPED = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "KATAKANA-HIRAGANA": "Kana",
    "HALFWIDTH": "Kana",
    "FULLWIDTH": "Latin",
    "MODIFIER": "Other",
    "": "Other",
}


class ScriptSample:
    """The scripts of a stream of texts, from an even sample that costs next to nothing.

    Args:
        size: at least this many texts are read when the stream has them, at most twice as many; of
            each the first 400 characters.
    """

    def __init__(self, size: int = 1000) -> None:
        self._size = size
        self._stride = 1
        self._seen = 0
        self._kept: list[str] = []

    def add(self, text: str) -> None:
        """Take the next text of the stream into account."""
        if self._seen % self._stride == 0:
            self._kept.append(text[:_CHARACTERS_READ])
            if len(self._kept) == 2 * self._size:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._seen += 1

    @property
    def texts(self) -> list[str]:
        """The beginnings of the texts that are read."""
        return self._kept

    def profile(self) -> dict[str, float]:
        """Share of the letters in each script, largest first, adding up to 1; empty without
        letters."""
        characters: Counter[str] = Counter()
        for text in self._kept:
            # Compatibility forms, so that full-width Latin is Latin and half-width Kana is Kana.
            characters.update(text if text.isascii() else unicodedata.normalize("NFKC", text))
        scripts: Counter[str] = Counter()
        for character, count in characters.items():
            if character.isalpha():
                scripts[script_of(character)] += count
        total = scripts.total()
        order = sorted(scripts.items(), key=lambda item: (-item[1], item[0]))
        return {script: count / total for script, count in order}


def script_profile(texts: Iterable[str], sample: int = 1000) -> dict[str, float]:
    """Share of the letters of ``texts`` in each script, largest first; see
    :class:`ScriptSample`."""
    taken = ScriptSample(sample)
    for text in texts:
        taken.add(text)
    return taken.profile()


def main_script(profile: Mapping[str, float]) -> str | None:
    """The script with the largest share, None without letters."""
    return max(profile, key=lambda script: (profile[script], script), default=None)


def main_scripts(profile: Mapping[str, float]) -> str:
    """The scripts that matter, as a phrase: ``"Hangul 71 %, Latin 27 %"``."""
    order = sorted(profile.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{script} {share:.0%}" for script, share in order if share >= _WORTH_NAMING]
    return ", ".join(named).replace("%", " %") or "no letters"


def no_common_script(corpus: Mapping[str, float], queries: Mapping[str, float]) -> bool:
    """True when corpus and queries have letters, but hardly any in the same script."""
    shared = sum(min(share, queries.get(script, 0.0)) for script, share in corpus.items())
    return bool(corpus) and bool(queries) and shared < _WORTH_NAMING


@lru_cache(maxsize=1 << 16)
def script_of(letter: str) -> str:
    """The script of one letter, "Other" for what has no name of its own."""
    first = unicodedata.name(letter, "").partition(" ")[0]
    return _GROUPED.get(first, first.capitalize())


def combining_marks() -> str:
    """The combining marks of the basic plane but variation selectors, for a character class.

    Marks of the planes above (historic scripts) would make every match several times slower.
    """
    blocks = (range(0x300, 0x3100), range(0xA660, 0xAC00), range(0xFB1E, 0xFB1F))
    half_marks = range(0xFE20, 0xFE30)
    marks = map(chr, chain(*blocks, half_marks))
    return "".join(mark for mark in marks if unicodedata.category(mark).startswith("M"))


def tokens(text: str) -> list[str]:
    """The tokens of a text, in their order.

    One is a word, or in a script that is written without blanks (Han, Kana, Hangul, Thai, Lao,
    Burmese, Khmer) a single character. Case, width, punctuation and white space do not count
    (NFKC, case folded).
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    return _words().findall(unicodedata.normalize("NFKC", text).casefold())


_ASCII = re.compile(r"[a-z0-9]+")


@lru_cache(1)
def _words() -> re.Pattern[str]:
    # Python counts no combining mark as a part of a word: those of Indian scripts are.
    letter = f"[^\\W_{BLANKLESS_CHARACTERS}]"
    return re.compile(
        f"[{BLANKLESS_CHARACTERS}]|{letter}(?:{letter}|(?![\\x00-\\u02ff])[{combining_marks()}])*"
    )
