"""Metrics of spans: characters of truth found, and characters paid for, within a budget or in the
first k hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.types import Qrels
from retrieval_bench.metrics import Definition, JudgedRun
from retrieval_bench.metrics.definitions import Kind
from retrieval_bench.metrics.measures import Values
from retrieval_bench.stats.intervals import HIT, SHARE
from retrieval_bench_chunks.delivery import Delivered

BUDGETS = (500, 1_000, 2_000)
"""Tokens that are looked at where none are asked for."""

CURVE = (100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000)
"""Tokens at which recall is drawn."""

_BUDGET: Mapping[str, Kind] = {"tokens": int, "characters": int}
_PAID: Mapping[str, Kind] = {**_BUDGET, "overlap": ("each", "once")}


def _measure(value: Callable[[Delivered], float]) -> Callable[..., Values]:
    """A metric that is a figure of what is delivered in the first hits, or within a budget."""

    def measure(
        run: JudgedRun,
        cut: int | None,
        tokens: int | None = None,
        characters: int | None = None,
        overlap: str = "each",
    ) -> Values:
        answers: Any = run.answers
        delivered = [
            None
            if spans is None
            else spans.delivery(doc_ids).within(cut, tokens, characters, once=overlap == "once")
            for spans, doc_ids in answers
        ]
        return np.array([0.0 if got is None else value(got) for got in delivered], np.float64)

    return measure


METRICS: Mapping[str, Definition] = {
    "SpanR": Definition(
        _measure(lambda got: got.recall),
        "optional",
        _BUDGET,
        scale=SHARE,
        meaning="the share of the characters that answer a query that is found in {hits}, or in "
        "as many tokens",
    ),
    "SpanP": Definition(
        _measure(lambda got: got.precision),
        "optional",
        _PAID,
        scale=SHARE,
        meaning="the share of all delivered characters that answers the query",
    ),
    "SpanIoU": Definition(
        _measure(lambda got: got.iou),
        "optional",
        _PAID,
        scale=SHARE,
        meaning="what is found, of all that is delivered or missing",
    ),
    "AllSpans": Definition(
        _measure(lambda got: float(got.recall >= 1)),
        "optional",
        _BUDGET,
        scale=HIT,
        meaning="the share of the queries that find all their spans whole",
    ),
}
"""Defined where truth is spans, and nowhere else."""


def usual(k: int, _qrels: Qrels) -> Sequence[str]:
    """Choose the metrics where none are asked for: recall at three budgets, what is paid for it at
    the middle one, and the first k hits."""
    middle = BUDGETS[1]
    return [
        f"SpanR(tokens={middle})",
        f"SpanP(tokens={middle})",
        f"SpanIoU(tokens={middle})",
        f"AllSpans(tokens={middle})",
        *(f"SpanR(tokens={budget})" for budget in BUDGETS if budget != middle),
        f"SpanR@{k}",
    ]
