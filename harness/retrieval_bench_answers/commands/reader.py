"""The command ``score reader``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import show
from retrieval_bench.cli.options import command
from retrieval_bench_score.commands.score import judged

_READER = """
--gold FILE [required]  questions, in the SQuAD layout
--predictions FILE [required]  SQuAD JSON {id: text}, or JSON lines {id, answers: [...]}
--denominator {all,retrieved} [all]  all questions, or those whose document was retrieved (default:
    all)
--run FILE  the retriever's run, for --denominator retrieved
--per-question  the worst questions, too; in JSON every question
"""


@command(_READER, run={"dest": "run_file"})
def run_reader(options: argparse.Namespace) -> int:
    """Score the answers of a reader."""
    from retrieval_bench_answers.reader_scores import ReaderDetails, score_answers
    from retrieval_bench_answers.tables.reader import reader_tables

    scores = score_answers(
        options.gold, options.predictions, denominator=options.denominator, run=options.run_file
    )
    name, full = scores.predictions.name, options.per_question
    show(
        options,
        scores.with_questions() if full else ReaderDetails(scores),
        lambda: reader_tables(scores.result, name, scores.warnings, per_question=full),
    )
    return judged("" if scores.result.counts.counted else "no question counts")
