"""Tables of labelled answers: rates over all and by group, and which of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import (
    BARE_PERCENT,
    COUNT,
    POINTS,
    Cell,
    Content,
    Label,
    P,
)
from retrieval_bench.reports.render.table import AnyNote, Table, in_short, legend, warning
from retrieval_bench_answers.outcomes import (
    ALPHA,
    INTERVAL,
    RATES,
    TEST,
    OutcomeGroup,
    OutcomeGroups,
    OutcomeReport,
    Paired,
)

_COLUMNS = ("accuracy", "hallucination", "rejection", "adjusted")


def outcome_tables(report: OutcomeReport, name: str = "records") -> list[Table]:
    """Rates over all, then for each field by group and their means; then the paired tests."""
    whole = report.all
    rows: list[list[Content]] = [
        [
            system.name,
            COUNT(system.n),
            *(BARE_PERCENT(rate.value, rate.ci95) for rate in system.rates.values()),
        ]
        for system in whole.systems
    ]
    notes: list[AnyNote] = [
        legend(
            "Accuracy: correct; hallucination: a wrong answer; rejection: no answer; each of all n."
        ),
        legend("Adjusted: correct ones of the answers that were given."),
        f"Brackets: intervals ({INTERVAL}).",
    ]
    title = f"{name}: outcomes of answers, in percent"
    tables = [Table(title, ("", "n", *_COLUMNS), rows, notes=notes)]
    tables += map(_by_group, report.by)
    if len(whole.systems) > 1:
        tables.append(_tests("over all items", [whole]))
        tables += [_tests(f"by {groups.by}", groups.groups, labelled=True) for groups in report.by]
    return [*tables[:-1], tables[-1].with_notes(map(warning, report.warnings))]


def outcome_brief(report: OutcomeReport, name: str) -> list[Table]:
    """Rates and tests over all, without those by group."""
    by = [f"by {groups.by}" for groups in report.by]
    return in_short(outcome_tables(replace(report, by=()), name), ", ".join([*by, "all notes"]))


def _by_group(groups: OutcomeGroups) -> Table:
    rows: list[list[Content]] = []
    starts = []
    for group in groups.groups:
        starts.append(len(rows))
        rows += [
            [
                group.label,
                system.name,
                COUNT(system.n),
                *(BARE_PERCENT(rate.value) for rate in system.rates.values()),
            ]
            for system in group.systems
        ]
    starts.append(len(rows))
    for name, means in groups.means().items():
        rows.append(["mean", name, "", *(BARE_PERCENT(means[rate]) for rate in RATES), ""])
    return Table(
        f"By {groups.by}, in percent",
        ("", "", "n", *_COLUMNS),
        rows,
        starts[1:],
        [f"The mean is over {counted(len(groups.groups), 'group')} of equal weight."],
        words=(0, 1),
    )


def _tests(what: str, groups: Sequence[OutcomeGroup], *, labelled: bool = False) -> Table:
    rows: list[list[Content]] = []
    starts = []
    for group in groups:
        starts.append(len(rows))
        pairs: dict[tuple[str, str], list[Paired]] = {}
        for test in group.comparisons:
            pairs.setdefault((test.a, test.b), []).append(test)
        for (a, b), tests in pairs.items():
            cells = [cell for test in tests for cell in _difference(test)]
            rows.append([*([group.label] if labelled else []), f"{b} - {a}", *cells])
    heads = [head for rate in _COLUMNS[: len(RATES)] for head in (rate, Label("p", f"{rate} p"))]
    n = sum(len(group.comparisons) for group in groups)
    return Table(
        f"Differences {what}, in points",
        (*([""] if labelled else []), "", *heads),
        rows,
        starts[1:],
        [legend(f"p: {TEST} ({n} here). *: p below {ALPHA:g}.")],
        words=(0, 1) if labelled else (0,),
    )


def _difference(test: Paired) -> tuple[Cell, Cell]:
    significant = test.p_adjusted is not None and test.p_adjusted < ALPHA
    return POINTS(test.difference, marks="*" if significant else ""), P(test.p_adjusted)
