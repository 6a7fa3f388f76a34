"""The command line: the only module that prints and exits.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.

Exit codes: 0 fine; 1 a regression or a missed published number; 2 bad input; 3 could not judge;
70 a bug of ours; 130 interrupted (what was finished is saved, marked as partial).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.comparison import Comparison
    from harness.measure.protocol import Protocol
    from harness.report.tables import Table
    from harness.run import Run

OK, BAD_INPUT, NOT_JUDGED, BUG, INTERRUPTED = 0, 2, 3, 70, 130

FORMATS = ("table", "json", "markdown")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code."""
    options = _parser().parse_args(arguments)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Ids and texts in any script must print, whatever the terminal's encoding is.
            stream.reconfigure(errors="backslashreplace")
    from harness.errors import HarnessError

    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except HarnessError as problem:
        _tell(problem, "error", traceback=options.debug)
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("retrieval-bench: interrupted; nothing was saved")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away. Python flushes stdout once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as problem:
        _tell(problem, f"cannot print the result: {problem.strerror}", traceback=options.debug)
        return BAD_INPUT
    except Exception as problem:
        _tell(problem, "this is a bug of retrieval-bench, please report it", traceback=True)
        return BUG
    return code


def _tell(problem: Exception, what: str, *, traceback: bool) -> None:
    import traceback as tracebacks

    from harness import secrets
    from harness.errors import HarnessError

    text = what
    if isinstance(problem, HarnessError):
        text = f"{what}: {problem.render()}"
    if traceback:
        text = "".join(tracebacks.format_exception(problem)) + text
    _say(f"retrieval-bench: {secrets.redact(text)}")


def _bench(options: argparse.Namespace) -> int:
    from harness.preparation import prepare
    from harness.report import tables

    with _output_kept_clean():
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

    def show(runs: Sequence[Run]) -> None:
        _print(options, runs[0].summary, lambda: tables.run_tables(runs[0]))

    runs = _measured(experiment, show)
    show(runs)
    return _code(runs)


def _compare(options: argparse.Namespace) -> int:
    from harness.comparison import compare_runs
    from harness.report import tables
    from harness.types import Verdict

    def show(comparison: Comparison) -> None:
        _print(options, comparison.as_dict(), lambda: tables.comparison_tables(comparison))

    if options.runs:
        runs = _read_runs(options)
    else:
        experiment = _prepare_comparison(options)
        if options.dry_run:
            return _dry_run(experiment, options)
        runs = _measured(experiment, lambda unsaved: show(compare_runs(unsaved)))
    comparison = compare_runs(runs)
    show(comparison)
    code = OK if options.runs else _code(runs)
    if code != OK:  # an interruption may also leave runs that cannot be compared
        return code
    unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
    if all(delta.verdict in unjudged for delta in comparison.deltas):
        _say("retrieval-bench: none of these runs can be compared with another")
        return NOT_JUDGED
    return OK


def _measured(experiment: Any, show: Callable[[Sequence[Run]], None]) -> list[Run]:
    """The runs of ``experiment``; what was measured but cannot be saved is shown at least."""
    from harness.errors import RecordError

    try:
        with _output_kept_clean(), _reporter() as reporter:
            runs: list[Run] = experiment.run(reporter)
    except RecordError as problem:
        if problem.runs:
            show(problem.runs)
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
    with _output_kept_clean():
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


def _list(options: argparse.Namespace) -> int:
    from harness.report import catalog

    entries = catalog.entries()
    _print(options, entries, lambda: catalog.catalog_tables(entries))
    return OK


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
    _print(options, document, lambda: [plan_table(document)])
    return OK


def _code(runs: Sequence[Run]) -> int:
    if any(run.summary["status"] == "partial" for run in runs):
        _say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    unjudged = [run for run in runs if not _answered(run)]
    for run in unjudged:
        _say(f"retrieval-bench: nothing could be judged of {run.name}: no evaluated query answered")
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


def _print(options: argparse.Namespace, document: Any, tables: Any) -> None:
    from harness.records import to_json
    from harness.report import render

    if options.format == "json":
        sys.stdout.write(to_json(document) + "\n")
        return
    made: list[Table] = tables()
    if options.format == "markdown":
        sys.stdout.write(render.markdown(made))
        return
    from rich.console import Console

    console = Console(file=sys.stdout)
    with console.capture() as capture:
        render.to_console(made, console)
    sys.stdout.write(capture.get())


@contextmanager
def _output_kept_clean() -> Iterator[None]:
    """What a retriever prints, from Python or below, goes to stderr: stdout is for results."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # closed by the caller: there is nothing to keep clean
        yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _say(text: str) -> None:
    if sys.stderr is None:  # closed by the caller
        return
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def _reporter() -> Iterator[Any]:
    """Progress bars on stderr when it is a terminal, nothing otherwise."""
    from harness.experiment import Silent

    if sys.stderr is None or not sys.stderr.isatty():
        yield Silent()
        return
    from harness.report.progress import Bars

    with Bars(sys.stderr) as bars:
        yield bars


def _parser() -> argparse.ArgumentParser:
    from harness import __version__

    parser = argparse.ArgumentParser(
        prog="retrieval-bench",
        description="Measure retrievers side by side: ranking quality and latency.",
        epilog="exit codes: 0 fine, 1 regression, 2 bad input, 3 could not judge, 70 a bug, "
        "130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"retrieval-bench {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

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

    listing = commands.add_parser("list", help="show retrievers, datasets and metrics there are")
    _add_common(listing)
    listing.set_defaults(run=_list)
    return parser


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
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")


if __name__ == "__main__":
    sys.exit(main())
