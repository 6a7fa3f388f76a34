"""The command ``bench``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import (
    INTERRUPTED,
    output_kept_clean,
    show,
)
from retrieval_bench.cli.measure.common import draw, dry_run, exit_code, measured
from retrieval_bench.cli.options import (
    MEASURING,
    RETRIEVER,
    command,
    dataset,
    protocol_of,
    values,
)

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.reports.finish import Finished


_BENCH = f"""
{RETRIEVER}
--out DIR  folder of the run, new or empty (default: a new one in results/runs)
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

    experiment = prepared(options, save=not options.dry_run)
    add = None if further is None else further(experiment)
    if options.dry_run:
        return dry_run([experiment], options)

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
