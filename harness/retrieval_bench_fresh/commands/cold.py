"""``bench --cold``: a run, and then starts from nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import working
from retrieval_bench.cli.measure.bench import benched
from retrieval_bench.cli.options import Added, refuse, values

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.runs.run import Run


def run_cold(options: argparse.Namespace) -> int:
    """Measure, then start fresh processes."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_fresh.started import StartedCold

    if options.cold < 1:
        raise ConfigError(
            f"--cold {options.cold}",
            accepted="a number of processes, at least 1",
            fix="leave the number out for 5",
        )
    refuse(
        options,
        "max_calls",
        "with --cold",
        accepted="--cold alone: every fresh process makes calls of its own, which no limit counts",
        fix="leave one out",
    )

    def further(experiment: Experiment) -> Callable[[Finished], Finished]:
        if experiment.candidates[0].capabilities.replays:
            experiment.close()
            raise ConfigError(
                f"--cold {options.cold} with a retriever that reads its answers from a saved run",
                accepted="a retriever that searches",
                fix="measure the system that made the run, or leave --cold out",
            )
        return lambda done: StartedCold(done.run, done.findings, cold=_cold(options, done.run))

    return benched(options, further)


def _cold(options: argparse.Namespace, run: Run) -> Any:
    """The start from nothing, in fresh processes; kept in the folder of the run."""
    from retrieval_bench.core.progress import Phase, Step
    from retrieval_bench.measure.protocol import Protocol
    from retrieval_bench.runs.records import COLD, add_files, to_json
    from retrieval_bench_fresh.cold import cold_start
    from retrieval_bench_launches.launches import LaunchSpec

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


COLD = Added(
    "--cold N ?  then time each step to the first answer in N fresh processes (5)",
    "cold",
    run_cold,
    more={"cold": {"const": 5}},
)
