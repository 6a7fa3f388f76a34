"""What is to be judged, how far that is, what it shows, and what came in and went out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval_bench.comparison.pairs.verdicts import HOW_BRACKETED
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.experiment.warnings import COPIED
from retrieval_bench.labels.decide.completeness import Completeness
from retrieval_bench.labels.decide.deciding import Decided, level, sentence
from retrieval_bench.labels.decide.population import BETTING, what_it_takes
from retrieval_bench.labels.decide.population import sentence as population_sentence
from retrieval_bench.labels.decide.status import Agreed, Status
from retrieval_bench.labels.exchange.exporting import ExportedLabels
from retrieval_bench.labels.exchange.importing import Imported
from retrieval_bench.labels.exchange.questions import Asked
from retrieval_bench.reports.render.cells import SHORT_DIFFERENCE, Content
from retrieval_bench.reports.render.table import AnyNote, Note, Table, next_step, result, warning
from retrieval_bench.reports.render.words import (
    metric_label,
    verdict_label,
    word_beside,
)
from retrieval_bench.reports.tables.share import export
from retrieval_bench.stats.agreement import Agreement

SECONDS = 15
"""That judging one document takes; to tell how long it all may take."""

START = "next:  retrieval-bench label start"


def pool_tables(status: Status, file: str, warnings: Sequence[str] = ()) -> list[Table]:
    """Show how much is to be judged, the share of each system in it, and how to begin."""
    pool, completeness, decision = status.pool, status.completeness, status.decision
    left = completeness.pairs - completeness.judged
    title = f"{pool.dataset}: {counted(left, 'document')} to judge for "
    title += f"{counted(completeness.queries - completeness.finished, 'query')}"
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
    if len(pool.systems) > 1:
        lead.append(result(_MEANT[pool.target]))
    if completeness.judged:
        lead.append(
            result(
                f"{completeness.judged:,} of {counted(completeness.pairs, 'document')} "
                f"({100 * completeness.share_judged:.0f} %) are judged already. "
                f"{status.whose.sentence}"
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
                "It is not the pool that judging began with; what was judged for the one before "
                "counts. The chance of error before all is judged is shared by all of them."
            )
        )
    lead += map(warning, warnings)
    if status.outdated:
        lead.append(warning(_outdated(status.outdated)))
    if pool.documents and not any(
        document.text or document.title for document in pool.documents.values()
    ):
        lead.append(warning("The dataset has no texts: judges see ids alone."))
    notes = [next_step(START), next_step(f"saved: {file}")]
    return [_brought(title, completeness, lead, notes, alone=len(pool.systems) > 1)]


def status_tables(status: Status, file: str, *, verbose: bool = True) -> list[Table]:
    """The answer, how far the labels go, the pairs, and who judged."""
    decision, completeness, progress = status.decision, status.completeness, status.progress
    answer, *second = _answers(status)
    lead: list[Note] = [
        *map(result, second),
        result(
            f"{completeness.judged:,} of {counted(completeness.pairs, 'document')} judged, "
            f"{completeness.finished:,} of {counted(completeness.queries, 'query')} finished. "
            f"{status.whose.sentence}"
        ),
    ]
    if status.whose.mixed:
        lead.append(
            warning(
                "These figures mix judgements of people with those of models or of the dataset; "
                "where both judged, people count."
            )
        )
    lead += _warnings(status)
    columns, rows = _pairs(status)
    notes: list[Note | str] = [*_meanings(status)]
    if status.population is None and decision.worth:
        notes.append(_effort(status, decision.worth))
    if progress.disputed:
        documents = counted(progress.disputed, "document")
        notes.append(f"Two people differ on {documents}: a third is asked.")
    open_ = not status.done and completeness.finished < completeness.queries
    open_ = open_ or (not decision.pairs and completeness.finished < completeness.queries)
    step = START if open_ else "next:  retrieval-bench label export --to beir --out my/dataset"
    notes += [next_step(step), next_step(f"labels: {file}")]
    left = tuple(at for at in range(len(columns)) if at not in {1, 3})
    tables = [Table(answer, columns, rows, (), notes, left, lead)]
    agreement = _agreement(status)
    extra = [agreement] if agreement is not None else []
    if verbose:
        extra.append(_brought("What each system brings", completeness, [], [], alone=True))
    return [*tables, *extra]


def _effort(status: Status, queries: int) -> str:
    """Estimate the effort of so many more queries."""
    left = max(status.completeness.queries - status.completeness.finished, 1)
    documents = status.completeness.pairs - status.completeness.judged
    n = round(queries * documents / left)
    minutes = math.ceil(n * SECONDS / 60)
    return (
        f"{counted(queries, 'more query')}: some {counted(n, 'document')}, "
        f"{counted(minutes, 'minute')} at {SECONDS} seconds each. Brackets: the middle 80 % of "
        "simulated outcomes; early forecasts are rough."
    )


def _answers(status: Status) -> list[str]:
    """Answer on questions like those of the pool, and then on these very ones; only on the latter
    where the former cannot be told."""
    decision, population = status.decision, status.population
    if not decision.pairs:
        return ["One system: nothing to compare."]
    n = len(decision.pairs)
    if n == 1:
        these = sentence(decision, decision.pairs[0])
        if population is None:
            return [these]
        return [population_sentence(status.pool, population, population.pairs[0]), these]
    exact = all(pair.exact for pair in decision.pairs)
    open_ = sum(pair.verdict.open for pair in decision.pairs)
    those = f"On these {counted(decision.queries, 'question')} themselves"
    if exact:
        these = f"{those} the differences are known: they stand in the table."
    elif not open_:
        these = f"{those} all {n} pairs are decided."
    else:
        worth = decision.worth
        more = "" if not worth else f" It may take about {counted(worth, 'more query')}."
        these = f"{those} {open_} of {n} pairs can't be told apart yet.{more}"
    if population is None:
        return [these]
    if population.done:
        return [f"All {n} pairs are decided on questions like these.", these]
    open_ = sum(not pair.decided for pair in population.pairs)
    yet = "" if population.complete else " yet"
    first = f"{open_} of {n} pairs can't be told apart{yet} on questions like these."
    return [f"{first} {what_it_takes(population, population.beyond)}", these]


def _pairs(status: Status) -> tuple[Sequence[str], list[Sequence[Content]]]:
    """Columns and rows: each pair on questions like these, and on these."""
    decision, population = status.decision, status.population
    metric = metric_label(decision.metric)
    these = [
        (SHORT_DIFFERENCE(pair.difference, None if pair.exact else pair.ci95), _word(pair))
        for pair in decision.pairs
    ]
    names = [f"{pair.b} against {pair.a}" for pair in decision.pairs]
    if population is None:
        return ("", metric, ""), [(name, *of) for name, of in zip(names, these, strict=True)]
    rows: list[Sequence[Content]] = []
    for name, pair, (difference, word) in zip(names, population.pairs, these, strict=True):
        delta = pair.delta
        first = SHORT_DIFFERENCE(delta.difference, delta.ci95)
        said = word_beside(verdict_label(delta.verdict), delta.bound)
        rows.append((name, first, said, difference, word))
    queries = counted(decision.queries, "question")
    return (metric, "questions like these", "", f"these {queries}", ""), rows


_MEANT = {
    Target.POPULATION: (
        "Questions come in plain random order, so that labels speak of questions like these; "
        "--for split asks less, and speaks of these very questions alone."
    ),
    Target.SPLIT: (
        "Questions on which the systems can differ most come first: until all is judged, labels "
        "speak of these very questions alone, not of questions like these."
    ),
}


def _meanings(status: Status) -> list[str]:
    """Whose mean each figure is, and what its bracket is."""
    population, several = status.population, len(status.decision.pairs) > 1
    if not status.decision.pairs:
        return []
    together = " of all pairs together" if several else ""
    if population is None:
        these = f"brackets: 95 %{together}, right however often you look"
        drawn = "Drawn by how much the systems can differ, they say nothing of others"
        return [f"These very questions, none else; {these}. {drawn} until all is judged."]
    if population.complete:
        first = (
            "Questions like these: what `compare` says of these judgements (paired randomisation "
            f"test, p < .05{' after Holm' * several}; brackets: {HOW_BRACKETED})."
        )
    else:
        share = f"{100 * (1 - level(status.pool.generation, BETTING)):.3g} %"
        first = (
            f"Questions like these: betting, brackets {share}{together}, right however often you "
            "look. Once all is judged, the test of `compare` decides."
        )
    these = f"These {counted(status.decision.queries, 'question')}: their own mean"
    if status.decision.pairs[0].exact:
        return [first, f"{these}, which is known."]
    return [first, f"{these}; brackets 95 %{together}, right however often you look."]


def _warnings(status: Status) -> list[Note]:
    decision, completeness = [], status.completeness
    decided = status.decision
    if decided.waiting and decided.out_of_turn:
        queries = counted(decided.out_of_turn, "query")
        decision.append(
            warning(
                f"{queries} behind {decided.waiting!r} will count when that is finished: the "
                "order in "
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
    if completeness.share_found is not None and completeness.share_found < 0.9:
        missed = (completeness.estimated or 0) - completeness.relevant_finished
        decision.append(
            warning(
                f"About {missed:.0f} relevant documents or more were found by no system "
                f"({100 * completeness.share_found:.0f} % are found): recall is overstated. Pool "
                "deeper, "
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
    if pair.exact:
        return ""
    if pair.verdict is Verdict.UNDECIDED and pair.more is not None:
        return f"{verdict_label(pair.verdict)} (about {counted(pair.more[1], 'more query')})"
    return verdict_label(pair.verdict)


def _brought(
    title: str,
    completeness: Completeness,
    lead: Sequence[AnyNote],
    notes: Sequence[AnyNote],
    *,
    alone: bool,
) -> Table:
    columns = ["system", "documents", "only here"] if alone else ["system", "documents"]
    columns += ["judged", "relevant"] if completeness.judged else []
    columns += ["relevant, only here"] if completeness.judged and alone else []
    rows: list[Sequence[Content]] = []
    for brought in completeness.brought:
        row: list[Content] = [brought.system, f"{brought.documents:,}"]
        row += [f"{brought.alone:,}"] if alone else []
        row += [f"{brought.judged:,}", f"{brought.relevant:,}"] if completeness.judged else []
        row += [f"{brought.relevant_alone:,}"] if completeness.judged and alone else []
        rows.append(row)
    below = list(notes)
    if completeness.estimated is not None:
        missed = round(completeness.estimated) - completeness.relevant_finished
        more = f"about {missed:,} more, or further ones," if missed > 0 else "no sign of more that"
        verb = "may have been missed by all" if missed > 0 else "all of them missed"
        below.insert(
            0,
            f"The systems found {counted(completeness.relevant_finished, 'relevant document')}; "
            f"{more} "
            f"{verb}, by how many of them several systems found.",
        )
    return Table(title, columns, rows, (), below, (0,), lead)


def _agreement(status: Status) -> Table | None:
    if not status.agreements:
        return None
    rows: list[Sequence[Content]] = [_agreed(agreement) for agreement in status.agreements]
    notes = ["Kappa: 1 is full agreement, 0 what chance gives; weighted: far grades count more."]
    columns = ("judges", "both judged", "Cohen's kappa", "weighted")
    return Table("How far the judges agree", columns, rows, (), notes)


def _agreed(agreed: Agreed) -> Sequence[Content]:
    return (
        " and ".join(agreed.judges),
        f"{agreed.kappa.n:,}",
        _coefficient(agreed.kappa),
        _coefficient(agreed.weighted),
    )


def _coefficient(agreement: Agreement) -> str:
    if math.isnan(agreement.value):
        return "no spread"
    ends = "" if agreement.ci95 is None else f" [{agreement.ci95[0]:.2f}, {agreement.ci95[1]:.2f}]"
    return f"{agreement.value:.2f}{ends}"


def import_tables(imported: Imported, file: str) -> list[Table]:
    """Show the judgements that came in, and those that did not."""
    title = (
        f"{counted(imported.labels, 'judgement')} of {imported.who} ({imported.kind.value}) added"
    )
    lead: list[Note] = []
    if imported.known:
        lead.append(result(f"Not added again, or older than what is there: {imported.known:,}."))
    if imported.outside:
        lead.append(
            result(
                f"{counted(imported.outside, 'judgement')} outside of the pool: kept for the "
                "export, "
                "no part of the comparison in `label status`."
            )
        )
    if imported.changed:
        lead.append(
            warning(
                f"{counted(imported.changed, 'judgement')} of texts that have changed since: kept, "
                "not counted."
            )
        )
    if imported.no_query or imported.no_document:
        such = ", ".join(imported.examples)
        left = [
            f"{counted(n, 'judgement')} on {what} that the dataset does not have"
            for n, what in ((imported.no_query, "a query"), (imported.no_document, "a document"))
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
                f"Not all of the {counted(made.drawn_from, 'query')} are judged, and how much the "
                "systems differ decided on which: `compare` and `regress` refuse these judgements. "
                "`retrieval-bench label status` has the verdict; to gate changes, judge the rest."
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
    """Return how many questions, of which kind, and what that means."""
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
