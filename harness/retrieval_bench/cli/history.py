"""The command ``history``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, add_format, how_many, put, say, show

if TYPE_CHECKING:
    from retrieval_bench.regression.history import Subject
    from retrieval_bench.regression.history.records import Found, SavedDuet, SavedRun

DEFAULT = Path("results") / "history.svg"
LAST = 30
BENCHMARK = "github-action-benchmark"


def add_history(commands: Any) -> None:
    """Saved runs and duets over time and revisions."""
    history = commands.add_parser(
        "history", help="saved runs and duets over time and revisions, with a picture"
    )
    history.add_argument(
        "--retriever", metavar="NAME_OR_YAML", help="its runs, and duets on it (default: all)"
    )
    history.add_argument("--dataset", metavar="NAME_OR_FOLDER", help="runs on it (default: all)")
    history.add_argument(
        "--metric",
        nargs="+",
        action="extend",
        default=[],
        metavar="METRIC",
        help="default: the first of the newest run",
    )
    history.add_argument(
        "--runs",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="DIR",
        help="folders that hold runs or duets (default: results/runs and results/duets)",
    )
    history.add_argument(
        "--last",
        type=how_many,
        default=LAST,
        metavar="N",
        help=f"the newest of each: a number or `all` (default: {LAST})",
    )
    history.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"the picture, replaced when it is there (default: {DEFAULT.as_posix()})",
    )
    history.add_argument("--no-pictures", action="store_false", dest="pictures", help="draw none")
    history.add_argument(
        "--what",
        choices=("latency", "quality"),
        help=f"figures for --format {BENCHMARK}, which takes one direction in a file",
    )
    add_format(history, more=(BENCHMARK,))
    history.set_defaults(run=_history)


def _history(options: argparse.Namespace) -> int:
    from retrieval_bench.regression.history.lines import SCHEMA_VERSION, subjects
    from retrieval_bench.regression.history.records import read_history
    from retrieval_bench.reports.tables.history import history_tables

    _check_together(options)
    metrics = _metrics(options.metric)
    found = read_history(options.runs)
    runs, duets = _asked_for(found, options)
    chosen = subjects(runs, duets, metrics=metrics, last=options.last)
    _check_metrics(metrics, chosen)
    if options.format == BENCHMARK:
        return _benchmark(options, chosen, found)
    notes = _draw(options, chosen)
    document = {
        "schema_version": SCHEMA_VERSION,
        "subjects": [subject.as_dict() for subject in chosen],
        "left_out": [one.as_dict() for one in found.left_out],
        "copies": found.copies,
    }
    if chosen or options.format == "json":
        show(options, document, lambda: history_tables(chosen, found, notes))
    if not chosen:
        _say_nothing_there(options, found)
        return NOT_MEASURED
    return OK


def _asked_for(
    found: Found, options: argparse.Namespace
) -> tuple[Sequence[SavedRun], Sequence[SavedDuet]]:
    """Runs by name or file. Duets by name: their files lay in the checkout of a revision."""
    from retrieval_bench.data import dataset_name
    from retrieval_bench.regression.history.records import called, called_data

    runs, duets = found.runs, found.duets
    if (dataset := options.dataset) is not None:
        data = called_data(dataset)
        runs = tuple(run for run in runs if dataset == run.dataset or data == run.data)
        names = {dataset, dataset_name(dataset), *(run.dataset for run in runs)}
        duets = tuple(duet for duet in duets if duet.dataset in names)
    if (retriever := options.retriever) is not None:
        name, source = called(retriever)
        runs = tuple(run for run in runs if retriever == run.retriever or source == run.source)
        duets = tuple(duet for duet in duets if duet.retriever in (retriever, name))
    return runs, duets


def _check_together(options: argparse.Namespace) -> None:
    """Raises:
    ConfigError: an option that would do nothing, or one that is missing.
    """
    from retrieval_bench.core.errors import ConfigError

    benchmark = options.format == BENCHMARK
    if benchmark and options.what is None:
        raise ConfigError(
            f"--format {BENCHMARK} without --what",
            accepted="--what latency for customSmallerIsBetter, --what quality for "
            "customBiggerIsBetter: a file of the action has one direction",
            fix="say which, and make two files for both",
        )
    if options.what is not None and not benchmark:
        raise ConfigError(
            f"--what without --format {BENCHMARK}",
            accepted="both or neither: all other formats show quality and latency",
            fix="leave it out",
        )
    if options.out is not None and (benchmark or not options.pictures):
        raise ConfigError(
            "--out, and no picture to write",
            accepted=f"neither --no-pictures nor --format {BENCHMARK} with it",
            fix="leave one out; what is printed goes to a file with >",
        )
    if options.last == 0:
        raise ConfigError("--last 0", accepted="a number above 0, or `all`", fix="correct it")


def _metrics(names: Sequence[str]) -> list[str]:
    """``names`` as they stand in a summary."""
    from retrieval_bench.metrics import parse_metrics

    return list(dict.fromkeys(str(metric) for metric in parse_metrics(names))) if names else []


def _check_metrics(metrics: Sequence[str], chosen: Sequence[Subject]) -> None:
    """Raises:
    ConfigError: a metric that no run has.
    """
    from retrieval_bench.core.errors import ConfigError, near_names

    known = {name for subject in chosen for run in subject.runs for name in run.metrics}
    for metric in metrics:
        if known and metric not in known:
            raise ConfigError(
                f"metric {metric!r}, which no saved run has",
                where="--metric",
                accepted=near_names(metric, known),
                fix="name one of these, or measure with bench --metrics",
            )


def _draw(options: argparse.Namespace, chosen: Sequence[Subject]) -> list[str]:
    """Write the picture; gives where it is, or why there is none.

    Raises:
        HarnessError: it was asked for by name, and cannot be made.
    """
    from retrieval_bench.core.errors import ConfigError, HarnessError
    from retrieval_bench.reports.page.file import check_place, write_page
    from retrieval_bench.reports.tables.history_picture import history_picture

    if not options.pictures or not chosen:
        return []
    if len(chosen) > 1:
        if options.out is not None:
            raise ConfigError(
                f"--out for {len(chosen)} retrievers or datasets",
                accepted="a picture of one retriever on one dataset",
                fix="name them with --retriever and --dataset",
            )
        return []
    path = options.out or DEFAULT
    try:
        check_place(path, "picture")
        write_page(path, history_picture(chosen[0]), "picture")
    except HarnessError as problem:
        if options.out is not None:
            raise
        where = f" ({problem.where})" if problem.where else ""
        return [f"no picture: {problem.given}{where}; {problem.fix}"]
    return [f"picture: {path}"]


def _benchmark(options: argparse.Namespace, chosen: Sequence[Subject], found: Found) -> int:
    """Print what the action reads."""
    from retrieval_bench.reports.tables.github_benchmark import benchmark_entries, newest
    from retrieval_bench.runs.records import to_json

    entries = benchmark_entries(chosen, options.what)
    put(to_json(entries) + "\n")
    if entries:
        for subject, run in newest(chosen, options.what):
            say(f"retrieval-bench: {subject.retriever} on {subject.dataset}: {run.id}, "
                f"revision {run.revision}")  # fmt: skip
        return OK
    if any(run.counts for subject in chosen for run in subject.runs):
        say(f"retrieval-bench: the newest run has no {options.what} to show")
    else:
        _say_nothing_there(options, found)
    return NOT_MEASURED


def _say_nothing_there(options: argparse.Namespace, found: Found) -> None:
    """What was looked for, what is there in its place, and what to do."""
    there = sorted(
        {(run.retriever, run.dataset) for run in found.runs}
        | {(duet.retriever, duet.dataset) for duet in found.duets}
    )
    asked = [f"{name} {value!r}" for name in ("retriever", "dataset")
             if (value := getattr(options, name)) is not None]  # fmt: skip
    say(f"retrieval-bench: no saved run{' of ' if asked else ''}{' and '.join(asked)}")
    if there:
        shown = ", ".join(f"{retriever} on {data}" for retriever, data in there[:8])
        more = f" and {len(there) - 8} more" if len(there) > 8 else ""
        say(f"  there are: {shown}{more}")
    for one in found.left_out[:3]:
        say(f"  left out: {one.folder}: {one.reason}")
    command = ["retrieval-bench", "bench", "--retriever", options.retriever or "NAME"]
    command += ["--dataset", options.dataset] if options.dataset else []
    say(f"  do: measure one: {shlex.join(command)}")
