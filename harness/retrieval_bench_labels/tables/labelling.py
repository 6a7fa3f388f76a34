"""What is to be judged, how far that is, what it shows, and what came in and went out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from retrieval_bench.comparison.pairs.delta import how_bracketed
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.experiment.warnings import COPIED
from retrieval_bench.reports.render.cells import COUNT, SHORT_DIFFERENCE, Content
from retrieval_bench.reports.render.table import AnyNote, Note, Table, next_step, result, warning
from retrieval_bench.reports.render.words import metric_label, verdict_label, word_beside
from retrieval_bench_exchange.tables import export
from retrieval_bench_labels.agreement import Agreement
from retrieval_bench_labels.decide.completeness import Completeness
from retrieval_bench_labels.decide.deciding import Decided, level, sentence
from retrieval_bench_labels.decide.population import BETTING, what_it_takes
from retrieval_bench_labels.decide.population import sentence as population_sentence
from retrieval_bench_labels.decide.status import Status
from retrieval_bench_labels.exchange.exporting import ExportedLabels
from retrieval_bench_labels.exchange.importing import Imported
from retrieval_bench_labels.exchange.questions import Asked

SECONDS = 15
"""That judging one document takes; to tell how long it all may take."""

START = "next:  retrieval-bench label start"


def pool_tables(status: Status, file: str, warnings: Sequence[str] = ()) -> list[Table]:
    """Show how much is to be judged, the share of each system in it, and how to begin."""
    pool, completeness = status.pool, status.completeness
    left = completeness.pairs - completeness.judged
    title = f"{pool.dataset}: {counted(left, 'document')} to judge for "
    title += f"{counted(completeness.queries - completeness.finished, 'query')}"
    lead = [*_of_pool(status, left), *map(warning, warnings), *_outdated(status)]
    if pool.documents and not any(
        document.text or document.title for document in pool.documents.values()
    ):
        lead.append(warning("The dataset has no texts: judges see ids alone."))
    notes = [next_step(START), next_step(f"saved: {file}")]
    return [_brought(title, completeness, lead, notes, alone=len(pool.systems) > 1)]


def _of_pool(status: Status, left: int) -> Iterator[Note]:
    pool, completeness, unchanging = status.pool, status.completeness, status.decision.unchanging
    if left:
        hours = left * SECONDS / 3600
        minutes = counted(math.ceil(hours * 60), "minute")
        time = f"{hours:.1f} hours" if hours >= 2 else minutes
        yield result(
            f"All of it may take {time} at {SECONDS} seconds a document; "
            "you can stop as soon as the systems are told apart. A smaller --depth takes less."
        )
    if len(pool.systems) > 1:
        yield result(_MEANT[pool.target])
    if completeness.judged:
        yield result(
            f"{completeness.judged:,} of {counted(completeness.pairs, 'document')} "
            f"({100 * completeness.share_judged:.0f} %) are judged already. "
            f"{status.whose.sentence}"
        )
    if unchanging and len(pool.systems) > 1:
        yield result(
            f"The systems return the same for {counted(unchanging, 'query')}: judging them changes "
            "no comparison."
        )
    if pool.generation > 1:
        yield result(
            "It is not the pool that judging began with; what was judged for the one before "
            "counts. The chance of error before all is judged is shared by all of them."
        )


def status_tables(status: Status, file: str, *, verbose: bool = True) -> list[Table]:
    """The answer, how far the labels go, the pairs, and who judged."""
    decision, completeness, progress = status.decision, status.completeness, status.progress
    answer, *second = _answers(status)
    lead = [*map(result, second), *_of_labels(status)]
    columns, rows = _pairs(status)
    notes: list[Note | str] = [*_meanings(status)]
    if status.population is None and decision.worth:
        notes.append(_effort(status, decision.worth))
    if progress.disputed:
        documents = counted(progress.disputed, "document")
        notes.append(f"Two people differ on {documents}: a third is asked.")
    # What is exported before all is judged is refused by `compare`, whatever is decided here.
    open_ = completeness.finished < completeness.queries
    if open_ and status.done:
        notes.append("They are told apart; `compare` takes these judgements once all are made.")
    step = START if open_ else "next:  retrieval-bench label export --to beir --out my/dataset"
    notes += [next_step(step), next_step(f"labels: {file}")]
    words = range(0, len(columns), 2)
    tables = [Table(answer, columns, rows, (), notes, words, lead), *_agreement(status)]
    if verbose:
        tables.append(_brought("What each system brings", completeness, [], [], alone=True))
    return tables


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
        first = SHORT_DIFFERENCE(delta.difference, delta.ci)
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
        deltas = [pair.delta for pair in population.pairs]
        unit = f" of {_in_clusters(status)}" if status.pool.n_clusters else ""
        first = (
            "Questions like these: what `compare` says of these judgements (paired randomisation "
            f"test{unit}, p < .05{' after Holm' * several}; brackets: {how_bracketed(deltas)})."
        )
    elif status.pool.n_clusters:
        first = (
            f"Questions like these: these come in {_in_clusters(status)}, which are no independent "
            "bets. Once all is judged, the test of `compare` decides, of clusters."
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


def _in_clusters(status: Status) -> str:
    return f"{counted(status.pool.n_clusters, 'cluster')} (by {status.pool.cluster_key})"


def _of_labels(status: Status) -> Iterator[Note]:
    """Say how far the labels go, and what changes how the figures must be read."""
    decided, completeness = status.decision, status.completeness
    yield result(
        f"{completeness.judged:,} of {counted(completeness.pairs, 'document')} judged, "
        f"{completeness.finished:,} of {counted(completeness.queries, 'query')} finished. "
        f"{status.whose.sentence}"
    )
    yield from map(warning, status.warnings)
    if status.whose.mixed:
        yield warning(
            "These figures mix judgements of people with those of the dataset; where both judged, "
            "people count."
        )
    if status.models:
        given = [f"{who} ({counted(n, 'judgement')})" for who, n in status.models.items()]
        yield result(f"Labels of models count in no verdict here: {', '.join(given)}.")
    if decided.waiting and decided.out_of_turn:
        yield warning(
            f"{counted(decided.out_of_turn, 'query')} behind {decided.waiting!r} will count when "
            "that is finished: the order in which queries were drawn keeps the estimate honest."
        )
    if status.progress.skipped:
        documents = counted(status.progress.skipped, "document")
        yield warning(f"{documents} skipped: a query counts once somebody grades all of it.")
    yield from _outdated(status)
    if completeness.share_found is not None and completeness.share_found < 0.9:
        missed = (completeness.estimated or 0) - completeness.relevant_finished
        yield warning(
            f"About {missed:.0f} relevant documents or more were found by no system "
            f"({100 * completeness.share_found:.0f} % are found): recall is overstated. Pool "
            "deeper, or add a system of another kind."
        )


def _outdated(status: Status) -> Iterator[Note]:
    if status.outdated:
        yield warning(
            f"{counted(status.outdated, 'judgement')} not counted: the text of the query or the "
            "document has changed since. What was said is kept, and what is in the pool is asked "
            "again."
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
    shown = {
        "documents": "documents",
        **({"only here": "alone"} if alone else {}),
        **({"judged": "judged", "relevant": "relevant"} if completeness.judged else {}),
        **({"relevant, only here": "relevant_alone"} if completeness.judged and alone else {}),
    }
    rows: list[Sequence[Content]] = [
        [of.system, *(COUNT(getattr(of, name)) for name in shown.values())]
        for of in completeness.brought
    ]
    return Table(title, ["system", *shown], rows, (), below, (0,), lead)


def _agreement(status: Status) -> list[Table]:
    rows: list[Sequence[Content]] = [
        [" and ".join(of.judges), COUNT(of.kappa.n), *map(_coefficient, (of.kappa, of.weighted))]
        for of in status.agreements
    ]
    notes = ["Kappa: 1 is full agreement, 0 what chance gives; weighted: far grades count more."]
    columns = ("judges", "both judged", "Cohen's kappa", "weighted")
    return [Table("How far the judges agree", columns, rows, (), notes)] if rows else []


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
    notes = [next_step("next:  retrieval-bench label status"), next_step(f"labels: {file}")]
    return [Table(title, (), (), (), notes, (0,), [*_of_import(imported)])]


def _of_import(imported: Imported) -> Iterator[Note]:
    if imported.known:
        yield result(f"Not added again, or older than what is there: {imported.known:,}.")
    if imported.outside:
        yield result(
            f"{counted(imported.outside, 'judgement')} outside of the pool: kept for the export, "
            "no part of the comparison in `label status`."
        )
    if imported.changed:
        yield warning(
            f"{counted(imported.changed, 'judgement')} of texts that have changed since: kept, not "
            "counted."
        )
    left = [
        f"{counted(n, 'judgement')} on {what} that the dataset does not have"
        for n, what in ((imported.no_query, "a query"), (imported.no_document, "a document"))
        if n
    ]
    if left:
        such = ", ".join(imported.examples)
        yield warning(f"Left out: {' and '.join(left)}, such as {such}.")


def export_tables(made: ExportedLabels) -> list[Table]:
    """The files, whose judgements are in them, and what is not."""
    (table,) = export.export_tables(made.exported)
    step = f"next:  retrieval-bench compare A B --dataset {quote(str(made.exported.folder))}"
    if made.drawn_from is not None:
        step = "next:  retrieval-bench label status"
    return [replace(table.with_notes([next_step(step)]), lead=[*_of_export(made)])]


def _of_export(made: ExportedLabels) -> Iterator[Note]:
    yield result(made.whose.sentence)
    if made.whose.mixed:
        yield warning("These are judgements of different kinds; --only keeps one of them.")
    if made.drawn_from is not None:
        yield warning(
            f"Not all of the {counted(made.drawn_from, 'query')} are judged, and how much the "
            "systems differ decided on which: `compare` and `regress` refuse these judgements. "
            "`retrieval-bench label status` has the verdict; to gate changes, judge the rest."
        )
    if made.unfinished:
        queries = counted(made.unfinished, "query")
        yield warning(f"Left out, judged in part: {queries}; --partly writes them, too.")
    if made.gone:
        yield warning(
            f"Left out: {counted(made.gone, 'judgement')} whose query or document is gone from the "
            "dataset, or has another text or no answer there. The file of labels keeps them."
        )


def question_tables(made: Asked) -> list[Table]:
    """Return how many questions, of which kind, and what that means."""
    folder = made.exported.folder
    title = f"{counted(made.questions, 'question')} for {made.exported.dataset}: {folder}"
    rows = [
        (name, f"{total:,}", f"{taken:,}") for name, (total, taken) in (made.strata or {}).items()
    ]
    columns = ("stratum", "queries in the log", "sampled") if rows else ()
    command = "label pool" if made.copied is None else "compare"
    step = next_step(f"next:  retrieval-bench {command} A B --dataset {quote(str(folder))}")
    return [Table(title, columns, rows, (), [step], (0,), [*_of_questions(made)])]


def _of_questions(made: Asked) -> Iterator[Note]:
    if made.copied is None:
        yield result(
            "They are a sample of the log: a third each from the queries that make up the most "
            "frequent, the middle and the rarest third of the traffic. Nothing is judged yet."
        )
        return
    yield result(
        "They are known-item questions: each was made from the document that answers it. "
        f"{100 * made.copied:.0f} % of their words stand in it."
    )
    if made.copied >= COPIED:
        yield warning(
            "Questions that copy the words of their document favour keyword search. Real "
            "questions word it differently: compare with some that people asked."
        )
    if made.passed:
        yield result(f"Passed over: {counted(made.passed, 'document')}.")
