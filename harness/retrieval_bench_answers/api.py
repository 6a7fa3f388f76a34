"""Functions for Python users: answers of a reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.api.results import Result

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench_answers.reader_scores import ReaderScores


def reader(
    gold: str | Path,
    predictions: str | Path,
    *,
    denominator: str = "all",
    run: str | Path | None = None,
) -> Result[ReaderScores]:
    """Score the answers that a reader extracted.

    Args:
        gold: file of questions, in the SQuAD layout.
        predictions: SQuAD JSON ``{id: text}``, or JSON lines ``{id, answers: [...]}``.
        denominator: "all" questions, or those whose document was "retrieved".
        run: the retriever's, for "retrieved".

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    from retrieval_bench_answers.reader_scores import score_answers
    from retrieval_bench_answers.tables.reader import reader_tables

    value = score_answers(gold, predictions, denominator=denominator, run=run)
    name = value.predictions.name

    def document(*, per_question: bool = False) -> dict[str, Any]:
        return (value.with_questions() if per_question else value).as_dict()

    return Result(value, document, lambda: reader_tables(value.result, name, value.warnings))
