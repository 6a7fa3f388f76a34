"""Tables of a retriever and a reader, end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import COUNT, MILLISECONDS, QUALITY, Cell, Content
from retrieval_bench.reports.render.table import AnyNote, Table, in_short, legend, result, warning
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench_answers import reader_spans, reader_text
from retrieval_bench_answers.question_answering import Milliseconds, QuestionAnswering
from retrieval_bench_answers.tables.reader import starts_of

_OF = ("mean", "p50", "p95")


def qa_tables(answering: QuestionAnswering, out: str | None = None) -> list[Table]:
    """The retriever; the reader's texts and spans under both denominators; times by label.

    Args:
        out: the file that the answers were written to, None for none.
    """
    tables = [_retriever(answering)]
    if answering.readings:
        tables.append(_texts(answering))
        if answering.readings["all"].has_spans:
            tables.append(_spans(answering))
    written = [] if out is None else [result(f"The answers were written to {out}.")]
    return [*tables, _times(answering).with_notes([*map(warning, answering.warnings), *written])]


def qa_brief(answering: QuestionAnswering, out: str | None) -> list[Table]:
    """The same without times."""
    *tables, times = qa_tables(answering, out)
    tables[-1] = tables[-1].with_notes(times.notes)
    return in_short(tables, "times of questions, how they were scored")


def _retriever(answering: QuestionAnswering) -> Table:
    rows: list[list[Content]] = [
        [metric_label(mean.metric), QUALITY(mean.mean, mean.ci95), COUNT(mean.n)]
        for mean in answering.retrieval
    ]
    notes: list[AnyNote] = [
        "Convention piaf; success is the hit rate, which PIAF calls recall. nDCG: convention trec."
    ]
    if answering.failed_searches:
        questions = counted(answering.failed_searches, "question")
        notes.append(warning(f"The search of {questions} FAILED."))
    title = f"Retriever {answering.retriever} {on_dataset(answering.dataset)}, k = {answering.k}"
    return Table(title, ("", "value", "questions"), rows, notes=notes)


def _texts(answering: QuestionAnswering) -> Table:
    notes: list[AnyNote] = [
        "exact, f1: as the official script of SQuAD 2.0. char_f1: F1 over characters."
    ]
    if not answering.readings["all"].has_spans:
        notes.append("There are no span metrics: answers or gold have no offsets.")
        notes += _common(answering)
    title = f"Reader {answering.reader}: texts of first answers, in percent"
    return _means(title, reader_text.METRICS, answering, notes)


def _spans(answering: QuestionAnswering) -> Table:
    title = f"Reader {answering.reader}: answer spans, k = {answering.n}, fractions from 0 to 1"
    notes: list[AnyNote] = [
        "Convention piaf (Haystack 0.x). accuracy: any overlap; em: same start and end."
    ]
    return _means(title, reader_spans.METRICS, answering, [*notes, *_common(answering)])


def _means(
    title: str,
    names: Mapping[str, tuple[str, str]],
    answering: QuestionAnswering,
    notes: Sequence[AnyNote],
) -> Table:
    rows: list[list[Content]] = []
    for name in names:
        both = [answering.readings[of].metrics[name] for of in ("all", "retrieved")]
        rows.append(
            [name, *(cell for item in both for cell in (QUALITY(item.mean), COUNT(item.n)))]
        )
    return Table(title, ("", "all", "n", "retrieved", "n"), rows, starts_of(names), notes)


def _common(answering: QuestionAnswering) -> list[AnyNote]:
    every, retrieved = (answering.readings[name].counts for name in ("all", "retrieved"))
    notes: list[AnyNote] = [
        legend("all: every question, retriever and reader end to end."),
        legend("retrieved: questions whose document was found, and those that have no answer."),
        (
            f"Questions: {retrieved.gold:,}, of these {retrieved.not_retrieved:,} with an answer "
            "whose document was not found."
        ),
    ]
    if every.without_prediction:
        questions = counted(every.without_prediction, "question")
        notes.append(f"{questions} without a prediction (0 in the means).")
    if every.unknown_predictions:
        predictions = counted(every.unknown_predictions, "prediction")
        notes.append(f"{predictions} for unknown questions (not scored).")
    if answering.replayed:
        notes.append(
            warning(
                "The answers are from a file: the reader did not read the documents that were "
                "found here, and `all` is the reader alone."
            )
        )
    return notes


def _times(answering: QuestionAnswering) -> Table:
    reads = any(times.read is not None for times in answering.times)
    rows: list[list[Content]] = [
        [
            times.label,
            COUNT(times.n),
            *_cells(times.search),
            *(_cells(times.read) if times.read is not None else []),
        ]
        for times in answering.times
    ]
    notes: list[AnyNote] = [
        "retrieved, not retrieved: questions with an answer, by whether its document was found.",
        "no answer: questions without one.",
        "search: one call for a question, after a warm-up.",
    ]
    if reads:
        notes.append("read: one call for all documents of a question, after a first one.")
    if any(None in (times.search.p50, times.search.p95) for times in answering.times):
        notes.append("-: a p50 takes 30 questions, a p95 200.")
    if answering.failed_readings:
        questions = counted(answering.failed_readings, "question")
        notes.append(warning(f"The reader FAILED on {questions}."))
    columns = [f"{call} {of}" for call in ("search", "read")[: 1 + reads] for of in _OF]
    title = "Milliseconds for a question, by label"
    return Table(title, ("", "questions", *columns), rows, notes=notes)


def _cells(times: Milliseconds) -> list[Cell]:
    return [MILLISECONDS(getattr(times, of)) for of in _OF]
