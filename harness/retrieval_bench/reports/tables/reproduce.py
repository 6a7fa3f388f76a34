"""What is shown of published numbers: each beside ours, and systems side by side by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from retrieval_bench.metrics.conventions import Convention, convention
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reproduction import Published, Reproduction
from retrieval_bench.reproduction.answered import ALL, GroupTable
from retrieval_bench.reproduction.check import (
    CLOSE_WITHIN,
    OK_WITHIN,
    SAME_LISTS,
    SCORES_OFF,
    Checked,
    Status,
    worst_of,
)

_TOLERANCE = f"OK: within {OK_WITHIN:g}; CLOSE: within {CLOSE_WITHIN:g}"
_BESIDE = "; beside: other data or another system, shown and not judged"
_OF_LISTS = (
    f"{SAME_LISTS}: share of the queries with exactly the published list; {SCORES_OFF}: by how "
    "much of it a score differs at most"
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
    if after and not tables:  # data that are missing leave no table to stand below
        return [Table(found.published.title, (), (), notes=[found.published.url, *after])]
    if tables and after:
        tables[-1] = tables[-1].with_notes(["", *after])
    return tables


def _figures(found: Reproduction) -> Table:
    with_beside = any(one.beside is not None for one in found.figures)
    rows = []
    rules = []
    for at, one in enumerate(found.figures):
        if at and found.figures[at - 1].name != one.name:
            rules.append(at)
        n = "" if one.n is None else f"{one.n:,}"
        beside = (_value(one.beside),) if with_beside else ()
        values = (_value(one.published), _value(one.measured), *beside, n)
        rows.append((one.name, one.metric, *values, one.status.value))
    notes = [found.published.url, _TOLERANCE + (_BESIDE if with_beside else "")]
    if found.published.lists:
        notes.append(_OF_LISTS)
    columns = ("", "metric", "published", "here", *(("beside",) if with_beside else ()), "n", "")
    return Table(
        found.published.title,
        columns,
        rows,
        rules=rules,
        notes=[*notes, *_sources(found.figures), *_reasons(found.figures)],
        words=(0, 1, len(columns) - 1),
    )


def _sources(figures: Sequence[Checked]) -> Iterator[str]:
    """Where the values are printed: one line for each place."""
    of_source: dict[str, dict[str, None]] = {}
    for one in figures:
        of_source.setdefault(one.source, {})[one.name] = None
    for source, names in of_source.items():
        yield f"published in {source}" + (f": {'; '.join(names)}" if len(of_source) > 1 else "")


def _reasons(figures: Sequence[Checked]) -> Iterator[str]:
    """Why something was not measured, or what stands beside it: one line for each reason."""
    of_reason: dict[str, dict[str, None]] = {}
    for one in figures:
        if one.reason:
            of_reason.setdefault(one.reason, {})[one.name] = None
    for reason, names in of_reason.items():
        yield f"{'; '.join(names)}: {reason}"


def _outcomes(outcomes: Sequence[Checked]) -> Table:
    """One row for each system and group: published / here, in percent."""
    rates = list(dict.fromkeys(one.metric for one in outcomes))
    entries: dict[tuple[str, str], dict[str, Checked]] = {}
    for one in outcomes:
        entries.setdefault((one.name, one.source), {})[one.metric] = one
    names = [name for name, _ in entries]
    rows = [
        (
            name if names.count(name) == 1 else f"{name}, {source}",
            *(_pair(values[rate]) if rate in values else "" for rate in rates),
            worst_of(values.values()).value,
        )
        for (name, source), values in entries.items()
    ]
    statuses = [one.status for one in outcomes]
    reasons = dict.fromkeys(one.reason for one in outcomes if one.reason)
    return Table(
        "Labelled answers, in percent: published / here",
        ("", *(rate.replace("_rate", "") for rate in rates), ""),
        rows,
        notes=[f"values: {_told(statuses)}", *_sources(outcomes), *reasons],
        words=(0, len(rates) + 1),
    )


def _told(statuses: Sequence[Status]) -> str:
    """How many of each, the best first."""
    return ", ".join(
        f"{statuses.count(status):,} {status.value}" for status in Status if status in statuses
    )


def summary_table(found: Mapping[str, Reproduction]) -> Table:
    """One row for each file: how many values have which status."""
    rows = []
    for name, one in found.items():
        statuses = [checked.status for checked in (*one.figures, *one.outcomes)]
        counts = (f"{statuses.count(status):,}" for status in Status)
        rows.append((name, *counts, one.worst.value))
    return Table(
        "All files", ("", *(status.value for status in Status), "worst"), rows, words=(0, 5)
    )


def files_table(papers: Mapping[str, Published]) -> Table:
    """What there is to measure, and which data each file wants; for when there are none."""
    rows = []
    for name, paper in papers.items():
        paths = [data.path for data in paper.datasets.values() if data.path]
        paths += [system.run for system in paper.systems.values() if system.run]
        paths += [one.run for one in paper.lists] + [one.records for one in paper.outcomes]
        values = sum(len(figure.values) for figure in paper.figures)
        values += sum(len(outcome.values) for outcome in paper.outcomes) + 2 * len(paper.lists)
        rows.append((name, paper.title, f"{values:,}", ", ".join(dict.fromkeys(paths))))
    return Table("Published numbers", ("", "what", "values", "wants"), rows, words=(0, 1, 3))


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
