"""The command ``load``."""

from __future__ import annotations

import argparse
from functools import partial

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, show, working
from retrieval_bench.cli.measure.common import as_it_can_be
from retrieval_bench.cli.options import LANGUAGE, RETRIEVER, Added, command, dataset, refuse, values
from retrieval_bench_duet.commands.duet import played, protocol_of
from retrieval_bench_regress.commands.regress import judged, request_of

_LOAD = f"""
{RETRIEVER}
{dataset()}
{LANGUAGE}
--metrics METRIC ...  the first is that of the answers under load
--out DIR  folder of the record (default: a new one in results/loads)
calls:
--rate R ...  calls a second that are due, a level each: they are made on time whether the ones
    before are answered or not (open loop)
--clients N ...  clients that each wait for their answer before they call again, a level each
    (closed loop)
--replay FILE  calls are due at recorded times, one a line: seconds, milliseconds since 1970, or
    ISO 8601; all of them, at their own rate, unless --duration cuts them
--queries {{all,once}} [all]  once: none is asked twice, so no answer is remembered; a level ends
    where its share is used up
--slo LIMIT  look for the highest rate that keeps a limit such as 'p99<200ms'
--max-minutes M [10]  of --slo: that the search may take (default: 10)
--arrivals {{poisson,constant}} [poisson]  of --rate: independent callers, or one each 1/R seconds
    (default: poisson)
--duration S  seconds of a level (default: 10; with --slo 20, with --soak 600)
--soak  report memory, latency and outages in ten parts of each level
--warm-up S [2]  seconds before each level, with the same load (default: 2)
--ramp S [0]  of --rate: seconds in which it rises, before the warm-up (default: 0)
--timeout S [10]  seconds after a level until a call without an answer has failed (default: 10)
generator:
--slots N  calls under way at most, of each process (default: 32 of a service; else one a core, or
    1 where several threads may not ask the retriever)
--processes N  of the generator, which share the rate; each has a retriever of its own that is no
    service (default: 1; with --on as many as it has workers)
--on ADDRESS  the scheduler of a Dask cluster (tcp://HOST:PORT), whose workers run the generator's
    processes (default: this machine)
--seed SEED [20240229]  of the times and the queries
--threads N [1]  threads of numerical libraries while searching (default: 1)
"""


@command(_LOAD)
def run_load(options: argparse.Namespace) -> int:
    """Measure a retriever under the load of many clients."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_load.engine.capacity import Limit
    from retrieval_bench_load.engine.levels import State
    from retrieval_bench_load.engine.load import Plan, load
    from retrieval_bench_load.engine.schedule import read_recorded
    from retrieval_bench_load.pictures.load import keep_curve
    from retrieval_bench_load.tables.load import load_tables

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
        options.duration,
        options.queries == "once",
    )
    with working(options) as bars:
        result = load(
            options.retriever,
            options.dataset,
            plan,
            **values(options, "split language k metrics threads on out"),
            overrides=options.set,
            reporter=bars,
        )
    show(options, result, lambda: load_tables(result, full=True), lambda: load_tables(result))
    with as_it_can_be(options, "picture"):
        keep_curve(result)
    if result.status == "partial":
        return INTERRUPTED if result.interrupted else NOT_MEASURED
    capacity = result.capacity
    if capacity is not None and 0 < capacity.levels == capacity.not_measured:
        return NOT_MEASURED  # its ends are unknown, whatever the levels beside the search show
    levels = result.levels or [result.unloaded]  # one call at a time broke the limit
    measured = [one for one in levels if one.result.state is not State.NOT_MEASURED]
    return OK if measured else NOT_MEASURED


def compare_saved(options: argparse.Namespace, measuring: str) -> int:
    """``compare`` of two loads that were saved.

    Args:
        measuring: options that say nothing of what is saved.

    Raises:
        ConfigError: an option that says nothing of loads.
    """
    from retrieval_bench_load.loads import compare_loads
    from retrieval_bench_load.tables.pairs import load_pair_tables

    others = "margin baseline equivalence tests slices fuse until_decided dataset"
    accepted = "compare LOAD LOAD"
    refuse(
        options, f"{measuring} {others}", "for saved loads", accepted=accepted, fix="leave it out"
    )
    result = compare_loads([*options.systems, *options.retrievers])
    show(options, result, lambda: load_pair_tables(result))
    return OK if any(pair.percentiles for pair in result.levels) else NOT_MEASURED


def run_duet_under_load(options: argparse.Namespace) -> int:
    """Play a duet whose calls are due at a rate."""
    from retrieval_bench_duet.decision import GATES
    from retrieval_bench_load.load_duet import BLOCK_S, duet_under_load

    refuse(
        options,
        "queries",
        "with --rate",
        accepted="--rate alone: under load every query is asked",
        fix="leave one out",
    )
    protocol = protocol_of(options, limits={"p50": GATES["p50"].limit}, seconds=BLOCK_S)
    return played(options, partial(duet_under_load, rate=options.rate), protocol)


RATE = Added(
    "--rate R  under load: blocks of both in turn, R calls a second due; judged at p50",
    "rate",
    run_duet_under_load,
)


def run_regress_load(options: argparse.Namespace) -> int:
    """Make the levels of a saved load again, and judge them by it."""
    from retrieval_bench_load.loads import regress_load

    refuse(
        options,
        "accept duet extras setup baselines",
        "with --load",
        accepted="--load alone: what is to be accepted is kept by load itself",
        fix="leave one out",
    )
    with working(options) as bars:
        result = regress_load(request_of(options), options.load, reporter=bars)
    return judged(options, result)


LOAD = Added(
    """
--load LOAD  make the levels of this saved load again (a folder, @load, NAME@load), and judge by it
    in place of a baseline
""",
    "load",
    run_regress_load,
    example="my.yaml --load my.yaml@load",
)


SECTIONS = Added("--loads LOAD ...  saved loads, a section each: a folder, @load, NAME@load")
