"""The command ``history``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import NOT_MEASURED, OK, put, say, show
from retrieval_bench.cli.options import HOW_MANY, command, values

if TYPE_CHECKING:
    from retrieval_bench_regress.history.history import History

DEFAULT = Path("results") / "history.svg"
LAST = 30
BENCHMARK = "github-action-benchmark"


_HISTORY = f"""
retriever, --retriever RETRIEVER  its runs, and duets on it (default: all)
--dataset NAME_OR_FOLDER  runs on it (default: all)
--metric METRIC ...  to show (default: the first of the newest run)
--runs DIR ...  folders that hold runs or duets, such as artifacts of a CI (default: results/runs
    and results/duets)
--last N [{LAST}]  the newest of each: a number or `all` (default: {LAST})
--out FILE  the picture, replaced when it is there (default: {DEFAULT.as_posix()})
--no-pictures [pictures]  draw none
--what {{latency,quality}}  figures for --format {BENCHMARK}, which takes one direction in a file
"""


@command(_HISTORY, BENCHMARK, last=HOW_MANY)
def run_history(options: argparse.Namespace) -> int:
    """Show saved runs and duets over time and revisions."""
    from retrieval_bench_regress.history.history import history
    from retrieval_bench_regress.tables.history import history_tables

    _check_together(options)
    result = history(
        **values(options, "retriever dataset last"), metrics=options.metric, folders=options.runs
    )
    if options.format == BENCHMARK:
        return _benchmark(options, result)
    notes = _draw(options, result)
    if result.subjects or options.format == "json":
        show(options, result, lambda: history_tables(result.subjects, result.records, notes))
    return OK if result.subjects else _nothing_there(result)


def _check_together(options: argparse.Namespace) -> None:
    """Raises:
    ConfigError: an option that would do nothing, or one that is missing.
    """
    from retrieval_bench.core.errors import ConfigError

    benchmark = options.format == BENCHMARK
    if benchmark != (options.what is not None):
        both = f"--format {BENCHMARK}", "--what"
        raise ConfigError(
            " without ".join(both if benchmark else reversed(both)),
            accepted="both or neither: a file of the action has one direction, latency for its "
            "customSmallerIsBetter or quality for its customBiggerIsBetter",
            fix="say which, and make two files for both; or leave both out",
        )
    if options.out is not None and (benchmark or not options.pictures):
        raise ConfigError(
            "--out, and no picture to write",
            accepted=f"neither --no-pictures nor --format {BENCHMARK} with it",
            fix="leave one out; what is printed goes to a file with >",
        )


def _draw(options: argparse.Namespace, result: History) -> list[str]:
    """Write the picture; gives where it is, or why there is none.

    Raises:
        HarnessError: it was asked for by name, and cannot be made.
    """
    from retrieval_bench.core.errors import HarnessError
    from retrieval_bench.reports.file import check_place, write_page
    from retrieval_bench_pictures.draw import svg
    from retrieval_bench_regress.pictures.history import history_picture

    several = len(result.subjects) > 1 and options.out is None
    if not options.pictures or not result.subjects or several:
        return []
    path, subject = options.out or DEFAULT, result.subject
    try:
        check_place(path, "picture")
        write_page(path, svg(history_picture(subject)), "picture")
    except HarnessError as problem:
        if options.out is not None:
            raise
        return [f"no picture: {problem.line}"]
    return [f"picture: {path}"]


def _benchmark(options: argparse.Namespace, result: History) -> int:
    """Print what the action reads."""
    from retrieval_bench.runs.records import to_json
    from retrieval_bench_regress.tables.github_benchmark import benchmark_entries, newest

    entries = benchmark_entries(result.subjects, options.what)
    put(to_json(entries) + "\n")
    if entries:
        for subject, run in newest(result.subjects, options.what):
            say(f"retrieval-bench: {subject.retriever} on {subject.dataset}: {run.id}, "
                f"revision {run.revision}")  # fmt: skip
        return OK
    if any(subject.newest for subject in result.subjects):
        say(f"retrieval-bench: the newest run has no {options.what} to show")
        return NOT_MEASURED
    return _nothing_there(result)


def _nothing_there(result: History) -> int:
    say("retrieval-bench: " + "\n".join(result.nothing_there))
    return NOT_MEASURED
