"""The command that explains: where runs differ query by query, and what each part buys."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from retrieval_bench.cli.console import NOT_MEASURED, OK, say, show
from retrieval_bench.cli.options import HOW_MANY, command, refuse, values
from retrieval_bench_explain.commands.ledger import LEDGER, MEASURING, by_stage
from retrieval_bench_explain.commands.losses import by_loss

QUERIES_SHOWN = 10


_EXPLAIN = f"""
runs RUN +  two saved runs, or one of a hybrid or pipeline: a folder, NAME@latest, start of an id,
    @last (the two that were measured together, or the last one); with --by stage also a
    retriever, with --by loss only one, which is measured
--by {{query,stage,loss}} [query]  query (the default): where they differ; stage: what each part
    buys and takes; loss: what vectors lose by tokens, dimensions, int8, index, filter and depth
--dataset NAME_OR_PATH  where the dataset is now (default: as measured)
--metric METRIC  by which queries differ (default: the first of the runs)
--queries N [{QUERIES_SHOWN}]  queries to show: a number, 0 for none, or `all` (default:
    {QUERIES_SHOWN})
--query ID ...  show these queries instead
--group NAME  only queries of this group, such as lost-by-fusion
--sort {{largest,worse,better}} [largest]  largest difference first (the default), or where the
    second run is worse, or better
--no-text [texts]  ids only: no texts of queries and documents
+
{LEDGER}
"""


@command(_EXPLAIN, queries=HOW_MANY)
def run_explain(options: argparse.Namespace) -> int:
    """Explain where two runs differ."""
    return {"query": _diff, "stage": by_stage, "loss": by_loss}[options.by](options)


def _diff(options: argparse.Namespace) -> int:
    from retrieval_bench.metrics import one_metric
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.records import read_run
    from retrieval_bench_explain.differences import differences
    from retrieval_bench_explain.tables.diff import diff_brief, diff_tables

    refuse(
        options,
        f"{MEASURING} margin",
        "without --by stage or --by loss",
        accepted="these options with one of the two",
        fix="add it, or leave them out",
    )
    refuse(
        options,
        "token_price",
        "without --by stage or --spans",
        accepted="it with one of the two",
        fix="add it, or leave it out",
    )
    if options.query:
        refuse(
            options,
            "queries group sort",
            "with --query",
            accepted="the ids of queries alone, or what chooses some",
            fix="leave one of the two out",
        )
    metric = None if options.metric is None else one_metric(options.metric)
    runs = [read_run(folder) for folder in _folders(options.runs)]
    result = differences(
        runs,
        dataset_of(runs, options.dataset),
        metric,
        **values(options, "queries group texts"),
        query_ids=options.query,
        order=options.sort,
    )
    show(options, result, lambda: diff_tables(result), lambda: diff_brief(result))
    if not result.explanation.query_ids:
        say("retrieval-bench: nothing could be judged: no query was evaluated")
        return NOT_MEASURED
    return OK


def _folders(given: Sequence[str]) -> list[Path]:
    """Return the folders of the runs; the last one of several that are more than two."""
    from retrieval_bench.runs.find import find_runs

    paths = [find_runs(name) for name in given]
    if len(paths) == 1 and len(paths[0]) == 2:
        return paths[0]
    return [folders[-1] for folders in paths]
