"""Gold answers and a reader's answers become scores per question and means with intervals.

Two families: texts (SQuAD, in percent as the official script prints them) and, where the answers
have offsets, spans (PIAF / Haystack 0.x, fractions 0..1). One denominator for everything: the
questions of the denominator count in every mean, each group of them (all, with an answer, without)
by itself; a question without a prediction scores 0. Nothing is decided and nothing printed here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, check_known, counted, near_names
from retrieval_bench.metrics import METRICS_VERSION
from retrieval_bench.stats.intervals import HIT, SHARE, Scale, mean_intervals, methods
from retrieval_bench_answers import reader_spans, reader_text
from retrieval_bench_answers.answers import Answer, GoldQuestion, Predictions

DENOMINATORS = ("all", "retrieved")
"""Questions that count: every one (end to end), or those whose gold document was retrieved and
those without an answer."""

PERCENT = "percent"
FRACTION = "fraction"

CONVENTIONS = {"text": "squad", "spans": "piaf"}

NOT_DEFINED = "not defined: 0 questions"

INTERVAL = f"over questions: {methods([HIT, SHARE])}"

_METRICS = {**reader_text.METRICS, **reader_spans.METRICS}


@dataclass(frozen=True, slots=True)
class ReaderMean:
    """The mean of one metric.

    Attributes:
        mean: in ``unit``; None when it is not defined.
        ci95: 95 % interval in ``unit``; None below two questions.
        n: the questions over which the mean is taken.
        unit: "percent" or "fraction".
        reason: why ``mean`` is None, else None.
    """

    mean: float | None
    ci95: tuple[float, float] | None
    n: int
    unit: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReaderCounts:
    """Numbers of questions and predictions.

    Attributes:
        gold: questions of the gold file.
        counted: those in the denominator; ``has_answer`` and ``no_answer`` are its parts.
        has_answer: of those, questions with an answer.
        no_answer: of those, questions without one.
        not_retrieved: questions that do not count because their documents were not retrieved.
        without_prediction: questions that count and score 0 because nothing was predicted.
        unknown_predictions: predictions for questions that are not in the gold file.
        unknown_rankings: rankings of questions that are not in the gold file.
        longest_list: answers of the longest list, the k of top-k.
    """

    gold: int
    counted: int
    has_answer: int
    no_answer: int
    not_retrieved: int
    without_prediction: int
    unknown_predictions: int
    unknown_rankings: int
    longest_list: int


@dataclass(frozen=True, slots=True)
class ReaderResult(Documented):
    """Scores of one reader.

    Attributes:
        denominator: "all" or "retrieved".
        question_ids: the questions that count, in the order of the gold.
        columns: names of the values per question: those of the text family and, when the answers
            have offsets, those of the span family.
        per_question: float64 (questions, columns), each value in the unit of its mean.
        metrics: name -> mean, the text family first.
        counts: how many of everything.
        metrics_version: raised by every change that moves a value.
        interval: how the intervals were made.
    """

    KEYS = "conventions metrics_version denominator interval metrics official counts"

    metrics_version: ClassVar[int] = METRICS_VERSION
    interval: ClassVar[str] = INTERVAL
    denominator: str
    question_ids: tuple[str, ...]
    columns: tuple[str, ...]
    per_question: NDArray[np.float64]
    metrics: Mapping[str, ReaderMean]
    counts: ReaderCounts

    @property
    def has_spans(self) -> bool:
        """True if the span family is there."""
        return len(self.columns) > len(reader_text.COLUMNS)

    def mean(self, name: str) -> ReaderMean:
        """The mean of one metric, also by its name in the PIAF text (``reader_top1_fk``).

        Raises:
            ConfigError: there is no such metric, or it needs offsets that the answers do not have.
        """
        metric = self.metrics.get(reader_spans.ALIASES.get(name, name))
        if metric is None:
            raise ConfigError(
                f"reader metric {name!r}",
                kind="unknown-name",
                accepted=near_names(name, self.metrics),
            )
        return metric

    @property
    def official(self) -> dict[str, float | int]:
        """Rows of the official script, in percent, over the questions that count: ``exact``,
        ``f1``, ``total``, with prefixes ``HasAns_`` and ``NoAns_`` where there are such questions.
        """
        rows: dict[str, float | int] = {}
        for prefix in ("", "HasAns_", "NoAns_"):
            exact, f1 = self.metrics[f"{prefix}exact"], self.metrics[f"{prefix}f1"]
            if exact.mean is not None and f1.mean is not None:
                rows |= {f"{prefix}exact": exact.mean, f"{prefix}f1": f1.mean}
                rows |= {f"{prefix}total": exact.n}
        return rows

    @property
    def conventions(self) -> Mapping[str, str]:
        """Whose definitions: of ``text`` those of ``squad``, with offsets of ``spans`` those of
        ``piaf``."""
        return CONVENTIONS if self.has_spans else {"text": CONVENTIONS["text"]}

    def by_question(self) -> dict[str, dict[str, float]]:
        """The values of every question, by column."""
        rows = zip(self.question_ids, self.per_question.tolist(), strict=True)
        return {question: dict(zip(self.columns, row, strict=True)) for question, row in rows}


def score_reader(
    gold: Sequence[GoldQuestion],
    predictions: Predictions,
    denominator: str = "all",
    retrieved: Mapping[str, Collection[str]] | None = None,
) -> ReaderResult:
    """Score a reader's answers.

    Args:
        gold: each question once.
        predictions: its first answer is the text that is scored; spans are scored when every
            answer with a text has one.
        denominator: one of :data:`DENOMINATORS`.
        retrieved: question id -> ids of the documents that were retrieved for it, for
            ``denominator="retrieved"``; a question that is not in it had none.

    Raises:
        ConfigError: another denominator, or ``retrieved`` missing or given in vain.
        DataError: the answers have spans and an answerable question has no gold span.
    """
    _check(denominator, retrieved)
    if predictions.has_spans:
        _check_spans(gold)
    scored = [
        question
        for question in gold
        if retrieved is None or not question.answerable or _is_retrieved(question, retrieved)
    ]
    columns, rows = _scores(scored, predictions)
    by_id = sorted(range(len(scored)), key=lambda at: scored[at].id)
    has_answer = np.array([question.answerable for question in scored], dtype=bool)
    known = {question.id for question in gold}
    given = predictions.answers
    return ReaderResult(
        denominator,
        tuple(question.id for question in scored),
        columns,
        rows,
        # In the order of the ids: the order of the gold file changes no interval.
        _means(columns, rows[by_id], has_answer[by_id]),
        ReaderCounts(
            gold=len(gold),
            counted=len(scored),
            has_answer=int(has_answer.sum()),
            no_answer=int((~has_answer).sum()),
            not_retrieved=len(gold) - len(scored),
            without_prediction=sum(question.id not in given for question in scored),
            unknown_predictions=sum(question not in known for question in given),
            unknown_rankings=sum(question not in known for question in retrieved or ()),
            longest_list=max((len(given.get(question.id, ())) for question in scored), default=0),
        ),
    )


def _check(denominator: str, retrieved: Mapping[str, Collection[str]] | None) -> None:
    check_known(denominator, DENOMINATORS, f"denominator {denominator!r}")
    if denominator == "retrieved" and retrieved is None:
        raise ConfigError(
            "denominator 'retrieved' without a run",
            accepted="the rankings of a retriever, which say whose document was retrieved",
            fix="give the run, or score with denominator 'all'",
        )
    if denominator == "all" and retrieved is not None:
        raise ConfigError(
            "a run with denominator 'all', which counts every question",
            accepted="a run with denominator 'retrieved' only",
            fix="leave out the run, or score with denominator 'retrieved'",
        )


def _check_spans(gold: Sequence[GoldQuestion]) -> None:
    without = [question.id for question in gold if question.answerable and not question.spans]
    if without:
        raise DataError(
            f"{counted(len(without), 'question')} with an answer and without a gold span",
            where=f"such as question {without[0]!r}",
            accepted="a gold span for every answerable question, to score spans",
            fix="read the gold together with these predictions, which says what does not fit",
        )


def _is_retrieved(question: GoldQuestion, retrieved: Mapping[str, Collection[str]]) -> bool:
    ranking = retrieved.get(question.id, ())
    return any(document in ranking for document in question.documents)


def _scores(
    questions: Sequence[GoldQuestion], predictions: Predictions
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    columns: tuple[str, ...] = reader_text.COLUMNS
    if predictions.has_spans:
        columns += reader_spans.SpanScores._fields
    rows = np.empty((len(questions), len(columns)))
    for i, question in enumerate(questions):
        rows[i] = _row(question, predictions.answers.get(question.id, ()), predictions.has_spans)
    rows[:, : len(reader_text.COLUMNS)] *= 100
    return columns, rows


def _row(question: GoldQuestion, answers: Sequence[Answer], has_spans: bool) -> tuple[float, ...]:
    texts = (0.0,) * len(reader_text.COLUMNS)
    if answers:
        texts = reader_text.score(question.texts, answers[0].text)
    if not has_spans:
        return texts
    return texts + reader_spans.score(question.spans, [answer.span for answer in answers])


def _scale(column: str) -> Scale:
    """Return the range of a question's score: graded by F1, else 0 or all; texts in percent."""
    base = SHARE if column.endswith("f1") else HIT
    return base._replace(high=100.0) if column in reader_text.COLUMNS else base


def _means(
    columns: Sequence[str], rows: NDArray[np.float64], has_answer: NDArray[np.bool_]
) -> dict[str, ReaderMean]:
    groups = {"all": rows, "has_answer": rows[has_answer], "no_answer": rows[~has_answer]}
    scales = [_scale(column) for column in columns]
    intervals = {group: mean_intervals(values, scales) for group, values in groups.items()}
    means: dict[str, ReaderMean] = {}
    for name, (column, group) in _METRICS.items():
        if column not in columns:
            continue
        i = columns.index(column)
        n = len(groups[group])
        value = reader_spans.mean(groups[group][:, i].tolist())
        low, high = intervals[group][i].tolist()
        unit = PERCENT if column in reader_text.COLUMNS else FRACTION
        means[name] = ReaderMean(
            value, (low, high) if n >= 2 else None, n, unit, None if n else NOT_DEFINED
        )
    return means
