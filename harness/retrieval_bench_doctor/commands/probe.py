"""``bench --probe``: the answers to a few queries, to be read."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.bench import prepared
from retrieval_bench.cli.options import Added


def run_probe(options: argparse.Namespace) -> int:
    """Print answers with their texts; measures and saves nothing."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_doctor.probing import probe
    from retrieval_bench_doctor.tables.probe import probe_tables

    if options.probe < 1:
        raise ConfigError(
            f"--probe {options.probe}", accepted="a number of queries, at least 1", fix="such as 3"
        )
    experiment = prepared(options, save=False)
    with working(options) as bars:
        found = probe(experiment, options.probe, bars)
    show(options, found, lambda: probe_tables(found))
    return OK if found.answered else NOT_MEASURED


PROBE = Added(
    "--probe N  print the answers to the first N queries with their texts, measure and save "
    "nothing",
    "probe",
    run_probe,
)
