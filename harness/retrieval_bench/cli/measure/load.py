"""The command ``load``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.common import pictures_as_they_can_be
from retrieval_bench.cli.options import (
    add_dataset,
    add_format,
    add_language,
    add_retriever,
    add_several,
    given_options,
)


def add_load(commands: Any, name: str, **texts: str) -> None:
    """A retriever under the load of many clients."""
    load = commands.add_parser(name, **texts)
    add_retriever(load)
    add_dataset(load)
    add_language(load)
    add_several(load, "--metrics", "METRIC", "the first is that of the answers under load")
    load.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the record (default: a new one in results/loads)",
    )
    calls = load.add_argument_group("calls")
    calls.add_argument(
        "--rate",
        type=float,
        nargs="+",
        action="extend",
        default=[],
        metavar="R",
        help="calls a second that are due, a level each: they are made on time whether the ones "
        "before are answered or not (open loop)",
    )
    calls.add_argument(
        "--clients",
        type=int,
        nargs="+",
        action="extend",
        default=[],
        metavar="N",
        help="clients that each wait for their answer before they call again, a level each "
        "(closed loop)",
    )
    calls.add_argument(
        "--replay",
        type=Path,
        metavar="FILE",
        help="calls are due at recorded times: a number of seconds on each line",
    )
    calls.add_argument(
        "--slo",
        metavar="LIMIT",
        help="look for the highest rate that keeps a limit such as 'p99<200ms'",
    )
    calls.add_argument(
        "--max-minutes",
        type=float,
        default=10.0,
        metavar="M",
        help="of --slo: that the search may take (default: 10)",
    )
    calls.add_argument(
        "--arrivals",
        choices=("poisson", "constant"),
        default="poisson",
        help="of --rate: independent callers, or one each 1/R seconds (default: poisson)",
    )
    calls.add_argument(
        "--duration",
        type=float,
        metavar="S",
        help="seconds of a level (default: 10; with --slo 20, with --soak 600)",
    )
    calls.add_argument(
        "--soak",
        action="store_true",
        help="tell memory, latency and outages over time: ten parts of each level",
    )
    calls.add_argument(
        "--warm-up",
        type=float,
        default=2.0,
        metavar="S",
        help="seconds before each level, with the same load (default: 2)",
    )
    calls.add_argument(
        "--ramp",
        type=float,
        default=0.0,
        metavar="S",
        help="of --rate: seconds in which it rises, before the warm-up (default: 0)",
    )
    calls.add_argument(
        "--timeout",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds after a level until a call without an answer has failed (default: 10)",
    )
    maker = load.add_argument_group("generator")
    maker.add_argument(
        "--slots",
        type=int,
        metavar="N",
        help="calls under way at most, of each process (default: 32 of a service; else one a core, "
        "or 1 where several threads may not ask the retriever)",
    )
    maker.add_argument(
        "--processes",
        type=int,
        metavar="N",
        help="of the generator, which share the rate; each has a retriever of its own that is no "
        "service (default: 1; with --on as many as it has workers)",
    )
    maker.add_argument(
        "--on",
        metavar="ADDRESS",
        help="the scheduler of a Dask cluster (tcp://HOST:PORT), whose workers run the generator's "
        "processes (default: this machine)",
    )
    maker.add_argument("--seed", type=int, default=20_240_229, help="of the times and the queries")
    maker.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of numerical libraries while searching (default: 1)",
    )
    add_format(load)
    load.set_defaults(run=_load)


def _load(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.load.capacity import Limit
    from retrieval_bench.load.levels import State
    from retrieval_bench.load.load import Plan, load
    from retrieval_bench.load.schedule import read_recorded
    from retrieval_bench.reports.pictures.load import keep_curve
    from retrieval_bench.reports.tables.measure.load import load_tables

    if not (options.rate or options.clients or options.replay or options.slo):
        raise ConfigError(
            "load without a load",
            accepted="--rate, --clients, --replay or --slo",
            fix="such as --clients 1 4 16, or --rate 50 100",
        )
    usual = 20.0 if options.slo else 600.0 if options.soak else 10.0
    seconds = usual if options.duration is None else options.duration
    plan = Plan(
        options.rate,
        options.clients,
        read_recorded(options.replay) if options.replay else (),
        options.arrivals,
        options.ramp,
        seconds,
        options.warm_up,
        options.timeout,
        options.slots,
        options.processes,
        options.seed,
        Limit.parse(options.slo) if options.slo else None,
        options.max_minutes,
        options.soak,
    )
    with working(options) as bars:
        result = load(
            options.retriever,
            options.dataset,
            plan,
            split=options.split,
            language=options.language,
            k=options.k,
            metrics=options.metrics,
            overrides=options.set,
            threads=options.threads,
            on=options.on,
            out=options.out,
            reporter=bars,
        )
    show(
        options,
        result,
        lambda: load_tables(result, full=True),
        lambda: load_tables(result),
    )
    with pictures_as_they_can_be(options):
        keep_curve(result)
    if result.status == "partial":
        return INTERRUPTED
    measured = [one for one in result.levels if one.result.state is not State.NOT_MEASURED]
    return OK if measured else NOT_MEASURED


def compare_saved(options: argparse.Namespace) -> int:
    """``compare`` of two loads that were saved.

    Raises:
        ConfigError: an option that says nothing of loads.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.regression.loads import compare_loads
    from retrieval_bench.reports.tables.measure.load_pair import load_pair_tables

    usual = options.only_when_measuring | {"margin": None, "baseline": None, "equivalence": "bound"}
    usual |= {"tests": [], "slices": None, "fuse": None, "until_decided": None, "dataset": None}
    if given := given_options(options, usual):
        raise ConfigError(
            f"{given} for saved loads", accepted="compare LOAD LOAD", fix="leave it out"
        )
    result = compare_loads([*options.systems, *options.retrievers])
    show(options, result, lambda: load_pair_tables(result))
    return OK if any(pair.percentiles for pair in result.levels) else NOT_MEASURED
