"""The commands ``baseline`` and ``regress``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, say, show, working
from retrieval_bench.cli.options import LIMITS, RETRIEVER, command, dataset, refuse
from retrieval_bench_duet.commands.revisions import ENVIRONMENTS, JUNIT, setup_of, write_junit

if TYPE_CHECKING:
    from retrieval_bench_regress.gate import Regression
    from retrieval_bench_regress.regress import Request


_SUBJECT = f"""
{RETRIEVER}
{dataset()}
--policy FILE  limits; the words quality: none on latency, improvement: rises must be shown
    (default: configs/policy.yaml)
--baselines DIR  folder of the baselines (default: results/baselines)
"""
_BASELINE = f"""
{_SUBJECT}
--metrics METRIC ...  further ones than those of the policy and the usual ones
--min-calls N  measured calls in all; more when they are short (default: 400)
{LIMITS}
--force  replace a baseline, and say what that changes
"""
_REGRESS = f"""
{_SUBJECT}
--duet {{suspicion,always,never}} [suspicion]  measure the baseline's revision and today's files
    side by side: when stored times look slower (default), always, never
+
--accept  replace the baseline by what is measured now, and say what that changes
--no-text [texts]  ids only: no texts of queries, where others read the log
{JUNIT}
{ENVIRONMENTS}
"""


@command(_BASELINE)
def run_baseline(options: argparse.Namespace) -> int:
    """Keep what is measured now, to be compared with later."""
    usual = {
        "min_calls": options.min_calls,
        "timeout_s": options.timeout,
        "threads": options.threads,
    }
    given = {name: value for name, value in usual.items() if value is not None}
    return _made(options, metrics=options.metrics, protocol=given, force=options.force)


@command(_REGRESS)
def run_regress(options: argparse.Namespace) -> int:
    """Say whether it got worse."""
    from retrieval_bench_regress.regress import regress

    if options.accept:
        refuse(
            options,
            "duet extras setup junit",
            "with --accept",
            accepted="--accept alone: what is accepted is not judged",
            fix="leave one out",
        )
        return _made(options, as_before=True)
    with working(options) as bars:
        result = regress(
            request_of(options), duet=options.duet, setup=setup_of(options), reporter=bars
        )
    return judged(options, result)


def judged(options: argparse.Namespace, result: Regression) -> int:
    """Print what was judged, and give the exit code."""
    from retrieval_bench_regress.tables.regress import regress_tables

    for sentence in result.not_kept:
        say(f"retrieval-bench: {sentence}")
    show(options, result, lambda: regress_tables(result, texts=options.texts))
    write_junit(options, f"regress {result.subject['retriever']}", result.gates)
    if result.interrupted:
        say("retrieval-bench: interrupted: latency was not judged")
    return result.code


def _made(options: argparse.Namespace, **given: Any) -> int:
    """Make a baseline and show what it changes."""
    from retrieval_bench_regress.regress import make_baseline
    from retrieval_bench_regress.storing import NothingToKeepError
    from retrieval_bench_regress.tables.regress import baseline_tables

    try:
        with working(options) as bars:
            result = make_baseline(request_of(options), reporter=bars, **given)
    except NothingToKeepError as problem:
        say(f"retrieval-bench: {problem.given}")
        for warning in problem.warnings:
            say(f"  warning: {warning}")
        return NOT_MEASURED
    for sentence in result.not_kept:
        say(f"retrieval-bench: {sentence}")
    show(options, result, lambda: baseline_tables(result.as_dict()))
    return OK


def request_of(options: argparse.Namespace) -> Request:
    """The subject that the options name."""
    from retrieval_bench_regress.regress import Request

    return Request(
        options.retriever,
        options.dataset,
        options.split,
        options.k,
        options.set,
        options.policy,
        options.baselines,
    )
