"""The command ``reproduce``: published numbers, beside what the data at hand give."""

from __future__ import annotations

import argparse
from typing import Any

from harness.cli.console import (
    NOT_JUDGED,
    OK,
    REGRESSION,
    add_format,
    output_kept_clean,
    reporter,
    say,
    show,
)


def add_reproduce(commands: Any) -> None:
    """Published numbers against ours."""
    reproduce = commands.add_parser(
        "reproduce", help="do I get the published numbers? data: the folder that BENCH_DATA names"
    )
    reproduce.add_argument(
        "--paper",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="files of configs/published, by name, or paths ending in .yaml (default: all)",
    )
    add_format(reproduce)
    reproduce.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from harness.report.reproduce_tables import reproduce_tables
    from harness.reproduce import load_published, published_names, reproduce
    from harness.reproduce.answered import data_folder
    from harness.reproduce.check import Status, worst_of

    papers = {name: load_published(name) for name in options.paper or published_names()}
    folder = data_folder()
    with output_kept_clean(), reporter() as bars:
        found = {name: reproduce(paper, folder, bars) for name, paper in papers.items()}
    show(
        options,
        {"papers": {name: one.as_dict() for name, one in found.items()}},
        lambda: [table for one in found.values() for table in reproduce_tables(one)],
    )
    worst = worst_of([c for one in found.values() for c in (*one.figures, *one.outcomes)])
    if worst is Status.FAIL:
        say("retrieval-bench: a published number was missed")
        return REGRESSION
    if worst is Status.NOT_MEASURED:
        say("retrieval-bench: nothing could be measured: the data are not here")
        return NOT_JUDGED
    return OK
