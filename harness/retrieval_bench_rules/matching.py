"""Matching: when a text has a phrase, and a source fits a glob.

Texts and phrases are compared in NFC, with case folded and white space of any kind collapsed to one
blank; sources in NFC alone, where case counts.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import translate
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import NamedTuple

from retrieval_bench_rules.endless import may_be_endless

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters of scripts that put no blank between words: Han, Kana, Thai, Lao, Tibetan, Burmese,
Khmer."""

_PARTICLES = re.compile(
    "(?:에게서|으로서|으로써|이라도|에서|에게|께서|한테|이랑|으로|로서|로써|까지|부터|마다|처럼|보다"
    "|조차|마저|밖에|라도|이나|은|는|이|가|을|를|의|에|께|와|과|랑|로|도|만|나|요){1,2}"
)
"""Korean particles, which are written behind a word without a blank; two at most."""


class Text(NamedTuple):
    """A text in the forms that rules look at.

    Attributes:
        plain: in NFC, white space collapsed.
        folded: the same with case folded.
    """

    plain: str
    folded: str


def plain(text: str) -> str:
    """``text`` in NFC, with white space collapsed and none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def folded(text: str) -> str:
    """The same with case folded, as Unicode's canonical caseless matching has it."""
    letters = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", letters).split())


def forms(text: str) -> Text:
    """Both forms of a text."""
    return Text(plain(text), folded(text))


def has(text: str, phrase: str, *, words: bool = False) -> bool:
    """Say whether a folded text has a folded phrase.

    Args:
        words: only where it stands as words: no letter, digit or mark goes on beside it. Where a
            script puts no blank between words, nothing is asked at that end; Korean particles may
            follow.
    """
    if not words:
        return phrase in text
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        if _apart(text, at - 1, at) and (_apart(text, end, end - 1) or _particle(text, end)):
            return True
        at = text.find(phrase, at + 1)
    return False


def _apart(text: str, beside: int, edge: int) -> bool:
    """Say whether a word ends between two neighbours."""
    if not 0 <= beside < len(text) or not _in_word(text[beside]):
        return True
    return bool(_UNSPACED.match(text[beside]) or _UNSPACED.match(text[edge]))


def _particle(text: str, at: int) -> bool:
    particle = _PARTICLES.match(text, at)
    if particle is None:
        return False
    return _apart(text, particle.end(), particle.end() - 1)


def _in_word(letter: str) -> bool:
    return letter == "_" or unicodedata.category(letter)[0] in "LMN"


def glob(pattern: str) -> re.Pattern[str]:
    """Make a matcher of sources: ``*`` stands for any characters, slashes too, ``?`` for one,
    ``[ab]`` for one of some; a source that is written like it fits, too. It is for the whole
    source, or, without a slash in it, also for what stands behind the last one."""
    itself = _as_source(pattern)
    regex = f"(?:{re.escape(itself)}\\Z|{translate(itself)})"
    return re.compile(regex if "/" in itself else f"(?:.*/)?{regex}", re.DOTALL)


def fits(source: str, pattern: re.Pattern[str]) -> bool:
    """Say whether a source fits a glob; a backslash in either counts as a slash."""
    return bool(pattern.match(_as_source(source)))


def _as_source(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\\", "/")


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression that is searched in plain texts, whatever the case.

    Raises:
        ValueError: it is none, matches the empty text, or may take for ever.
    """
    try:
        regex = re.compile(unicodedata.normalize("NFC", pattern), re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"no regular expression: {problem}") from None
    if regex.search(""):
        raise ValueError("it matches the empty text, and so every hit")
    if may_be_endless(regex):
        raise ValueError("a repetition that reads one text in several ways may take for ever")
    return regex


def meets_no_text(regex: re.Pattern[str]) -> bool:
    """Say whether a pattern asks for white space that texts do not have: two blanks, or another
    one."""
    parsed = parser.parse(regex.pattern, regex.flags)
    letters = "".join(chr(of) if kind is code.LITERAL else "." for kind, of in parsed)
    return "  " in letters or any(letter.isspace() for letter in letters.replace(" ", ""))
