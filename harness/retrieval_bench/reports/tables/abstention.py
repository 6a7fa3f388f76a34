"""What is shown of the queries that no document answers: counts, a threshold's effect, choices."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.metrics.abstention import CRITERION, Abstention, Figures
from retrieval_bench.metrics.thresholds import AbstentionReport, ThresholdReport
from retrieval_bench.reports.render.table import Table

CHOICES = 10
"""Thresholds shown in the decision table, about."""


def abstention_tables(report: AbstentionReport) -> list[Table]:
    """The run as it is; then, if a threshold could be studied, its effect on the queries it was
    not chosen on, and the thresholds there were to choose from."""
    shown = [_as_it_is(report)]
    if report.threshold is not None:
        if report.threshold.threshold is not None:
            shown.append(_effect(report.threshold, report.threshold.threshold))
        shown.append(_choices(report.threshold))
    return shown


def _as_it_is(report: AbstentionReport) -> Table:
    found = report.run.abstention
    counts = [
        ("unanswerable queries", f"{found.n_unanswerable:,}"),
        ("  empty list, rightly (true-empty)", f"{found.true_empty:,}"),
        ("  hits, needlessly (false-return)", f"{found.false_return:,}"),
        ("answerable queries", f"{found.n_answerable:,}"),
        ("  empty list, wrongly (false-empty)", f"{found.false_empty:,}"),
        ("  hits, right or wrong (true-return)", f"{found.true_return:,}"),
    ]
    ratios = [
        *((f"abstention {name}", _ratio(value)) for name, value in _ratios(found).items()),
        (CRITERION, _ratio(report.run.scienceqa_map)),
        ("AUROC of the top score", _ratio(report.auroc)),
    ]
    notes = [
        "abstention: an empty list is the positive decision, right on unanswerable queries",
        (
            f"{CRITERION}: over all {counted(report.run.n, 'query')}; answerable: AP(norm=hits)@3, "
            "unanswerable: 1 for an empty list, else 0"
        ),
    ]
    if report.auroc is not None:
        notes.append(
            "AUROC: how often an answerable query has a higher top score than an unanswerable one; "
            ".5 is chance"
        )
    notes += [f"abstention {_SHOWN[name]}: {why}" for name, why in found.undefined.items()]
    if report.reason is not None:
        notes.append(f"no threshold on the top score: {report.reason}")
    return Table("Abstention", ("", "value"), counts + ratios, [len(counts)], notes)


def _effect(report: ThresholdReport, threshold: float) -> Table:
    before, after = report.rest_before, report.rest_after
    rows = [
        [
            CRITERION,
            _ratio(before.scienceqa_map),
            _ratio(after.scienceqa_map),
            signed(report.difference),
        ],
        ["  95 % interval", "", "", "[{:+.3f}, {:+.3f}]".format(*report.ci95)],
    ]
    with_threshold = _ratios(after.abstention)
    for name, value in _ratios(before.abstention).items():
        other = with_threshold[name]
        change = "-" if value is None or other is None else signed(other - value)
        rows.append([f"abstention {name}", _ratio(value), _ratio(other), change])
    for label, name in (("false-empty", "false_empty"), ("false-return", "false_return")):
        counts = [getattr(figures.abstention, name) for figures in (before, after)]
        rows.append([label, *(f"{n:,}" for n in counts), signed(counts[1] - counts[0], 0)])
    rest = before.abstention
    return Table(
        f"Effect of a threshold on {counted(before.n, 'held-out query')}",
        ("", "as it is", "with threshold", "difference"),
        rows,
        [2, 5],
        [
            f"rule: return nothing when the top score is below {threshold:.6g}",
            (
                f"chosen on {_kinds(report.dev_before)} by the highest {CRITERION}; "
                f"reported here on the other {before.n:,}"
            ),
            (
                f"gain on the dev queries {signed(report.gain_dev)}, here "
                f"{signed(report.difference)}: optimism {signed(report.optimism)}"
            ),
            (
                f"returning nothing at all would give {CRITERION} "
                f"{rest.n_unanswerable / before.n:.4f} here"
            ),
            "interval: percentile bootstrap over held-out queries, the threshold held fixed",
        ],
    )


def _choices(report: ThresholdReport) -> Table:
    curve = report.curve
    chosen = None if report.threshold is None else report.chosen
    rows = []
    for i in curve.thinned(CHOICES, report.chosen).tolist():
        found = Abstention(
            true_empty=int(curve.true_empty[i]),
            false_empty=int(curve.false_empty[i]),
            false_return=int(curve.false_return[i]),
            true_return=report.dev_before.abstention.n_answerable - int(curve.false_empty[i]),
        )
        threshold = f"{curve.threshold[i]:.6g}" if i < len(curve) - 1 else "all empty"
        empty = (found.true_empty + found.false_empty) / report.dev_before.n
        rows.append(
            [
                threshold + (" *" if i == chosen else ""),
                f"{empty:.0%}",
                *(_ratio(value, 3) for value in _ratios(found).values()),
                f"{found.false_empty:,}",
                f"{found.false_return:,}",
                _ratio(curve.scienceqa_map[i]),
            ]
        )
    dev = _kinds(report.dev_before)
    if report.threshold is None:
        first = (
            f"no threshold raises {CRITERION} on {dev}: none is chosen, "
            f"and nothing changes on the other {report.rest_before.n:,}"
        )
    else:
        first = f"*: chosen, on these {dev}; its effect is told on the others"
    return Table(
        "Thresholds on the dev queries",
        ("threshold", "empty", "prec.", "recall", "F1", "f.-empty", "f.-return", "MAP"),
        rows,
        notes=[
            first,
            f"{len(rows)} of {len(curve):,} thresholds; the first leaves every list as it is",
            "empty: share of the queries that get an empty list; f.: false; MAP: under scienceqa",
        ],
    )


_SHOWN = {"precision": "precision", "recall": "recall", "f1": "F1"}


def _ratios(found: Abstention) -> dict[str, float | None]:
    return {shown: getattr(found, name) for name, shown in _SHOWN.items()}


def _kinds(figures: Figures) -> str:
    found = figures.abstention
    return (
        f"{counted(figures.n, 'dev query')} ({found.n_answerable:,} answerable, "
        f"{found.n_unanswerable:,} unanswerable)"
    )


def _ratio(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
