"""Lines for people, at most so wide: broken between words, while a command stays whole."""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

WIDTH = 100
"""Of what is no terminal."""

_HANG = "    "
_PASTED = "      "
"""What begins so is to be pasted, and stays as it is."""

_WORDS = re.compile(r"\s*(?:`[^`]*`\S*|(?:\S*retrieval-bench|\S*pip install) (?:(?! \(|; ).)+|\S+)")
"""A word each, with the blanks before it; a command, in backticks or up to a bracket, is one."""


def wrapped(text: str, width: int = WIDTH) -> str:
    """``text``, each of its lines in lines of at most ``width`` cells, those after the first with a
    hanging indent; only a word, or a command, may be wider. Nothing goes below a label alone."""
    return "\n".join("\n".join(_lines(line, width)) for line in text.split("\n"))


def _lines(line: str, width: int) -> list[str]:
    if cells(line) <= width or line.startswith(_PASTED):
        return [line]
    lines = [""]
    for word in _WORDS.findall(line):
        label = len(lines[-1].split()) == 1 and lines[-1].endswith(":")
        fits = cells(_HANG + word.lstrip()) <= width
        if lines[-1].strip() and fits and not label and cells(lines[-1] + word) > width:
            lines.append(_HANG + word.lstrip())
        else:
            lines[-1] += word
    return lines


def cells(text: str) -> int:
    """How wide a terminal shows ``text``."""
    if text.isascii():
        return len(text)
    return sum((east_asian_width(c) in "WF") + 1 for c in text if not combining(c))
