"""The commands that turn a retriever's hits into answers: ``submit`` and ``qa``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, say, show, working
from retrieval_bench.cli.options import RETRIEVER, command, dataset
from retrieval_bench.core.errors import RecordError

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench_answers.contract import ReadingInterrupted


_SUBMIT = f"""
{RETRIEVER}
{dataset("science-ko-mini", k=3)}
--messages RULE [last]  what is searched of a conversation: last (the default), joined, or
    module:function
--threshold SCORE  a lower top score returns nothing: a number, auto, none (default: auto where it
    can be chosen)
--dev FILE  ids, one a line, of the queries to choose the threshold on (default: a seeded half)
--out FILE  the new file, JSON lines
"""
_QA = f"""
{RETRIEVER}
{dataset(None, k=5)}
--reader READER  module:function or Class, folder or hub name of a question-answering model, or a
    file of predictions (default: none, the retriever alone)
--reader-set KEY=VALUE ...  parameters of the reader
--answers N [5]  answers per question (default: 5)
--out FILE  new file for the answers, JSON lines
"""


def _searched_once(options: argparse.Namespace, *, every_query: bool = False) -> Experiment:
    """Prepare the one search that the options ask for."""
    from retrieval_bench.experiment.preparation import prepare
    from retrieval_bench.measure.protocol import Protocol

    return prepare(
        [options.retriever],
        options.dataset,
        split=options.split,
        k=options.k,
        overrides=options.set,
        protocol=Protocol(rounds=1),
        save=False,
        every_query=every_query,
    )


@command(_SUBMIT)
def run_submit(options: argparse.Namespace) -> int:
    """Write a submission to the Korean competition."""
    from dataclasses import replace

    from retrieval_bench_answers.jsonl import check_new_file
    from retrieval_bench_answers.standalone import load_rule
    from retrieval_bench_answers.submission import read_threshold, submit
    from retrieval_bench_answers.tables.submission import submission_brief, submission_tables
    from retrieval_bench_score.score import read_ids

    threshold = read_threshold(options.threshold)
    dev_ids = None if options.dev is None else read_ids(options.dev)
    if options.out is not None:
        check_new_file(options.out)
    with working(options) as bars:
        rule = load_rule(options.messages)
        experiment = _searched_once(options, every_query=True)
        result = submit(
            experiment, messages=rule, threshold=threshold, dev_ids=dev_ids, reporter=bars
        )
    with _shown_in_any_case(result, options.out) as out:
        show(
            options,
            replace(result, out=out),
            lambda: submission_tables(result, out),
            lambda: submission_brief(result, out),
        )
    if result.counts.failed == result.counts.lines:
        say("retrieval-bench: every search failed: the submission holds empty lists only")
        return NOT_MEASURED
    return OK


@command(_QA)
def run_qa(options: argparse.Namespace) -> int:
    """Score a retriever and a reader, end to end."""
    from dataclasses import replace

    from retrieval_bench.core.config import inline_config
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_answers.contract import ReadingInterrupted, reader_from
    from retrieval_bench_answers.jsonl import check_new_file
    from retrieval_bench_answers.question_answering import answer_questions
    from retrieval_bench_answers.tables.qa import qa_brief, qa_tables

    if options.reader is None and (options.reader_set or options.out is not None):
        given = "--reader-set" if options.reader_set else "--out"
        raise ConfigError(f"{given} without --reader", fix="name a reader, or leave it out")
    reader = None
    if options.out is not None:
        check_new_file(options.out)
    with working(options) as bars:
        if options.reader is not None:
            params = inline_config({"target": options.reader}, options.reader_set).params
            reader = reader_from(options.reader, params)
        experiment = _searched_once(options)
        name = "" if options.reader is None else _reader_name(options.reader)
        try:
            result = answer_questions(experiment, reader, options.answers, name=name, reporter=bars)
        except ReadingInterrupted as stopped:
            return _kept(stopped, options.out)
    with _shown_in_any_case(result, options.out) as out:
        shown = replace(result, out=out)
        show(options, shown, lambda: qa_tables(result, out), lambda: qa_brief(result, out))
    n = len(experiment.queries)
    if n in (result.failed_searches, result.failed_readings):
        say("retrieval-bench: nothing could be judged: every search or every reading failed")
        return NOT_MEASURED
    return OK


@contextmanager
def _shown_in_any_case(result: Any, out: Path | None) -> Iterator[str | None]:
    """Write a result, and let the block show it with the file, or without where that fails.

    Raises:
        RecordError: it cannot be written; after the block.
    """
    problem = None
    try:
        if out is not None:
            result.write(out)
    except RecordError as refused:
        problem = refused
    yield None if out is None or problem else str(out)
    if problem:
        raise problem


def _kept(stopped: ReadingInterrupted, out: Path | None) -> int:
    """Save the answers of an interrupted reader where a file was asked for, and say so."""
    from retrieval_bench_answers.question_answering import write_answers

    sentence = f"interrupted: {len(stopped.answers):,} of {stopped.n:,} questions were answered"
    if out is None or not stopped.answers:
        hint = "" if out else " (with --out FILE the answers would be)"
        say(f"retrieval-bench: {sentence}; nothing was saved{hint}")
        return INTERRUPTED
    names = (f"{out.stem}.partial{'' if at == 1 else f'-{at}'}{out.suffix}" for at in count(1))
    path = next(path for path in map(out.with_name, names) if not path.exists())
    write_answers(path, stopped.answers)
    say(f"retrieval-bench: {sentence}, nothing was scored; the answers: {path}")
    return INTERRUPTED


def _reader_name(target: str) -> str:
    path = Path(target)
    return path.name if path.exists() else target
