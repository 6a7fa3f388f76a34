"""What is shown of a run made elsewhere: its means, over which queries, and its empty lists."""

from __future__ import annotations

import math

from retrieval_bench.core.figures import interval_text, quality_text
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.abstention import abstention_tables
from retrieval_bench.scoring.scorecard import ScoreCard
from retrieval_bench.scoring.scoring import INTERVAL

WORST_SHOWN = 10
"""Queries in the table of ``--per-query``; the JSON document has all."""


def score_tables(card: ScoreCard, *, per_query: bool = False) -> list[Table]:
    """The means; with ``per_query`` the queries that are worst by the first metric; then, where
    there are queries that no document answers, how the run deals with them."""
    tables = [_means(card)]
    if per_query:
        tables.append(_worst(card))
    if card.abstention is not None:
        tables += abstention_tables(card.abstention)
    return tables


def _means(card: ScoreCard) -> Table:
    scored = card.scored
    rows = [
        (str(metric), _shown(mean.mean), interval_text(mean.ci95), f"n = {mean.n:,}")
        for metric, mean in zip(scored.evaluation.metrics, scored.evaluation.means, strict=True)
    ]
    counts = scored.counts
    others = [
        (counts.missing, "not in the run"),
        (counts.unanswerable, "without an answer"),
        (counts.unjudged_queries, "without judgements"),
        (counts.unknown_queries, "of the run unknown"),
    ]
    told = [f"{n:,} {what}" for n, what in others if n]
    return Table(
        f"{card.run} against {card.truth}",
        ("", "value", "95 % interval", ""),
        rows,
        notes=[
            f"convention {scored.convention.name}: {scored.convention.source}",
            f"ties: {scored.tie_rule}",
            "queries: " + ", ".join([f"{counts.evaluated:,} evaluated", *told]),
            f"intervals: {INTERVAL}",
            *(f"warning: {warning}" for warning in scored.warnings),
        ],
    )


def _shown(mean: float) -> str:
    """Without a query that counts there is no mean."""
    return quality_text(None if math.isnan(mean) else mean)


def _worst(card: ScoreCard) -> Table:
    evaluation = card.scored.evaluation
    order = sorted(
        range(len(evaluation.query_ids)),
        key=lambda at: (evaluation.per_query[at, 0], evaluation.query_ids[at]),
    )
    return Table(
        f"Worst queries by {evaluation.metrics[0]}",
        ("query", *(str(metric) for metric in evaluation.metrics)),
        [
            (evaluation.query_ids[at], *map(quality_text, evaluation.per_query[at].tolist()))
            for at in order[:WORST_SHOWN]
        ],
        notes=["--format json has every query"],
    )
