"""``score reader`` from words to figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_answers.answers import read_answers
from retrieval_bench_answers.reader import ReaderResult, score_reader
from retrieval_bench_score.runs.imported import read_rankings


@dataclass(frozen=True, slots=True)
class ReaderScores(Documented):
    """Figures of a file of answers.

    Attributes:
        result: counts and means.
        predictions: the file.
        warnings: of both files.
    """

    KEYS = "*result warnings"

    result: ReaderResult
    predictions: Path
    warnings: tuple[str, ...]

    def with_questions(self) -> ReaderDetails:
        """The same with the values of every question."""
        return ReaderDetails(self, self.result.by_question())


@dataclass(frozen=True, slots=True)
class ReaderDetails(Documented):
    """Document of ``score reader --format json``.

    Attributes:
        scores: of a file of answers.
        per_question: for each question ``exact``, ``f1``, ``char_f1`` and, with offsets,
            ``top1_accuracy``, ``topk_accuracy``, ``top1_em``, ``topk_em``, ``top1_f1``, ``topk_f1``
            and ``topk_mean_f1``; None where they were not asked for.
    """

    KEYS = "*scores.result per_question? warnings=scores.warnings"

    scores: ReaderScores
    per_question: Mapping[str, Mapping[str, float]] | None = None


def score_answers(
    gold: str | Path,
    predictions: str | Path,
    *,
    denominator: str = "all",
    run: str | Path | None = None,
) -> ReaderScores:
    """Score the answers that a reader extracted.

    Args:
        gold: questions, in the SQuAD layout.
        predictions: SQuAD JSON, or JSON lines.
        denominator: "all" questions, or those whose document was "retrieved".
        run: of the retriever, for "retrieved".

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    if (denominator == "retrieved") != (run is not None):
        raise ConfigError(
            f"--denominator {denominator} " + ("without --run" if run is None else "with --run"),
            accepted="--denominator retrieved --run FILE, or neither",
            fix="give the run of the retriever, or leave both out",
        )
    retrieved = None
    if run is not None:
        rankings = read_rankings(run).rankings
        retrieved = {question: ranking.doc_ids for question, ranking in rankings.items()}
    data = read_answers(gold, predictions)
    result = score_reader(data.gold, data.predictions, denominator, retrieved)
    return ReaderScores(result, Path(predictions), data.warnings)
