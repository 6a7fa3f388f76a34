"""How runs are measured, drawn and judged, for the commands that do it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from retrieval_bench.capabilities import offered
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
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.runs.run import Run


def measured(
    experiments: Sequence[Experiment],
    options: argparse.Namespace,
    show_runs: Callable[[Sequence[Finished]], Any],
) -> list[Finished]:
    """The runs of ``experiments``, with texts; what was measured but cannot be saved is shown at
    least."""
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.experiment.several import run_each
    from retrieval_bench.reports.finish import finish, keep_text

    done: list[Finished] = []
    data = {one.dataset.fingerprint: one.dataset for one in experiments}
    try:
        with working(options) as bars:
            for runs in run_each(experiments, bars):
                finished = finish(runs, data)
                with as_it_can_be(options, "text"):
                    keep_text(finished)
                done += finished
    except RecordError as problem:
        if problem.runs:
            show_runs(finish(problem.runs, data))
        raise
    return done


def draw(runs: Sequence[Run], options: argparse.Namespace) -> None:
    """Draw pictures into the folders of ``runs``, unless that is switched off: last, once figures
    are saved and printed."""
    if options.pictures and (keep_pictures := offered("keep pictures of runs")):
        with as_it_can_be(options, "pictures"):
            keep_pictures(runs)


@contextmanager
def as_it_can_be(options: argparse.Namespace, what: str) -> Iterator[None]:
    """Say on one line why there is no text or picture: the figures that it would show are there."""
    from retrieval_bench.core.errors import (
        BrokenDependencyError,
        HarnessError,
        MissingDependencyError,
    )

    try:
        yield
    except HarnessError as problem:
        chosen = isinstance(problem, MissingDependencyError)  # a light installation
        if options.verbose or not chosen or isinstance(problem, BrokenDependencyError):
            say(f"retrieval-bench: no {what}: {problem.line}")


def dry_run(experiments: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Say what a run would do, once each retriever has answered one query."""
    from retrieval_bench.experiment.planned_run import Plans
    from retrieval_bench.experiment.several import planned
    from retrieval_bench.reports.tables.measure.run import plan_table

    with working(options) as bars:
        plans = planned(experiments, calls=not options.no_calls, reporter=bars)
    document = plans[0] if len(plans) == 1 else Plans(plans)
    show(options, document, lambda: [plan_table(plan) for plan in plans])
    return OK


def exit_code(runs: Sequence[Run], *, no_leaks: bool = False) -> int:
    """Of a command that measured ``runs``; says what is wrong with them.

    Args:
        no_leaks: a hit outside of its query's filter is a failure.
    """
    if any(run.interrupted for run in runs):
        say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    unjudged = [run for run in runs if not run.answered]
    for run in unjudged:
        what = "nothing could be judged of", "no evaluated query answered"
        what = what if run.judged else ("nothing could be measured of", "no query was answered")
        say(f"retrieval-bench: {what[0]} {run.name}: {what[1]}")
    if unjudged:
        return NOT_MEASURED
    return max([_leak_code(run) for run in runs], default=OK) if no_leaks else OK


def _leak_code(run: Run) -> int:
    """Finding of ``--no-leaks`` on a run."""
    found = run.summary.filters
    if found is None or found.leaked is None:
        why = "no query has a filter" if found is None else "there are no documents to tell by"
        say(f"retrieval-bench: --no-leaks shows nothing of {run.name}: {why}")
        return NOT_MEASURED
    if found.leaked:
        say(f"retrieval-bench: {run.name} leaked {found.leaked:,} hits: --no-leaks")
    return REGRESSION if found.leaked else OK
