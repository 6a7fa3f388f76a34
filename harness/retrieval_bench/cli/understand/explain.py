"""The command that explains: where runs differ query by query, and what each part buys."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, say, show
from retrieval_bench.cli.options import add_format, add_several, how_many
from retrieval_bench.cli.understand.ledger import add_ledger, by_stage, refuse_without_stage
from retrieval_bench.cli.understand.losses import by_loss

QUERIES_SHOWN = 5

_ORDERS = ("largest", "worse", "better")


def add_explain(commands: Any, name: str, **texts: str) -> None:
    """Explain where two runs differ."""
    diff = commands.add_parser(name, **texts)
    diff.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="two saved runs, or one of a hybrid or pipeline: a folder, NAME@latest, start of an "
        "id, @last (the two that were measured together, or the last one); with --by "
        "stage also a retriever, with --by loss only one, which is measured",
    )
    diff.add_argument(
        "--by",
        choices=("query", "stage", "loss"),
        default="query",
        help="query (the default): where they differ; stage: what each part buys and takes; "
        "loss: what vectors lose by tokens, dimensions, int8, index, filter and depth",
    )
    diff.add_argument(
        "--dataset", metavar="NAME_OR_PATH", help="where the dataset is now (default: as measured)"
    )
    diff.add_argument(
        "--metric",
        metavar="METRIC",
        help="by which queries differ (default: the first of the runs)",
    )
    diff.add_argument(
        "--queries",
        type=how_many,
        default=QUERIES_SHOWN,
        metavar="N",
        help=f"queries to show: a number, 0 for none, or `all` (default: {QUERIES_SHOWN})",
    )
    add_several(diff, "--query", "ID", "show these queries instead")
    diff.add_argument(
        "--group", metavar="NAME", help="only queries of this group, such as lost-by-fusion"
    )
    diff.add_argument(
        "--sort",
        choices=_ORDERS,
        default=_ORDERS[0],
        help="largest difference first (the default), or where the second run is worse, or better",
    )
    diff.add_argument(
        "--no-text",
        action="store_false",
        dest="texts",
        help="ids only: no texts of queries and documents",
    )
    add_ledger(diff)
    add_format(diff)
    diff.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    return {"query": _diff, "stage": by_stage, "loss": by_loss}[options.by](options)


def _diff(options: argparse.Namespace) -> int:
    from retrieval_bench.comparison.explain.differences import differences
    from retrieval_bench.metrics import parse_metric
    from retrieval_bench.reports.tables.understand.diff import diff_tables
    from retrieval_bench.reports.tables.understand.diff_document import diff_document
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.records import read_run

    refuse_without_stage(options)
    metric = None if options.metric is None else parse_metric(options.metric)
    runs = [read_run(folder) for folder in _folders(options.runs)]
    result = differences(
        runs,
        dataset_of(runs, options.dataset),
        metric,
        queries=options.queries,
        query_ids=options.query,
        group=options.group,
        order=options.sort,
        texts=options.texts,
    )
    explanation, full = result.explanation, options.format == "json"
    ceilings = explanation.ceilings(None if full else [explanation.metric])
    parts = (explanation, ceilings, result.details)
    notes: dict[str, Any] = {"texts": result.texts, "warnings": explanation.warnings}
    show(
        options,
        diff_document(*parts, **notes) if full else None,
        lambda: diff_tables(*parts, **notes),
    )
    if not explanation.query_ids:
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
