"""``bench --writes``: when what is written is found."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.bench import prepared
from retrieval_bench.cli.options import Added, refuse

_WRITES = """
writing while it answers:
--writes R  add, replace and delete R documents a second: when is each write found?
--write-count N [400]  documents
--write-limit S [60]  seconds for each
--writes-into NAME  external collection
--write-blocks N [0]  quiet and writing blocks of 5 s
--write-kills N [0]  kill our server N times
--writes-record FILE  for `regress --writes`
"""


def run_writes(options: argparse.Namespace) -> int:
    """Write to one retriever, and say when that is found."""
    from retrieval_bench.reports.file import check_place, write_page
    from retrieval_bench_pictures.draw import svg
    from retrieval_bench_writes.gates import record_of
    from retrieval_bench_writes.measured import Plan, freshness
    from retrieval_bench_writes.pictures.visible import visible_over_time
    from retrieval_bench_writes.tables.writes import writes_tables

    refuse(
        options,
        "out protocol metrics no_leaks no_calls dry_run profile min_calls rounds max_calls "
        "max_minutes max_cost launches warm_up collector percentiles",
        "with --writes",
        accepted="--writes without them: its calls are writes and polls, and their number is "
        "--write-count",
        fix="leave one of the two out",
    )
    record = options.writes_record
    if record is not None:
        check_place(record, "record")
    plan = Plan(
        options.writes,
        options.write_count,
        options.write_limit,
        options.writes_into,
        options.write_blocks,
        kills=options.write_kills,
    )
    experiment = prepared(options, save=False)
    with working(options) as bars:
        fresh = freshness(experiment, plan, reporter=bars)
    if record is not None:
        write_page(record, record_of(fresh), "record")
        write_page(record.with_suffix(".svg"), svg(visible_over_time(fresh)), "picture")
    show(options, fresh, lambda: writes_tables(fresh))
    if fresh.status == "partial":
        return INTERRUPTED
    return OK if fresh.visible.n else NOT_MEASURED


WRITES = Added(
    _WRITES,
    "writes",
    run_writes,
    accepted="--writes with a number of writes a second",
    fix="such as --writes 20, or leave it out",
)


def run_regress_writes(options: argparse.Namespace) -> int:
    """Repeat a record of ``bench --writes``, and judge by it."""
    from retrieval_bench_regress.commands.regress import judged, request_of
    from retrieval_bench_writes.gates import regress_writes

    refuse(
        options,
        "accept duet extras setup baselines k",
        "with --writes",
        accepted="--writes alone: k is that of the record, and what is to be accepted is another",
        fix="leave one out",
    )
    with working(options) as bars:
        result = regress_writes(
            request_of(options), options.writes, options.writes_into, reporter=bars
        )
    return judged(options, result)


REGRESS = Added(
    """
--writes FILE  repeat this record of `bench --writes`, and judge by it: visible_p95, zombies
--writes-into NAME  external collection
""",
    "writes",
    run_regress_writes,
    accepted="--writes with a record",
    fix="add --writes FILE, or leave it out",
)
