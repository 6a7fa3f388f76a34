"""Tables of a submission: how it decides to return nothing, and how it scores."""

from __future__ import annotations

from dataclasses import replace

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, SCORE, Content
from retrieval_bench.reports.render.table import AnyNote, Table, in_short, result, warning
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench_answers.submission import ALL, AUTO, HELD_OUT, Choice, Submission
from retrieval_bench_score.outcomes import CRITERION
from retrieval_bench_score.thresholds import ThresholdReport

_EMPTY = (
    ("no_search", "not searched, as the function of --messages has it"),
    ("below_threshold", "top score below the threshold"),
    ("nothing_found", "nothing found"),
    ("failed", "the search FAILED"),
)
_GROUPS = {HELD_OUT: "held-out", ALL: "all"}


def submission_tables(submission: Submission, out: str | None) -> list[Table]:
    """The lines of the file; the decision table; the scores under both conventions.

    Args:
        out: the file that was written, None for none.
    """
    tables = [_lines(submission)]
    tables += [_decisions(submission)] if submission.choices else []
    tables += [_scores(submission)] if submission.scores else []
    saved = f"It was written to {out}." if out else "No file was written: name one with --out."
    return [*tables[:-1], tables[-1].with_notes([*_notes(submission), result(saved)])]


def submission_brief(submission: Submission, out: str | None) -> list[Table]:
    """Lines and rule, and the scores of queries that the threshold was not chosen on."""
    own = [score for score in submission.scores if score.queries == submission.reported]
    lines, *tables = submission_tables(replace(submission, choices=(), scores=tuple(own)), out)
    if submission.choices:
        lines = lines.with_notes([result(f"The submission {_rule(submission)}")])
    if submission.report is not None and submission.report.threshold is not None:
        lines = lines.with_notes([result(_chosen(submission.report.threshold)[1])])
    more = "all thresholds, scores on all queries, notes"
    return in_short([lines, *tables], more)


def _rule(submission: Submission) -> str:
    if (threshold := submission.decision.threshold) is None:
        return f"has no threshold: {submission.decision.reason}."
    return f"returns nothing when the top score is below {threshold:.6g}."


def _lines(submission: Submission) -> Table:
    counts = submission.counts
    rows: list[tuple[str, Content]] = [
        ("lines", COUNT(counts.lines)),
        ("with documents", COUNT(counts.returned)),
        *((f"empty: {what}", COUNT(n)) for name, what in _EMPTY if (n := getattr(counts, name))),
    ]
    title = (
        f"Submission: {submission.retriever} {on_dataset(submission.dataset)}, k = {submission.k}"
    )
    return Table(title, ("", "queries"), rows, [1])


def _decisions(submission: Submission) -> Table:
    with_dev = submission.choices[0].dev_map is not None
    trec = metric_label(f"AP@{submission.k} (trec)")
    reported = [score.n for score in submission.scores if score.queries == submission.reported]
    on = submission.reported.removesuffix("queries") + "query"
    report = submission.report
    notes: list[AnyNote] = [result(f"*: the submission, which {_rule(submission)}")]
    if report is not None and report.threshold is not None:
        notes += _chosen(report.threshold)
    notes.append(f"MAP: under scienceqa. {trec}: over the answerable queries. Empty: empty lists.")
    means = ("dev MAP", "MAP", trec) if with_dev else ("MAP", trec)
    return Table(
        "When to return nothing" + (f": {counted(reported[0], on)}" if reported else ""),
        ("threshold", *means, "empty", "false empty", "false return"),
        [_choice(choice, with_dev=with_dev) for choice in submission.choices],
        notes=notes,
    )


def _choice(choice: Choice, *, with_dev: bool) -> list[Content]:
    threshold = "all empty" if choice.threshold is None else choice.threshold
    return [
        SCORE(threshold, marks="*" if choice.chosen else ""),
        *([QUALITY(choice.dev_map)] if with_dev else []),
        QUALITY(choice.map),
        QUALITY(choice.trec),
        *map(COUNT, (choice.empty, choice.false_empty, choice.false_return)),
    ]


def _chosen(report: ThresholdReport) -> list[str]:
    dev = report.dev_before.abstention
    low, high = report.ci95
    return [
        (
            f"It was chosen by dev MAP on {counted(report.dev_before.n, 'dev query')} "
            f"({dev.n_answerable:,} answerable, {dev.n_unanswerable:,} unanswerable); all other "
            "columns are of queries that it was not chosen on."
        ),
        (
            f"MAP of the held-out queries changes by {signed(report.difference)} [{low:+.3f}, "
            f"{high:+.3f}], that of the dev queries by {signed(report.gain_dev)}: the optimism is "
            f"{signed(report.optimism)}."
        ),
    ]


def _scores(submission: Submission) -> Table:
    changed, scores = submission.counts.below_threshold > 0, submission.scores
    rows: list[list[Content]] = []
    for score in scores:
        competition = score.convention == "scienceqa"
        metric = CRITERION if competition else f"{metric_label(score.metric)} (trec)"
        cells = [QUALITY(score.submitted)]
        if changed:
            gain = DIFFERENCE(score.submitted - score.as_found)
            cells = [QUALITY(score.as_found), *cells, gain]
        rows.append([f"{metric}, {_GROUPS[score.queries]}", *cells, COUNT(score.n)])
    notes = [
        "scienceqa: over all queries.",
        "trec: over the answerable queries, where an empty list can only lose.",
    ]
    if changed:
        notes.append("As found: without the threshold.")
    if HELD_OUT in {score.queries for score in scores}:
        notes.append(
            "all: with the dev queries, on which the threshold was chosen: what a leaderboard over "
            "these queries would show, and too good."
        )
    heads = ("as found", "submitted", "difference") if changed else ("value",)
    starts = [at for at in range(1, len(scores)) if scores[at].queries != scores[at - 1].queries]
    return Table("Scores", ("", *heads, "queries"), rows, starts, notes)


def _notes(submission: Submission) -> list[AnyNote]:
    notes, decision = [], submission.decision
    if not submission.scores:
        notes.append(result("It was not scored: the dataset has no judgements."))
    if decision.kind != AUTO and decision.threshold is None and decision.reason:
        notes.append(result(f"There is no threshold: {decision.reason}."))
    return [*notes, *map(warning, submission.warnings)]
