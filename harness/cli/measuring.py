"""The commands that measure: ``bench`` and ``compare``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.console import (
    INTERRUPTED,
    NOT_JUDGED,
    OK,
    add_format,
    output_kept_clean,
    reporter,
    say,
    show,
)

if TYPE_CHECKING:
    from harness.comparison import Comparison
    from harness.measure.protocol import Protocol
    from harness.run import Run


def add_bench(commands: Any) -> None:
    """Measure one retriever on one dataset."""
    bench = commands.add_parser("bench", help="measure one retriever on one dataset")
    bench.add_argument(
        "--retriever",
        required=True,
        metavar="NAME_OR_YAML",
        help="config name, YAML file, mod:Class",
    )
    bench.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="override parameters of the retriever by dotted path",
    )
    bench.add_argument("--out", type=Path, metavar="DIR", help="folder of the run")
    bench.add_argument(
        "--protocol",
        choices=("own", "tutorial"),
        default="own",
        help="tutorial: the latency of the usual notebook, to see how far it is off",
    )
    bench.add_argument(
        "--cold",
        type=int,
        nargs="?",
        const=5,
        metavar="N",
        help="then start N fresh processes (5) and time each step until the first answer",
    )
    _add_measuring(bench)
    bench.set_defaults(run=_bench)


def add_compare(commands: Any) -> None:
    """Put runs or retrievers side by side."""
    compare = commands.add_parser("compare", help="put two or more side by side, with verdicts")
    compare.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of saved runs")
    compare.add_argument("--retrievers", nargs="+", default=[], metavar="NAME_OR_YAML")
    _add_measuring(compare)
    unused = {"runs", "format", "debug", "help"}
    compare.set_defaults(
        run=_compare,
        measuring_defaults={
            action.dest: action.default for action in compare._actions if action.dest not in unused
        },
    )


def _bench(options: argparse.Namespace) -> int:
    from harness.errors import ConfigError
    from harness.report import tables
    from harness.report.cold_tables import cold_tables
    from harness.sessions import prepared

    if options.cold is not None and options.cold < 1:
        raise ConfigError(
            f"--cold {options.cold}",
            accepted="a number of processes, at least 1",
            fix="leave the number out for 5",
        )
    _check_together(options)
    with output_kept_clean():
        experiment = prepared(
            [options.retriever],
            options.dataset,
            split=options.split,
            k=options.k,
            metrics=options.metrics,
            overrides=options.set,
            protocol=_protocol(options),
            out=options.out,
            save=not options.dry_run and options.protocol == "own",
        )
    if options.dry_run:
        return _dry_run(experiment, options)
    if options.protocol == "tutorial":
        return _tutorial(experiment, options)

    def print_runs(runs: Sequence[Run]) -> None:
        show(options, runs[0].summary, lambda: tables.run_tables(runs[0]))

    runs = _measured(experiment, print_runs)
    _draw(runs, options)
    if options.cold is None:
        print_runs(runs)
        return _code(runs)
    try:
        start = _cold(options, runs[0])
    except BaseException:  # also Ctrl-C: what was measured is there
        print_runs(runs)
        raise
    show(
        options,
        {**runs[0].summary, "cold": start.as_dict()},
        lambda: [*tables.run_tables(runs[0]), *cold_tables(start)],
    )
    return INTERRUPTED if start.interrupted else _code(runs)


def _compare(options: argparse.Namespace) -> int:
    from harness.comparison import compare_runs
    from harness.report import tables
    from harness.types import Verdict

    def print_comparison(comparison: Comparison) -> None:
        show(options, comparison.as_dict(), lambda: tables.comparison_tables(comparison))

    if options.runs:
        runs = _read_runs(options)
    else:
        experiment = _prepare_comparison(options)
        if options.dry_run:
            return _dry_run(experiment, options)
        runs = _measured(experiment, lambda unsaved: print_comparison(compare_runs(unsaved)))
        _draw(runs, options)
    comparison = compare_runs(runs)
    print_comparison(comparison)
    code = OK if options.runs else _code(runs)
    if code != OK:  # an interruption may also leave runs that cannot be compared
        return code
    unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
    if all(delta.verdict in unjudged for delta in comparison.deltas):
        say("retrieval-bench: none of these runs can be compared with another")
        return NOT_JUDGED
    return OK


def _measured(experiment: Any, print_runs: Callable[[Sequence[Run]], None]) -> list[Run]:
    """The runs of ``experiment``; what was measured but cannot be saved is shown at least."""
    from harness.errors import RecordError

    try:
        with output_kept_clean(), reporter() as told:
            runs: list[Run] = experiment.run(told)
    except RecordError as problem:
        if problem.runs:
            print_runs(problem.runs)
        raise
    return runs


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options of which one would silently do nothing.

    Raises:
        ConfigError: they do not go together.
    """
    from harness.errors import ConfigError

    if options.cold is not None and options.max_calls is not None:
        raise ConfigError(
            "--cold with --max-calls",
            accepted="one of them: every fresh process makes calls that no limit counts",
            fix="leave one out",
        )
    usual: dict[str, Any] = dict.fromkeys(
        ("cold", "out", "rounds", "min_calls", "warm_up", "launches")
    )
    usual |= {"percentiles": [], "collector": "off", "profile": "default"}
    given = [
        f"--{name.replace('_', '-')}"
        for name, value in usual.items()
        if getattr(options, name) != value
    ]
    if options.protocol == "tutorial" and given:
        raise ConfigError(
            f"{', '.join(given)} with --protocol tutorial",
            accepted="neither: the notebook has one pass, its own figures, and saves nothing",
            fix="leave them out, or leave --protocol out",
        )


def _tutorial(experiment: Any, options: argparse.Namespace) -> int:
    from harness.report.tables import tutorial_table

    with output_kept_clean(), reporter() as told:
        found = experiment.tutorial(told)
    name, data = experiment.candidates[0].name, experiment.dataset.name
    document = {"retriever": name, "dataset": data, "k": options.k, "latency_ms": found.as_dict()}
    show(options, document, lambda: [tutorial_table(name, data, options.k, found)])
    return OK if found.n else NOT_JUDGED


def _cold(options: argparse.Namespace, run: Run) -> Any:
    """The start from nothing, in fresh processes; kept in the folder of the run."""
    from harness.cold import cold_start
    from harness.records import COLD, add_files, to_json

    with output_kept_clean(), reporter() as told, told.phase("starting from cold") as task:
        start = cold_start(
            options.retriever,
            options.dataset,
            split=options.split,
            k=options.k,
            overrides=options.set,
            processes=options.cold,
            threads=options.threads or 1,
            progress=task,
        )
    if run.folder is not None:
        add_files(run.folder, {COLD: to_json(start.as_dict()) + "\n"})
    return start


def _draw(runs: Sequence[Run], options: argparse.Namespace) -> None:
    """The pictures of saved runs; whatever prevents them, the figures are there."""
    from harness.errors import HarnessError
    from harness.records import PICTURES, add_files
    from harness.report.run_pictures import run_pictures, side_by_side

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


def _prepare_comparison(options: argparse.Namespace) -> Any:
    from harness.errors import ConfigError
    from harness.sessions import prepared

    if len(options.retrievers) < 2:
        raise ConfigError(
            f"{len(options.retrievers)} retrievers and no runs to compare",
            accepted="compare RUN RUN ..., or compare --retrievers A B --dataset D",
            fix="give two or more; use bench for one",
        )
    with output_kept_clean():
        return prepared(
            options.retrievers,
            options.dataset,
            split=options.split,
            k=options.k,
            metrics=options.metrics,
            protocol=_protocol(options),
            save=not options.dry_run,
        )


def _read_runs(options: argparse.Namespace) -> list[Run]:
    from harness.errors import ConfigError
    from harness.records import read_run

    for name, usual in options.measuring_defaults.items():
        if getattr(options, name) != usual:
            raise ConfigError(
                f"--{name.replace('_', '-')} for saved runs",
                accepted="saved runs as they are, or --retrievers to measure",
                fix="leave the option out: it was settled when the runs were made",
            )
    return [read_run(folder) for folder in options.runs]


def _dry_run(experiment: Any, options: argparse.Namespace) -> int:
    from harness.report.tables import plan_table

    calls = experiment.plan
    names = [candidate.name for candidate in experiment.candidates]
    most = None if calls.warm_up_most is None else calls.measured + calls.warm_up_most
    document = {
        "retrievers": names,
        "dataset": experiment.dataset.name,
        "queries": len(experiment.queries),
        "rounds": calls.rounds,
        "measured_calls": calls.measured,
        "launches": calls.launches,
        "warm_up_calls_at_least": calls.warm_up,
        "warm_up_calls_at_most": calls.warm_up_most,
        "warm_up_seconds_at_most": experiment.protocol.warm_up_s,
        "calls_at_least": calls.total * calls.launches * len(names),
        "calls_at_most": None if most is None else most * calls.launches * len(names),
        "warnings": list(experiment.dataset.warnings),
    }
    experiment.close()
    show(options, document, lambda: [plan_table(document)])
    return OK


def _code(runs: Sequence[Run]) -> int:
    if any(run.summary["status"] == "partial" for run in runs):
        say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    unjudged = [run for run in runs if not _answered(run)]
    for run in unjudged:
        say(f"retrieval-bench: nothing could be judged of {run.name}: no evaluated query answered")
    return NOT_JUDGED if unjudged else OK


def _answered(run: Run) -> bool:
    """Whether any query that counts was answered."""
    status = dict(zip(run.rankings.query_ids, run.status, strict=True))
    return any(status[query_id] == "ok" for query_id in run.evaluation.query_ids)


def _protocol(options: argparse.Namespace) -> Protocol:
    from harness.measure.protocol import Protocol

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


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset",
        default="science-mini",
        metavar="NAME_OR_PATH",
        help="name or folder (default: science-mini)",
    )
    parser.add_argument("--split", default="test", help="split of the judgements (default: test)")
    parser.add_argument("--k", type=int, default=10, help="hits per query (default: 10)")
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
