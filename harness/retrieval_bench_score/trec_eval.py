"""A score card in the lines that trec_eval prints, so that outputs can be compared with diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.metrics.trec_names import Row, expanded, in_order, row_of
from retrieval_bench_score.scorecard import ScoreCard

_NOT_OF_QUERIES = ("runid", "num_q", "gm_map", "gm_bpref")
_STRING = 10
"""Hits in a relstring."""


def trec_rows(names: Sequence[str]) -> list[Row]:
    """The lines that are asked for, in trec_eval's order; without ``names`` its official ones."""
    rows: list[Row] = []
    for name in names or ["official"]:
        rows += expanded(name) or [row_of(str(parse_metric(name)))]
    return in_order(rows)


def trec_lines(card: ScoreCard, rows: Sequence[Row], tag: str, *, per_query: bool) -> str:
    """Write the lines of trec_eval: name, query or "all", and value, counts as whole numbers.

    Args:
        tag: what made the run.
        per_query: the lines of each query, by id, above those of all.
    """
    return "".join(
        f"{name:<22}\t{of}\t{value}\n" for name, of, value in _lines(card, rows, tag, per_query)
    )


def _lines(
    card: ScoreCard, rows: Sequence[Row], tag: str, per_query: bool
) -> Iterator[tuple[str, str, str]]:
    scored = card.scored
    evaluation, rules = scored.evaluation, scored.convention
    places = {
        row: evaluation.metrics.index(rules.parse(row.metric)[0]) for row in rows if row.metric
    }
    by_id = sorted(
        range(len(evaluation.query_ids)), key=lambda at: evaluation.query_ids[at].encode()
    )
    strings = _strings(card) if per_query else []
    for at in by_id if per_query else ():
        query_id = evaluation.query_ids[at]
        for row in rows:
            if row.name == "relstring":
                yield row.name, query_id, f"'{strings[at]}'"
            elif row.name not in _NOT_OF_QUERIES:
                metric, value = (
                    evaluation.metrics[places[row]],
                    evaluation.per_query[at, places[row]],
                )
                yield row.name, query_id, _written(metric, value)
    for row in rows:
        if row.name == "runid":
            yield row.name, "all", tag
        elif row.name == "num_rel" and rules.missing == "zero":
            # With -c trec_eval counts every grade from 1 on, whatever -l says.
            yield row.name, "all", f"{parse_metric('NumRel').compute(scored.run).sum():.0f}"
        elif row.metric:
            metric, mean = evaluation.metrics[places[row]], evaluation.means[places[row]].mean
            yield row.name, "all", _written(metric, mean)


def _written(metric: Metric, value: float) -> str:
    return f"{value:.0f}" if metric.counts else f"{value:6.4f}"


def _strings(card: ScoreCard) -> list[str]:
    """The grades of the first hits of each query, a character each: > above 9, . in the pool and
    not judged, - not in the pool."""
    run = card.scored.run.as_if(
        _STRING, judged_only=bool(card.scored.convention.also.get("judged_only"))
    )
    strings = [["-"] * int(length) for length in run.lengths]
    hits = run.pooled
    for row, rank, grade in zip(
        hits.row.tolist(), hits.rank.tolist(), hits.grade.tolist(), strict=True
    ):
        strings[row][rank - 1] = "." if grade < 0 else str(grade) if grade < 10 else ">"
    return ["".join(string) for string in strings]
