"""The command ``bench``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
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
    from retrieval_bench.reports.finish import Finished


_BENCH = f"""
{RETRIEVER}
--out DIR  folder of the run, new or empty (default: a new one in results/runs)
--protocol {{own,tutorial}} [own]  tutorial: the latency of the usual notebook; not saved
+
options:
{dataset()}
{MEASURING}
"""


@command(_BENCH)
def run_bench(options: argparse.Namespace) -> int:
    """Measure one retriever on one dataset."""
    return benched(options)


Further = Callable[["Experiment"], Callable[["Finished"], "Finished"]]
"""What else is measured: refuses what it cannot be measured of, and then adds to a run."""


def benched(options: argparse.Namespace, further: Further | None = None) -> int:
    """Measure, print and draw; gives the exit code."""
    from retrieval_bench.reports import frames

    if options.protocol == "tutorial":
        refuse(
            options,
            "out rounds min_calls max_minutes max_cost warm_up launches percentiles collector "
            "profile",
            "with --protocol tutorial",
            accepted="neither: the notebook has one pass, its own figures, and saves nothing",
            fix="leave them out, or leave --protocol out",
        )
    experiment = prepared(options, save=not options.dry_run and options.protocol == "own")
    add = None if further is None else further(experiment)
    if options.dry_run:
        return dry_run([experiment], options)
    if options.protocol == "tutorial":
        return _tutorial(experiment, options)

    def show_runs(done: Sequence[Finished]) -> None:
        (one,) = done
        show(
            options,
            one,
            lambda: [*one.tables(), *one.further()],
            lambda: [one.brief(), *one.further(full=False)],
            None if one.further() else lambda: list(frames.means([(one.run.name, one.run)])),
        )

    done = measured([experiment], options, show_runs)
    if add is not None:
        try:
            done = [add(done[0])]
        except BaseException:  # also Ctrl-C: what was measured is there
            show_runs(done)
            raise
    show_runs(done)
    runs = [one.run for one in done]
    draw(runs, options)
    return INTERRUPTED if done[0].stopped else exit_code(runs, no_leaks=options.no_leaks)


def prepared(options: argparse.Namespace, *, save: bool) -> Experiment:
    """The experiment that the options of ``bench`` describe."""
    from retrieval_bench.experiment.preparation import prepare

    protocol = protocol_of(options)
    with output_kept_clean():
        return prepare(
            [options.retriever],
            options.dataset,
            **values(options, "split language self_hits k metrics out"),
            overrides=options.set,
            protocol=protocol,
            save=save,
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
