"""The command ``reproduce``: published numbers, beside what the data at hand give."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import NOT_MEASURED, OK, REGRESSION, say, show, working
from retrieval_bench.cli.options import command

if TYPE_CHECKING:
    from retrieval_bench.reports.render.table import Table


_REPRODUCE = """
--paper NAME ...  files of configs/published, by name, or paths ending in .yaml (default: all)
"""


@command(_REPRODUCE, paper={"default": None})
def run_reproduce(options: argparse.Namespace) -> int:
    """Hold published numbers against ours."""
    from retrieval_bench_answers.reproduction import load_published, published_names, reproduce
    from retrieval_bench_answers.reproduction.answered import DATA_FOLDER, data_folder
    from retrieval_bench_answers.reproduction.check import Papers, Status, worst_of
    from retrieval_bench_answers.tables.reproduce import (
        files_table,
        reproduce_tables,
        summary_table,
    )

    papers = {name: load_published(name) for name in options.paper or published_names()}
    folder = data_folder()
    with working(options) as bars:
        results = {name: reproduce(paper, folder, bars) for name, paper in papers.items()}

    def tables() -> list[Table]:
        if folder is None:
            return [files_table(papers)]
        several = [table for result in results.values() for table in reproduce_tables(result)]
        return [*several, summary_table(results)] if len(results) > 1 else several

    show(options, Papers(results), tables)
    worst = worst_of(result.worst for result in results.values())
    if worst is Status.FAIL:
        say("retrieval-bench: a published number was missed")
        return REGRESSION
    if worst is Status.NOT_MEASURED:
        why = (
            f"the data are not in {folder}"
            if folder
            else f"{DATA_FOLDER} names no folder. Set it to the folder that holds the data: "
            f"{DATA_FOLDER}=path/to/data"
        )
        say(f"retrieval-bench: nothing could be measured: {why}")
        return NOT_MEASURED
    return OK
