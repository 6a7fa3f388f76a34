"""Retriever and reader, end to end: which documents were found, what was read in them, how long
both took.

The retriever is scored as PIAF does (its recall is the hit rate), the reader under both
denominators: all questions, and those whose document was found. Times are told apart by label: what
a question without an answer costs is not what another one does.

Gold answers are in the metadata of queries: ``metadata.answers`` holds texts, or as in SQuAD
``{"text", "answer_start"}``; the latter stand in the document under ``metadata.document`` or,
without that, in the one that is judged relevant. All that is wrong comes in one error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import failing, foreign_code
from retrieval_bench.core.errors import (
    ConfigError,
    ContractError,
    DataError,
    counted,
    first_few,
)
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data.faults import Faults, reporting, shown
from retrieval_bench.data.needs_judgements import require_judged
from retrieval_bench.experiment.candidate import Searched
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.calls import OK
from retrieval_bench.stats.percentiles import percentile
from retrieval_bench_answers.answers import (
    Answer,
    Given,
    GoldQuestion,
    Passage,
    Predictions,
    at_home,
    compare,
    gold_question,
    read_predictions,
)
from retrieval_bench_answers.contract import Reader, Readings, read_all
from retrieval_bench_answers.jsonl import write_lines
from retrieval_bench_answers.reader import DENOMINATORS, ReaderResult, score_reader
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scorecard import Truth

_ACCEPTED = 'a list of texts, or of {"text": ..., "answer_start": ...}'


@dataclass(frozen=True, slots=True)
class Questions:
    """Gold of the queries that count, in their order.

    Attributes:
        predictions: from a file, checked; None where none was given.
        has_spans: whether the gold says where its answers stand.
    """

    gold: tuple[GoldQuestion, ...]
    predictions: Predictions | None
    has_spans: bool
    warnings: tuple[str, ...] = ()


def documents_of(data: Dataset, ids: Collection[str]) -> dict[str, Document]:
    """The documents with these ids, by id; one walk over the corpus."""
    return {document.id: document for document in data.documents or () if document.id in ids}


def questions_of(
    data: Dataset, queries: Sequence[Query], predictions: Path | None = None
) -> Questions:
    """The gold of ``queries``, and the predictions of a file where one is given.

    Offsets of the gold are checked where they are needed: for a reader that will say where its
    answers stand, and for predictions that do.

    Raises:
        DataError: no query has answers; everything that is wrong in the gold or the file.
    """
    if not any("answers" in query.metadata for query in queries):
        raise DataError(
            f"no query of {data.name!r} has answers in its metadata",
            accepted="SQuAD files, or `answers` in the metadata of the queries",
            fix="leave the reader out to score the retriever alone",
        )
    where = data.name if predictions is None else f"{data.name}, {predictions}"
    with reporting("the gold or the predictions", where) as faults:
        given: dict[str, Given] = {}
        spans_given = True
        if predictions is not None:
            given, spans_given = read_predictions(predictions, faults)
        own = {query.id: _document_of(query, data) for query in queries}
        given = {q: at_home(read, own.get(q)) for q, read in given.items()}
        wanted = {document for document in own.values() if document is not None}
        wanted |= {
            a.span.document for read in given.values() for a in read.answers if a.span is not None
        }
        passages = {
            name: gold_passage.text for name, gold_passage in documents_of(data, wanted).items()
        }
        has_spans = any(_has_offset(query) for query in queries)
        needed = has_spans and spans_given
        gold = []
        for query in queries:
            document = own[query.id] or ""
            passage = Passage(document, passages.get(document, ""), needed)
            gold.append(_gold(query, data, passage, faults))
        by_id = {question.id: question for question in gold}
        if predictions is not None:
            compare(given, by_id, passages, faults.of(predictions))
    made = None
    if predictions is not None:
        answers = {question: read.answers for question, read in given.items()}
        made = Predictions(answers, spans_given and has_spans)
    return Questions(tuple(gold), made, has_spans, faults.warnings())


def _document_of(query: Query, data: Dataset) -> str | None:
    """The document that the offsets of the gold count in."""
    named = query.metadata.get("document")
    if isinstance(named, str):
        return named
    relevant = _relevant(query, data)
    return relevant[0] if len(relevant) == 1 else None


def _relevant(query: Query, data: Dataset) -> tuple[str, ...]:
    grades = data.qrels.get(query.id, {})
    return tuple(doc_id for doc_id, grade in grades.items() if grade >= 1)


def _has_offset(query: Query) -> bool:
    answers = query.metadata.get("answers")
    return isinstance(answers, list) and any(
        isinstance(answer, Mapping) and answer.get("answer_start") is not None for answer in answers
    )


def _gold(query: Query, data: Dataset, passage: Passage, faults: Faults) -> GoldQuestion:
    report = faults.of(data.name)
    place = f"query {shown(query.id)}"
    raw: Any = query.metadata.get("answers", [])
    if not isinstance(raw, list):
        report.error(place, f"answers is {shown(raw)}", _ACCEPTED)
        raw = []
    if not passage.document and _has_offset(query) and passage.spans_needed:
        what = f"answer_start, and {len(_relevant(query, data)):,} relevant documents"
        report.error(place, what, "metadata.document, the one that it counts in")
        raw = []
    answers = [{"text": item} if isinstance(item, str) else item for item in raw]
    record = {"answers": answers, "is_impossible": not query.answerable}
    gold = gold_question(query.id, record, passage, place, report)
    # A question that is marked impossible and has answers is judged by no one.
    documents = _relevant(query, data) or gold.documents if gold.texts else ()
    return GoldQuestion(gold.id, gold.texts, gold.spans, documents)


RETRIEVED = "retrieved"
NOT_RETRIEVED = "not retrieved"
NO_ANSWER = "no answer"
"""Labels: questions with an answer whose document was found, or was not; those without one."""

_METRICS = {"piaf": ("R", "AP", "RR"), "trec": ("nDCG",)}


@dataclass(frozen=True, slots=True)
class Found:
    """The mean of one metric of the retriever over the questions with an answer."""

    convention: str
    metric: str
    mean: float | None
    ci95: tuple[float, float] | None
    n: int


@dataclass(frozen=True, slots=True)
class Milliseconds:
    """Times of one label; a percentile that so few calls do not support is None."""

    mean: float
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the questions of one label; ``read`` is None where nothing was read here."""

    label: str
    n: int
    search: Milliseconds
    read: Milliseconds | None


@dataclass(frozen=True, slots=True)
class QuestionAnswering(Documented):
    """A retriever and a reader on one dataset.

    Attributes:
        retriever, dataset, k: what was run, on what, and how many hits were read.
        facts: what the reader says of itself: model, hash, parameters.
        retrieval: means of the retriever, for each metric and convention.
        times: what the questions of each label took.
        warnings: what makes the figures less than they seem.
        reader: the reader; None where only the retriever was scored.
        n: answers asked for.
        readings: denominator (``all``, ``retrieved``) -> scores of the reader; empty without one.
        replayed: the answers come from a file: the reader had other documents than these.
        failed_searches: questions on which the search failed.
        failed_readings: questions on which the reader failed.
        out: the file that the answers were written to; None where they were not.
    """

    KEYS = (
        "retriever reader reader_facts=facts dataset k answers=n retrieval readings "
        "times_ms=times failed_searches failed_readings warnings out"
    )

    retriever: str
    reader: str | None
    dataset: str
    k: int
    n: int
    retrieval: tuple[Found, ...]
    readings: Mapping[str, ReaderResult]
    times: tuple[Times, ...]
    replayed: bool
    failed_searches: int
    failed_readings: int
    facts: Mapping[str, Any]
    predictions: Predictions
    warnings: tuple[str, ...]
    out: str | None = None

    def write(self, path: Path) -> None:
        """Write the answers, as ``reader`` and ``qa`` read them again.

        Raises:
            RecordError: it is there already, or cannot be written.
        """
        write_answers(path, self.predictions.answers)


def write_answers(path: Path, answers: Mapping[str, Sequence[Answer]]) -> None:
    """A new file of predictions, JSON lines.

    Raises:
        RecordError: it is there already, or cannot be written.
    """
    lines = answers.items()
    write_lines(
        path, ({"id": q, "answers": [_line(a) for a in answers_of]} for q, answers_of in lines)
    )


def _line(answer: Answer) -> dict[str, Any]:
    line: dict[str, Any] = {"text": answer.text}
    if answer.span is not None:
        line |= answer.span._asdict()
    if answer.score is not None:
        line["score"] = answer.score
    return line


def _tried(call: Callable[[], Any], messages: list[str]) -> Any:
    """What a method of a reader gives; that it fails costs no answers, and is told."""
    try:
        with foreign_code(failing(f"{call.__name__}() of the reader")):
            return call()
    except ContractError as problem:
        messages.append(problem.render())
        return {}


def answer_questions(
    experiment: Experiment,
    reader: Reader | Path | None = None,
    n: int = 5,
    *,
    name: str = "",
    reporter: Reporter | None = None,
) -> QuestionAnswering:
    """Search every question, read what was found, score both.

    Args:
        experiment: one retriever, a dataset and the number of documents; see
            :func:`retrieval_bench.experiment.preparation.prepare`.
        reader: a reader, a file of predictions, or None to score the retriever alone.
        n: answers wanted of each question.
        name: what outputs call the reader.

    Raises:
        ConfigError: a reader where the texts of documents are not known.
        DataError: no judgements, no gold answers; all that is wrong in gold or predictions.
        ContractError: the retriever or the reader broke its contract.
        ReadingInterrupted: Ctrl-C while the reader was at work; with the answers so far.
    """
    reporter = reporter or Silent()
    data, queries = experiment.dataset, experiment.queries
    questions: Questions | None = None
    messages: list[str] = []
    try:
        require_judged(data, "qa")
        if reader is not None:
            _check(experiment, reader, n)
            questions = questions_of(data, queries, reader if isinstance(reader, Path) else None)
        returned = experiment.search(reporter)
        rankings = {
            query.id: () if ranking is None else tuple(ranking.doc_ids)
            for query, ranking in zip(queries, returned.rankings, strict=True)
        }
        readings: Readings | None = None
        if isinstance(reader, Reader):
            documents, messages = _documents(experiment, rankings)
            with reporter.phase(Phase(Step.READING, name or "the reader")) as task:
                readings = read_all(reader, queries, documents, n, progress=task)
            messages += _failures(queries, readings.status)
        facts = _tried(reader.describe, messages) if isinstance(reader, Reader) else {}
    finally:
        experiment.close()
        if isinstance(reader, Reader):
            _tried(reader.close, messages)
    predictions = Predictions({}, has_spans=False)
    results: dict[str, ReaderResult] = {}
    if questions is not None:
        predictions, more = _predictions(questions, readings)
        messages += [*questions.warnings, *more]
        for denominator in DENOMINATORS:
            retrieved = rankings if denominator == "retrieved" else None
            results[denominator] = score_reader(questions.gold, predictions, denominator, retrieved)
    return QuestionAnswering(
        returned.name,
        name or None,
        f"{data.name} ({data.split})",
        experiment.k,
        n,
        _retrieval(experiment, rankings),
        results,
        _times(experiment, returned, rankings, readings, questions),
        isinstance(reader, Path),
        sum(status != OK for status in returned.status),
        0 if readings is None else sum(status != OK for status in readings.status),
        facts,
        predictions,
        (*returned.warnings, *messages),
    )


def _check(experiment: Experiment, reader: Reader | Path, n: int) -> None:
    if n < 1:
        raise ConfigError(f"{n} answers", where="--answers", accepted="1 or more", fix="raise it")
    if isinstance(reader, Path):
        return
    data = experiment.dataset
    if data.documents is None or data.unit_of:
        what = "has no corpus" if data.documents is None else "has judgements on units of chunks"
        raise ConfigError(
            f"a reader for {data.name!r}, which {what}",
            where="--reader",
            accepted="a dataset whose documents are what is found and read",
            fix="leave the reader out, or give its predictions as a file",
        )


def _documents(
    experiment: Experiment, rankings: Mapping[str, Sequence[str]]
) -> tuple[list[list[Document]], list[str]]:
    """For each question the documents to read; ids that the corpus does not have are told."""
    wanted = {doc_id for doc_ids in rankings.values() for doc_id in doc_ids}
    known = documents_of(experiment.dataset, wanted)
    unknown = sorted(wanted - known.keys())
    told = []
    if unknown:
        told = [
            f"{counted(len(unknown), 'document')} not in the corpus, not read: {first_few(unknown)}"
        ]
    documents = [
        [known[doc_id] for doc_id in rankings[query.id] if doc_id in known]
        for query in experiment.queries
    ]
    return documents, told


def _predictions(questions: Questions, readings: Readings | None) -> tuple[Predictions, list[str]]:
    if questions.predictions is not None:
        predictions = questions.predictions
        given = any(a.span for answers in predictions.answers.values() for a in answers)
    else:
        answers = {} if readings is None else readings.answers
        texts = [
            answer for given_answers in answers.values() for answer in given_answers if answer.text
        ]
        given = any(answer.span for answer in texts)
        whole = given and all(answer.span for answer in texts)
        if given and not whole:
            without = sum(answer.span is None for answer in texts)
            message = f"{counted(without, 'answer')} without a span, others have one: texts alone"
            return Predictions(answers, has_spans=False), [f"{message} are scored"]
        # Without any text there is nothing that a span could be missing of.
        predictions = Predictions(answers, has_spans=questions.has_spans and (whole or not texts))
    if given and not questions.has_spans:
        return predictions, ["the gold has no offsets: texts alone are scored"]
    return predictions, []


def _failures(queries: Sequence[Query], status: Sequence[str]) -> list[str]:
    failed = [
        f"{query.id} ({state})" for query, state in zip(queries, status, strict=True) if state != OK
    ]
    if not failed:
        return []
    return [f"the reader failed on {counted(len(failed), 'question')}: {first_few(failed)}"]


def _retrieval(experiment: Experiment, rankings: Mapping[str, Sequence[str]]) -> tuple[Found, ...]:
    truth = Truth.of(experiment.dataset)
    rows = []
    for name, metrics in _METRICS.items():
        cut = [f"{metric}@{experiment.k}" for metric in metrics]
        evaluation = truth.score(rankings, convention(name), cut).evaluation
        for metric, mean in zip(evaluation.metrics, evaluation.means, strict=True):
            value = mean.mean if np.isfinite(mean.mean) else None
            rows.append(Found(name, str(metric), value, mean.ci95, mean.n))
    return tuple(rows)


def _times(
    experiment: Experiment,
    returned: Searched,
    rankings: Mapping[str, Sequence[str]],
    readings: Readings | None,
    questions: Questions | None,
) -> tuple[Times, ...]:
    gold = {} if questions is None else {question.id: question for question in questions.gold}
    labels = np.array(
        [_label(query, gold, experiment, rankings[query.id]) for query in experiment.queries]
    )
    rows = []
    for label in (RETRIEVED, NOT_RETRIEVED, NO_ANSWER):
        of_label = labels == label
        if of_label.any():
            searched = returned.timings.wall_ns[of_label[returned.timings.query]]
            read = None if readings is None else _milliseconds(readings.wall_ns[of_label])
            rows.append(Times(label, int(of_label.sum()), _milliseconds(searched), read))
    return tuple(rows)


def _label(
    query: Query, gold: Mapping[str, GoldQuestion], experiment: Experiment, labels: Sequence[str]
) -> str:
    """Label a query as the gold says; where there is none, as the query and its judgements do."""
    question = gold.get(query.id)
    if not (query.answerable if question is None else question.answerable):
        return NO_ANSWER
    relevant = _relevant(query, experiment.dataset) if question is None else question.documents
    return RETRIEVED if set(relevant) & set(labels) else NOT_RETRIEVED


def _milliseconds(wall_ns: NDArray[np.int64]) -> Milliseconds:
    values = wall_ns / 1e6
    p50, p95 = (percentile(values, level).value for level in (50.0, 95.0))
    return Milliseconds(float(values.mean()), p50, p95)
