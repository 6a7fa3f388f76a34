"""The commands that score what was made elsewhere: ``evaluate``, ``audit`` and ``reader``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, output_kept_clean, put, say, show
from retrieval_bench.cli.options import add_format, add_named, add_self_hits, add_several

if TYPE_CHECKING:
    from retrieval_bench.scoring.scorecard import Truth


def add_run(commands: Any, name: str, **texts: str) -> None:
    """Score one run."""
    evaluate = commands.add_parser(name, **texts)
    text = "TREC text, BEIR table, JSON, submission lines, the folder of a run, or - for stdin"
    add_named(evaluate, "run_file", "RUN", text, option="--run", kind=Path)
    _add_truth(evaluate)
    text = "nDCG@10 R@100; also trec_eval's: P.5,10 iprec_at_recall official all_trec set"
    add_several(evaluate, "--metrics", "METRIC", text)
    evaluate.add_argument(
        "--convention",
        default="trec",
        metavar="NAME",
        help="whose definitions: trec (the default), scienceqa, mala2025, piaf, tutorial, blog",
    )
    evaluate.add_argument(
        "--missing",
        choices=("zero", "left-out"),
        help="what a judged query counts that the run lacks (default: as the convention has it; "
        "trec_eval with -c: zero, without: left-out)",
    )
    evaluate.add_argument(
        "--rel", type=int, metavar="GRADE", help="lowest relevant grade (default: 1; trec_eval -l)"
    )
    evaluate.add_argument(
        "--depth", type=int, metavar="N", help="look at the first N hits only (trec_eval -M)"
    )
    evaluate.add_argument(
        "--judged-only",
        action="store_true",
        help="take hits without a judgement out of the rankings (trec_eval -J)",
    )
    evaluate.add_argument(
        "--repeats",
        choices=("first",),
        help="of a document that stands in a ranking more than once keep the best hit alone "
        "(default: refused, or counted again where the convention has it so)",
    )
    evaluate.add_argument(
        "--per-query", action="store_true", help="the worst queries, too; in JSON every query"
    )
    evaluate.add_argument(
        "--dev",
        type=Path,
        metavar="FILE",
        help="ids, one a line, of the queries to choose an abstention threshold on "
        "(default: a seeded half)",
    )
    add_format(evaluate, ("trec",))
    evaluate.set_defaults(run=_evaluate)


def add_audit(commands: Any, name: str, **texts: str) -> None:
    """Score runs under every convention."""
    audit = commands.add_parser(name, **texts)
    audit.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="files or folders of runs")
    _add_truth(audit, needed=False)
    audit.add_argument(
        "--scorer",
        metavar="MODULE:FUNCTION",
        help="instead of runs: metric code, (run, judgements) -> a mean or {query: value}, tried "
        "on inputs that must not win; also file.py:function",
    )
    audit.add_argument(
        "--table",
        type=Path,
        metavar="FILE",
        help="instead of runs: published means (system,metric,mean,n), and which of their "
        "differences so many queries could show",
    )
    text = "0.3 or nDCG@10=0.3: the standard deviation of paired differences, for --table"
    add_several(audit, "--sd", "NUMBER", f"{text} (default: of well-known systems)")
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


def add_reader(commands: Any, name: str, **texts: str) -> None:
    """Score the answers of a reader."""
    reader = commands.add_parser(name, **texts)
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
        "--per-question",
        action="store_true",
        help="the worst questions, too; in JSON every question",
    )
    add_format(reader)
    reader.set_defaults(run=_reader)


def _add_truth(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    truth = parser.add_mutually_exclusive_group(required=needed)
    truth.add_argument(
        "--qrels",
        type=Path,
        metavar="FILE",
        help="judgements: TREC text, BEIR table, JSON, CSV of Quepid or a _rank_eval body; - reads "
        "standard input",
    )
    truth.add_argument(
        "--dataset", metavar="NAME_OR_PATH", help="the judgements and queries of a dataset"
    )
    parser.add_argument("--split", help="split of --dataset (default: test)")
    add_self_hits(parser)


def _evaluate(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.reports.render.trec_eval import trec_lines, trec_rows
    from retrieval_bench.reports.tables.judge.score import score_tables
    from retrieval_bench.runs.imported import tag_of
    from retrieval_bench.scoring.score import evaluate, read_ids
    from retrieval_bench.scoring.scorecard import ScoreDetails

    as_trec_eval = options.format == "trec"
    if str(options.run_file) == str(options.qrels) == "-":
        raise ConfigError(
            "the run and the judgements from standard input",
            accepted="- for one of them",
            fix="save one of them in a file",
        )
    rows = trec_rows(options.metrics) if as_trec_eval else ()
    card = evaluate(
        options.run_file,
        partial(_truth, options),
        metrics=[row.metric for row in rows if row.metric] or options.metrics,
        rules=options.convention,
        dev_ids=None if options.dev is None else read_ids(options.dev),
        missing=None if options.missing is None else options.missing.replace("-", " "),
        also=_also(options),
        repeats=options.repeats,
    )
    if as_trec_eval:
        put(trec_lines(card, rows, tag_of(card.run), per_query=options.per_query))
        return _judged(card.why_nothing)
    show(
        options,
        card.with_queries() if options.per_query else ScoreDetails(card),
        lambda: score_tables(card, per_query=options.per_query),
    )
    return _judged(card.why_nothing)


def _also(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters that every metric gets."""
    from retrieval_bench.core.errors import ConfigError

    numbers = {"rel": options.rel, "depth": options.depth}
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise ConfigError(
                f"--{name} {number}", accepted="a whole number from 1", fix="raise it"
            )
    given = {name: number for name, number in numbers.items() if number is not None}
    return {**given, "judged_only": True} if options.judged_only else given


def _audit(options: argparse.Namespace) -> int:
    if options.scorer is not None or options.table is not None:
        return _audit_other(options)
    _require_runs(options)
    from retrieval_bench.reports.tables.judge.audit import audit_tables
    from retrieval_bench.scoring.score import audit_runs

    truth = partial(_truth, options)
    result = audit_runs(options.runs, truth, conventions=options.conventions, k=options.k)
    show(options, result, lambda: audit_tables(result))
    if all(cell.mean is None for row in result.rows for cell in row.cells):
        say("retrieval-bench: nothing could be judged under any convention")
        return NOT_MEASURED
    return OK


def _require_runs(options: argparse.Namespace) -> None:
    from retrieval_bench.core.errors import ConfigError

    lacking = [
        *([] if options.runs else ["runs"]),
        *([] if options.qrels or options.dataset else ["judgements"]),
    ]
    if lacking:
        raise ConfigError(
            f"no {' and no '.join(lacking)}",
            accepted="RUN ... with --qrels FILE or --dataset NAME; or --scorer, or --table",
            fix="add them",
        )


def _audit_other(options: argparse.Namespace) -> int:
    """An audit of metric code, or of a table."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.reports.tables.judge.cheats import cheat_tables
    from retrieval_bench.reports.tables.judge.published_table import possible_tables
    from retrieval_bench.scoring.cheats import audit_scorer
    from retrieval_bench.scoring.published_table import audit_table

    name = "--table" if options.scorer is None else "--scorer"
    if options.runs or options.qrels or options.dataset or (options.scorer and options.table):
        raise ConfigError(
            f"{name} with runs, judgements or another audit",
            accepted=f"{name} alone",
            fix="leave the rest out",
        )
    if options.scorer is None:
        table = audit_table(options.table, options.sd)
        show(options, table, lambda: possible_tables(table))
        return OK
    with output_kept_clean():
        scorer = audit_scorer(options.scorer)
    show(options, scorer, lambda: cheat_tables(scorer))
    return OK


def _reader(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.tables.judge.reader import reader_tables
    from retrieval_bench.scoring.score import ReaderDetails, score_answers

    scores = score_answers(
        options.gold, options.predictions, denominator=options.denominator, run=options.run_file
    )
    name, full = scores.predictions.name, options.per_question
    show(
        options,
        scores.with_questions() if full else ReaderDetails(scores),
        lambda: reader_tables(scores.result, name, scores.warnings, per_question=full),
    )
    return _judged("" if scores.result.counts.counted else "no question counts")


def _judged(why_nothing: str) -> int:
    if why_nothing:
        say(f"retrieval-bench: nothing could be judged: {why_nothing}")
        return NOT_MEASURED
    return OK


def _truth(options: argparse.Namespace) -> Truth:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data import load_dataset
    from retrieval_bench.scoring.scorecard import Truth

    if options.qrels is None:
        split = options.split or "test"
        data = load_dataset(options.dataset, split, self_hits=options.self_hits)
        return Truth.needed(data)
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
    return Truth.of(options.qrels, self_hits=options.self_hits)
