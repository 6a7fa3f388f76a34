"""What is shown of a submission: how it decides not to search, and how it scores."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.metrics.abstention import CRITERION
from retrieval_bench.metrics.thresholds import ThresholdReport
from retrieval_bench.reports.render.table import Table
from retrieval_bench.scoring.answers.submission import ALL, AUTO, HELD_OUT, Choice, Submission

_EMPTY = (
    ("no_search", "no search needed, says the function of --messages"),
    ("below_threshold", "top score below the threshold"),
    ("nothing_found", "nothing found"),
    ("failed", "the search FAILED"),
)


def submission_tables(made: Submission, out: str | None) -> list[Table]:
    """The lines of the file; the decision table; the scores under both conventions.

    Args:
        out: the file that was written, None for none.
    """
    tables = [_lines(made)]
    if made.choices:
        tables.append(_decisions(made))
    if made.scores:
        tables.append(_scores(made))
    written = f"written: {out}" if out else "no file was written: name one with --out"
    notes = [*_notes(made), written]
    tables[-1] = tables[-1].with_notes(notes)
    return tables


def _lines(made: Submission) -> Table:
    counts = made.counts
    rows = [("lines", f"{counts.lines:,}"), ("with documents", f"{counts.returned:,}")]
    rows += [
        (f"empty: {what}", f"{getattr(counts, name):,}")
        for name, what in _EMPTY
        if getattr(counts, name)
    ]
    title = f"Submission: {made.retriever} on {made.dataset}, k = {made.k}"
    return Table(title, ("", "queries"), rows, [1])


def _decisions(made: Submission) -> Table:
    with_dev = made.choices[0].dev_map is not None
    columns = ["threshold", *(["dev MAP"] if with_dev else [])]
    columns += ["MAP", f"AP@{made.k} trec", "empty", "f.-empty", "f.-return"]
    group = next((one for one in made.scores if one.queries == made.reported), None)
    n = counted(group.n, made.reported.removesuffix("queries") + "query") if group else ""
    notes = [_rule(made)]
    found = made.report.threshold if made.report is not None else None
    if found is not None:
        notes += _chosen(found)
    notes.append(
        f"MAP: {CRITERION}; AP@{made.k} trec: over the answerable ones; empty: lists; f.: false"
    )
    return Table(
        f"When not to search: {n}",
        columns,
        [_choice(choice, with_dev=with_dev) for choice in made.choices],
        notes=notes,
    )


def _choice(choice: Choice, *, with_dev: bool) -> list[str]:
    value = "all empty" if choice.threshold is None else f"{choice.threshold:.6g}"
    return [
        value + (" *" if choice.chosen else ""),
        *([_shown(choice.dev_map)] if with_dev else []),
        _shown(choice.map),
        _shown(choice.trec),
        f"{choice.empty:,}",
        f"{choice.false_empty:,}",
        f"{choice.false_return:,}",
    ]


def _rule(made: Submission) -> str:
    threshold = made.decision.threshold
    if threshold is None:
        return f"*: the submission; {made.decision.reason}"
    return f"*: the submission, which returns nothing when the top score is below {threshold:.6g}"


def _chosen(found: ThresholdReport) -> list[str]:
    dev = found.dev_before.abstention
    kinds = f"{dev.n_answerable:,} answerable, {dev.n_unanswerable:,} that need no search"
    low, high = found.ci95
    return [
        (
            f"chosen by dev MAP on {counted(found.dev_before.n, 'dev query')} ({kinds}); all other "
            "columns are of queries that it was not chosen on"
        ),
        (
            f"MAP of the held-out queries moves by {signed(found.difference)}, 95 % interval "
            f"[{low:+.3f}, {high:+.3f}]; gain on the dev queries {signed(found.gain_dev)}, "
            f"optimism {signed(found.optimism)}"
        ),
    ]


def _scores(made: Submission) -> Table:
    changed = made.counts.below_threshold > 0
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    group = made.scores[0].queries
    for one in made.scores:
        if one.queries != group:
            group = one.queries
            rules.append(len(rows))
        name = CRITERION if one.convention == "scienceqa" else f"{one.metric} (trec)"
        always = (_shown(one.as_found), _shown(one.submitted))
        values = (*always, signed(one.submitted - one.as_found)) if changed else always[1:]
        rows.append((f"{name}, {_GROUPS[one.queries]}", *values, f"n = {one.n:,}"))
    columns = ("always", "submitted", "difference") if changed else ("value",)
    notes = [
        (
            "scienceqa: over all queries; trec: over those that a document answers, where an empty "
            "list can only lose"
        )
    ]
    if changed:
        notes.insert(0, "always: without the threshold, whatever is found is returned")
    if HELD_OUT in {one.queries for one in made.scores}:
        notes.append(
            "all: with the dev queries, on which the threshold was chosen: what a leaderboard "
            "over these queries would show, and too good"
        )
    return Table("Scores", ("", *columns, ""), rows, rules, notes)


_GROUPS = {HELD_OUT: "held-out", ALL: "all"}


def _notes(made: Submission) -> list[str]:
    notes = []
    if not made.scores:
        notes.append("not scored: the dataset has no judgements")
    if made.decision.kind != AUTO and made.decision.threshold is None and made.decision.reason:
        notes.append(f"no threshold: {made.decision.reason}")
    return [*notes, *(f"warning: {warning}" for warning in made.warnings)]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
