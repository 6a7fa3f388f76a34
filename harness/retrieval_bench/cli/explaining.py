"""The command that explains differences query by query: ``diff``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, add_format, how_many, say, show

if TYPE_CHECKING:
    from retrieval_bench.comparison.diff import Explanation

QUERIES_SHOWN = 5

_ORDERS = ("largest", "worse", "better")


def add_diff(commands: Any) -> None:
    """Explain where two runs differ."""
    diff = commands.add_parser(
        "diff", help="where two runs differ, or a hybrid and its legs, query by query"
    )
    diff.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="folders of two saved runs, or of one run of a hybrid",
    )
    diff.add_argument(
        "--dataset", metavar="NAME_OR_PATH", help="where the dataset is now (default: as measured)"
    )
    diff.add_argument("--metric", metavar="METRIC", help="default: the first of the runs")
    diff.add_argument(
        "--queries",
        type=how_many,
        default=QUERIES_SHOWN,
        metavar="N",
        help=f"queries to show: a number or `all` (default: {QUERIES_SHOWN})",
    )
    diff.add_argument(
        "--query",
        nargs="+",
        action="extend",
        default=[],
        metavar="ID",
        help="show these queries instead",
    )
    diff.add_argument(
        "--group", metavar="NAME", help='only queries of this group, such as "lost by fusion"'
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
    add_format(diff)
    diff.set_defaults(run=_diff)


def _diff(options: argparse.Namespace) -> int:
    from retrieval_bench.comparison.diff import explain
    from retrieval_bench.metrics import parse_metric
    from retrieval_bench.reports.tables.diff import diff_tables
    from retrieval_bench.reports.tables.diff_document import diff_document
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.records import read_run

    metric = None if options.metric is None else parse_metric(options.metric)
    runs = [read_run(folder) for folder in options.runs]
    explanation = explain(runs, dataset_of(runs, options.dataset), metric)
    places = _places(explanation, options)
    details = explanation.details(places, texts=options.texts)
    full = options.format == "json"
    ceilings = explanation.ceilings(None if full else [explanation.metric])
    told = {"texts": options.texts, "warnings": explanation.warnings}
    show(
        options,
        diff_document(explanation, ceilings, details, **told) if full else None,
        lambda: diff_tables(explanation, ceilings, details, **told),
    )
    if not explanation.query_ids:
        say("retrieval-bench: nothing could be judged: no query was evaluated")
        return NOT_MEASURED
    return OK


def _places(explanation: Explanation, options: argparse.Namespace) -> Sequence[int]:
    """Places of the queries to show.

    Raises:
        ConfigError: a group or a query that there is not.
    """
    from retrieval_bench.core.errors import ConfigError, near_names

    if options.query:
        return [_place(explanation, query_id) for query_id in options.query]
    group = options.group
    if group is not None:
        labels = dict.fromkeys(label for p in explanation.partitions for label in p.labels)
        spelled = {label.replace(" ", "-").casefold(): label for label in labels}
        group = spelled.get(group.strip().replace(" ", "-").casefold())
        if group is None:
            raise ConfigError(
                f"group {options.group!r}",
                where="--group",
                accepted=near_names(options.group, labels),
                fix="name one of the groups of the tables",
            )
    return explanation.order(options.sort, group)[: options.queries]


def _place(explanation: Explanation, query_id: str) -> int:
    import difflib

    from retrieval_bench.core.errors import ConfigError

    if query_id in explanation.query_ids:
        return explanation.query_ids.index(query_id)
    close = difflib.get_close_matches(query_id, explanation.query_ids, n=3)
    known = any(query.id == query_id for query in explanation.dataset.queries)
    raise ConfigError(
        f"query {query_id!r}" + (", which is not evaluated" if known else ""),
        where="--query",
        accepted="ids of evaluated queries" + (f", such as {', '.join(close)}" if close else ""),
        fix="leave --query out to see those that differ most",
    )
