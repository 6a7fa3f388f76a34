"""The command line: the only module that prints and exits.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.

Exit codes: 0 fine; 1 a regression or a missed published number; 2 bad input; 3 could not judge;
130 interrupted (what was finished is saved, marked as partial).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.measure.protocol import Protocol
    from harness.report.tables import Table
    from harness.run import Run

OK, BAD_INPUT, NOT_JUDGED, INTERRUPTED = 0, 2, 3, 130

FORMATS = ("table", "json", "markdown")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Ids and texts in any script must print, whatever the terminal's encoding is.
            stream.reconfigure(errors="backslashreplace")
    from harness import secrets
    from harness.errors import HarnessError

    try:
        code: int = options.run(options)
    except HarnessError as problem:
        if options.debug:
            raise
        _say(f"retrieval-bench: error: {secrets.redact(problem.render())}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("retrieval-bench: interrupted before any query was measured; nothing was saved")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nothing is left to say
        return OK
    return code


def _bench(options: argparse.Namespace) -> int:
    from harness.experiment import prepare
    from harness.report import tables

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
    with _reporter() as reporter:
        (run,) = experiment.run(reporter)
    _print(options, run.summary, lambda: tables.run_tables(run))
    return _code([run])


def _compare(options: argparse.Namespace) -> int:
    from harness.comparison import compare_runs
    from harness.errors import ConfigError
    from harness.experiment import prepare
    from harness.records import read_run
    from harness.report import tables
    from harness.types import Verdict

    if bool(options.runs) == bool(options.retrievers):
        raise ConfigError(
            "neither runs nor retrievers" if not options.runs else "both runs and retrievers",
            accepted="compare RUN RUN ..., or compare --retrievers A B --dataset D",
            fix="give one of the two",
        )
    if options.runs:
        runs = [read_run(folder) for folder in options.runs]
    else:
        experiment = prepare(
            options.retrievers,
            options.dataset,
            split=options.split,
            k=options.k,
            metrics=options.metrics,
            protocol=_protocol(options),
            save=not options.dry_run,
        )
        if len(experiment.candidates) < 2:
            raise ConfigError(
                "one retriever to compare", accepted="two or more", fix="use bench for one"
            )
        if options.dry_run:
            return _dry_run(experiment, options)
        with _reporter() as reporter:
            runs = experiment.run(reporter)
    comparison = compare_runs(runs)
    _print(options, comparison.as_dict(), lambda: tables.comparison_tables(comparison))
    if all(delta.verdict is Verdict.NOT_COMPARABLE for delta in comparison.deltas):
        _say("retrieval-bench: none of these runs can be compared with another")
        return NOT_JUDGED
    return _code(runs)


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
    _print(options, document, lambda: [plan_table(document)])
    return OK


def _code(runs: Sequence[Run]) -> int:
    if any(run.summary["status"] == "partial" for run in runs):
        _say("retrieval-bench: interrupted; what was finished is saved, marked as partial")
        return INTERRUPTED
    failed = [run for run in runs if all(status != "ok" for status in run.status)]
    for run in failed:
        _say(f"retrieval-bench: every query of {run.name} failed: nothing could be judged")
    return NOT_JUDGED if failed else OK


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
    if options.format == "json":
        import json

        sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n")
        return
    from harness.report import render

    made: list[Table] = tables()
    if options.format == "markdown":
        sys.stdout.write(render.markdown(made))
        return
    from rich.console import Console

    render.to_console(made, Console(file=sys.stdout))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def _reporter() -> Iterator[Any]:
    """Progress bars on stderr when it is a terminal, nothing otherwise."""
    from harness.experiment import Silent

    if not sys.stderr.isatty():
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
        epilog="exit codes: 0 fine, 1 regression, 2 bad input, 3 could not judge, 130 interrupted",
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
    compare.set_defaults(run=_compare)

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
