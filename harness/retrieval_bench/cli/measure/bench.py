"""The command ``bench``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    output_kept_clean,
    show,
    working,
)
from retrieval_bench.cli.measure.common import draw, dry_run, exit_code, measured
from retrieval_bench.cli.options import (
    MEASURING,
    RETRIEVER,
    command,
    dataset,
    protocol_of,
    refuse,
    values,
)

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.experiment.fresh.cold import ColdStart
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.runs.run import Run


_BENCH = f"""
{RETRIEVER}
--out DIR  folder of the run, new or empty (default: a new one in results/runs)
--protocol {{own,tutorial}} [own]  tutorial: the latency of the usual notebook, to see how far it is
    off; not saved
--cold N ?  then start N fresh processes (5) and time each step until the first answer
+
options:
{dataset()}
{MEASURING}
"""


@command(_BENCH, cold={"const": 5})
def run_bench(options: argparse.Namespace) -> int:
    """Measure one retriever on one dataset."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.reports import frames
    from retrieval_bench.reports.tables.measure.cold import cold_tables

    if options.cold is not None and options.cold < 1:
        raise ConfigError(
            f"--cold {options.cold}",
            accepted="a number of processes, at least 1",
            fix="leave the number out for 5",
        )
    _check_together(options)
    experiment = prepared(options, save=not options.dry_run and options.protocol == "own")
    if options.cold is not None and experiment.candidates[0].capabilities.replays:
        experiment.close()
        raise ConfigError(
            f"--cold {options.cold} with a retriever that reads its answers from a saved run",
            accepted="a retriever that searches",
            fix="measure the system that made the run, or leave --cold out",
        )
    if options.dry_run:
        return dry_run([experiment], options)
    if options.protocol == "tutorial":
        return _tutorial(experiment, options)

    def show_runs(done: Sequence[Finished], start: ColdStart | None = None) -> None:
        (one,), cold = done, [] if start is None else cold_tables(start)
        show(
            options,
            replace(one, cold=start),
            lambda: [*one.tables(), *cold],
            lambda: [one.brief(), *cold],
            (lambda: list(frames.means([(one.run.name, one.run)]))) if start is None else None,
        )

    done = measured([experiment], options, show_runs)
    runs = [one.run for one in done]
    if options.cold is None:
        show_runs(done)
        draw(runs, options)
        return exit_code(runs, no_leaks=options.no_leaks)
    try:
        start = _cold(options, runs[0])
    except BaseException:  # also Ctrl-C: what was measured is there
        show_runs(done)
        raise
    show_runs(done, start)
    draw(runs, options)
    return INTERRUPTED if start.interrupted else exit_code(runs, no_leaks=options.no_leaks)


def prepared(options: argparse.Namespace, *, save: bool) -> Experiment:
    """The experiment that the options of ``bench`` describe."""
    from retrieval_bench.experiment.preparation import prepare

    with output_kept_clean():
        return prepare(
            [options.retriever],
            options.dataset,
            **values(options, "split language self_hits k metrics out"),
            overrides=options.set,
            protocol=protocol_of(options),
            save=save,
        )


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options of which one would silently do nothing.

    Raises:
        ConfigError: they do not go together.
    """
    from retrieval_bench.core.errors import ConfigError

    if options.cold is not None and options.max_calls is not None:
        raise ConfigError(
            "--cold with --max-calls",
            accepted="one of them: every fresh process makes calls that no limit counts",
            fix="leave one out",
        )
    if options.protocol == "tutorial":
        refuse(
            options,
            "cold out rounds min_calls max_minutes max_cost warm_up launches percentiles collector "
            "profile",
            "with --protocol tutorial",
            accepted="neither: the notebook has one pass, its own figures, and saves nothing",
            fix="leave them out, or leave --protocol out",
        )


def _tutorial(experiment: Any, options: argparse.Namespace) -> int:
    from retrieval_bench.measure.tutorial import Tutorial
    from retrieval_bench.reports.tables.measure.run import tutorial_table

    with working(options) as bars:
        result = experiment.tutorial(bars)
    name, data = experiment.candidates[0].name, experiment.dataset.name
    document = Tutorial(name, data, options.k, result)
    show(options, document, lambda: [tutorial_table(name, data, options.k, result)])
    return OK if result.n else NOT_MEASURED


def _cold(options: argparse.Namespace, run: Run) -> Any:
    """The start from nothing, in fresh processes; kept in the folder of the run."""
    from retrieval_bench.core.progress import Phase, Step
    from retrieval_bench.experiment.fresh.cold import cold_start
    from retrieval_bench.experiment.fresh.launches import LaunchSpec
    from retrieval_bench.measure.protocol import Protocol
    from retrieval_bench.runs.records import COLD, add_files, to_json

    told = LaunchSpec(
        [options.retriever],
        options.dataset,
        **values(options, "split language self_hits k"),
        overrides=options.set,
        protocol=Protocol(threads=options.threads or 1),
    )
    with working(options) as bars, bars.phase(Phase(Step.STARTING_COLD)) as task:
        start = cold_start(told, options.cold, task)
    if run.folder is not None:
        add_files(run.folder, {COLD: to_json(start.as_dict()) + "\n"})
    return start
