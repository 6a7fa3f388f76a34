"""Tables of a reader's scores: a table of texts and, where there are offsets, of spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import COUNT, QUALITY, SHORT_QUALITY, Cell, Content
from retrieval_bench.reports.render.table import Note, NoteKind, Table, warning
from retrieval_bench_answers import reader_spans, reader_text
from retrieval_bench_answers.reader import INTERVAL, ReaderCounts, ReaderMean, ReaderResult

_DENOMINATORS = {
    "all": "Denominator all: every question of the gold file (end to end).",
    "retrieved": (
        "Denominator retrieved: questions with a gold document in the run, and those that have no "
        "answer."
    ),
}

WORST_SHOWN = 10


def reader_tables(
    result: ReaderResult,
    name: str = "reader",
    warnings: Sequence[str] = (),
    *,
    per_question: bool = False,
) -> list[Table]:
    """The text family in percent, then the span family as fractions; what holds for both stands
    below the last table.

    Args:
        name: what the titles call the reader, such as its file.
        warnings: shown as they are, behind the notes.
        per_question: also the questions that are worst by ``f1``.
    """
    n, k = counted(result.counts.counted, "question"), result.counts.longest_list
    title = f"{name}: texts of first answers on {n}, in percent"
    tables = [_means(title, reader_text.METRICS, result, _text_notes(result))]
    if result.has_spans:
        title = f"{name}: answer spans on {n}, k = {k}, fractions from 0 to 1"
        tables.append(_means(title, reader_spans.METRICS, result, _span_notes()))
    tables[-1] = tables[-1].with_notes(
        [
            _DENOMINATORS[result.denominator],
            f"Counts: {', '.join(_counts(result.counts))}.",
            f"Brackets: 95 % intervals ({INTERVAL}).",
            *map(warning, warnings),
        ]
    )
    return [*tables, _worst(result)] if per_question else tables


def _means(
    title: str, names: Mapping[str, tuple[str, str]], result: ReaderResult, notes: Sequence[str]
) -> Table:
    rows: list[list[Content]] = [[name, *_cells(result.metrics[name])] for name in names]
    return Table(title, ("", "value", "questions"), rows, starts_of(names), notes)


def _cells(mean: ReaderMean) -> tuple[Cell, Cell]:
    why = f"({mean.reason})" if mean.mean is None and mean.reason else ""
    ends = None if mean.mean is None else mean.ci95
    return QUALITY(mean.mean, ends, remark=why), COUNT(mean.n)


def starts_of(names: Mapping[str, tuple[str, str]]) -> list[int]:
    """Numbers of the rows with which another group of questions begins."""
    groups = [group for _, group in names.values()]
    return [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]


def _worst(result: ReaderResult) -> Table:
    f1 = result.per_question[:, result.columns.index("f1")].tolist()
    order = sorted(range(len(f1)), key=lambda at: (f1[at], result.question_ids[at]))
    rows: list[list[Content]] = [
        [
            result.question_ids[at],
            *(SHORT_QUALITY(value) for value in result.per_question[at].tolist()),
        ]
        for at in order[:WORST_SHOWN]
    ]
    more = Note("--format json has every question.", NoteKind.MORE)
    return Table("Worst questions by f1", ("question", *result.columns), rows, notes=[more])


def _text_notes(result: ReaderResult) -> list[str]:
    notes = [
        "exact, f1: convention squad (as the official script of SQuAD 2.0).",
        "HasAns, NoAns: questions with and without an answer.",
        (
            "char_f1: F1 over characters without blanks and punctuation (NFKC, case folded), for "
            "languages without blanks."
        ),
    ]
    if not result.has_spans:
        notes.append("There are no span metrics: the answers have no offsets.")
    return notes


def _span_notes() -> list[str]:
    names = [f"{alias} is {metric}" for alias, metric in reader_spans.ALIASES.items()]
    return [
        (
            "Convention piaf (Haystack 0.x): accuracy is any overlap, touching included; em is the "
            "same start and end; f1 is over character positions."
        ),
        "top1: the first answer; topk: the best of the list; topk_mean_f1: the mean over the list.",
        "no_answer: an empty answer first (top1) or anywhere (topk) scores 1.",
        f"In the PIAF text, {' and '.join(names)}.",
    ]


def _counts(counts: ReaderCounts) -> Iterator[str]:
    yield f"{counts.counted:,} of {counted(counts.gold, 'question')}"
    yield f"{counts.has_answer:,} with an answer and {counts.no_answer:,} without"
    if counts.not_retrieved:
        yield f"{counts.not_retrieved:,} not retrieved (not in the means)"
    if counts.without_prediction:
        yield f"{counts.without_prediction:,} without a prediction (0 in the means)"
    if counts.unknown_predictions:
        predictions = counted(counts.unknown_predictions, "prediction")
        yield f"{predictions} for unknown questions (not scored)"
    if counts.unknown_rankings:
        yield f"{counted(counts.unknown_rankings, 'ranking')} of unknown questions (not used)"
