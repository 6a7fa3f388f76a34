"""``bench --sweep``: recall against exact search and p50 at each value of a parameter."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.common import as_it_can_be
from retrieval_bench.cli.options import Added, protocol_of, refuse, values

_SWEEP = """
approximate against exact:
--sweep KEY=N,N,...  how much of an exhaustive search is found, and the p50, at each value of a
    parameter, such as ef_search=16,32
--recall R  with --sweep: the share that is enough, by the lower end of its interval (default:
    0.95)
--tail R  with --sweep: --recall is the share of queries that must each find so much (default:
    the mean decides)
--filters PERCENT + []  with --sweep: also under filters that so many percent of the documents fit,
    such as 100 50 10 1, or `tenants`
"""


def run_sweep(options: argparse.Namespace) -> int:
    """Measure one retriever at each value."""
    from retrieval_bench_scale.approximate.sweep import RECALL, parse_sweep, sweep
    from retrieval_bench_scale.pictures.sweep import keep_sweep
    from retrieval_bench_scale.tables.sweep import sweep_tables

    refuse(
        options,
        "probe protocol dry_run no_leaks metrics percentiles",
        "with --sweep",
        accepted="--sweep without them: it gives recall against exact search, and p50",
        fix="leave one of the two out",
    )
    parameter, numbers = parse_sweep(options.sweep)
    with working(options) as bars:
        found = sweep(
            options.retriever,
            options.dataset,
            parameter,
            numbers,
            recall=RECALL if options.recall is None else options.recall,
            **values(options, "tail filters split language self_hits k out"),
            overrides=options.set,
            protocol=protocol_of(options),
            reporter=bars,
        )
    show(options, found, lambda: sweep_tables(found, full=True), lambda: sweep_tables(found))
    if options.pictures:
        with as_it_can_be(options, "picture"):
            keep_sweep(found)
    if found.status == "partial":
        return INTERRUPTED
    return OK if found.levels[0].queries else NOT_MEASURED


SWEEP = Added(
    _SWEEP,
    "sweep",
    run_sweep,
    accepted="--sweep with a parameter and its values",
    fix="such as --sweep ef_search=16,32,64, or leave it out",
    example="dense-hnsw --sweep ef_search=16,32,64,128 --recall 0.95",
)
