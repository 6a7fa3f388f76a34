"""Tables of systems on a dataset where nothing is judged: how much they find, how alike they
answer, and the queries on which they differ most. No figure of quality stands anywhere."""

from __future__ import annotations

from dataclasses import replace

from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.comparison.pairs.comparability import other_settings
from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import COUNT, Content, Form
from retrieval_bench.reports.render.table import AnyNote, Note, NoteKind, Table, result
from retrieval_bench.reports.render.text import clean, cut
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.reports.tables.brief import (
    SYSTEMS_SHOWN,
    files_of,
    first_warnings,
    title_of_group,
    warnings_of,
)
from retrieval_bench.reports.tables.measure.hits import HITS, hits_of
from retrieval_bench.reports.tables.usage import costs
from retrieval_bench_modes.likeness import DOCUMENTS, PERSISTENCE, Differing, Likeness, PairLikeness
from retrieval_bench_modes.unjudged import Unjudged

SHORT, LONG = 3, 10
"""Queries that differ most, in short and in full."""
PAIRS_SHOWN = 6
"""In short; the others are behind ``-v``."""

_SHARE = Form(lambda value: f"{value:.2f}")
_TEXT, _QUERY, _TITLE = 60, 40, 32
_FIRST_HITS = ["query", "system", "first hit"]


def systems_table(
    group: DatasetComparison, title: str = "", most: int | None = None, *, times: bool = True
) -> Table:
    """Systems in rows: hits, failures, times."""
    heads, cells = costs(group.runs if times else ())
    failed = any(run.summary.n_failed for run in group.runs)
    cuts = {run.summary.k for run in group.runs}
    few = f"fewer than {cuts.pop():,}" if len(cuts) == 1 else "fewer than k"
    notes = [f'"{few}", "none": queries that got so few hits.']
    rows: list[list[Content]] = []
    for name, run in list(zip(group.names, group.runs, strict=True))[:most]:
        hits = hits_of(run)
        row: list[Content] = [name, HITS(hits.mean), COUNT(hits.fewer_than_k)]
        row.append(COUNT(hits.none))
        row += [COUNT(run.summary.n_failed)] if failed else []
        rows.append([*row, *cells(run)])
    columns = ["system", "hits a query", few, "none", *(["failed"] if failed else []), *heads]
    return Table(
        title or f"What the systems {on_dataset(group.dataset)} find", columns, rows, notes=notes
    )


def likeness_table(likeness: Likeness, dataset: str, most: int | None = None) -> Table:
    """Pairs in rows, the least alike first: what they have in common.

    Args:
        most: rows; then the definitions are short, too. None = all.
    """
    pairs = sorted(likeness.pairs, key=lambda pair: (pair.n == 0, pair.rbo.mean if pair.n else 0.0))
    shown = pairs[:most]
    notes: list[AnyNote] = [
        "Share of documents in common; RBO: the same, where first ranks count most. 1 is equality."
        if most is not None
        else (
            f"overlap@{likeness.k}: documents in both lists cut at {likeness.k}, over the length "
            "of the "
            f"longer one. RBO: rank-biased overlap, p = {PERSISTENCE}: the first ranks count most, "
            "and 1 is the same order as far as both lists go. The same: queries with equal lists. "
            "Brackets: 95 % intervals (Gaffke's bound)."
        )
    ]
    if len(shown) < len(pairs):
        more = counted(len(pairs) - len(shown), "more pair")
        notes.append(Note(f"{more}: -v shows all.", NoteKind.MORE))
    return Table(
        f"How alike the systems {on_dataset(dataset)} answer",
        ["", f"overlap@{likeness.k}", "RBO", "queries", "the same"],
        [_pair(pair) for pair in shown],
        notes=notes,
    )


def _pair(pair: PairLikeness) -> list[Content]:
    return [
        f"{pair.a} and {pair.b}",
        _SHARE(pair.overlap.mean, pair.overlap.ci95),
        _SHARE(pair.rbo.mean, pair.rbo.ci95),
        COUNT(pair.n),
        COUNT(pair.same),
    ]


def differing_tables(likeness: Likeness, most: int, *, brief: bool = False) -> list[Table]:
    """The queries on which the systems differ most, a line for each system with what it finds
    first; none where they differ on none.

    Args:
        brief: only the first hit, and no figures.
    """
    shown, hits = likeness.differing[:most], 1 if brief else DOCUMENTS
    rows: list[list[Content]] = []
    rules: list[int] = []
    for differing in shown:
        rules.append(len(rows))
        start: list[Content] = [cut(clean(_asked(differing)), _QUERY if brief else _TEXT)]
        start += [] if brief else map(_SHARE, (differing.overlap, differing.rbo))
        for name, ids in differing.first.items():
            titles = [differing.titles.get(doc) or doc for doc in ids[:hits]]
            told = [cut(clean(title), _TITLE) for title in titles] or ["no hits"]
            rows.append([*start, name, *told, *[""] * (hits - len(told))])
            start = [""] * len(start)
    notes = [f"Ids only: {likeness.without_texts}."] if likeness.without_texts else []
    which = f"The {len(shown)} queries" if len(shown) > 1 else "The query"
    title = f"{which} on which the systems differ most, and what they find first"
    columns = ["query", f"overlap@{likeness.k}", "RBO", "system", "1st", "2nd", "3rd"]
    words: tuple[int, ...] = (0, *range(3, len(columns)))
    if brief:
        title, columns = "Where they differ most, and what each finds first", _FIRST_HITS
        rules, words = [], (0, 1, 2)
    return [Table(title, columns, rows, rules[1:], notes, words)] if rows else []


def _asked(differing: Differing) -> str:
    return f"{differing.query_id}: {differing.text}" if differing.text else differing.query_id


def likeness_tables(group: Unjudged, most: int = LONG) -> list[Table]:
    """All that is shown of a group where nothing is judged, but for times."""
    alike = [likeness_table(group.likeness, group.dataset)] if group.likeness.pairs else []
    return [systems_table(group, times=False), *alike, *differing_tables(group.likeness, most)]


def unjudged_brief(group: Unjudged, answer: Recommendation) -> list[Table]:
    """Answer in brief where nothing is judged."""
    warnings, worth_knowing = first_warnings(warnings_of(group))
    lead: list[AnyNote] = [result(" ".join([answer.sentence, *answer.reasons])), *warnings]
    systems = systems_table(group, title_of_group(group), SYSTEMS_SHOWN)
    notes: list[AnyNote] = [*worth_knowing, *files_of(group)]
    notes += other_settings(group.names, group.runs)
    if len(group.names) > SYSTEMS_SHOWN:
        left_out = f"{counted(len(group.names) - SYSTEMS_SHOWN, 'more system')}: -v shows all."
        notes.append(Note(left_out, NoteKind.MORE))
    likeness = group.likeness
    alike = [likeness_table(likeness, group.dataset, PAIRS_SHOWN)] if likeness.pairs else []
    return [
        replace(systems, lead=lead, notes=[*systems.notes, *notes]),
        *alike,
        *differing_tables(likeness, SHORT, brief=True),
    ]
