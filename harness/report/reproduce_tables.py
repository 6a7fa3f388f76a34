"""What is shown of published numbers: each beside ours, and systems side by side by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.metrics.conventions import Convention, convention
from harness.report.table import Table
from harness.reproduce import Reproduction
from harness.reproduce.check import CLOSE_WITHIN, OK_WITHIN, Checked, Status, worst_of
from harness.reproduce.groups import ALL, GroupTable

_TOLERANCE = (
    f"OK: within {OK_WITHIN:g}; CLOSE: within {CLOSE_WITHIN:g}; beside: other data or another "
    "system, shown and not judged"
)


def reproduce_tables(found: Reproduction) -> list[Table]:
    """The published figures with their statuses, the rates of labelled answers, the systems by
    group; what a reader should make of it stands below the last."""
    tables: list[Table] = []
    if found.figures:
        tables.append(_figures(found))
    if found.outcomes:
        tables.append(_outcomes(found.outcomes))
    after: list[str] = []
    if found.table is not None:
        tables += _groups(found, found.table) if found.table.rows else []
        after += [f"no table: {found.table.reason}"] if found.table.reason else []
    after += found.published.remarks
    if tables and after:
        last = tables[-1]
        notes = [*last.notes, "", *after]
        tables[-1] = Table(last.title, last.columns, last.rows, last.rules, notes, last.words)
    return tables


def _figures(found: Reproduction) -> Table:
    rows = []
    rules = []
    for at, one in enumerate(found.figures):
        if at and found.figures[at - 1].name != one.name:
            rules.append(at)
        n = "" if one.n is None else f"{one.n:,}"
        values = (_value(one.published), _value(one.measured), _value(one.beside), n)
        rows.append((one.name, one.metric, *values, one.status.value))
    return Table(
        found.published.title,
        ("", "metric", "published", "here", "beside", "n", ""),
        rows,
        rules=rules,
        notes=[found.published.url, _TOLERANCE, *_reasons(found.figures)],
        words=(0, 1, 6),
    )


def _reasons(figures: Sequence[Checked]) -> Iterator[str]:
    """Where each figure is printed, and why it was not measured or what stands beside it."""
    for name in dict.fromkeys(one.name for one in figures):
        of_name = [one for one in figures if one.name == name]
        yield f"{name}: published in {of_name[0].source}"
        yield from dict.fromkeys(f"{name}: {one.reason}" for one in of_name if one.reason)


def _outcomes(outcomes: Sequence[Checked]) -> Table:
    """One row for each system and group: published / here, in percent."""
    rates = list(dict.fromkeys(one.metric for one in outcomes))
    entries: dict[tuple[str, str], dict[str, Checked]] = {}
    for one in outcomes:
        entries.setdefault((one.name, one.source), {})[one.metric] = one
    rows = [
        (
            name,
            source,
            *(_pair(values[rate]) if rate in values else "" for rate in rates),
            worst_of(values.values()).value,
        )
        for (name, source), values in entries.items()
    ]
    statuses = [one.status for one in outcomes]
    told = ", ".join(
        f"{statuses.count(status):,} {status.value}" for status in Status if status in statuses
    )
    reasons = dict.fromkeys(one.reason for one in outcomes if one.reason)
    return Table(
        "Labelled answers, in percent: published / here",
        ("", "published in", *(rate.replace("_rate", "") for rate in rates), ""),
        rows,
        notes=[f"values: {told}", *reasons],
        words=(0, 1, len(rates) + 2),
    )


def _pair(one: Checked) -> str:
    here = "-" if one.measured is None else f"{100 * one.measured:.2f}"
    return f"{100 * one.published:.2f} / {here}"


def _groups(found: Reproduction, table: GroupTable) -> list[Table]:
    return [
        _group_table(found, table, convention(name), metric)
        for name, metrics in table.metrics.items()
        for metric in metrics
    ]


def _group_table(found: Reproduction, table: GroupTable, rules: Convention, metric: str) -> Table:
    printed = [
        (f"published: {one.name}", *("" for _ in table.groups[1:]), _value(one.published), "")
        for one in found.figures
        if (one.convention, one.metric) == (rules.name, metric)
    ]
    rows = [row for row in table.rows if row.convention == rules.name]
    shown = [
        (
            row.system,
            *(_value(row.means.get(metric, {}).get(group)) for group in table.groups),
            f"{row.n[ALL]:,}" if row.n else "-",
        )
        for row in rows
    ]
    notes = [f"n: queries in the mean over all, k = {table.k}"]
    if printed:
        notes.append("published: on other data where the first table says so")
    missing = [f"{row.system} {row.missing:,}" for row in rows if row.missing]
    if missing:
        effect = "left out" if rules.missing == "left out" else "counted as 0"
        notes.append(f"queries without a list, {effect}: {', '.join(missing)}")
    notes += [f"{row.system}: {row.reason}" for row in rows if row.reason]
    return Table(
        f"{metric} on {table.dataset} by {table.by}, convention {rules.name}",
        ("", *table.groups, "n"),
        [*printed, *shown],
        rules=[len(printed)] if printed else [],
        notes=notes,
    )


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
