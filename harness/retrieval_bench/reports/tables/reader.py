"""What is shown of a reader's scores: a table of texts and, where there are offsets, of spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import Table
from retrieval_bench.scoring.answers import reader_spans, reader_text
from retrieval_bench.scoring.answers.reader import INTERVAL, ReaderCounts, ReaderMean, ReaderResult

_DENOMINATORS = {
    "all": "denominator all: every question of the gold file (end to end)",
    "retrieved": (
        "denominator retrieved: questions with a gold document in the run, and those that have "
        "no answer"
    ),
}

WORST_SHOWN = 10

_COLUMNS = ("", "value", "95 % interval", "")


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
    n = counted(result.counts.counted, "question")
    tables = [
        Table(
            f"{name}: texts of first answers on {n}, in percent",
            _COLUMNS,
            *_rows(reader_text.METRICS, result.metrics),
            notes=_text_notes(result),
        )
    ]
    if result.has_spans:
        k = result.counts.longest_list
        tables.append(
            Table(
                f"{name}: answer spans on {n}, k = {k}, fractions from 0 to 1",
                _COLUMNS,
                *_rows(reader_spans.METRICS, result.metrics),
                notes=_span_notes(),
            )
        )
    notes = [*_common_notes(result), *(f"warning: {text}" for text in warnings)]
    tables[-1] = tables[-1].with_notes(notes)
    return [*tables, _worst(result)] if per_question else tables


def _worst(result: ReaderResult) -> Table:
    f1 = result.per_question[:, result.columns.index("f1")].tolist()
    order = sorted(range(len(f1)), key=lambda at: (f1[at], result.question_ids[at]))
    return Table(
        "Worst questions by f1",
        ("question", *result.columns),
        [
            (result.question_ids[at], *(f"{v:.2f}" for v in result.per_question[at].tolist()))
            for at in order[:WORST_SHOWN]
        ],
        notes=["--format json has every question"],
    )


def _rows(
    names: Mapping[str, tuple[str, str]], metrics: Mapping[str, ReaderMean]
) -> tuple[list[tuple[str, ...]], list[int]]:
    """The rows, and the numbers of those with which a group of questions begins."""
    groups = [group for _, group in names.values()]
    rules = [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    return [_row(name, metrics[name]) for name in names], rules


def _row(name: str, mean: ReaderMean) -> tuple[str, ...]:
    if mean.mean is None:
        return (name, "-", "", mean.reason or "")
    interval = "" if mean.ci95 is None else f"[{mean.ci95[0]:.4f}, {mean.ci95[1]:.4f}]"
    return (name, f"{mean.mean:.4f}", interval, f"n = {mean.n:,}")


def _text_notes(result: ReaderResult) -> list[str]:
    notes = [
        (
            "exact, f1: convention squad (as the official script of SQuAD 2.0); HasAns, NoAns: "
            "questions with and without an answer"
        ),
        (
            "char_f1: F1 over characters without blanks and punctuation (NFKC, case folded), for "
            "languages without blanks"
        ),
    ]
    if not result.has_spans:
        notes.append("no span metrics: the answers have no offsets")
    return notes


def _span_notes() -> list[str]:
    names = [f"{alias} is {metric}" for alias, metric in reader_spans.ALIASES.items()]
    return [
        (
            "convention piaf (Haystack 0.x): accuracy is any overlap, touching included; em is the "
            "same start and end; f1 is over character positions"
        ),
        (
            "top1: the first answer; topk: the best of the list; topk_mean_f1: the mean over the "
            "list; no answer: an empty answer first (top1) or anywhere (topk) scores 1"
        ),
        f"in the PIAF text {', '.join(names)}",
    ]


def _common_notes(result: ReaderResult) -> list[str]:
    return [
        _DENOMINATORS[result.denominator],
        f"counts: {', '.join(_count_phrases(result.counts))}",
        f"intervals: {INTERVAL}",
    ]


def _count_phrases(counts: ReaderCounts) -> Iterable[str]:
    yield f"{counts.counted:,} of {counted(counts.gold, 'question')}"
    yield f"{counts.has_answer:,} with an answer and {counts.no_answer:,} without"
    if counts.not_retrieved:
        yield f"{counts.not_retrieved:,} not retrieved (not in the means)"
    if counts.without_prediction:
        yield f"{counts.without_prediction:,} without a prediction (0 in the means)"
    if counts.unknown_predictions:
        told = counted(counts.unknown_predictions, "prediction")
        yield f"{told} for unknown questions (not scored)"
    if counts.unknown_rankings:
        yield f"{counted(counts.unknown_rankings, 'ranking')} of unknown questions (not used)"
