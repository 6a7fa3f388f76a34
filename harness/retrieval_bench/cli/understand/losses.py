"""``explain --by loss``: what a retriever loses between an exact search and what it serves."""

from __future__ import annotations

import argparse
from contextlib import closing

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.understand.ledger import prepared, refuse_of_queries


def by_loss(options: argparse.Namespace) -> int:
    """Show the losses of a retriever that is measured now, at each step on the way."""
    from retrieval_bench.comparison.explain.ledger import check_averaged
    from retrieval_bench.comparison.explain.losses import losses
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.experiment.preparation import between
    from retrieval_bench.metrics import one_metric
    from retrieval_bench.reports.tables.understand.losses import losses_table
    from retrieval_bench.runs.find import is_run
    from retrieval_bench.stats.defaults import MARGIN

    if len(options.runs) != 1 or is_run(options.runs[0]):
        what = "a saved run" if len(options.runs) == 1 else f"{len(options.runs)} names"
        raise ConfigError(
            f"{what} with --by loss",
            accepted="one retriever, which is measured at each step",
            fix="name the retriever, such as dense-hnsw",
        )
    refuse_of_queries(options)
    metric = one_metric(options.metric or f"nDCG@{options.k}")
    check_averaged(metric, options.k)
    names = dict.fromkeys([str(metric), f"R@{options.k}"])
    with closing(prepared(options, str(options.runs[0]), [*names], "loss")) as experiment:
        with working(options) as bars:
            ladder, rungs = between(experiment)
            runs = ladder.run(bars, save=False)
        name = experiment.names[0]
    margin = MARGIN if options.margin is None else options.margin
    loss_steps = losses(name, rungs, runs, margin=margin)
    show(options, loss_steps, lambda: [losses_table(loss_steps)])
    return OK
