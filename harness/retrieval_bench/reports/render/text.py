"""Text from anywhere, made harmless and cut to a width, and numbers as people read them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable

import numpy as np

from retrieval_bench.core.figures import DIRECTIONS

_JOINER = "\u200d"


def clean(text: str) -> str:
    """``text`` as one line that XML can hold: white space becomes a space, what has no meaning on
    a page (controls, lone surrogates, non-characters) U+FFFD, and what would turn the direction of
    the text behind it is left out."""
    kept = (c for c in " ".join(text.split()) if c not in DIRECTIONS)
    return "".join("\ufffd" if _unprintable(c) else c for c in kept)


def cut(text: str, cells: int) -> str:
    """``text`` cleaned and, with an ellipsis, cut to ``cells`` columns of a terminal.

    East Asian characters and emoji take two columns. A letter keeps its accents, and a joined
    emoji stays whole or goes.
    """
    return cut_to(clean(text), cells, char_cells)


def cells_of(text: str) -> int:
    """Columns that ``text`` takes in a terminal."""
    return sum(char_cells(c) for c in text)


def number(value: float) -> str:
    """Three significant digits, never an exponent: "0.0350", "17.0", "1,234"."""
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    decimals = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals > 0 else f"{value:,.0f}"


def cut_to(line: str, room: float, measure: Callable[[str], float]) -> str:
    """``line``, with an ellipsis cut to ``room`` by what ``measure`` says of its characters."""
    if measured(line, measure) <= room:
        return line
    return line[: fitting(line, room - measure("…"), measure)].rstrip() + "…"


def fitting(line: str, room: float, measure: Callable[[str], float]) -> int:
    """Return how many characters of ``line``, which is wider than ``room``, have room."""
    at = 0
    while at < len(line) - 1 and (room := room - measure(line[at])) >= 0:
        at += 1
    while at and (_extends(line[at]) or line[at - 1] == _JOINER):
        at -= 1
    return at


def measured(line: str, measure: Callable[[str], float]) -> float:
    """What ``line`` takes by what ``measure`` says of its characters."""
    return sum(map(measure, line))


def char_cells(char: str) -> int:
    """Columns that a character takes in a terminal."""
    if _extends(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _unprintable(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or ord(char) & 0xFFFE == 0xFFFE


def _extends(char: str) -> bool:
    """Return whether ``char`` belongs to the one before it."""
    return (
        unicodedata.category(char)[0] == "M"
        or char == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )
