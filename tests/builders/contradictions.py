"""Reads what a command printed as a suspicious reader does: each word beside its interval."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Ends = tuple[float, float]

ABOVE = ("better", "helps")
BELOW = ("worse", "harmful", "fail")
OPEN = (
    *("can't tell", "undecided", "unresolvable", "equivalent", "identical rankings"),
    *("dead", "inconclusive"),
)

_NUMBER = r"[+\-−]?\d[\d,]*(?:\.\d+)?"
_INTERVAL = re.compile(rf"\[\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*\]")
_WORD = re.compile(rf"\b(?:{'|'.join((*ABOVE, *BELOW, *OPEN))})\b", re.IGNORECASE)
_NOTHING = re.compile(r"[+\-−]?0\.0+")


class Statement(NamedTuple):
    """A word on a difference beside its interval, as it stands ``where``."""

    word: str
    ends: Ends
    where: str

    @property
    def contradicts(self) -> bool:
        """Whether the word says another thing than the interval."""
        low, high = self.ends
        if self.word.lower() in ABOVE:
            return low <= 0
        if self.word.lower() in BELOW:
            return high >= 0
        return low > 0 or high < 0


def of_document(document: Any) -> Iterator[Statement]:
    """Those of a JSON document: of each object with a word and the interval of a difference."""
    for entry in _objects(document):
        word, ends = entry.get("verdict") or entry.get("worth"), entry.get("ci")
        of_difference = "difference" in entry or "gain" in entry
        if of_difference and ends is not None and _WORD.fullmatch(str(word)):
            yield Statement(str(word), (ends[0], ends[1]), str(entry))


def of_csv(text: str) -> Iterator[Statement]:
    """Those of a CSV table with columns ``low``, ``high`` and ``verdict``."""
    for row in csv.DictReader(io.StringIO(text)):
        if row.get("low") and _WORD.fullmatch(row.get("verdict") or ""):
            yield Statement(row["verdict"], (float(row["low"]), float(row["high"])), str(row))


def of_text(text: str) -> Iterator[Statement]:
    """Those of a text: of each line or row of a table its first interval with a sign, and the word
    behind it, or else before it."""
    for line in rows_of(text):
        signed = next((one for one in _INTERVAL.finditer(line) if set(one[0]) & set("+-")), None)
        if signed is None:
            continue
        word = _WORD.search(line, signed.end()) or _WORD.search(line[: signed.start()])
        if word is not None:
            yield Statement(word[0], _ends(signed), line)


def hidden_ends(text: str, document: Any) -> Iterator[str]:
    """Intervals with an end that is printed as nothing and that is not 0 in ``document``."""
    known = set(_intervals(document))
    exact = {_rounded(ends) for ends in known if 0 in ends}
    exact |= {(-high, -low) for low, high in exact}
    for line in rows_of(text):
        for found in _INTERVAL.finditer(line):
            if _NOTHING.fullmatch(found[1]) or _NOTHING.fullmatch(found[2]):
                low, high = _ends(found)
                if not any(abs(low - a) + abs(high - b) < 0.0011 for a, b in exact):
                    yield f"{found[0]}: {line}"


def rows_of(text: str) -> list[str]:
    """Rows of a table in any form, wrapped lines of the terminal joined to sentences."""
    if "<html" in text[:500].lower():
        rows = re.findall(r"<(?:tr|li|p|dl)\b.*?</(?:tr|li|p|dl)>", text, re.DOTALL)
        return [" ".join(html.unescape(re.sub("<[^>]+>", " ", row)).split()) for row in rows]
    plain = text.replace("$-$", "-").replace("$+$", "+").replace("{-}", "-").replace("−", "-")
    return [" ".join(line.split()) for line in plain.splitlines()]


def _ends(found: re.Match[str]) -> Ends:
    low, high = (float(one.replace(",", "").replace("−", "-")) for one in found.groups())
    return low, high


def _rounded(ends: Ends) -> Ends:
    return round(ends[0], 4), round(ends[1], 4)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value:
        if isinstance(inner, Mapping | list):
            yield from _objects(inner)


def _intervals(value: Any) -> Iterator[Ends]:
    """All pairs of numbers."""
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(x, int | float) for x in value)
    ):
        yield float(value[0]), float(value[1])
    for inner in value.values() if isinstance(value, Mapping) else value:
        if isinstance(inner, Mapping | list):
            yield from _intervals(inner)
