"""What the commands that measure share: their options, how runs are made, drawn and told."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    add_format,
    output_kept_clean,
    reporter,
    say,
    show,
)

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.measure.protocol import Protocol
    from retrieval_bench.runs.run import Run


def measured(
    experiments: Sequence[Experiment],
    options: argparse.Namespace,
    print_runs: Callable[[Sequence[Run]], Any],
) -> list[Run]:
    """The runs of ``experiments``, with pictures; what was measured but cannot be saved is shown at
    least."""
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.experiment.several import run_each

    runs: list[Run] = []
    try:
        with output_kept_clean(), reporter() as bars:
            for made in run_each(experiments, bars):
                _draw(made, options)
                runs += made
    except RecordError as problem:
        if problem.runs:
            print_runs(problem.runs)
        raise
    return runs


def _draw(runs: Sequence[Run], options: argparse.Namespace) -> None:
    """The pictures of saved runs; whatever prevents them, the figures are there."""
    from retrieval_bench.core.errors import HarnessError
    from retrieval_bench.reports.pictures.of_runs import run_pictures, side_by_side
    from retrieval_bench.runs.records import PICTURES, add_files

    if not options.pictures:
        return
    try:
        together = side_by_side([run.name for run in runs], runs) if len(runs) > 1 else ""
        for run in runs:
            pictures = run_pictures(run)
            if together:
                pictures["side-by-side.svg"] = together
            if run.folder is not None and pictures:
                add_files(run.folder, {f"{PICTURES}/{n}": svg for n, svg in pictures.items()})
    except HarnessError as problem:
        say(f"retrieval-bench: no pictures: {problem.render()}")


def dry_run(experiments: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Say what a run would do; nothing was indexed."""
    from retrieval_bench.reports.tables.run import plan_table

    plans = []
    for experiment in experiments:
        plans.append(experiment.dry_run())
        experiment.close()
    document = plans[0] if len(plans) == 1 else {"experiments": plans}
    show(options, document, lambda: [plan_table(plan) for plan in plans])
    return OK


def exit_code(runs: Sequence[Run]) -> int:
    """Of a command that measured ``runs``; says what is wrong with them."""
    if any(run.partial for run in runs):
        say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    unjudged = [run for run in runs if not run.answered]
    for run in unjudged:
        say(f"retrieval-bench: nothing could be judged of {run.name}: no evaluated query answered")
    return NOT_MEASURED if unjudged else OK


def protocol_of(options: argparse.Namespace) -> Protocol:
    """The protocol that the options of :func:`add_measuring` describe."""
    from retrieval_bench.measure.protocol import Protocol

    return Protocol.of(
        options.profile,
        min_calls=options.min_calls,
        rounds=options.rounds,
        max_calls=options.max_calls,
        launches=options.launches,
        warm_up_s=options.warm_up,
        timeout_s=options.timeout,
        threads=options.threads,
        collector=options.collector == "on" or None,
        levels=tuple(options.percentiles) or None,
    )


def add_retriever(parser: argparse.ArgumentParser) -> None:
    """Which retriever, and what to change of it."""
    parser.add_argument(
        "--retriever",
        required=True,
        metavar="NAME_OR_YAML",
        help="config name, YAML file, mod:Class",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="override parameters of the retriever by dotted path",
    )


def add_dataset(
    parser: argparse.ArgumentParser, default: str | None = "science-mini", *, k: int = 10
) -> None:
    """On which data, and how deep; without ``default`` a dataset has to be named."""
    parser.add_argument(
        "--dataset",
        default=default,
        required=default is None,
        metavar="NAME_OR_PATH",
        help="name or folder" + (f" (default: {default})" if default else ""),
    )
    _add_depth(parser, k)


def _add_depth(parser: argparse.ArgumentParser, k: int) -> None:
    parser.add_argument("--split", default="test", help="split of the judgements (default: test)")
    parser.add_argument("--k", type=int, default=k, help=f"hits per query (default: {k})")


def add_measuring(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """How to measure, and on what; with ``several`` on more than one dataset."""
    if several:
        parser.add_argument(
            "--dataset",
            nargs="+",
            metavar="NAME_OR_PATH",
            help="names or folders (default: science-mini)",
        )
        _add_depth(parser, 10)
    else:
        add_dataset(parser)
    parser.add_argument(
        "--metrics", nargs="+", action="extend", default=[], metavar="METRIC", help="nDCG@10 R@100"
    )
    timing = parser.add_argument_group("measuring")
    timing.add_argument(
        "--profile",
        default="default",
        metavar="NAME",
        help="smoke (one round), default, release (10,000 calls in 5 processes), or a YAML file",
    )
    timing.add_argument(
        "--min-calls", type=int, metavar="N", help="measured calls in all (default: 1000)"
    )
    timing.add_argument("--rounds", type=int, metavar="N", help="rounds, instead of --min-calls")
    timing.add_argument(
        "--max-calls", type=int, metavar="N", help="never more calls than this, warm-up included"
    )
    timing.add_argument(
        "--launches",
        type=int,
        metavar="N",
        help="fresh processes to share the calls (default: 0, measure in this one)",
    )
    timing.add_argument(
        "--warm-up", type=float, metavar="S", help="longest warm-up in seconds (default: 10)"
    )
    timing.add_argument("--timeout", type=float, metavar="S", help="seconds per call (default: 60)")
    timing.add_argument(
        "--threads", type=int, metavar="N", help="threads while searching (default: 1)"
    )
    timing.add_argument(
        "--collector",
        choices=("on", "off"),
        default="off",
        help="Python's garbage collector during timed calls (default: off)",
    )
    timing.add_argument(
        "--percentiles",
        type=float,
        nargs="+",
        action="extend",
        default=[],
        metavar="P",
        help="such as 50 90 99.9 (default: 50 95 99)",
    )
    parser.add_argument(
        "--no-pictures",
        action="store_false",
        dest="pictures",
        help="draw no pictures of the times into the run's folder",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="build and check everything, count calls, run none"
    )
    add_format(parser)
