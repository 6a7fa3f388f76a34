"""Tables of the ledger: which parts are dead or harmful first, then what each part buys and
takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrieval_bench.comparison.claims import left_open, unless_open
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import LEAST_SHOWN_MS, about, short_ms, signed, three_digits
from retrieval_bench.data.needs_judgements import CHOSEN
from retrieval_bench.reports.frames import DIFFERENCES, figure_row
from retrieval_bench.reports.render.cells import PERCENT, SHORT_DIFFERENCE, Content, Form, Label
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.words import (
    BOUND,
    metric_label,
    on_dataset,
    unit_note,
    word_beside,
)
from retrieval_bench.reports.tables.again import same_of
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.intervals import levels_text
from retrieval_bench_explain.parts import CHUNKER, Ledger, Row, Worth

FILTERS = "filters"
"""The part that the filters of the queries are: what must not be seen is not for sale."""


_WORTHS = {Worth.UNDECIDED: "can't tell", Worth.UNKNOWN: "not asked"}


def worth_label(worth: Worth) -> Label:
    """Word the worth of a part of a retriever."""
    return Label(_WORTHS.get(worth, worth.value), worth.value)


def _computed_ms(ms: float) -> str:
    if abs(ms) < LEAST_SHOWN_MS:
        return "~0.000"  # no time of a call, but a difference of two
    return f"~{'-' if ms < 0 else ''}{short_ms(abs(ms))}"


COMPUTED_MS = Form(_computed_ms)


def ledger_table(ledger: Ledger, *, again: bool = False) -> Table:
    """The answer, and one row for each part.

    Args:
        again: whether to say how parts can be asked that are not known.
    """
    costs = [row.cost for row in ledger.rows]
    money = any(cost.money_per_1000_queries is not None for cost in costs)
    tokens = any(_tokens(row) is not None for row in ledger.rows)
    rows: list[list[Content]] = [
        [
            row.name,
            row.instead or "nothing",
            SHORT_DIFFERENCE(row.gain, row.ci),
            word_beside(worth_label(row.worth), row.bound),
            COMPUTED_MS(row.cost.p50_ms),
            COMPUTED_MS(row.cost.p95_ms),
            PERCENT(row.cost.share),
            *([Form(three_digits)(_tokens(row))] if tokens else []),
            *([Form(three_digits)(row.cost.money_per_1000_queries)] if money else []),
        ]
        for row in ledger.rows
    ]
    metric = metric_label(ledger.metric)
    columns = ["part", "instead", f"effect on {metric}", "", "p50 ms", "p95 ms", "share"]
    columns += ["tokens"] if tokens else []
    columns += ["money / 1,000"] if money else []
    return Table(
        _title(ledger),
        columns,
        rows,
        notes=_notes(ledger, again=again),
        words=(0, 1, 3),
        lead=answer(ledger),
    )


def answer(ledger: Ledger) -> list[AnyNote]:
    """Return which parts should go, and what the others are worth."""
    if left_open("explain --by stage", ledger.run.summary.warnings):
        return []
    told = [*loud(ledger)]
    if ledger.failed:
        queries = counted(ledger.failed, "query")
        text = f"{queries} failed and count nowhere here; a part that makes them fail looks better."
        told.insert(0, warning(text))
    if ledger.harmful:
        told.append(
            result(
                "The other parts were measured with it in place. Remove it, then run this again."
            )
        )
    helping = [row for row in ledger.rows if row.worth is Worth.HELPS]
    if helping:
        gains = ", ".join(f"{row.name} ({signed(row.gain or 0.0, 3)})" for row in helping)
        told.append(result(f"Worth having: {gains}."))
    open_ = [row.name for row in ledger.rows if row.worth is Worth.UNDECIDED]
    if open_:
        told.append(
            result(f"These queries can't tell whether it pays to have {' or '.join(open_)}.")
        )
    return told


def loud(ledger: Ledger, *, but: Sequence[str] = ()) -> list[AnyNote]:
    """A sentence for each part that should go.

    Args:
        but: kinds of harmful parts that are told elsewhere.
    """
    if left_open("explain --by stage", ledger.run.summary.warnings):
        return []
    metric = metric_label(ledger.metric)
    notes: list[AnyNote] = [
        warning(f"Dead: {row.name}{_takes(row)}. {_reason(ledger, row)}.")
        for row in ledger.dead
        if row.name != FILTERS
    ]
    others = [row for row in ledger.harmful if row.kind != "depth"]
    for row in others or ledger.harmful:  # of fewer documents what harms can spoil fewer
        if row.kind not in but and row.name != FILTERS:
            without = f"With {row.instead} in its place" if row.instead else "Without it"
            higher = f"{metric} is {abs(row.gain or 0.0):.3f} higher"
            notes.append(warning(f"Harmful: {row.name}{_takes(row)}. {without} {higher}."))
    return notes


def _reason(ledger: Ledger, row: Row) -> str:
    metric = metric_label(ledger.metric)
    if not row.why:
        return f"It is shown to raise {metric} by less than {ledger.margin:g}"
    text = row.why if row.why.startswith("its ") else f"it {row.why}"
    if row.why.startswith("a gain"):
        text = f"{row.why}: {metric} {signed(row.gain or 0.0, 3)}"
    return text[0].upper() + text[1:]


def _takes(row: Row) -> str:
    """Word the cost of a part, in brackets."""
    costs = []
    if row.cost.p50_ms is not None:
        costs.append(f"{short_ms(row.cost.p50_ms)} ms of a call")
    if row.cost.money_per_1000_queries:
        costs.append(f"{three_digits(row.cost.money_per_1000_queries)} for 1,000 queries")
    return f" ({', '.join(costs)})" if costs else ""


def _title(ledger: Ledger) -> str:
    metric = metric_label(ledger.metric)
    name, data = ledger.run.name, ledger.run.summary.dataset.name
    p50 = ledger.run.summary.latency_ms.at("p50").value
    time = "" if p50 is None else f", p50 {short_ms(p50)} ms"
    title = f"{name} {on_dataset(data)}, part by part"
    if not ledger.n:
        return f"{title}: no query that counts was answered"
    queries = counted(ledger.n, "query")
    with_all = f"with all of them {metric} {ledger.mean:.3f} over {queries}{time}"
    return f"{title}: {unless_open('explain --by stage', with_all, ledger.run.summary.warnings)}"


def _notes(ledger: Ledger, *, again: bool) -> list[AnyNote]:
    unknown = [row for row in ledger.rows if row.worth is Worth.UNKNOWN]
    notes: list[AnyNote] = [
        f"{row.name}: {row.why}."
        for row in ledger.rows
        if row.why and row.worth not in (Worth.DEAD, Worth.UNKNOWN)
    ]
    if ledger.run.summary.dataset.drawn_from is not None:
        notes.append(warning(f"{CHOSEN[0].upper()}{CHOSEN[1:]}: what is said holds for these."))
    needed = [row for row in ledger.rows if row.queries_needed]
    varying = [f"{r.name} {about(r.queries_needed or 0)}" for r in needed if r.helped or r.hurt]
    if varying:
        told = ", ".join(varying)
        notes.append(f"More queries needed to show effects of these sizes (80 % power): {told}.")
    for row in needed:
        if not (row.helped or row.hurt):
            what = "value" if row.changed else "ranking"
            notes.append(
                f"{row.name} changes no {what}: {row.queries_needed:,} more such queries would "
                "show that it is dead."
            )
    if len(ledger.dead) > 1:
        notes.append("Each part is left out by itself: of two that do the same, one has to stay.")
    dead = f" Dead: an effect of {ledger.margin:g} is ruled out." if ledger.dead else ""
    levels = [row.level for row in ledger.rows if row.level]
    if levels:
        notes.append(
            "Effect: with the part minus without it, on the same queries. Helps, harmful, and "
            "brackets: paired randomisation test, p < .05 after Holm, and the same test inverted; "
            f"{levels_text(levels)}, each by itself.{dead}"
        )
    if any(row.cost.p50_ms is not None or row.cost.share is not None for row in ledger.rows):
        notes.append(
            "~ is computed from the stages of the measured calls: with the part minus without it; "
            "nothing was timed without it. Share: of total time; shares overlap where parts work "
            "on each other's lists."
        )
    if any(row.kind == CHUNKER for row in ledger.rows):
        notes.append("Tokens of a chunker are those of its hits, which a reader gets.")
    notes += unit_note(ledger.clusters, ledger.run.summary.dataset.cluster_key)
    if any(row.kind == "depth" and row.cost.p50_ms is not None for row in ledger.rows):
        notes.append("The time of a depth is what reranking fewer documents would save.")
    if any(row.bound is not None for row in ledger.rows):
        notes.append(BOUND)
    for why in dict.fromkeys(row.why for row in unknown):
        names = ", ".join(row.name for row in unknown if row.why == why)
        notes.append(f"Not asked: {names}: {why}.")
    if any(row.kind != CHUNKER for row in unknown) and again:
        notes.append(next_step(f"next:  {asking(ledger.run)}"))
    return notes


def asking(run: Run) -> str:
    """The command that asks for what the lists of ``run`` do not hold, of the same measurement."""
    overrides = run.manifest.get("retriever", {}).get("overrides")
    return same_of(run, "explain", "--by", "stage", set_=overrides or ())


def _tokens(row: Row) -> float | None:
    used = row.cost.usage or {}
    names = ("tokens_in", "tokens_out", "tokens_delivered")
    counts = [used[name] for name in names if used.get(name)]
    return sum(item or 0.0 for item in counts) if counts else None


def part_rows(ledger: Ledger) -> Iterator[Mapping[str, Any]]:
    """A row for each part: its gain as ``difference`` with the interval, what is said of it, and
    what it takes."""
    data = ledger.run.summary.dataset.name
    for row in ledger.rows:
        name = f"{ledger.run.name}: {row.name}"
        of = (data, name, str(ledger.metric))
        yield figure_row(DIFFERENCES, of, row.gain, row.ci, row.n) | {
            "without": row.without,
            "p": row.p,
            "verdict": row.worth.value,
            "p50_ms": row.cost.p50_ms,
            "p95_ms": row.cost.p95_ms,
            "share": row.cost.share,
            "money_per_1000_queries": row.cost.money_per_1000_queries,
        }
