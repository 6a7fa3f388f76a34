"""What is shown of labelled answers: rates over all and by group, and which of them differ."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import p_text, signed
from retrieval_bench.reports.render.table import Table
from retrieval_bench.scoring.answers.outcomes import (
    ADJUSTED,
    ALPHA,
    INTERVAL,
    RATES,
    TEST,
    OutcomeGroup,
    OutcomeGroups,
    OutcomeReport,
    Paired,
    Rate,
    SystemOutcomes,
)

_COLUMNS = ("accuracy", "hallucination", "rejection", "adjusted")


def outcome_tables(report: OutcomeReport, name: str = "records") -> list[Table]:
    """Rates over all, then for each field by group and their means; then the paired tests."""
    whole = report.all
    tables = [
        Table(
            f"{name}: outcomes of answers, in percent",
            ("", "n", *_COLUMNS),
            [row for system in whole.systems for row in _with_intervals(system)],
            notes=_rate_notes(),
        )
    ]
    tables += [_by_group(groups) for groups in report.by]
    if len(whole.systems) > 1:
        tables.append(_tests("all items", [whole]))
        tables += [_tests(f"by {groups.by}", groups.groups, named=True) for groups in report.by]
    if report.warnings:
        tables[-1] = tables[-1].with_notes(f"warning: {text}" for text in report.warnings)
    return tables


def _rate_notes() -> list[str]:
    return [
        "accuracy: correct; hallucination: a wrong answer; rejection: none was given; of all n",
        "adjusted: correct of the answers that were given",
        f"intervals: {INTERVAL}",
    ]


def _by_group(groups: OutcomeGroups) -> Table:
    rows: list[tuple[str, ...]] = []
    rules = []
    for group in groups.groups:
        rules.append(len(rows))
        rows += [
            (group.label, system.name, f"{system.n:,}", *map(_percent, system.rates.values()))
            for system in group.systems
        ]
    rules.append(len(rows))
    for name, means in groups.means().items():
        shares = [_share(means[rate]) for rate in RATES]
        rows.append(("mean", name, "", *shares, ""))
    return Table(
        f"By {groups.by}, in percent",
        ("", "", "n", *_COLUMNS),
        rows,
        rules=rules[1:],
        notes=[f"mean: over {counted(len(groups.groups), 'group')} of the same weight"],
        words=(0, 1),
    )


def _tests(what: str, groups: Sequence[OutcomeGroup], *, named: bool = False) -> Table:
    rows: list[tuple[str, ...]] = []
    rules, n = [], 0
    for group in groups:
        rules.append(len(rows))
        pairs = dict.fromkeys((pair.a, pair.b) for pair in group.comparisons)
        for a, b in pairs:
            tests = [pair for pair in group.comparisons if (pair.a, pair.b) == (a, b)]
            label = [group.label] if named else []
            rows.append((*label, b, *map(_points, tests)))
            rows.append((*([""] * len(label)), f"- {a}", *map(_p, tests)))
            n += len(tests)
    return Table(
        f"Differences, {what}, in points",
        (*([""] if named else []), "", *_COLUMNS[:3]),
        rows,
        rules=rules[1:],
        notes=[f"below each its p: {TEST}: {n} here; * marks p below {ALPHA:g}"],
        words=(0, 1) if named else (0,),
    )


def _with_intervals(system: SystemOutcomes) -> list[tuple[str, ...]]:
    """Two rows: the rates, and below each its interval."""
    rates = [*(system.rates[rate] for rate in RATES), system.rates[ADJUSTED]]
    return [
        (system.name, f"{system.n:,}", *map(_percent, rates)),
        ("", "", *map(_ends, rates)),
    ]


def _percent(rate: Rate) -> str:
    return _share(rate.value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _ends(rate: Rate) -> str:
    ends = rate.ci95
    return "" if ends is None else f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def _points(pair: Paired) -> str:
    return signed(None if pair.difference is None else 100 * pair.difference, 2)


def _p(pair: Paired) -> str:
    p = pair.p_adjusted
    if p is None:
        return "-"
    return f"{p_text(p)}*" if p < ALPHA else f"{p_text(p)} "
