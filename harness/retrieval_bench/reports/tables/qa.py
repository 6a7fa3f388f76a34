"""What is shown of a retriever and a reader, end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import Table
from retrieval_bench.scoring.answers import reader_spans, reader_text
from retrieval_bench.scoring.answers.question_answering import (
    Found,
    Milliseconds,
    QuestionAnswering,
)
from retrieval_bench.scoring.answers.reader import ReaderMean, ReaderResult

_PIAF = {"Success": "hit rate", "AP": "MAP", "RR": "MRR"}


def qa_tables(result: QuestionAnswering, out: str | None = None) -> list[Table]:
    """The retriever; the reader's texts and spans under both denominators; times by label.

    Args:
        out: the file that the answers were written to, None for none.
    """
    tables = [_retriever(result)]
    if result.readings:
        tables.append(_texts(result))
        if result.readings["all"].has_spans:
            tables.append(_spans(result))
    tables.append(_times(result))
    notes = [f"warning: {warning}" for warning in result.warnings]
    if out is not None:
        notes.append(f"answers: {out}")
    tables[-1] = tables[-1].with_notes(notes)
    return tables


def _retriever(result: QuestionAnswering) -> Table:
    notes = ["hit rate: what PIAF calls recall; convention piaf, nDCG: convention trec"]
    failed = result.failed[0]
    if failed:
        notes.append(f"FAILED: the search of {counted(failed, 'question')}")
    return Table(
        f"Retriever {result.retriever} on {result.dataset}, k = {result.k}",
        ("", "value", "95 % interval", ""),
        [_found(found, result.k) for found in result.retrieval],
        notes=notes,
    )


def _found(found: Found, k: int) -> tuple[str, str, str, str]:
    plain = _PIAF.get(found.metric.partition("@")[0], found.metric.partition("@")[0])
    interval = "" if found.ci95 is None else "[{:.4f}, {:.4f}]".format(*found.ci95)
    return (f"{plain}@{k}", _shown(found.mean), interval, f"n = {found.n:,}")


def _texts(result: QuestionAnswering) -> Table:
    notes = ["exact, f1: as the official script of SQuAD 2.0; char_f1: F1 over characters"]
    if not result.readings["all"].has_spans:
        notes.append("no span metrics: answers or gold have no offsets")
        notes += _common(result)
    title = f"Reader {result.reader}: texts of first answers, in percent"
    return Table(title, _COLUMNS, *_rows(reader_text.METRICS, result.readings), notes=notes)


def _spans(result: QuestionAnswering) -> Table:
    title = f"Reader {result.reader}: answer spans, k = {result.n}, fractions from 0 to 1"
    notes = ["convention piaf (Haystack 0.x); accuracy: any overlap, em: same start and end"]
    rows = _rows(reader_spans.METRICS, result.readings)
    return Table(title, _COLUMNS, *rows, notes=[*notes, *_common(result)])


_COLUMNS = ("", "all", "n", "retrieved", "n")


def _common(result: QuestionAnswering) -> list[str]:
    one = result.readings["retrieved"].counts
    notes = [
        (
            "all: every question, retriever and reader end to end; retrieved: questions whose "
            "document was found, and those that have no answer"
        ),
        (
            f"questions: {one.gold:,}, of these {one.not_retrieved:,} with an answer whose "
            "document was not found"
        ),
    ]
    every = result.readings["all"].counts
    if every.without_prediction:
        told = counted(every.without_prediction, "question")
        notes.append(f"{told} without a prediction (0 in the means)")
    if every.unknown_predictions:
        told = counted(every.unknown_predictions, "prediction")
        notes.append(f"{told} for unknown questions (not scored)")
    if result.replayed:
        notes.append(
            "the answers are from a file: the reader did not read the documents that were found "
            "here, and `all` is the reader alone"
        )
    return notes


def _rows(
    names: Mapping[str, tuple[str, str]], readings: Mapping[str, ReaderResult]
) -> tuple[list[tuple[str, ...]], list[int]]:
    groups = [group for _, group in names.values()]
    rules = [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    both: Sequence[Mapping[str, ReaderMean]] = [
        readings["all"].metrics,
        readings["retrieved"].metrics,
    ]
    rows = []
    for name in names:
        cells = [cell for one in both for cell in (_shown(one[name].mean), f"{one[name].n:,}")]
        rows.append((name, *cells))
    return rows, rules


def _times(result: QuestionAnswering) -> Table:
    rows = []
    reads = any(times.read is not None for times in result.times)
    for times in result.times:
        cells = [*_cells(times.search)]
        if times.read is not None:
            cells += _cells(times.read)
        rows.append((times.label, f"{times.n:,}", *cells))
    read = ("read mean", "p50", "p95") if reads else ()
    columns = ("", "questions", "search mean", "p50", "p95", *read)
    notes = [
        (
            "retrieved, not retrieved: questions with an answer, by whether its document was "
            "found; no answer: questions without one"
        ),
        "search: one call for a question, after a warm-up",
    ]
    if reads:
        notes.append("read: one call for all documents of a question, after a first one")
    if any(None in (times.search.p50, times.search.p95) for times in result.times):
        notes.append("-: a p50 takes 30 questions, a p95 200")
    if result.failed[1]:
        notes.append(f"FAILED: the reader on {counted(result.failed[1], 'question')}")
    return Table("Milliseconds for a question, by label", columns, rows, notes=notes)


def _cells(times: Milliseconds) -> list[str]:
    return ["-" if one is None else f"{one:.3f}" for one in (times.mean, times.p50, times.p95)]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
