"""Tables of tokens, calls and money."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from retrieval_bench.core.figures import three_digits
from retrieval_bench.reports.render.cells import SHORT_MS, Content, Form
from retrieval_bench.reports.render.table import Table
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import Summary

AMOUNT = Form(three_digits)
"""Of tokens, calls or money."""

_WORDS = {"tokens_in": "tokens in", "tokens_out": "tokens out", "calls": "calls"}


def usage_text(run: Run) -> str:
    """Say it in a line: money for a thousand queries, and what a query uses up; empty where nothing
    is known."""
    usage = run.summary.usage
    if usage is None:
        return ""
    each = usage.per_query
    tokens = run.manifest.get("retriever", {}).get("facts", {}).get("tokens")
    about = "~" if isinstance(tokens, Mapping) and tokens.get("counted_as") == "estimate" else ""
    used = [
        "1 call"
        if (name, n) == ("calls", 1)
        else f"{about * (name != 'calls')}{three_digits(n)} {word}"
        for name, word in _WORDS.items()
        if (n := each.get(name))
    ]
    money = usage.money_per_1000_queries
    said = [] if money is None else [f"{three_digits(money)} for 1,000 queries"]
    return "; ".join([*said, *([f"a query takes {', '.join(used)}"] if used else [])])


def money_of(summary: Summary) -> float | None:
    """For a thousand queries; None where it is not known."""
    return None if summary.usage is None else summary.usage.money_per_1000_queries


def tokens_of(summary: Summary) -> float | None:
    """Return the tokens of a query, in and out together; None where it is not known."""
    each = {} if summary.usage is None else summary.usage.per_query
    counts = [n for name in ("tokens_in", "tokens_out") if (n := each.get(name)) is not None]
    return sum(counts) if counts else None


def costs(runs: Sequence[Run]) -> tuple[list[str], Callable[[Run], list[Content]]]:
    """Heads of columns, and the cells of a run in them: its times and what it costs, as far as any
    of ``runs`` has them."""
    known = [run.summary.latency_ms for run in runs]
    levels = [p for p in ("p50", "p95") if any(of.at(p).value is not None for of in known)]
    paid = any(money_of(run.summary) is not None for run in runs)

    def cells(run: Run) -> list[Content]:
        values = [run.summary.latency_ms.at(level).value for level in levels]
        return [*map(SHORT_MS, values), *([AMOUNT(money_of(run.summary))] if paid else [])]

    return [*(f"{level} ms" for level in levels), *(["money / 1,000"] if paid else [])], cells


def usage_tables(name: str, summary: Summary) -> list[Table]:
    """Show the usage of each stage; nothing where nothing is known."""
    usage = summary.usage
    if usage is None:
        return []
    rows: list[list[Content]] = [[stage, *_row(each)] for stage, each in usage.stages.items()]
    rows.append(["whole call", *_row(usage.per_query)])
    notes = ["Means over the answered calls; money is in the currency of the prices."]
    if usage.spent is not None and usage.spent.money is not None:
        money = three_digits(usage.spent.money)
        notes.append(f"This measurement spent {money}, its warm-up included.")
    columns = ("stage", "tokens in", "tokens out", "calls", "money / 1,000")
    return [Table(f"What a query of {name} uses up", columns, rows, (len(rows) - 1,), notes)]


def _row(each: Mapping[str, float | None]) -> list[Content]:
    money = each["money"]
    return [
        *(AMOUNT(each[name]) for name in _WORDS),
        AMOUNT(None if money is None else 1_000 * money),
    ]
