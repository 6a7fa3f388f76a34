"""Tables of ``explain --spans``: what chunkers make of spans, at what price, and what changes."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import Content
from retrieval_bench.reports.render.table import Note, NoteKind, Table
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.fates import CUT, GONE, PART, WHOLE, Fate, Fates

_WAYS = (WHOLE, CUT, PART, GONE)


def fates_tables(fates: Fates, shown: int) -> list[Table]:
    """A row for each run, then the spans whose fate changes.

    Args:
        shown: most spans that are shown.
    """
    sign = Counter(fates.counted).sign
    priced = any(run.money is not None for run in fates.runs)
    rows: list[list[Content]] = [
        [
            run.name,
            *(f"{run.counts[way]:,}" for way in _WAYS),
            _tokens(run.tokens, sign),
            _tokens(run.tokens_whole, sign),
            _tokens(run.tokens_cut, sign),
            "-" if run.best_precision is None else f"{run.best_precision:.3f}",
            *([f"{run.money:.4g}"] if run.money is not None else []),
        ]
        for run in fates.runs
    ]
    spans = sum(fates.runs[0].counts.values())
    about = f"{counted(spans, 'span')} of {counted(fates.queries, 'query')}"
    heads = ("tokens a query", "to a whole one", "to a cut one", "best precision")
    money = ("money, 1,000 queries",) * priced
    notes = [
        Note(
            "whole: in one hit; cut: whole in several hits together; part: some of it; gone: none. "
            "To a whole or a cut one: median tokens of all hits until it is there. Best precision: "
            "of all chunks that hold or touch truth, and no other.",
            NoteKind.LEGEND,
        )
    ]
    tables = [
        Table(
            f"{about} in {counted(len(fates.runs), 'run')}",
            ("run", *_WAYS, *heads, *money),
            rows,
            notes=notes,
        )
    ]
    changed = fates.spans[:shown]
    if changed:
        more = len(fates.spans) - len(changed)
        left_out = [f"{more:,} more: --queries all shows them."] * (more > 0)
        tables.append(
            Table(
                f"{counted(len(fates.spans), 'span')} with another fate",
                ("query", "span", *(run.name for run in fates.runs)),
                [[s.query_id, s.quote, *map(_words, s.fates)] for s in changed],
                notes=left_out,
                words=tuple(range(2 + len(fates.runs))),
            )
        )
    return tables


def _tokens(value: float | None, sign: str) -> str:
    return "-" if value is None else f"{sign}{value:,.0f}"


def _words(fate: Fate) -> str:
    if fate.fate == WHOLE:
        return f"whole at {fate.rank}"
    if fate.fate == CUT:
        return f"cut in {fate.hits}, whole at {fate.rank}"
    return GONE if fate.fate == GONE else f"{100 * fate.share:.0f} % by {fate.rank}"
