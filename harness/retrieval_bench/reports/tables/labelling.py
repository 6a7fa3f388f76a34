"""What is to be judged, how far that is, what it shows, and what came in and went out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.warnings import COPIED
from retrieval_bench.labels.completeness import Completeness
from retrieval_bench.labels.deciding import Decided, Decision, sentence
from retrieval_bench.labels.exporting import ExportedLabels
from retrieval_bench.labels.importing import Imported
from retrieval_bench.labels.questions import Asked
from retrieval_bench.labels.status import Agreed, Status
from retrieval_bench.reports.render.cells import SHORT_DIFFERENCE, Cell, Content
from retrieval_bench.reports.render.table import Note, Table, next_step, result, warning
from retrieval_bench.reports.tables import export
from retrieval_bench.reports.tables.labels import metric_label, verdict_label
from retrieval_bench.stats.agreement import Agreement

SECONDS = 15
"""That judging one document takes; to tell how long it all may take."""

START = "next:  retrieval-bench label start"


def pool_tables(status: Status, file: str, warnings: Sequence[str] = ()) -> list[Table]:
    """What is to be judged, what each system brings, and how to begin."""
    pool, found, decision = status.pool, status.completeness, status.decision
    left = found.pairs - found.judged
    title = f"{pool.dataset}: {counted(left, 'document')} to judge for "
    title += f"{counted(found.queries - found.finished, 'query')}"
    lead: list[Note] = []
    if left:
        hours = left * SECONDS / 3600
        time = f"{hours:.1f} hours" if hours >= 2 else f"{math.ceil(hours * 60)} minutes"
        lead.append(
            result(
                f"All of it may take {time} at {SECONDS} seconds a document; "
                "you can stop as soon as the systems are told apart. A smaller --depth takes less."
            )
        )
    if found.judged:
        lead.append(
            result(
                f"{found.judged:,} of {counted(found.pairs, 'document')} "
                f"({100 * found.share_judged:.0f} %) are judged already. {status.whose.sentence}"
            )
        )
    if decision.unchanging and len(pool.systems) > 1:
        queries = counted(decision.unchanging, "query")
        lead.append(
            result(
                f"The systems return the same for {queries}: judging them changes no comparison."
            )
        )
    if pool.generation > 1:
        lead.append(
            result(
                "It is not the pool that judging began with, so the order of the queries was drawn "
                "anew; what was judged for the one before counts."
            )
        )
    lead += map(warning, warnings)
    if status.outdated:
        lead.append(warning(_outdated(status.outdated)))
    if pool.documents and not any(one.text or one.title for one in pool.documents.values()):
        lead.append(warning("The dataset has no texts: judges see ids alone."))
    notes = [next_step(START), next_step(f"saved: {file}")]
    return [_brought(title, found, lead, notes, alone=len(pool.systems) > 1)]


def status_tables(status: Status, file: str, *, verbose: bool = True) -> list[Table]:
    """The answer, how far the labels go, the pairs, and who judged."""
    decision, found, progress = status.decision, status.completeness, status.progress
    answer = _answer(decision)
    lead: list[Note] = [
        result(
            f"{found.judged:,} of {counted(found.pairs, 'document')} judged, "
            f"{found.finished:,} of {counted(found.queries, 'query')} finished. "
            f"{status.whose.sentence}"
        )
    ]
    if status.whose.mixed:
        lead.append(
            warning(
                "These figures mix judgements of people with those of models or of the dataset; "
                "where both judged, people count."
            )
        )
    lead += _warnings(status)
    rows: list[Sequence[Content]] = [
        (
            f"{pair.b} against {pair.a}",
            Cell(pair.difference, SHORT_DIFFERENCE, pair.ci95),
            _word(pair),
        )
        for pair in decision.pairs
    ]
    queries = counted(decision.queries, "query")
    together = "intervals of all pairs together" if len(decision.pairs) > 1 else "interval"
    of = f"{metric_label(decision.metric)}: the mean over the {queries} of this pool, not over "
    notes = [f"{of}others; brackets: 95 % {together}, right however often you look."]
    if decision.worth:
        notes.append(_effort(status, decision.worth))
    if progress.disputed:
        documents = counted(progress.disputed, "document")
        notes.append(f"Two people differ on {documents}: a third is asked.")
    open_ = not decision.done or (not decision.pairs and found.finished < found.queries)
    step = START if open_ else "next:  retrieval-bench label export --to beir --out my/dataset"
    notes += [next_step(step), next_step(f"labels: {file}")]
    tables = [Table(answer, ("", metric_label(decision.metric), ""), rows, (), notes, (0, 2), lead)]
    agreement = _agreement(status)
    extra = [agreement] if agreement is not None else []
    if verbose:
        extra.append(_brought("What each system brings", found, [], [], alone=True))
    return [*tables, *extra]


def _effort(status: Status, queries: int) -> str:
    """What so many more queries take."""
    left = max(status.completeness.queries - status.completeness.finished, 1)
    documents = status.completeness.pairs - status.completeness.judged
    n = round(queries * documents / left)
    minutes = math.ceil(n * SECONDS / 60)
    return (
        f"{counted(queries, 'more query')}: some {counted(n, 'document')}, "
        f"{counted(minutes, 'minute')} at {SECONDS} seconds each. In brackets behind it: 8 of 10 "
        "simulated continuations; early forecasts are rough."
    )


def _answer(decision: Decision) -> str:
    if not decision.pairs:
        return "One system: nothing to compare."
    if len(decision.pairs) == 1:
        return sentence(decision, decision.pairs[0])
    open_ = sum(pair.verdict.open for pair in decision.pairs)
    if not open_:
        return f"All {len(decision.pairs)} pairs are decided."
    worth = decision.worth
    more = "" if not worth else f" It may take about {counted(worth, 'more query')}."
    return f"{open_} of {len(decision.pairs)} pairs can't be told apart yet.{more}"


def _warnings(status: Status) -> list[Note]:
    decision, found = [], status.completeness
    one = status.decision
    if one.waiting and one.out_of_turn:
        queries = counted(one.out_of_turn, "query")
        decision.append(
            warning(
                f"{queries} behind {one.waiting!r} will count when that is finished: the order in "
                "which queries were drawn keeps the estimate honest."
            )
        )
    if status.progress.skipped:
        documents = counted(status.progress.skipped, "document")
        decision.append(
            warning(f"{documents} skipped: a query counts once somebody grades all of it.")
        )
    if status.outdated:
        decision.append(warning(_outdated(status.outdated)))
    if found.share_found is not None and found.share_found < 0.9:
        missed = (found.estimated or 0) - found.relevant_finished
        decision.append(
            warning(
                f"About {missed:.0f} relevant documents or more were found by no system "
                f"({100 * found.share_found:.0f} % are found): recall is overstated. Pool deeper, "
                "or add a system of another kind."
            )
        )
    return decision


def _outdated(n: int) -> str:
    return (
        f"{counted(n, 'judgement')} not counted: the text of the query or the document has "
        "changed since. What was said is kept, and what is in the pool is asked again."
    )


def _word(pair: Decided) -> str:
    if pair.verdict is Verdict.UNDECIDED and pair.more is not None:
        return f"{verdict_label(pair.verdict)} (about {counted(pair.more[1], 'more query')})"
    return verdict_label(pair.verdict)


def _brought(
    title: str, found: Completeness, lead: Sequence[str], notes: Sequence[str], *, alone: bool
) -> Table:
    columns = ["system", "documents", "only here"] if alone else ["system", "documents"]
    columns += ["judged", "relevant"] if found.judged else []
    columns += ["relevant, only here"] if found.judged and alone else []
    rows: list[Sequence[Content]] = []
    for one in found.brought:
        row: list[Content] = [one.system, f"{one.documents:,}"]
        row += [f"{one.alone:,}"] if alone else []
        row += [f"{one.judged:,}", f"{one.relevant:,}"] if found.judged else []
        row += [f"{one.relevant_alone:,}"] if found.judged and alone else []
        rows.append(row)
    below = list(notes)
    if found.estimated is not None:
        missed = round(found.estimated) - found.relevant_finished
        more = f"about {missed:,} more, or further ones," if missed > 0 else "no sign of more that"
        verb = "may have been missed by all" if missed > 0 else "all of them missed"
        below.insert(
            0,
            f"The systems found {counted(found.relevant_finished, 'relevant document')}; {more} "
            f"{verb}, by how many of them several systems found.",
        )
    return Table(title, columns, rows, (), below, (0,), lead)


def _agreement(status: Status) -> Table | None:
    if not status.agreements:
        return None
    rows: list[Sequence[Content]] = [_agreed(one) for one in status.agreements]
    notes = ["Kappa: 1 is full agreement, 0 what chance gives; weighted: far grades count more."]
    if status.alpha is not None:
        notes.insert(0, f"Krippendorff's alpha of all people: {_coefficient(status.alpha)}.")
    columns = ("judges", "both judged", "Cohen's kappa", "weighted")
    return Table("How far the judges agree", columns, rows, (), notes)


def _agreed(one: Agreed) -> Sequence[Content]:
    return (
        " and ".join(one.judges),
        f"{one.kappa.n:,}",
        _coefficient(one.kappa),
        _coefficient(one.weighted),
    )


def _coefficient(one: Agreement) -> str:
    if math.isnan(one.value):
        return "no spread"
    ends = "" if one.ci95 is None else f" [{one.ci95[0]:.2f}, {one.ci95[1]:.2f}]"
    return f"{one.value:.2f}{ends}"


def import_tables(found: Imported, file: str) -> list[Table]:
    """What came in, and what did not."""
    title = f"{counted(found.labels, 'judgement')} of {found.who} ({found.kind.value}) added"
    lead: list[Note] = []
    if found.known:
        lead.append(result(f"Not added again, or older than what is there: {found.known:,}."))
    if found.outside:
        lead.append(
            result(
                f"{counted(found.outside, 'judgement')} outside of the pool: kept for the export, "
                "no part of the comparison in `label status`."
            )
        )
    if found.changed:
        lead.append(
            warning(
                f"{counted(found.changed, 'judgement')} of texts that have changed since: kept, "
                "not counted."
            )
        )
    if found.no_query or found.no_document:
        such = ", ".join(found.examples)
        left = [
            f"{counted(n, 'judgement')} on {what} that the dataset does not have"
            for n, what in ((found.no_query, "a query"), (found.no_document, "a document"))
            if n
        ]
        lead.append(warning(f"Left out: {' and '.join(left)}, such as {such}."))
    notes = [next_step("next:  retrieval-bench label status"), next_step(f"labels: {file}")]
    return [Table(title, (), (), (), notes, (0,), lead)]


def export_tables(made: ExportedLabels) -> list[Table]:
    """The files, whose judgements are in them, and what is not."""
    (table,) = export.export_tables(made.exported)
    lead = [result(made.whose.sentence)]
    if made.whose.mixed:
        lead.append(warning("These are judgements of different kinds; --only keeps one of them."))
    if made.drawn_from is not None:
        lead.append(
            warning(
                f"Of {counted(made.drawn_from, 'query')} those are judged on which the systems can "
                "differ most: no comparison by these judgements alone has a verdict; "
                "`retrieval-bench label status` has one."
            )
        )
    if made.unfinished:
        queries = counted(made.unfinished, "query")
        lead.append(warning(f"Left out, judged in part: {queries}; --partly writes them, too."))
    if made.gone:
        judgements = counted(made.gone, "judgement")
        lead.append(
            warning(
                f"Left out: {judgements} whose query or document is gone from the dataset, or has "
                "another text there. The file of labels keeps them."
            )
        )
    step = next_step(f"next:  retrieval-bench compare A B --dataset {made.exported.folder}")
    if made.drawn_from is not None:
        step = next_step("next:  retrieval-bench label status")
    return [Table(table.title, table.columns, table.rows, (), [*table.notes, step], (0,), lead)]


def question_tables(made: Asked) -> list[Table]:
    """How many questions, of which kind, and what that means."""
    folder = made.exported.folder
    title = f"{counted(made.questions, 'question')} for {made.exported.dataset}: {folder}"
    lead: list[Note] = []
    rows: list[Sequence[Content]] = []
    if made.copied is not None:
        lead.append(
            result(
                f"They are known-item questions: each was made from the document that answers it. "
                f"{100 * made.copied:.0f} % of their words stand in it."
            )
        )
        if made.copied >= COPIED:
            lead.append(
                warning(
                    "Questions that copy the words of their document favour keyword search. Real "
                    "questions word it differently: compare with some that people asked."
                )
            )
        if made.passed:
            lead.append(result(f"Passed over: {counted(made.passed, 'document')}."))
        step = f"next:  retrieval-bench compare A B --dataset {folder}"
    else:
        lead.append(
            result(
                "They are a sample of the log: a third each from the queries that make up the most "
                "frequent, the middle and the rarest third of the traffic. Nothing is judged yet."
            )
        )
        rows = [
            (name, f"{total:,}", f"{taken:,}")
            for name, (total, taken) in (made.strata or {}).items()
        ]
        step = f"next:  retrieval-bench label pool A B --dataset {folder}"
    columns = ("stratum", "queries in the log", "sampled") if rows else ()
    return [Table(title, columns, rows, (), [next_step(step)], (0,), lead)]
