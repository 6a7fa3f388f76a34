"""Chunkers: where a text is cut, as ranges of its characters.

Sizes are characters, of ``tokens`` tokens. Every chunk begins and ends with something else than
white space; what is white space alone is in no chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil
from typing import Protocol

from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.ranges import covered

Range = tuple[int, int]

# Each begins with a sign of its own, which the search goes to; where it is nowhere, none is made.
_PARAGRAPH = {"\n": r"\n[ \t]*(?:\r?\n[ \t]*)+"}
_LINE = {"\r": r"\r\n?", **{end: end for end in "\n\u2028\u2029"}}
_SENTENCE = {
    **{end: rf"[{end}][\"'\u2019\u201d\u00bb)\]]*\s+" for end in ".!?\u2026"},
    **{end: rf"{end}[\u300d\u300f\u201d\u2019\uff09]*\s*" for end in "\u3002\uff01\uff1f\uff61"},
    "\n": r"\n[ \t]*\r?\n\s*",
}
_SPACE, _BLANK = re.compile(r"\s+"), re.compile(r"\s*")
_FENCED = re.compile(
    r"^ {0,3}(?:(```+)[^\n`]*|(~~~+)[^\n]*)\n.*?(?:^ {0,3}(?:\1`*|\2~*)[ \t]*\r?$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]|$)", re.MULTILINE)


class Chunker(Protocol):
    """What cuts texts."""

    def cut(self, text: str) -> Sequence[Range]:
        """The ranges of the chunks, in their order."""
        ...


class Places(Protocol):
    """Places at which a text may be cut."""

    def before(self, at: int, start: int) -> int:
        """The last one up to ``at``; ``start`` where there is none behind that."""
        ...

    def after(self, at: int, end: int) -> int:
        """The first one from ``at`` on; ``end`` where there is none before that."""
        ...


Level = Callable[[str], Places]


def trimmed(text: str, windows: Iterable[Range]) -> list[Range]:
    """Rising windows without white space at their ends; one that lies within the one before, or
    the one behind, is left out."""
    chunks, last = list[Range](), 0
    for start, end in windows:
        part = text[start:end].rstrip()
        if part and start + len(part) > last:
            last = start + len(part)
            first = last - len(part.lstrip())
            if chunks and chunks[-1][0] == first:
                chunks.pop()
            chunks.append((first, last))
    return chunks


class Windows:
    """Windows of so many characters, whatever stands at their ends."""

    def __init__(self, size: int, overlap: int) -> None:
        self.size, self.overlap = size, overlap

    def cut(self, text: str) -> list[Range]:
        """The ranges of the windows."""
        starts = range(0, max(1, len(text) - self.overlap), self.size - self.overlap)
        return trimmed(text, ((start, start + self.size) for start in starts))


class TokenWindows:
    """Windows of so many tokens; a token that ends within a character is whole in the next one."""

    def __init__(self, size: int, overlap: int, counter: Counter) -> None:
        self.size, self.overlap, self.counter = size, overlap, counter

    def cut(self, text: str) -> list[Range]:
        """The ranges of the windows."""
        ends, step = self.counter.ends(text), self.size - self.overlap
        n = 1 + max(0, ceil((ends.total - self.size) / step - 1e-9))
        starts = range(0, n * step, step)
        return trimmed(text, ((ends.at(at), ends.at(at + self.size)) for at in starts))


class Levels:
    """Parts of a text, as many together as fit; a part that is too long is cut at the next level.

    Args:
        levels: from coarse to fine; behind the last one stand single characters.
    """

    def __init__(self, size: int, overlap: int, levels: Sequence[Level]) -> None:
        self.size, self.overlap, self.levels = size, overlap, levels

    def cut(self, text: str) -> list[Range]:
        """The ranges of the chunks."""
        ranges = list[Range]()
        self._cut(text, (0, len(text)), [], 0, ranges)
        return trimmed(text, ranges)

    def _cut(
        self, text: str, part: Range, known: list[Places], level: int, ranges: list[Range]
    ) -> None:
        """Cut a part at a level.

        Args:
            known: places of the levels that were asked for so far, in the whole text.
            ranges: where the chunks go.
        """
        start, end = part
        while (limit := self._reach(text, start, end)) < end:
            if level == len(self.levels):
                step = self.size - self.overlap
                starts = range(start, max(start + 1, end - self.overlap), step)
                ranges += [(at, min(at + self.size, end)) for at in starts]
                return
            if level == len(known):
                known.append(self.levels[level](text))
            places = known[level]
            until = places.before(limit, start)
            if until == start:
                until = places.after(start + 1, end)
                self._cut(text, (start, until), known, level + 1, ranges)
            else:
                ranges.append((start, until))
                if self.overlap:
                    start = self._back(text, (start, until, end), places)
                    continue
            start = until
        ranges.append((start, end))

    def _reach(self, text: str, start: int, end: int) -> int:
        """How far a chunk may go: white space at its end counts in no size."""
        limit = start + self.size
        if limit >= end or not text[limit].isspace():  # which nearly always is all to be known
            return min(limit, end)
        blank = _BLANK.match(text, limit, end)
        return blank.end() if blank else limit

    def _back(self, text: str, done: tuple[int, int, int], places: Places) -> int:
        """Where the next chunk begins: with as many of the last parts as the overlap holds, and the
        next part has room behind."""
        start, until, end = done
        following = places.after(until + 1, end)
        room = until + len(text[until:following].rstrip()) - self.size
        if room > until:  # it is too long, and cut by itself
            return until
        held = start + len(text[start:until].rstrip()) - self.overlap
        return min(until, places.after(max(start + 1, held, room), end))


class _Held:
    """Places that are looked for once, in the whole text."""

    def __init__(self, places: list[int]) -> None:
        self._places = places

    def before(self, at: int, start: int) -> int:
        n = bisect_right(self._places, at)
        return max(start, self._places[n - 1]) if n else start

    def after(self, at: int, end: int) -> int:
        n = bisect_left(self._places, at)
        return min(end, self._places[n]) if n < len(self._places) else end


class _Words:
    """Places behind white space, looked for when they are asked for: there are very many."""

    def __init__(self, text: str) -> None:
        self._text = text

    def before(self, at: int, start: int) -> int:
        if at <= start or self._text[at - 1].isspace():
            return max(start, at)
        return at - len(self._text[start:at].rsplit(None, 1)[-1])

    def after(self, at: int, end: int) -> int:
        space = _SPACE.search(self._text, max(0, at - 1), end)
        return space.end() if space else end


def _ends_of(patterns: Mapping[str, str]) -> Level:
    compiled = {sign: re.compile(pattern) for sign, pattern in patterns.items()}

    def places(text: str) -> Places:
        found = (pattern.finditer(text) for sign, pattern in compiled.items() if sign in text)
        return _Held(sorted([match.end() for matches in found for match in matches]))

    return places


@lru_cache(1)
def _all_headings(text: str) -> list[tuple[int, int]]:
    """Places of headings of Markdown outside of fenced code, and how deep they are."""
    fences = [fence.span() for fence in _FENCED.finditer(text)]
    found = ((heading.start(), len(heading[1])) for heading in _HEADING.finditer(text))
    return [(at, depth) for at, depth in found if not covered(fences, at, at + 1)]


def _headings(depth: int) -> Level:
    """Headings of this depth or above it."""

    def places(text: str) -> Places:
        return _Held([at for at, of in _all_headings(text) if of <= depth])

    return places


PARAGRAPHS, LINES, SENTENCES = _ends_of(_PARAGRAPH), _ends_of(_LINE), _ends_of(_SENTENCE)

BY_LEVELS: Mapping[str, Sequence[Level]] = {
    "sentences": (SENTENCES, _Words),
    "paragraphs": (PARAGRAPHS, SENTENCES, _Words),
    "recursive": (PARAGRAPHS, LINES, _Words),
    "markdown": (*(_headings(depth) for depth in range(1, 7)), PARAGRAPHS, LINES, _Words),
}
"""Name of a chunker -> where it cuts, from coarse to fine."""
