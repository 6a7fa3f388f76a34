"""Text for pictures: from anywhere, so made harmless, cut to a width, and numbers as people read
them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

import numpy as np

_JOINER = "\u200d"
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """``text`` as one line that XML can hold: white space becomes a space, what has no meaning on
    a page (controls, lone surrogates, non-characters) U+FFFD, and what would turn the direction of
    the text behind it is left out."""
    kept = (c for c in " ".join(text.split()) if c not in _BIDI_CONTROLS)
    return "".join("\ufffd" if _unprintable(c) else c for c in kept)


def cut(text: str, cells: int) -> str:
    """``text`` cleaned and, with an ellipsis, cut to ``cells`` columns of a terminal.

    East Asian characters and emoji take two columns. A letter keeps its accents, and a joined
    emoji stays whole or goes.
    """
    line = clean(text)
    room = cells - 1
    at = 0
    while at < len(line) and (room := room - _cells(line[at])) >= 0:
        at += 1
    if at == len(line) or cells_of(line) <= cells:
        return line
    while at and (_extends(line[at]) or line[at - 1] == _JOINER):
        at -= 1
    return line[:at].rstrip() + "…"


def cells_of(text: str) -> int:
    """Columns that ``text`` takes in a terminal."""
    return sum(_cells(c) for c in text)


def number(value: float) -> str:
    """Three significant digits, never an exponent: "0.0350", "17.0", "1,234"."""
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    decimals = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals > 0 else f"{value:,.0f}"


def tick(value: float) -> str:
    """The number of a tick in full: "0.05", "2,000"."""
    if abs(value) >= 1:
        return f"{value:,.10g}"
    return np.format_float_positional(float(f"{value:.10g}"), trim="-")


def interval(ends: Sequence[float]) -> str:
    """ "[13.7, 13.9]"."""
    return f"[{number(ends[0])}, {number(ends[1])}]"


def in_words(sentences: Sequence[str]) -> str:
    """``sentences`` as one text to be read aloud: of very many the first ones."""
    more = len(sentences) - _SENTENCES
    return " ".join([*sentences[:_SENTENCES], *([f"And {more} more."] if more > 0 else [])])


_SENTENCES = 12


def _unprintable(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or ord(char) & 0xFFFE == 0xFFFE


def _cells(char: str) -> int:
    if _extends(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _extends(char: str) -> bool:
    """Whether ``char`` belongs to the one before it."""
    return (
        unicodedata.category(char)[0] == "M"
        or char == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )
