"""Text for pictures: from anywhere, so made harmless, cut or broken to a width, and numbers as
people read them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from retrieval_bench.core.figures import DIRECTIONS

_NARROW = frozenset(" fijlrtI.,:;'|!()[]/-")
_WIDE = frozenset("mwMW@%+−…—")

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
    return _cut(clean(text), cells, _cells)


def fitted(text: str, px: float, *, size: float = 11, bold: bool = False) -> str:
    """``text`` cleaned and, with an ellipsis, cut to ``px``, by what :func:`width_of` says."""
    return _cut(clean(text), px / _per_em(size, bold), _em)


def wrapped(
    text: str, px: float, *, size: float = 11, bold: bool = False, most: int = 6
) -> list[str]:
    """``text`` cleaned, in lines of at most ``px``, broken at spaces where there are any; of more
    than ``most`` lines the last one ends with an ellipsis. No text has no lines."""
    room = px / _per_em(size, bold)
    lines, line = [], ""
    for part in clean(text).split():
        word = part
        longer = f"{line} {word}" if line else word
        if _width(longer, _em) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        while _width(word, _em) > room:
            at = max(_start(word, room, _em), 1)
            lines.append(word[:at])
            word = word[at:]
        line = word
    lines += [line] if line else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], _cut(" ".join(lines[most - 1 :]), room, _em)]


def width_of(text: str, *, size: float = 11, bold: bool = False) -> float:
    """Px that ``text`` takes, rather too many than too few: readers have fonts of their own."""
    return _width(text, _em) * _per_em(size, bold)


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


def _cut(line: str, room: float, measure: Callable[[str], float]) -> str:
    if _width(line, measure) <= room:
        return line
    return line[: _start(line, room - measure("…"), measure)].rstrip() + "…"


def _start(line: str, room: float, measure: Callable[[str], float]) -> int:
    """Return how many characters of ``line``, which is wider than ``room``, have room."""
    at = 0
    while at < len(line) - 1 and (room := room - measure(line[at])) >= 0:
        at += 1
    while at and (_extends(line[at]) or line[at - 1] == _JOINER):
        at -= 1
    return at


def _width(line: str, measure: Callable[[str], float]) -> float:
    return sum(map(measure, line))


def _per_em(size: float, bold: bool) -> float:
    return size * (1.12 if bold else 1.0)


def _em(char: str) -> float:
    """Width of a character in parts of the size of the font."""
    if _cells(char) != 1:
        return float(_cells(char) > 0)
    if char in _NARROW:
        return 0.36
    return 0.92 if char in _WIDE else 0.68 if char.isupper() else 0.59


def _cells(char: str) -> int:
    if _extends(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _extends(char: str) -> bool:
    """Return whether ``char`` belongs to the one before it."""
    return (
        unicodedata.category(char)[0] == "M"
        or char == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )
