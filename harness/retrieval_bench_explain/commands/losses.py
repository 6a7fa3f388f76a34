"""``explain --by loss``: what a retriever loses between an exact search and what it serves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import refuse
from retrieval_bench_explain.commands.ledger import prepared, refuse_of_queries

if TYPE_CHECKING:
    from retrieval_bench.core.retriever import Rung
    from retrieval_bench.experiment.experiment import Experiment


def by_loss(options: argparse.Namespace) -> int:
    """Show the losses of a retriever that is measured now, at each step on the way."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.metrics import one_metric
    from retrieval_bench.runs.find import is_run
    from retrieval_bench.stats.defaults import MARGIN
    from retrieval_bench_explain.ledger import check_averaged
    from retrieval_bench_explain.losses import losses
    from retrieval_bench_explain.tables.losses import losses_table

    if len(options.runs) != 1 or is_run(options.runs[0]):
        what = "a saved run" if len(options.runs) == 1 else f"{len(options.runs)} names"
        raise ConfigError(
            f"{what} with --by loss",
            accepted="one retriever, which is measured at each step",
            fix="name the retriever, such as dense-hnsw",
        )
    refuse_of_queries(options)
    refuse(
        options,
        "token_price",
        "with --by loss",
        accepted="it with --by stage or --spans",
        fix="leave it out",
    )
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


def between(experiment: Experiment) -> tuple[Experiment, Sequence[Rung]]:
    """The experiment of the rungs of its retriever, in their order, and the rungs; both experiments
    are to be closed.

    Raises:
        ConfigError: it has none.
    """
    from dataclasses import replace

    from retrieval_bench.core.calls.foreign import foreign_code
    from retrieval_bench.core.errors import ConfigError

    candidate = experiment.candidates[0]
    with candidate.folder.lent(), foreign_code(candidate.failing("rungs()")):
        candidate.retriever.use_filters(experiment.dataset.filter_fields)
        rungs = candidate.retriever.rungs()
    if not rungs:
        raise ConfigError(
            f"{candidate.name} does not say what an exact form of it would be",
            accepted="dense, a hybrid with such a leg, or a retriever with rungs()",
            fix="name that; of a pipeline the retriever of its step `retrieve`",
        )
    candidates = [
        replace(candidate, name=rung.name, retriever=rung.retriever, index={})
        for rung in rungs
        if rung.retriever is not None
    ]
    return replace(experiment, candidates=candidates, ablate=None), rungs
