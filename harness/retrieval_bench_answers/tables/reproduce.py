"""Tables of published numbers: each beside ours, and systems side by side by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from retrieval_bench.reports.render.cells import BARE_PERCENT, COUNT, QUALITY, Content, Label
from retrieval_bench.reports.render.table import AnyNote, Table, result
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench_answers.reproduction import Published, Reproduction
from retrieval_bench_answers.reproduction.answered import ALL, GroupTable
from retrieval_bench_answers.reproduction.check import (
    CLOSE_WITHIN,
    OK_WITHIN,
    SAME_LISTS,
    SCORES_OFF,
    Checked,
    Status,
    worst_of,
)
from retrieval_bench_score.conventions import Convention, convention

_TOLERANCE = f"OK: within {OK_WITHIN:g}. CLOSE: within {CLOSE_WITHIN:g}."
_BESIDE = "Beside: other data or another system; such values are shown and not judged."
_OF_LISTS = (
    f"{SAME_LISTS}: share of the queries with exactly the published list. {SCORES_OFF}: by how "
    "much of it a score differs at most."
)


def reproduce_tables(reproduction: Reproduction) -> list[Table]:
    """The published figures with their statuses, the rates of labelled answers, the systems by
    group; what a reader should make of it stands below the last."""
    published, groups = reproduction.published, reproduction.table
    tables = [_figures(reproduction)] if reproduction.figures else []
    tables += [_outcomes(reproduction.outcomes)] if reproduction.outcomes else []
    notes: list[AnyNote] = []
    if groups is not None:
        tables += _groups(reproduction, groups) if groups.rows else []
        notes += [f"There is no table by group: {groups.reason}."] if groups.reason else []
    notes += map(result, published.remarks)
    if tables:
        return [*tables[:-1], tables[-1].with_notes(notes)]
    # Data that are missing leave no table to stand below.
    return [Table(published.title, (), (), notes=[published.url, *notes])] if notes else []


def _figures(reproduction: Reproduction) -> Table:
    published, figures = reproduction.published, reproduction.figures
    with_beside = any(figure.beside is not None for figure in figures)
    starts = [at for at in range(1, len(figures)) if figures[at - 1].name != figures[at].name]
    rows: list[list[Content]] = [
        [
            figure.name,
            metric_label(figure.metric),
            QUALITY(figure.published),
            QUALITY(figure.measured),
            *([QUALITY(figure.beside)] if with_beside else []),
            COUNT(figure.n) if figure.n is not None else "",
            figure.status.value,
        ]
        for figure in figures
    ]
    notes = [
        published.url,
        _TOLERANCE,
        *([_BESIDE] if with_beside else []),
        *([_OF_LISTS] if published.lists else []),
        *_sources(figures),
        *_reasons(figures),
    ]
    columns = ("", "metric", "published", "here", *(["beside"] if with_beside else []), "n", "")
    return Table(published.title, columns, rows, starts, notes, words=(0, 1, len(columns) - 1))


def _sources(figures: Sequence[Checked]) -> Iterator[str]:
    """Return where the values are printed: one line for each place."""
    of_source: dict[str, dict[str, None]] = {}
    for figure in figures:
        of_source.setdefault(figure.source, {})[figure.name] = None
    for source, names in of_source.items():
        which = f": {'; '.join(names)}" if len(of_source) > 1 else ""
        yield f"Published in {source}{which}."


def _reasons(figures: Sequence[Checked]) -> Iterator[str]:
    """Return why something was not measured, or what stands beside it: one line for each reason."""
    of_reason: dict[str, dict[str, None]] = {}
    for figure in figures:
        if figure.reason:
            of_reason.setdefault(figure.reason, {})[figure.name] = None
    for reason, names in of_reason.items():
        yield f"{'; '.join(names)}: {reason}."


def _outcomes(outcomes: Sequence[Checked]) -> Table:
    """One row for each system and group: each rate as published and as measured here."""
    rates = list(dict.fromkeys(outcome.metric for outcome in outcomes))
    entries: dict[tuple[str, str], dict[str, Checked]] = {}
    for outcome in outcomes:
        entries.setdefault((outcome.name, outcome.source), {})[outcome.metric] = outcome
    names = [name for name, _ in entries]
    rows: list[list[Content]] = [
        [
            name if names.count(name) == 1 else f"{name}, {source}",
            *(cell for rate in rates for cell in _both(values.get(rate))),
            worst_of(checked.status for checked in values.values()).value,
        ]
        for (name, source), values in entries.items()
    ]
    plain = (rate.replace("_rate", "") for rate in rates)
    heads = [head for rate in plain for head in (rate, Label("here", f"{rate} here"))]
    numbers = _counts(outcomes)
    reached = ", ".join(
        f"{numbers[status]:,} {status.value}" for status in Status if numbers[status]
    )
    reasons = (
        f"{reason}." for reason in dict.fromkeys(outcome.reason for outcome in outcomes) if reason
    )
    return Table(
        "Labelled answers, in percent: as published, and as measured here",
        ("", *heads, ""),
        rows,
        notes=[result(f"Values: {reached}."), *_sources(outcomes), *reasons],
        words=(0, len(heads) + 1),
    )


def _both(checked: Checked | None) -> Sequence[Content]:
    if checked is None:
        return "", ""
    return BARE_PERCENT(checked.published), BARE_PERCENT(checked.measured)


def _counts(values: Sequence[Checked]) -> dict[Status, int]:
    """Return how many values have each status, the best first."""
    return {status: sum(value.status is status for value in values) for status in Status}


def summary_table(reproductions: Mapping[str, Reproduction]) -> Table:
    """One row for each file: how many values have which status."""
    rows: list[list[Content]] = [
        [
            name,
            *map(COUNT, _counts([*reproduction.figures, *reproduction.outcomes]).values()),
            reproduction.worst.value,
        ]
        for name, reproduction in reproductions.items()
    ]
    return Table(
        "All files", ("", *(status.value for status in Status), "worst"), rows, words=(0, 5)
    )


def files_table(papers: Mapping[str, Published]) -> Table:
    """Show all there is to measure, and the data that each file wants; for when there are none."""
    rows: list[list[Content]] = []
    for name, paper in papers.items():
        paths = [data.path for data in paper.datasets.values() if data.path]
        paths += [system.run for system in paper.systems.values() if system.run]
        paths += [published.run for published in paper.lists] + [
            outcome.records for outcome in paper.outcomes
        ]
        values = sum(len(figure.values) for figure in paper.figures)
        values += sum(len(outcome.values) for outcome in paper.outcomes) + 2 * len(paper.lists)
        data = ", ".join(dict.fromkeys(paths))
        rows.append([name, paper.title, COUNT(values), data])
    return Table("Published numbers", ("", "what", "values", "data"), rows, words=(0, 1, 3))


def _groups(reproduction: Reproduction, table: GroupTable) -> list[Table]:
    return [
        _group_table(reproduction, table, convention(name), metric)
        for name, metrics in table.metrics.items()
        for metric in metrics
    ]


def _group_table(
    reproduction: Reproduction, table: GroupTable, rules: Convention, metric: str
) -> Table:
    printed: list[list[Content]] = [
        [
            f"published: {figure.name}",
            *[""] * (len(table.groups) - 1),
            QUALITY(figure.published),
            "",
        ]
        for figure in reproduction.figures
        if (figure.convention, figure.metric) == (rules.name, metric)
    ]
    rows = [row for row in table.rows if row.convention == rules.name]
    measured: list[list[Content]] = [
        [
            row.system,
            *(QUALITY(row.means.get(metric, {}).get(group)) for group in table.groups),
            COUNT(row.n[ALL] if row.n else None),
        ]
        for row in rows
    ]
    notes = [f"n: queries in the mean over all, k = {table.k}."]
    if printed:
        notes.append("Published: on other data where the first table says so.")
    missing = [f"{row.system} {row.missing:,}" for row in rows if row.missing]
    if missing:
        effect = "left out" if rules.missing == "left out" else "counted as 0"
        notes.append(f"Queries without a list are {effect}: {', '.join(missing)}.")
    notes += [f"{row.system}: {row.reason}." for row in rows if row.reason]
    return Table(
        f"{metric_label(metric)} on {table.dataset} by {table.by}, convention {rules.name}",
        ("", *table.groups, "n"),
        [*printed, *measured],
        [len(printed)] if printed else [],
        notes,
    )
