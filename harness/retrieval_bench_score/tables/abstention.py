"""Tables of unanswerable queries: counts, a threshold's effect, and other thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.render.cells import (
    COUNT,
    COUNT_CHANGE,
    DIFFERENCE,
    PERCENT,
    QUALITY,
    SCORE,
    SHORT_QUALITY,
    Content,
)
from retrieval_bench.reports.render.table import AnyNote, Table, result
from retrieval_bench_score.outcomes import CRITERION, Figures
from retrieval_bench_score.thresholds import AbstentionReport, ThresholdReport

CHOICES = 10
"""Thresholds shown in the decision table, about."""

_RATIOS = {"precision": "precision", "recall": "recall", "f1": "F1"}


def abstention_tables(report: AbstentionReport) -> list[Table]:
    """The run as it is; then, if a threshold could be studied, its effect on the queries it was
    not chosen on, and the thresholds there were to choose from."""
    tables = [_as_it_is(report)]
    if report.threshold is not None:
        if report.threshold.threshold is not None:
            tables.append(_effect(report.threshold, report.threshold.threshold))
        tables.append(_choices(report.threshold))
    return tables


def abstention_sentences(report: AbstentionReport) -> list[AnyNote]:
    """The same in short."""
    run, study = report.run.abstention, report.threshold
    told = (
        f"Of {counted(run.n_unanswerable, 'unanswerable query')} {run.true_empty:,} got an empty "
        f"list, as is right; of {run.n_answerable:,} answerable {run.false_empty:,}, wrongly."
    )
    if study is None:
        more = f"There is no threshold on the top score: {report.reason}."
    elif study.threshold is None:
        more = f"No threshold on the top score raises {CRITERION}."
    else:
        low, high = study.ci95
        more = (
            f"Returning nothing when the top score is below {study.threshold:.6g} changes "
            f"{CRITERION} by {signed(study.difference)} [{low:+.3f}, {high:+.3f}] on "
            f"{counted(study.rest_before.n, 'held-out query')}."
        )
    return [result(told), result(more)]


def _as_it_is(report: AbstentionReport) -> Table:
    run = report.run.abstention
    why = {name: f"({reason})" for name, reason in run.undefined.items()}
    rows: list[Sequence[Content]] = [
        ("unanswerable queries", COUNT(run.n_unanswerable)),
        ("  empty list: right (true empty)", COUNT(run.true_empty)),
        ("  results: wrong (false return)", COUNT(run.false_return)),
        ("answerable queries", COUNT(run.n_answerable)),
        ("  empty list: wrong (false empty)", COUNT(run.false_empty)),
        ("  results, relevant or not (true return)", COUNT(run.true_return)),
        *(
            (f"abstention {label}", QUALITY(getattr(run, name), remark=why.get(name, "")))
            for name, label in _RATIOS.items()
        ),
        (CRITERION, QUALITY(report.run.scienceqa_map)),
        ("AUROC of the top score", QUALITY(report.auroc)),
    ]
    notes = [
        "Abstention: an empty list is the positive decision; it is right for unanswerable queries.",
        (
            f"{CRITERION} is over all {counted(report.run.n, 'query')}: AP(norm=hits)@3 of an "
            "answerable one; of an unanswerable one, 1 for an empty list and 0 for results."
        ),
    ]
    if report.auroc is not None:
        notes.append(
            "AUROC: how often an answerable query has a higher top score than an unanswerable one; "
            ".5 is chance."
        )
    if report.reason is not None:
        notes.append(f"There is no threshold on the top score: {report.reason}.")
    return Table("Abstention", ("", "value"), rows, [6], notes)


def _effect(report: ThresholdReport, threshold: float) -> Table:
    before, after = report.rest_before, report.rest_after
    then, now = before.abstention, after.abstention
    rows: list[list[Content]] = [
        [
            CRITERION,
            QUALITY(before.scienceqa_map),
            QUALITY(after.scienceqa_map),
            DIFFERENCE(report.difference, report.ci95),
        ]
    ]
    for name, label in _RATIOS.items():
        old, new = getattr(then, name), getattr(now, name)
        gain = None if old is None or new is None else new - old
        rows.append([f"abstention {label}", QUALITY(old), QUALITY(new), DIFFERENCE(gain)])
    for name in ("false_empty", "false_return"):
        old, new = getattr(then, name), getattr(now, name)
        row = [COUNT(old), COUNT(new), COUNT_CHANGE(new - old)]
        rows.append([name.replace("_", " "), *row])
    return Table(
        f"Effect of a threshold on {counted(before.n, 'held-out query')}",
        ("", "as it is", "with threshold", "difference"),
        rows,
        [1, 4],
        [
            result(f"The threshold: return nothing when the top score is below {threshold:.6g}."),
            (
                f"It was chosen on {_kinds(report.dev_before)} by the highest {CRITERION}; the "
                f"table is about the other {before.n:,}."
            ),
            (
                f"The gain is {signed(report.gain_dev)} on the dev queries and "
                f"{signed(report.difference)} here: the optimism is {signed(report.optimism)}."
            ),
            f"Empty lists alone would give {CRITERION} {then.n_unanswerable / before.n:.4f} here.",
            "Brackets: 95 % over held-out queries (Gaffke's bound), the threshold held fixed.",
        ],
    )


def _choices(report: ThresholdReport) -> Table:
    curve, dev = report.curve, report.dev_before
    chosen = None if report.threshold is None else report.chosen
    rows: list[list[Content]] = []
    for i in curve.thinned(CHOICES, report.chosen).tolist():
        lists = curve.lists(i)
        threshold = float(curve.threshold[i]) if i < len(curve) - 1 else "all empty"
        rows.append(
            [
                SCORE(threshold, marks="*" if i == chosen else ""),
                PERCENT((lists.true_empty + lists.false_empty) / dev.n),
                *(SHORT_QUALITY(getattr(lists, name)) for name in _RATIOS),
                COUNT(lists.false_empty),
                COUNT(lists.false_return),
                QUALITY(float(curve.scienceqa_map[i])),
            ]
        )
    answer: AnyNote = f"*: chosen on these {_kinds(dev)}; its effect is measured on the others."
    if chosen is None:
        answer = result(
            f"No threshold raises {CRITERION} on {_kinds(dev)}: none is chosen, and nothing "
            f"changes on the other {report.rest_before.n:,}."
        )
    return Table(
        "Thresholds on the dev queries",
        ("threshold", "empty", *_RATIOS.values(), "false empty", "false return", "MAP"),
        rows,
        notes=[
            answer,
            f"{len(rows)} of {len(curve):,} thresholds are shown; the first changes no list.",
            "Empty: share of queries with an empty list. MAP: under scienceqa.",
        ],
    )


def _kinds(figures: Figures) -> str:
    queries = figures.abstention
    return (
        f"{counted(figures.n, 'dev query')} ({queries.n_answerable:,} answerable, "
        f"{queries.n_unanswerable:,} unanswerable)"
    )
