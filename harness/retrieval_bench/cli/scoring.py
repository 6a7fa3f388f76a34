"""The commands that score what was made elsewhere: ``evaluate``, ``audit`` and ``reader``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, add_format, say, show

if TYPE_CHECKING:
    from retrieval_bench.scoring.scorecard import Truth


def add_evaluate(commands: Any) -> None:
    """Score one run."""
    evaluate = commands.add_parser("evaluate", help="score a run made elsewhere")
    evaluate.add_argument(
        "--run",
        required=True,
        type=Path,
        metavar="FILE",
        help="TREC text, BEIR table, JSON, submission lines, or the folder of a run",
        dest="run_file",
    )
    _add_truth(evaluate)
    evaluate.add_argument(
        "--metrics", nargs="+", action="extend", default=[], metavar="METRIC", help="nDCG@10 R@100"
    )
    evaluate.add_argument(
        "--convention",
        default="trec",
        metavar="NAME",
        help="whose definitions: trec (the default), scienceqa, mala2025, piaf, tutorial, blog",
    )
    evaluate.add_argument("--per-query", action="store_true", help="the value of every query, too")
    evaluate.add_argument(
        "--dev",
        type=Path,
        metavar="FILE",
        help="ids, one a line, of the queries to choose an abstention threshold on "
        "(default: a seeded half)",
    )
    add_format(evaluate)
    evaluate.set_defaults(run=_evaluate)


def add_audit(commands: Any) -> None:
    """Score runs under every convention."""
    audit = commands.add_parser(
        "audit", help="does the order of the systems depend on the convention?"
    )
    audit.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="files or folders of runs")
    _add_truth(audit)
    audit.add_argument(
        "--conventions",
        nargs="+",
        default=[],
        metavar="NAME",
        help="the first is what the others are compared with (default: all, trec first)",
    )
    audit.add_argument(
        "--k",
        type=int,
        default=10,
        help="cut-off where a convention has none of its own (default: 10)",
    )
    add_format(audit)
    audit.set_defaults(run=_audit)


def add_reader(commands: Any) -> None:
    """Score the answers of a reader."""
    reader = commands.add_parser("reader", help="score the answers that a reader extracted")
    reader.add_argument(
        "--gold", required=True, type=Path, metavar="FILE", help="questions, in the SQuAD layout"
    )
    reader.add_argument(
        "--predictions",
        required=True,
        type=Path,
        metavar="FILE",
        help="SQuAD JSON {id: text}, or JSON lines {id, answers: [...]}",
    )
    reader.add_argument(
        "--denominator",
        choices=("all", "retrieved"),
        default="all",
        help="all questions, or those whose document was retrieved (default: all)",
    )
    reader.add_argument(
        "--run",
        type=Path,
        metavar="FILE",
        help="the retriever's run, for --denominator retrieved",
        dest="run_file",
    )
    reader.add_argument(
        "--per-question", action="store_true", help="the values of every question, too"
    )
    add_format(reader)
    reader.set_defaults(run=_reader)


def _add_truth(parser: argparse.ArgumentParser) -> None:
    truth = parser.add_mutually_exclusive_group(required=True)
    truth.add_argument(
        "--qrels", type=Path, metavar="FILE", help="judgements: TREC text, BEIR table or JSON"
    )
    truth.add_argument(
        "--dataset", metavar="NAME_OR_PATH", help="the judgements and queries of a dataset"
    )
    parser.add_argument("--split", help="split of --dataset (default: test)")


def _evaluate(options: argparse.Namespace) -> int:
    from retrieval_bench.metrics.conventions import convention
    from retrieval_bench.reports.tables.score import score_tables
    from retrieval_bench.runs.foreign import read_rankings
    from retrieval_bench.scoring.scorecard import score_file

    rules = convention(options.convention)
    rules.parse(options.metrics)  # a wrong name is told before large files are read
    card = score_file(
        read_rankings(options.run_file),
        _truth(options),
        options.metrics,
        rules,
        dev_ids=None if options.dev is None else read_ids(options.dev),
    )
    show(
        options,
        card.as_dict(per_query=options.per_query),
        lambda: score_tables(card, per_query=options.per_query),
    )
    if not card.matched:
        say("retrieval-bench: nothing could be judged: the judgements know no query of the run")
        return NOT_MEASURED
    if not card.scored.counts.evaluated and card.abstention is None:
        say("retrieval-bench: nothing could be judged: no query counts")
        return NOT_MEASURED
    return OK


def _audit(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.metrics.conventions import CONVENTIONS, convention
    from retrieval_bench.reports.tables.audit import audit_tables
    from retrieval_bench.runs.foreign import read_rankings
    from retrieval_bench.scoring.audit import audit

    if options.k < 1:
        raise ConfigError(f"k {options.k}", where="--k", accepted="1 or more", fix="raise it")
    conventions = [convention(name) for name in options.conventions or CONVENTIONS]
    runs = [read_rankings(path) for path in options.runs]
    truth = _truth(options)
    result = audit(runs, truth.judgements, conventions, options.k, unanswerable=truth.unanswerable)
    show(options, result.as_dict(), lambda: audit_tables(result))
    if all(cell.mean is None for row in result.rows for cell in row.cells):
        say("retrieval-bench: nothing could be judged under any convention")
        return NOT_MEASURED
    return OK


def _reader(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.reports.tables.reader import reader_tables
    from retrieval_bench.runs.foreign import read_rankings
    from retrieval_bench.scoring.answers.answers import read_answers
    from retrieval_bench.scoring.answers.reader import score_reader

    if (options.denominator == "retrieved") != (options.run_file is not None):
        raise ConfigError(
            f"--denominator {options.denominator} "
            + ("without --run" if options.run_file is None else "with --run"),
            accepted="--denominator retrieved --run FILE, or neither",
            fix="give the run of the retriever, or leave both out",
        )
    retrieved = None
    if options.run_file is not None:
        rankings = read_rankings(options.run_file).rankings
        retrieved = {question: ranking.doc_ids for question, ranking in rankings.items()}
    data = read_answers(options.gold, options.predictions)
    result = score_reader(data.gold, data.predictions, options.denominator, retrieved)
    document = result.as_dict(per_question=options.per_question)
    show(
        options,
        document | {"warnings": list(data.warnings)},
        lambda: reader_tables(
            result, options.predictions.name, data.warnings, per_question=options.per_question
        ),
    )
    if not result.counts.counted:
        say("retrieval-bench: nothing could be judged: no question counts")
        return NOT_MEASURED
    return OK


def _truth(options: argparse.Namespace) -> Truth:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data import load_dataset
    from retrieval_bench.scoring.scorecard import Truth

    if options.qrels is None:
        return Truth.of(load_dataset(options.dataset, options.split or "test"))
    if options.qrels.is_dir():
        raise ConfigError(
            f"the folder {options.qrels}",
            where="--qrels",
            accepted="a file of judgements",
            fix=f"give --dataset {options.qrels}, or a file in it",
        )
    if options.split is not None:
        raise ConfigError(
            f"--split {options.split} with --qrels",
            accepted="--split with --dataset: a file of judgements is one split",
            fix="leave --split out, or give --dataset",
        )
    return Truth.of(options.qrels)


def read_ids(path: Path) -> list[str]:
    """One id a line; blank lines do not count."""
    from retrieval_bench.data.faults import reporting
    from retrieval_bench.data.files import lines

    with reporting("the list of queries", path) as faults:
        ids = [text.strip() for _, text in lines(path, faults) if text.strip()]
        if not ids and not faults.count:
            faults.of(path).error(None, "no ids", "ids of queries, one a line")
    return ids
