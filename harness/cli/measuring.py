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
    _add_measuring(bench)
    bench.set_defaults(run=_bench)


def add_compare(commands: Any) -> None:
    """Put runs or retrievers side by side."""
    compare = commands.add_parser("compare", help="put two or more side by side, with verdicts")
    compare.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of saved runs")
    compare.add_argument("--retrievers", nargs="+", default=[], metavar="NAME_OR_YAML")
    _add_measuring(compare)
    measuring = ("dataset", "split", "k", "metrics", "min_calls", "rounds", "max_calls", "timeout")
    compare.set_defaults(
        run=_compare,
        measuring_defaults={
            name: compare.get_default(name)
            for name in (*measuring, "threads", "dry_run", "retrievers")
        },
    )


def _bench(options: argparse.Namespace) -> int:
    from harness.preparation import prepare
    from harness.report import tables

    with output_kept_clean():
        experiment = prepare(
            [options.retriever],
            options.dataset,
            split=options.split,
            k=options.k,
            metrics=options.metrics,
            overrides=options.set,
            protocol=_protocol(options),
            out=options.out,
            save=not options.dry_run,
        )
    if options.dry_run:
        return _dry_run(experiment, options)

    def print_runs(runs: Sequence[Run]) -> None:
        show(options, runs[0].summary, lambda: tables.run_tables(runs[0]))

    runs = _measured(experiment, print_runs)
    print_runs(runs)
    return _code(runs)


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


def _prepare_comparison(options: argparse.Namespace) -> Any:
    from harness.errors import ConfigError
    from harness.preparation import prepare

    if len(options.retrievers) < 2:
        raise ConfigError(
            f"{len(options.retrievers)} retrievers and no runs to compare",
            accepted="compare RUN RUN ..., or compare --retrievers A B --dataset D",
            fix="give two or more; use bench for one",
        )
    with output_kept_clean():
        return prepare(
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
    document = {
        "retrievers": names,
        "dataset": experiment.dataset.name,
        "queries": len(experiment.queries),
        "rounds": calls.rounds,
        "measured_calls": calls.measured,
        "warm_up_calls_at_most": calls.warm_up,
        "calls_at_most_per_retriever": calls.total,
        "calls_at_most": calls.total * len(names),
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

    return Protocol(
        min_calls=options.min_calls,
        rounds=options.rounds,
        max_calls=options.max_calls,
        timeout_s=options.timeout,
        threads=options.threads,
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
        "--min-calls", type=int, default=1000, metavar="N", help="measured calls (default: 1000)"
    )
    timing.add_argument("--rounds", type=int, metavar="N", help="rounds, instead of --min-calls")
    timing.add_argument(
        "--max-calls", type=int, metavar="N", help="never more calls than this, warm-up included"
    )
    timing.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds per call (default: 60)"
    )
    timing.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads while searching (default: 1)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="build and check everything, count calls, run none"
    )
    add_format(parser)
