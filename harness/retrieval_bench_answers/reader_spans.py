"""Scores of answer spans against gold spans: accuracy, exact match and F1, top-1 and top-k.

A span is (document, start, end): positions in the document's characters from 0, the end behind
the last character, so that ``text[start:end]`` is the answer. An answer is a span, or None for an
empty answer ("there is no answer"). Spans of different documents have nothing in common.

All values lie between 0 and 1. Source: the reader metrics of PIAF, that is of Haystack 0.x
(deepset), whose gold span ends at ``answer_start + len(text)`` and whose F1 is over
``range(start, end)``; only its overlap counts the end as inside, so that an answer which touches
the gold span without sharing a character is an accurate one with an F1 of 0. This is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Span = tuple[str, int, int]

ALIASES: Mapping[str, str] = {
    "reader_top1_fk": "reader_topk_f1",
    "reader_top1_fk_has_answer": "reader_topk_f1_has_answer",
}
"""Names of the PIAF text, read but never printed."""


class SpanScores(NamedTuple):
    """The span scores of one question, each 0..1."""

    top1_accuracy: float
    topk_accuracy: float
    top1_em: float
    topk_em: float
    top1_f1: float
    topk_f1: float
    topk_mean_f1: float


METRICS: Mapping[str, tuple[str, str]] = {
    **{f"reader_{column}": (column, "all") for column in SpanScores._fields},
    **{f"reader_{column}_has_answer": (column, "has_answer") for column in SpanScores._fields},
    "reader_top1_no_answer_accuracy": ("top1_accuracy", "no_answer"),
    "reader_topk_no_answer_accuracy": ("topk_accuracy", "no_answer"),
}
"""Name -> field of :class:`SpanScores`, group of questions over which its mean is taken."""


def overlaps(gold: Span, answer: Span) -> bool:
    """Return whether both are in one document and neither starts behind the other's end."""
    return gold[0] == answer[0] and gold[1] <= answer[2] and answer[1] <= gold[2]


def exact_match(gold: Span, answer: Span) -> bool:
    """Return whether both have the same document, start and end."""
    return gold == answer


def position_f1(gold: Span, answer: Span) -> float:
    """F1 over character positions: 2 common / (length of gold + length of answer), 0..1.

    0 when no position is common, as for an empty span or another document.
    """
    if gold[0] != answer[0]:
        return 0.0
    common = min(gold[2], answer[2]) - max(gold[1], answer[1])
    return 2 * common / (gold[2] - gold[1] + answer[2] - answer[1]) if common > 0 else 0.0


def score(golds: Sequence[Span], answers: Sequence[Span | None]) -> SpanScores:
    """The span scores of one question.

    top1 looks at the first answer; topk at all, taking the best over answers and gold spans.
    ``topk_mean_f1`` is the mean over the given answers of each one's best F1, which the PIAF text
    describes, where its code (and ``topk_f1``) takes the maximum. A question without gold spans is
    one without an answer: an empty answer, first (top1) or anywhere (topk, mean included), scores
    1 in everything. Without any answer all scores are 0.

    Args:
        golds: spans of the right answers, in any order; none where there is no answer.
        answers: best first; None is an empty answer.
    """
    if not golds:
        top1 = float(bool(answers) and answers[0] is None)
        topk = float(None in answers)
        return SpanScores(top1, topk, top1, topk, top1, topk, topk)
    if not answers:
        return SpanScores(0, 0, 0, 0, 0, 0, 0)
    overlapping = [float(_any(overlaps, golds, answer)) for answer in answers]
    exact = [float(_any(exact_match, golds, answer)) for answer in answers]
    f1 = [
        0.0 if answer is None else max(position_f1(gold, answer) for gold in golds)
        for answer in answers
    ]
    return SpanScores(
        top1_accuracy=overlapping[0],
        topk_accuracy=max(overlapping),
        top1_em=exact[0],
        topk_em=max(exact),
        top1_f1=f1[0],
        topk_f1=max(f1),
        topk_mean_f1=math.fsum(f1) / len(f1),
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean, its sum rounded once; None of no values."""
    return math.fsum(values) / len(values) if values else None


def _any(holds: Callable[[Span, Span], bool], golds: Sequence[Span], answer: Span | None) -> bool:
    return answer is not None and any(holds(gold, answer) for gold in golds)
