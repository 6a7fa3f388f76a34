"""Text in pictures, cut or broken to the room that letters take there, and what is read aloud."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.reports.render.text import char_cells, clean, cut_to, fitting, measured, number

_NARROW = frozenset(" fijlrtI.,:;'|!()[]/-")
_WIDE = frozenset("mwMW@%+−…—")


def fitted(text: str, px: float, *, size: float = 11, bold: bool = False) -> str:
    """``text`` cleaned and, with an ellipsis, cut to ``px``, by what :func:`width_of` says."""
    return cut_to(clean(text), px / _per_em(size, bold), _em)


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
        if measured(longer, _em) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        while measured(word, _em) > room:
            at = max(fitting(word, room, _em), 1)
            lines.append(word[:at])
            word = word[at:]
        line = word
    lines += [line] if line else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], cut_to(" ".join(lines[most - 1 :]), room, _em)]


def width_of(text: str, *, size: float = 11, bold: bool = False) -> float:
    """Px that ``text`` takes, rather too many than too few: readers have fonts of their own."""
    return measured(text, _em) * _per_em(size, bold)


def interval(ends: Sequence[float]) -> str:
    """ "[13.7, 13.9]"."""
    return f"[{number(ends[0])}, {number(ends[1])}]"


def in_words(sentences: Sequence[str]) -> str:
    """``sentences`` as one text to be read aloud: of very many the first ones."""
    more = len(sentences) - _SENTENCES
    return " ".join([*sentences[:_SENTENCES], *([f"And {more} more."] if more > 0 else [])])


_SENTENCES = 12


def _per_em(size: float, bold: bool) -> float:
    return size * (1.12 if bold else 1.0)


def _em(char: str) -> float:
    """Width of a character in parts of the size of the font."""
    if char_cells(char) != 1:
        return float(char_cells(char) > 0)
    if char in _NARROW:
        return 0.36
    return 0.92 if char in _WIDE else 0.68 if char.isupper() else 0.59
