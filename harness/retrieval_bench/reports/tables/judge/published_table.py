"""Tables of an audit of a published table: each difference beside what the queries could show."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, Content
from retrieval_bench.reports.render.table import Table, result, warning
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.scoring.published_table import ALPHA, Possible, TableAudit


def possible_tables(audit: TableAudit) -> list[Table]:
    """One table, a row for each pair, metric by metric."""
    rows: list[list[Content]] = [
        [
            metric_label(pair.metric),
            pair.a,
            pair.b,
            DIFFERENCE(pair.difference),
            COUNT(pair.n),
            QUALITY(pair.smallest),
            _word(pair),
        ]
        for pair in audit.pairs
    ]
    possible = sum(pair.possible for pair in audit.pairs)
    unlike = sum(pair.n is None for pair in audit.pairs)
    assumed = ", ".join(f"{metric_label(m)} {sd:.3g}" for m, sd in audit.assumed.items())
    return [
        Table(
            f"What the queries of {audit.table} could show",
            ("metric", "a", "b", "b - a", "queries", "smallest", "could it be shown?"),
            rows,
            notes=[
                f"Smallest: found with 80 % power by the paired test, at p < {ALPHA:g} after Holm.",
                f"Assumed standard deviation of paired differences: {assumed}.",
                "Nothing was tested: what could be shown need not have been.",
                *(
                    [warning(f"{counted(unlike, 'pair')} of means over different queries.")]
                    if unlike
                    else []
                ),
            ],
            lead=[result(f"{possible} of {counted(len(rows), 'difference')} could be shown.")],
            words=(1, 2),
        )
    ]


def _word(pair: Possible) -> str:
    if pair.n is None:
        return "not the same queries"
    if pair.possible:
        return "possible"
    return "no" if pair.needed is None else f"too few: {pair.needed:,} needed"
