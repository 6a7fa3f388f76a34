"""Patterns that may take for ever: those with a repetition that can read one text in several ways.

A backtracking search tries all ways before it says no, and their number doubles with each turn. The
letters of a pattern are the states of an automaton, with an edge for each way to the next; a loop
is ambiguous where two ways through it part and meet again on the same text. Ways that grow slower,
as those of ``.*.*``, are not looked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_LONG = 5
"""A repetition that may go on so often is taken for endless, unless what it repeats is always
equally long."""
_MOST = 2_000
"""States of a pattern that is looked at; one with more is taken for ambiguous."""
_LETTERS = frozenset("\x00\n aZ0_.-/,é가年٣\U0001f600")
"""For classes such as ``\\w`` and for what none of a pattern's own letters is."""

Pair = tuple[int, int]


class _Part(NamedTuple):
    """A part of a pattern: in how many ways it begins and ends at a letter, and is empty."""

    first: Counter[int]
    last: Counter[int]
    empty: int


_EMPTY = _Part(Counter(), Counter(), 1)


def may_be_endless(regex: re.Pattern[str]) -> bool:
    """Say whether a pattern has a repetition that can read the same text in several ways."""
    return _Automaton(regex).ambiguous


class _Automaton:
    def __init__(self, regex: re.Pattern[str]) -> None:
        self._parsed = parser.parse(regex.pattern, regex.flags)
        self._flags = self._parsed.state.flags
        self._letters = _LETTERS | set(_own_letters(self._parsed))
        self._reads: list[frozenset[str]] = []
        self._next: dict[int, Counter[int]] = {}
        self.ambiguous = False
        self._read(self._parsed, inside=False)
        self.ambiguous = self.ambiguous or len(self._reads) > _MOST or self._parts_and_meets()

    def _state(self, reads: Iterable[str]) -> _Part:
        at = len(self._reads)
        self._reads.append(frozenset(reads))
        self._next[at] = Counter()
        return _Part(Counter([at]), Counter([at]), 0)

    def _read(self, items: Any, *, inside: bool) -> _Part:
        whole = _EMPTY
        for kind, of in items:
            if len(self._reads) > _MOST:
                break
            whole = self._then(whole, self._item(kind, of, inside=inside))
        return whole

    def _item(self, kind: Any, of: Any, *, inside: bool) -> _Part:
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT):
            return self._repeated(*of, inside=inside)
        if kind in (code.POSSESSIVE_REPEAT, code.ATOMIC_GROUP):
            least, _, part = (1, 1, of) if kind is code.ATOMIC_GROUP else of
            return self._once(part, may_be_empty=least == 0)
        if kind is code.GROUPREF:
            return self._state(self._letters)._replace(empty=1)
        parts = [self._read(part, inside=inside) for part in _parts(kind, of)]
        if kind in (code.ASSERT, code.ASSERT_NOT, code.AT):
            return _EMPTY
        if parts:
            parts += [_EMPTY] * (kind is code.GROUPREF_EXISTS and of[2] is None)
            return _one_of(parts)
        one = parser.SubPattern(self._parsed.state, [(kind, of)])
        letter = compiler.compile(one, self._flags)
        return self._state(filter(letter.fullmatch, self._letters))

    def _once(self, of: Any, *, may_be_empty: bool) -> _Part:
        """What is not tried again, and so read in one way."""
        start = len(self._reads)
        part = self._read(of, inside=False)
        once = self._state(frozenset().union(*self._reads[start:]))
        return once._replace(empty=int(may_be_empty or part.empty > 0))

    def _repeated(self, least: int, most: Any, of: Any, *, inside: bool) -> _Part:
        shortest, longest = of.getwidth()
        if least == most and (most < _LONG or shortest == longest):
            whole = _EMPTY
            for _ in range(min(most, _MOST)):
                whole = self._then(whole, self._read(of, inside=inside))
            return whole
        loop = most >= _LONG or (inside and most > 1)
        part = self._read(of, inside=inside or loop)
        if loop:
            self._join(part.last, part.first)
            if least >= _LONG and part.empty:  # any of those that must be there may be empty
                self._join(part.last, part.first)
        return part if least else part._replace(empty=part.empty + 1 - (loop and part.empty > 0))

    def _then(self, a: _Part, b: _Part) -> _Part:
        self._join(a.last, b.first)
        first, last = Counter(a.first), Counter(b.last)
        for whole, more, times in ((first, b.first, a.empty), (last, a.last, b.empty)):
            for at, n in more.items() if times else ():
                whole[at] += n * times
        return _Part(first, last, a.empty * b.empty)

    def _join(self, ends: Counter[int], starts: Counter[int]) -> None:
        for (a, n), (b, m) in product(ends.items(), starts.items()):
            self._next[a][b] += n * m

    def _parts_and_meets(self) -> bool:
        """Say whether two ways through a loop part, and meet again on the same text."""
        for loop in self._loops():
            edges = {a: [b for b in self._next[a] if b in loop] for a in loop}
            if any(self._next[a][b] > 1 for a, to in edges.items() for b in to):
                return True
            apart = {
                (b, c)
                for to in set(map(tuple, edges.values()))
                for b, c in product(to, repeat=2)
                if b < c and self._reads[b] & self._reads[c]
            }
            seen, open_ = set(apart), list(apart)
            while open_:
                a, b = open_.pop()
                for c, d in product(edges[a], edges[b]):
                    if not self._reads[c] & self._reads[d]:
                        continue
                    if c == d:
                        return True
                    pair = (min(c, d), max(c, d))
                    if pair not in seen:
                        seen.add(pair)
                        open_.append(pair)
        return False

    def _loops(self) -> Iterable[set[int]]:
        """States that lead to one another, and each to itself; every loop has an edge back."""
        edges = [(a, b) for a, to in self._next.items() for b in to]
        back: dict[int, list[int]] = {a: [] for a in self._next}
        for a, b in edges:
            back[b].append(a)
        starts = {b for a, b in edges if b <= a}
        while starts:
            start = starts.pop()
            loop = _reached(start, self._next) & _reached(start, back)
            starts -= loop
            yield loop


def _one_of(parts: Iterable[_Part]) -> _Part:
    first, last, empty = Counter[int](), Counter[int](), 0
    for part in parts:
        first, last, empty = first + part.first, last + part.last, empty + part.empty
    return _Part(first, last, empty)


def _reached(start: int, edges: Mapping[int, Iterable[int]]) -> set[int]:
    seen, open_ = set[int](), [start]
    while open_:
        for b in edges[open_.pop()]:
            if b not in seen:
                seen.add(b)
                open_.append(b)
    return seen


def _own_letters(items: Any) -> Iterable[str]:
    """Letters that a parsed pattern names, ends of ranges and their neighbours too."""
    for kind, of in items:
        if kind in (code.LITERAL, code.NOT_LITERAL, code.RANGE):
            for at in of if kind is code.RANGE else [of]:
                for letter in map(chr, range(max(at - 1, 0), min(at + 2, 0x110000))):
                    yield from (letter, *letter.lower()[:1], *letter.upper()[:1])
        elif kind is code.IN:
            yield from _own_letters(of)
        else:
            for part in _parts(kind, of):
                yield from _own_letters(part)


def _parts(kind: Any, of: Any) -> Iterable[Any]:
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return [of[2]]
    if kind is code.SUBPATTERN:
        return [of[3]]
    if kind is code.BRANCH:
        return list(of[1])
    if kind is code.GROUPREF_EXISTS:
        return [part for part in of[1:] if part is not None]
    if kind in (code.ASSERT, code.ASSERT_NOT):
        return [of[1]]
    return [of] if kind is code.ATOMIC_GROUP else []
