"""The command line: the only package that prints and exits.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.

Exit codes: 0 done, and nothing got worse; 1 a regression or a missed published number, and nothing
else; 2 bad input; 3 measured, but undecided; 4 nothing could be measured; 70 a bug of ours; 130
interrupted (what was finished is saved, marked as partial).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from retrieval_bench.cli.answering import add_qa, add_submit
from retrieval_bench.cli.benching import add_bench
from retrieval_bench.cli.comparing import add_compare
from retrieval_bench.cli.console import BAD_INPUT, BUG, INTERRUPTED, NOT_MEASURED, say
from retrieval_bench.cli.dueting import add_duet
from retrieval_bench.cli.explaining import add_diff
from retrieval_bench.cli.fetching import add_fetch
from retrieval_bench.cli.history import add_history
from retrieval_bench.cli.listing import add_list
from retrieval_bench.cli.outcomes import add_outcomes
from retrieval_bench.cli.regressing import add_baseline, add_regress
from retrieval_bench.cli.reporting import add_report
from retrieval_bench.cli.reproducing import add_reproduce
from retrieval_bench.cli.scoring import add_audit, add_evaluate, add_reader
from retrieval_bench.cli.selftesting import add_selftest
from retrieval_bench.cli.tuning import add_tune


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command in this process; gives the exit code.

    For tests and for embedding: the console command is :func:`command`.
    """
    return run(parser().parse_args(arguments))


def command(arguments: Sequence[str] | None = None) -> int:
    """Run one command in a child process, which cannot lie about it; gives the exit code."""
    options = parser().parse_args(arguments)
    from retrieval_bench.cli.guard import guarded

    return guarded(partial(run, options))


def run(options: argparse.Namespace) -> int:
    """Run the command that ``options`` name; gives the exit code, whatever is raised."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Ids and texts in any script must print, whatever the terminal's encoding is.
            stream.reconfigure(errors="backslashreplace")
    from retrieval_bench.core.errors import HarnessError, Interrupted
    from retrieval_bench.core.foreign import TerminatedError

    try:
        _check_folder()
        code: int = options.run(options)
    except HarnessError as problem:
        _tell(problem, "error", traceback=options.debug)
        return BAD_INPUT
    except KeyboardInterrupt as stopped:
        known = isinstance(stopped, Interrupted)
        say(f"retrieval-bench: {stopped if known else 'interrupted before it was done'}")
        return INTERRUPTED
    except TerminatedError as ended:
        return int(ended.code or 0)
    except Exception as problem:
        _tell(problem, "this is a bug of retrieval-bench, please report it", traceback=True)
        return BUG
    except BaseException as problem:  # of foreign code: ours raises none of that kind
        from retrieval_bench.core.foreign import message_of

        _tell(problem, f"error: loaded code raised {message_of(problem)}", traceback=options.debug)
        return NOT_MEASURED
    return code


def _check_folder() -> None:
    """Raises:
    ConfigError: the current folder was removed, so that no path can start there.
    """
    from retrieval_bench.core.errors import ConfigError

    try:
        Path.cwd()
    except OSError:
        raise ConfigError(
            "the current folder is gone",
            where=os.environ.get("PWD", ""),
            accepted="a folder that exists",
            fix="go to another one: cd",
        ) from None


def _tell(problem: BaseException, what: str, *, traceback: bool) -> None:
    import traceback as tracebacks

    from retrieval_bench.core import secrets
    from retrieval_bench.core.errors import HarnessError

    text = what
    if isinstance(problem, HarnessError):
        text = f"{what}: {problem.render()}"
    if traceback:
        text = "".join(tracebacks.format_exception(problem)) + text
    say(f"retrieval-bench: {secrets.redact(text)}")


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    from retrieval_bench.core.version import VERSION

    whole = argparse.ArgumentParser(
        prog="retrieval-bench",
        description="Measure retrievers side by side: ranking quality and latency.",
        epilog="exit codes: 0 done and nothing got worse, 1 regression or missed published number, "
        "2 bad input, 3 undecided, 4 nothing could be measured, 70 a bug, 130 interrupted",
    )
    whole.add_argument("--version", action="version", version=f"retrieval-bench {VERSION}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (
        add_bench,
        add_compare,
        add_report,
        add_diff,
        add_tune,
        add_duet,
        add_selftest,
        add_history,
        add_baseline,
        add_regress,
        add_evaluate,
        add_audit,
        add_reader,
        add_qa,
        add_submit,
        add_outcomes,
        add_reproduce,
        add_fetch,
        add_list,
    ):
        add(commands)
    return whole
