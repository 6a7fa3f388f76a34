"""Tiny inputs, worked out by hand, on which well-known tools differ.

The values under ``ours`` are those of the convention ``trec``, or of the metric that the name says.
They are written as fractions, so that the tests of the guide's ``tools.md`` do not depend on the
code that they judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest


def dcg(*gains: float) -> float:
    """Sum of gain / log2(rank + 1)."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


@dataclass(frozen=True)
class Case:
    """One query: a ranking of one-letter documents, grades, and what they are worth."""

    ranking: str
    grades: Mapping[str, int]
    ours: Mapping[str, float]

    @property
    def qrels(self) -> dict[str, dict[str, int]]:
        """Judgements as nested dictionaries; the query is ``q``."""
        return {"q": dict(self.grades)}

    @property
    def run(self) -> dict[str, dict[str, float]]:
        """Scores that fall along the ranking, all above 0."""
        n = len(self.ranking)
        return {"q": {doc_id: float(n - i) for i, doc_id in enumerate(self.ranking)}}

    @property
    def relevant(self) -> list[str]:
        """Documents with grade 1 or more."""
        return [doc_id for doc_id, grade in self.grades.items() if grade >= 1]

    @property
    def hits(self) -> list[int]:
        """1 or 0 along the ranking."""
        return [int(doc_id in self.relevant) for doc_id in self.ranking]


FIVE = dict.fromkeys("abcde", 1)

GAP = Case(
    "axb",
    FIVE,
    {
        "AP@3": (1 + 2 / 3) / 5,
        "AP(norm=hits)@3": (1 + 2 / 3) / 2,
        "nDCG@3": dcg(1, 0, 1) / dcg(1, 1, 1),
        "nDCG(ideal=returned)@3": dcg(1, 0, 1) / dcg(1, 1),
        "P@3": 2 / 3,
        "R@3": 2 / 5,
        "Success@3": 1,
    },
)
"""Two of five relevant documents, with a gap: tells the divisors of AP apart."""

HEAD = Case("abc", FIVE, {"nDCG@3": 1, "nDCG": dcg(1, 1, 1) / dcg(1, 1, 1, 1, 1)})
"""Nothing better fits into three places: tells an ideal that is cut from one that is not."""

SHORT = Case(
    "a",
    {"a": 1, "b": 1},
    {
        "AP": 1 / 2,
        "nDCG@3": dcg(1) / dcg(1, 1),
        "nDCG(ideal=returned)@3": 1,
        "P@3": 1 / 3,
        "F1@3": 2 / 5,
        "Judged@3": 1,
    },
)
"""One hit where three were asked for."""

GRADED = Case(
    "abcdef",
    {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2},
    {
        "nDCG@3": dcg(3, 2, 3) / dcg(3, 3, 2),
        "nDCG(gain=exp)@3": dcg(7, 3, 7) / dcg(7, 7, 3),
    },
)
"""Grades 0 to 3: tells linear from exponential gain."""

TWICE = "xaa"
"""A ranking in which ``a``, the only relevant document, stands twice; an error under ``trec``."""


def same(theirs: Any, ours: float, *, within: float = 1e-9) -> None:
    """The tool gives what we give."""
    assert float(theirs) == pytest.approx(ours, abs=within)


def differs(theirs: Any, expected: float, ours: float, *, within: float = 1e-9) -> None:
    """The tool gives ``expected``, which is not what we give."""
    assert float(theirs) == pytest.approx(expected, abs=within)
    assert abs(expected - ours) > 1e-3
