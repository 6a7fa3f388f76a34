"""How runs are measured, drawn and judged, for the commands that do it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    REGRESSION,
    say,
    show,
    working,
)

if TYPE_CHECKING:
    from retrieval_bench.core.types import Dataset
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.runs.run import Run


def measured(
    experiments: Sequence[Experiment],
    options: argparse.Namespace,
    print_runs: Callable[[Sequence[Run]], Any],
) -> list[Run]:
    """The runs of ``experiments``, with pictures; what was measured but cannot be saved is shown at
    least."""
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.experiment.several import run_each

    runs: list[Run] = []
    data = {one.dataset.fingerprint: one.dataset for one in experiments}
    try:
        with working(options) as bars:
            for finished in run_each(experiments, bars):
                _complete(finished, data, options)
                runs += finished
    except RecordError as problem:
        if problem.runs:
            print_runs(problem.runs)
        raise
    return runs


def _complete(
    runs: Sequence[Run], data: Mapping[str, Dataset], options: argparse.Namespace
) -> None:
    """What people read of saved runs: all tables as text, and pictures. Whatever prevents them, the
    figures are there."""
    from retrieval_bench.comparison.explain.ledger import ledger_of
    from retrieval_bench.comparison.explain.legs import best_leg
    from retrieval_bench.core.errors import HarnessError, MissingDependencyError
    from retrieval_bench.reports.pictures.of_runs import run_pictures, side_by_side
    from retrieval_bench.reports.render import terminal
    from retrieval_bench.reports.tables.measure.run import run_tables
    from retrieval_bench.runs.records import PICTURES, TEXT, add_files

    saved = [run for run in runs if run.folder is not None]
    try:
        for run in saved:
            leg = parts = None
            if run.asked is None:
                of = data[run.summary.dataset.fingerprint]
                leg, parts = best_leg(run, of), ledger_of(run, of)
            add_files(Path(run.folder or ""), {TEXT: terminal.plain(run_tables(run, leg, parts))})
        if not options.pictures:
            return
        together = side_by_side([run.name for run in runs], runs) if len(runs) > 1 else ""
        for run in saved:
            pictures = run_pictures(run)
            if together:
                pictures["side-by-side.svg"] = together
            svg = {f"{PICTURES}/{name}": text for name, text in pictures.items()}
            if svg:
                add_files(Path(run.folder or ""), svg)
    except MissingDependencyError as problem:
        if options.verbose:
            say(f"retrieval-bench: no pictures: {problem.given}; to get them: {problem.fix}")
    except HarnessError as problem:
        say(f"retrieval-bench: no pictures: {problem.render()}")


def dry_run(experiments: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Say what a run would do, once each retriever has answered one query."""
    from retrieval_bench.experiment.doctor.probing import planned
    from retrieval_bench.reports.tables.measure.run import plan_table

    with working(options) as bars:
        plans = planned(experiments, calls=not options.no_calls, reporter=bars)
    document = plans[0] if len(plans) == 1 else {"experiments": plans}
    show(options, document, lambda: [plan_table(plan) for plan in plans])
    return OK


def exit_code(runs: Sequence[Run], *, no_leaks: bool = False) -> int:
    """Of a command that measured ``runs``; says what is wrong with them.

    Args:
        no_leaks: a hit outside of its query's filter is a failure.
    """
    from retrieval_bench.core.notices import Code, says

    if any(run.interrupted for run in runs):
        say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    foreign = [run for run in runs if says(run.summary.warnings, Code.UNKNOWN_IDS)]
    for run in foreign:
        say(f"retrieval-bench: nothing could be judged of {run.name}: no id is in the corpus")
    unjudged = [run for run in runs if not run.answered]
    for run in unjudged:
        what = "nothing could be judged of", "no evaluated query answered"
        what = what if run.judged else ("nothing could be measured of", "no query was answered")
        say(f"retrieval-bench: {what[0]} {run.name}: {what[1]}")
    if unjudged or foreign:
        return NOT_MEASURED
    return max([_leak_code(run) for run in runs], default=OK) if no_leaks else OK


def _leak_code(run: Run) -> int:
    """What ``--no-leaks`` says of a run."""
    found = run.summary.filters
    if found is None or found.leaked is None:
        why = "no query has a filter" if found is None else "there are no documents to tell by"
        say(f"retrieval-bench: --no-leaks shows nothing of {run.name}: {why}")
        return NOT_MEASURED
    if found.leaked:
        say(f"retrieval-bench: {run.name} leaked {found.leaked:,} hits: --no-leaks")
    return REGRESSION if found.leaked else OK
