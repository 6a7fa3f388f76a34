"""What the audit shows: one table of means, and sentences on where the order changes and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.comparison import SYSTEMS_PER_TABLE
from retrieval_bench.scoring.audit import EQUAL, Audit, Cause, Row, Rule, Turn

TURNS_SHOWN = 12
"""Sentences, those on the largest differences; the JSON document has all."""

_BEST = "*"

_ROUNDED = 5e-5
"""What is shown as 0 with four digits."""

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
        "equal scores keep the order of the file, not falling order of ids (and are told in double "
        "precision, not single)"
    ),
    ("ties", "trec"): (
        "equal scores stand in falling order of ids, not in that of the file (and are told in "
        "single precision, not double)"
    ),
    ("missing queries", "left out"): "queries that a run lacks are left out of its mean",
    ("missing queries", "zero"): "queries that a run lacks count as 0",
    ("queries without relevant documents", "one if nothing returned, counted"): (
        "a query without relevant documents counts as 1 if nothing was returned, else as 0"
    ),
    ("queries without relevant documents", "zero, counted"): (
        "every query without relevant documents counts as 0"
    ),
    ("queries without relevant documents", "zero, apart"): (
        "queries that no document answers are kept out of the mean"
    ),
    ("queries without relevant documents", "error, apart"): (
        "queries that no document answers are kept out of the mean"
    ),
}


def audit_tables(audit: Audit) -> list[Table]:
    """One table of means (in blocks of a few systems), with the sentences below the last one."""
    blocks = [
        range(start, min(start + SYSTEMS_PER_TABLE, len(audit.systems)))
        for start in range(0, len(audit.systems), SYSTEMS_PER_TABLE)
    ]
    tables = [_means(audit, block) for block in blocks]
    tables[-1] = tables[-1].with_notes(_sentences(audit))
    return tables


def _means(audit: Audit, block: Sequence[int]) -> Table:
    shown = [row for row in audit.rows if row.metric is not None]
    rules = [i for i in range(1, len(shown)) if shown[i].concept != shown[i - 1].concept]
    return Table(
        "The same rankings under each convention",
        ("metric", "convention", *(audit.systems[at] for at in block)),
        [(str(row.metric), row.convention, *(_cell(row, at) for at in block)) for row in shown],
        rules,
        words=(0, 1),
    )


def _cell(row: Row, at: int) -> str:
    mean = row.cells[at].mean
    if mean is None:
        return "-"
    means = [cell.mean for cell in row.cells if cell.mean is not None]
    best = len(means) > 1 and np.isclose(mean, max(means), rtol=0, atol=EQUAL)
    return f"{mean:.4f}{_BEST if best else ' '}"


def _sentences(audit: Audit) -> list[str]:
    notes = []
    if len(audit.systems) > 1:
        notes.append(
            f"the best of each row has a {_BEST}; what a convention does not define is left out"
        )
        if len({row.convention for row in audit.rows}) > 1:
            notes += _on_order(audit)
    return [*notes, *(f"warning: {note}" for note in audit.warnings)]


def _on_order(audit: Audit) -> list[str]:
    """A sentence for each pair that changes places; conventions that agree on one share it."""
    if not audit.turns:
        shared = f"in any metric that it shares with {audit.base}"
        if any(cell.mean is None for row in audit.rows if row.metric for cell in row.cells):
            shared += ", as far as there are means"
        return [f"no convention changes the order of the systems {shared}"]
    found: dict[tuple[str, str, str], list[Turn]] = {}
    for turn in audit.turns:
        found.setdefault(_parts(turn), []).append(turn)
    largest = sorted(found, key=lambda parts: -_size(found[parts][0]))[:TURNS_SHOWN]
    sentences = [
        f"{before} under {audit.base} but {after} under "
        f"{' and '.join(turn.convention for turn in turns)}, {why}"
        for (before, after, why), turns in found.items()
        if (before, after, why) in largest
    ]
    more = len(found) - len(sentences)
    if more:
        sentences.append(
            f"... and {counted(more, 'smaller change')} of order (--format json has all)"
        )
    return sentences


def _size(turn: Turn) -> float:
    """How far both differences are from equality."""
    return min(abs(turn.base_difference), abs(turn.difference))


def _parts(turn: Turn) -> tuple[str, str, str]:
    """How the systems stand under the base and under the other convention, and why."""
    a, b = turn.a, turn.b
    if abs(turn.base_difference) <= EQUAL:
        before = f"{a} and {b} are equal"
        after = f"{b} is {_amount(turn.difference)} ahead"
    else:
        before = f"{a} is {_amount(turn.base_difference)} ahead of {b}"
        after = f"{_amount(turn.difference)} behind"
        if abs(turn.difference) <= EQUAL:
            after = "equal to it"
    why = ", or ".join(_cause(cause) for cause in turn.causes)
    if len(turn.causes) > 1:
        why += ": each would do alone"
    return f"{turn.concept}: {before}", after, why


def _amount(difference: float) -> str:
    size = abs(difference)
    return f"{size:.4f}" if size >= _ROUNDED else "less than 0.0001"


def _cause(cause: Cause) -> str:
    rules = ", and ".join(f"because {_rule(rule)}" for rule in cause.rules)
    if len(cause.rules) > 1:
        rules += f", {'both' if len(cause.rules) == 2 else 'all'} together"
    return f"{rules} ({_queries(cause)})"


def _queries(cause: Cause) -> str:
    named = ", ".join(weight.query_id for weight in cause.queries)
    if cause.n_queries == 1:
        return f"only query {named} matters"
    all_named = len(cause.queries) == cause.n_queries
    return f"{cause.n_queries:,} queries matter{':' if all_named else ', above all'} {named}"


def _rule(rule: Rule) -> str:
    if rule.name == "cut":
        return f"only the top {rule.other} count, not the top {rule.base}"
    return _WORDS[rule.name, rule.other]
