"""Tables of a run made elsewhere: its means, over which queries, and its empty lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval_bench.comparison.claims import in_doubt
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, says
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import COUNT, QUALITY, Cell, Content
from retrieval_bench.reports.render.table import Note, NoteKind, Table, result, warning
from retrieval_bench.reports.render.words import metric_label, unit_note
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench_score.scorecard import ScoreCard
from retrieval_bench_score.tables.abstention import abstention_sentences, abstention_tables

_BESIDE = (Code.FOREIGN_IDS, Code.UNKNOWN_IDS, Code.TIES)
"""Warnings that stand beside the answer: with them it is none, or another one."""

WORST_SHOWN = 10
"""Queries in the table of ``--per-query``; the JSON document has all."""


def score_tables(card: ScoreCard, *, per_query: bool = False) -> list[Table]:
    """The means; with ``per_query`` the queries that are worst by the first metric; then, where
    there are unanswerable queries, how the run deals with them."""
    return [
        _means(card),
        *([_worst(card)] if per_query else []),
        *(abstention_tables(card.abstention) if card.abstention is not None else []),
    ]


def score_brief(card: ScoreCard, *, per_query: bool = False) -> list[Table]:
    """The same, with a sentence or two on unanswerable queries."""
    means, *others = score_tables(replace(card, abstention=None), per_query=per_query)
    if card.abstention is None:
        return [means, *others]
    more = Note(
        "more:  -v (empty lists, and what a threshold on the top score changes)", NoteKind.MORE
    )
    return [means.with_notes([*abstention_sentences(card.abstention), more]), *others]


def _means(card: ScoreCard) -> Table:
    scored, counts = card.scored, card.scored.counts
    rows: list[list[Content]] = [
        [metric_label(metric), _value(metric, mean), COUNT(mean.n)]
        for metric, mean in zip(scored.evaluation.metrics, scored.evaluation.means, strict=True)
        if not card.why_nothing
    ]
    rows += [
        [
            f"queries with {metric_label(name)} {scored.tail:g}",
            QUALITY(of.tail, of.tail_ci95),
            COUNT(counts.evaluated),
        ]
        for name, of in (scored.tails or {}).items()
        if not card.why_nothing
    ]
    others = [
        (counts.missing, "missing from the run"),
        (counts.unanswerable, "unanswerable"),
        (counts.unjudged_queries, "without judgements"),
        (counts.unknown_queries, "unknown but in the run"),
    ]
    beside = [text for text in scored.warnings if says([text], *_BESIDE)]
    below = [text for text in scored.warnings if text not in beside]
    queries = [f"{counts.evaluated:,} evaluated", *(f"{n:,} {what}" for n, what in others if n)]
    return Table(
        f"{card.run} against {card.truth}",
        ("", "value", "queries"),
        rows,
        notes=[
            f"Convention {scored.convention.name}: {scored.convention.source}.",
            *_whole_lists(scored.evaluation.metrics),
            f"Ties: {scored.tie_rule}.",
            f"Queries: {', '.join(queries)}.",
            f"Brackets: 95 % intervals ({scored.evaluation.interval}).",
            *unit_note(scored.n_clusters),
            *map(warning, below),
        ],
        lead=[result(_answer(card)), *map(warning, beside)],
    )


def _whole_lists(metrics: Sequence[Metric]) -> list[str]:
    """Tell what `bench` and `compare` only show with a cut-off apart."""
    whole = [str(metric_label(of)) for of in metrics if of.name in ("AP", "RR") and not of.cut]
    if not whole:
        return []
    cut = ", ".join(f"{label}@10" for label in whole)
    return [f"Of whole lists: {', '.join(whole)}. `bench` and `compare` cut them at k: {cut}."]


def _answer(card: ScoreCard) -> str:
    """The first metric, and over how many queries."""
    evaluation, counts = card.scored.evaluation, card.scored.counts
    are = "is" if counts.missing == 1 else "are"
    missing = f"; {counts.missing:,} {are} missing from the run" if counts.missing else ""
    if card.why_nothing:
        return f"Nothing could be judged: {card.why_nothing}{missing}."
    if not counts.evaluated:
        return f"No query could be scored{missing}."
    cell = _value(evaluation.metrics[0], evaluation.means[0])
    figure = f"{metric_label(evaluation.metrics[0])} is {cell.text} {cell.more}".strip()
    doubt = in_doubt("score run", card.scored.warnings)
    return f"{figure}{doubt} over {counted(counts.evaluated, 'query')}{missing}."


def _value(metric: Metric, mean: Mean) -> Cell:
    return (COUNT if metric.counts else QUALITY)(mean.mean, mean.ci95)


def _worst(card: ScoreCard) -> Table:
    evaluation = card.scored.evaluation
    order = sorted(
        range(len(evaluation.query_ids)),
        key=lambda at: (evaluation.per_query[at, 0], evaluation.query_ids[at]),
    )
    rows: list[list[Content]] = [
        [evaluation.query_ids[at], *map(QUALITY, evaluation.per_query[at].tolist())]
        for at in order[:WORST_SHOWN]
    ]
    labels = list(map(metric_label, evaluation.metrics))
    more = Note("--format json has every query.", NoteKind.MORE)
    return Table(f"Worst queries by {labels[0]}", ("query", *labels), rows, notes=[more])
