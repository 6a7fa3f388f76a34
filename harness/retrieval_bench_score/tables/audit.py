"""Tables of audits: of conventions, of metric code by inputs that must not win, and of a published
table by what its queries could show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrieval_bench.comparison.claims import unless_open
from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, Cell, Content
from retrieval_bench.reports.render.table import (
    AnyNote,
    Note,
    NoteKind,
    Table,
    in_short,
    legend,
    result,
    warning,
)
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench_score.audit import EQUAL, Audit, Cause, Row, Turn
from retrieval_bench_score.cheats import ScorerAudit
from retrieval_bench_score.published_table import ALPHA, Possible, TableAudit

TURNS_SHOWN = 12
"""Sentences, those on the largest differences; the JSON document has all."""

_ROUNDED = 5e-5
"""Values below this are shown as 0 with four digits."""

_WORDS: Mapping[tuple[str, str], str] = {
    ("definition", "AP(norm=hits)"): "AP is divided by the hits found, not by all relevant ones",
    ("definition", "AP"): "AP is divided by all relevant documents, not by the hits found",
    ("definition", "nDCG(ideal=returned)"): (
        "the ideal of nDCG is taken from the returned list, not from all judged documents"
    ),
    ("definition", "nDCG"): (
        "the ideal of nDCG is taken from all judged documents, not from the returned list"
    ),
    ("definition", "Success"): (
        "recall is the share of queries with any hit, not of relevant documents found"
    ),
    ("definition", "R"): (
        "recall is the share of relevant documents found, not of queries with any hit"
    ),
    ("ties", "list"): (
        "tied scores keep the order of the file, not the descending order of ids (and are compared "
        "in double precision, not single)"
    ),
    ("ties", "trec"): (
        "tied scores are in descending order of ids, not in that of the file (and are compared in "
        "single precision, not double)"
    ),
    ("missing queries", "left out"): "queries missing from a run are left out of its mean",
    ("missing queries", "zero"): "queries missing from a run count as 0",
    ("queries without relevant documents", "one if nothing returned, counted"): (
        "a query without relevant documents counts as 1 if nothing was returned, else as 0"
    ),
    ("queries without relevant documents", "zero, counted"): (
        "every query without relevant documents counts as 0"
    ),
    ("queries without relevant documents", "zero, apart"): (
        "unanswerable queries are kept out of the mean"
    ),
    ("queries without relevant documents", "error, apart"): (
        "unanswerable queries are kept out of the mean"
    ),
}


def audit_tables(audit: Audit) -> list[Table]:
    """One table: whether the order of the systems depends on the convention, their means, and a
    sentence for each change of order."""
    defined = [row for row in audit.rows if row.metric is not None]
    starts = [i for i in range(1, len(defined)) if defined[i].concept != defined[i - 1].concept]
    rows: list[list[Content]] = [[str(row.metric), row.convention, *_cells(row)] for row in defined]
    several = len(audit.systems) > 1
    compared = several and len({row.convention for row in audit.rows}) > 1
    best = [legend("*: best of its row. Rows that a convention does not define are left out.")]
    return [
        Table(
            "The same rankings under each convention",
            ("metric", "convention", *audit.systems),
            rows,
            starts,
            [*_changes(audit.turns), *(best if several else []), *map(warning, audit.warnings)],
            words=(0, 1),
            lead=[result(unless_open("score audit", _answer(audit), audit.warnings))] * compared,
        )
    ]


def audit_brief(audit: Audit) -> list[Table]:
    """The same of the metrics alone in which a convention changes the order."""
    turned = {turn.concept for turn in audit.turns}
    rows = [row for row in audit.rows if not turned or row.concept in turned]
    others = dict.fromkeys(row.concept for row in audit.rows if row not in rows)
    kept = f"{', '.join(others)}, which keep the order" if others else "the same"
    return in_short(audit_tables(replace(audit, rows=tuple(rows))), kept)


def _cells(row: Row) -> list[Cell]:
    means = [cell.mean for cell in row.cells]
    known = [mean for mean in means if mean is not None]
    best = max(known) - EQUAL if len(known) > 1 else math.inf
    return [QUALITY(mean, marks="*" if mean is not None and mean >= best else "") for mean in means]


def _answer(audit: Audit) -> str:
    if audit.turns:
        pairs = {frozenset((turn.a, turn.b)) for turn in audit.turns}
        return (
            "The order of the systems depends on the convention: it differs from that of "
            f"{audit.base} for {counted(len(pairs), 'pair')} of systems."
        )
    missing = any(cell.mean is None for row in audit.rows if row.metric for cell in row.cells)
    return (
        "No convention changes the order of the systems in any metric that it shares with "
        f"{audit.base}{', as far as there are means' if missing else ''}."
    )


def _changes(turns: Sequence[Turn]) -> list[AnyNote]:
    """A sentence for each pair that changes places; conventions that agree on one share it."""
    alike: dict[tuple[str, str, str], list[Turn]] = {}
    for turn in turns:
        alike.setdefault(_parts(turn), []).append(turn)
    largest = sorted(alike, key=lambda parts: -_size(alike[parts][0]))[:TURNS_SHOWN]
    sentences: list[AnyNote] = [
        result(
            f"{before} under {of[0].base} but {after} under "
            f"{' and '.join(turn.convention for turn in of)}, {why}."
        )
        for (before, after, why), of in alike.items()
        if (before, after, why) in largest
    ]
    more = len(alike) - len(sentences)
    if more:
        text = f"{counted(more, 'smaller change')} of order: --format json has all."
        sentences.append(Note(text, NoteKind.MORE))
    return sentences


def _size(turn: Turn) -> float:
    """Return how far both differences are from equality."""
    return min(abs(turn.base_difference), abs(turn.difference))


def _parts(turn: Turn) -> tuple[str, str, str]:
    """Return how the systems stand under the base and under the other convention, and why."""
    a, b = turn.a, turn.b
    if abs(turn.base_difference) <= EQUAL:
        before = f"{a} and {b} are equal"
        after = f"{b} is {_amount(turn.difference)} ahead"
    else:
        before = f"{a} is {_amount(turn.base_difference)} ahead of {b}"
        after = f"{_amount(turn.difference)} behind"
        if abs(turn.difference) <= EQUAL:
            after = "equal to it"
    why = ", or ".join(_cause(cause, turn) for cause in turn.causes)
    if len(turn.causes) > 1:
        why += ": each is enough alone"
    return f"{turn.concept}: {before}", after, why


def _amount(difference: float) -> str:
    size = abs(difference)
    return f"{size:.4f}" if size >= _ROUNDED else "less than 0.0001"


def _cause(cause: Cause, turn: Turn) -> str:
    rules = ", and ".join(
        f"because {_rule(rule['name'], rule[turn.base], rule[turn.convention])}"
        for rule in cause.rules
    )
    if len(cause.rules) > 1:
        rules += f", {'both' if len(cause.rules) == 2 else 'all'} together"
    return f"{rules} ({_queries(cause)})"


def _queries(cause: Cause) -> str:
    named = ", ".join(cause.queries)
    if cause.n_queries == 1:
        return f"only query {named} matters"
    all_named = len(cause.queries) == cause.n_queries
    return f"{cause.n_queries:,} queries matter{':' if all_named else ', above all'} {named}"


def _rule(name: str, base: str, other: str) -> str:
    if name == "cut":
        return f"only the top {other} count, not the top {base}"
    return _WORDS[name, other]


def cheat_tables(audit: ScorerAudit) -> list[Table]:
    """One table, with how many are wrong above it, and why below."""
    rows: list[list[Content]] = [
        [outcome.cheat, outcome.what, QUALITY(outcome.got), QUALITY(outcome.fair), outcome.verdict]
        for outcome in audit.outcomes
    ]
    wrong = [outcome for outcome in audit.outcomes if outcome.verdict == "wrong"]
    others = [outcome for outcome in audit.outcomes if outcome.says and outcome.verdict != "wrong"]
    answer = (
        f"{audit.scorer} gets {counted(audit.wrong, 'cheat')} of {len(audit.outcomes)} wrong."
        if wrong
        else f"None of {len(audit.outcomes)} cheats wins with {audit.scorer}."
    )
    return [
        Table(
            f"Inputs that must not win, scored by {audit.scorer}",
            ("cheat", "what is given", "value", "to compare", "verdict"),
            rows,
            notes=[
                *(warning(f"{outcome.cheat}: {outcome.says}.") for outcome in wrong),
                *(f"{other.cheat}: {other.says}." for other in others),
                f"An ordinary run is worth {audit.honest:.4f}.",
                "A cheat is to be worth at most the value beside it.",
            ],
            lead=[result(answer)],
            words=(0, 1),
        )
    ]


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
            _possible(pair),
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


def _possible(pair: Possible) -> str:
    if pair.n is None:
        return "not the same queries"
    if pair.possible:
        return "possible"
    return "no" if pair.needed is None else f"too few: {pair.needed:,} needed"
