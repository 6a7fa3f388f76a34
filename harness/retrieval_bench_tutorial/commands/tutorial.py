"""``bench --protocol tutorial``: the four figures of the usual notebook."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.bench import prepared
from retrieval_bench.cli.measure.common import dry_run
from retrieval_bench.cli.options import Added, refuse


def run_tutorial(options: argparse.Namespace) -> int:
    """Time each query once, as the notebook does; saves nothing."""
    from retrieval_bench_tutorial.tutorial import timed, tutorial_table

    refuse(
        options,
        "out rounds min_calls max_minutes max_cost warm_up launches percentiles collector profile",
        "with --protocol tutorial",
        accepted="neither: the notebook has one pass, its own figures, and saves nothing",
        fix="leave them out, or leave --protocol out",
    )
    experiment = prepared(options, save=False)
    if options.dry_run:
        return dry_run([experiment], options)
    with working(options) as bars:
        tutorial = timed(experiment, bars)
    show(options, tutorial, lambda: [tutorial_table(tutorial)])
    return OK if tutorial.latency_ms.n else NOT_MEASURED


TUTORIAL = Added(
    "--protocol {own,tutorial} [own]  tutorial: the latency of the usual notebook; not saved",
    "protocol",
    run_tutorial,
)
