"""The commands that score what was made elsewhere: ``score run`` and ``score audit``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, output_kept_clean, put, say, show
from retrieval_bench.cli.options import SELF_HITS, command, refuse

if TYPE_CHECKING:
    from retrieval_bench_score.scorecard import Truth


_TRUTH = f"""
| --qrels FILE  judgements: TREC text, BEIR table, JSON, CSV of Quepid or a _rank_eval body; -
    reads standard input
| --dataset NAME_OR_PATH  the judgements and queries of a dataset
--split SPLIT  split of --dataset (default: test)
{SELF_HITS}
"""
_RUN = f"""
run_file, --run RUN [needed]  TREC text, BEIR table, JSON, submission lines, the folder of a run,
    or - for stdin
{_TRUTH.replace("|", "!")}
--metrics METRIC ...  nDCG@10 R@100; also trec_eval's: P.5,10 iprec_at_recall official all_trec set
--convention NAME [trec]  whose definitions: trec (the default), scienceqa, mala2025, piaf,
    tutorial, blog
--missing {{zero,left-out}}  what a judged query counts that the run lacks (default: as the
    convention has it; trec_eval with -c: zero, without: left-out)
--rel GRADE  lowest relevant grade (default: 1; trec_eval -l)
--depth N  look at the first N hits only (trec_eval -M)
--judged-only  take hits without a judgement out of the rankings (trec_eval -J)
--repeats {{first}}  of a document that stands in a ranking more than once keep the best hit alone
    (default: refused, or counted again where the convention has it so)
--tail R  of each recall also the share of queries that reach this, such as 0.9
--per-query  the worst queries, too; in JSON every query
--dev FILE  ids, one a line, of the queries to choose an abstention threshold on (default: a seeded
    half)
"""
_AUDIT = f"""
runs RUN *  files or folders of runs
{_TRUTH}
--scorer MODULE:FUNCTION  instead of runs: metric code, (run, judgements) -> a mean or
    {{query: value}}, tried on inputs that must not win; also file.py:function
--table FILE  instead of runs: published means (system,metric,mean,n), and which of their
    differences so many queries could show
--sd NUMBER ...  0.3 or nDCG@10=0.3: the standard deviation of paired differences, for --table
    (default: of well-known systems)
--conventions NAME + []  the first is what the others are compared with (default: all, trec first)
--k K [10]  cut-off where a convention has none of its own (default: 10)
"""


@command(_RUN, "trec", run_file={"type": Path})
def run_run(options: argparse.Namespace) -> int:
    """Score one run."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.runs.records import TREC_RUN
    from retrieval_bench_score.runs.imported import tag_of
    from retrieval_bench_score.score import evaluate, read_ids
    from retrieval_bench_score.scorecard import ScoreDetails
    from retrieval_bench_score.tables.score import score_brief, score_tables
    from retrieval_bench_score.trec_eval import trec_lines, trec_rows

    as_trec_eval = options.format == "trec"
    if str(options.run_file) == str(options.qrels) == "-":
        raise ConfigError(
            "the run and the judgements from standard input",
            accepted="- for one of them",
            fix="save one of them in a file",
        )
    if as_trec_eval:
        refuse(
            options, "tail", "with --format trec", accepted="one of the two", fix="leave one out"
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
    if options.tail is not None:
        card = replace(card, scored=card.scored.with_tail(options.tail))
    if as_trec_eval:
        if not card.why_nothing:
            file = Path(card.run)
            tag = tag_of(file / TREC_RUN if file.is_dir() else file)
            put(trec_lines(card, rows, tag, per_query=options.per_query))
        return judged(card.why_nothing)
    show(
        options,
        card.with_queries() if options.per_query else ScoreDetails(card),
        lambda: score_tables(card, per_query=options.per_query),
        lambda: score_brief(card, per_query=options.per_query),
    )
    return judged(card.why_nothing)


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


@command(_AUDIT, runs={"type": Path})
def run_audit(options: argparse.Namespace) -> int:
    """Score runs under every convention."""
    if options.scorer is not None or options.table is not None:
        return _audit_other(options)
    refuse(options, "sd", "without --table", accepted="--sd with --table", fix="leave it out")
    _require_runs(options)
    from retrieval_bench_score.score import audit_runs
    from retrieval_bench_score.tables.audit import audit_brief, audit_tables

    truth = partial(_truth, options)
    result = audit_runs(options.runs, truth, conventions=options.conventions, k=options.k)
    show(options, result, lambda: audit_tables(result), lambda: audit_brief(result))
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
    from retrieval_bench_score.cheats import audit_scorer
    from retrieval_bench_score.published_table import audit_table
    from retrieval_bench_score.tables.audit import cheat_tables, possible_tables

    name = "--table" if options.scorer is None else "--scorer"
    if options.runs or options.qrels or options.dataset or (options.scorer and options.table):
        raise ConfigError(
            f"{name} with runs, judgements or another audit",
            accepted=f"{name} alone",
            fix="leave the rest out",
        )
    others = "k conventions split self_hits" + (" sd" if options.table is None else "")
    refuse(options, others, f"with {name}", accepted=f"{name} alone", fix="leave the rest out")
    if options.scorer is None:
        table = audit_table(options.table, options.sd)
        show(options, table, lambda: possible_tables(table))
        return OK
    with output_kept_clean():
        scorer = audit_scorer(options.scorer)
    show(options, scorer, lambda: cheat_tables(scorer))
    return OK


def judged(why_nothing: str) -> int:
    """The exit code, after a word on why nothing could be judged, if that is so."""
    if why_nothing:
        say(f"retrieval-bench: nothing could be judged: {why_nothing}")
        return NOT_MEASURED
    return OK


def _truth(options: argparse.Namespace) -> Truth:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data import load_dataset
    from retrieval_bench_score.scorecard import Truth

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
