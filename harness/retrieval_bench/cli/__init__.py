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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EDQUOT, ELOOP, ENAMETOOLONG, ENOSPC, EPERM, EROFS
from functools import partial
from typing import TYPE_CHECKING

from retrieval_bench.cli.commands import parsed
from retrieval_bench.cli.commands import parser as parser
from retrieval_bench.cli.console import BAD_INPUT, BUG, INTERRUPTED, NOT_MEASURED, say

if TYPE_CHECKING:
    from retrieval_bench.core.errors import HarnessError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command in this process; gives the exit code.

    For tests and for embedding: the console command is :func:`command`.
    """
    return run(parsed(arguments))


def command(arguments: Sequence[str] | None = None) -> int:
    """Run one command in a child process, which cannot lie about it; gives the exit code."""
    if "_ARGCOMPLETE" in os.environ:  # the shell asks how a word may go on
        import argcomplete

        argcomplete.autocomplete(parser())
    options = parsed(arguments)
    from retrieval_bench.cli.process import guarded

    return guarded(partial(run, options))


def run(options: argparse.Namespace) -> int:
    """Run the command that ``options`` name; gives the exit code, whatever is raised."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Ids and texts in any script must print, whatever the terminal's encoding is.
            stream.reconfigure(errors="backslashreplace")
    from retrieval_bench.core.calls.foreign import TerminatedError
    from retrieval_bench.core.calls.waiting import waits_told
    from retrieval_bench.core.errors import HarnessError, Interrupted, NothingMeasuredError

    try:
        _check_folder()
        _check_memory()
        _check_needs(options)
        with _refusals_told(), waits_told(None if getattr(options, "quiet", False) else say):
            code: int = options.run(options)
    except HarnessError as problem:
        code = NOT_MEASURED if isinstance(problem, NothingMeasuredError) else BAD_INPUT
        as_document = getattr(options, "format", None) == "json"
        if as_document:
            _put_error(problem, code)
        if options.debug or not as_document:
            _tell(problem, "error", traceback=options.debug)
        return code
    except KeyboardInterrupt as stopped:
        known = isinstance(stopped, Interrupted)
        say(f"retrieval-bench: {stopped if known else 'interrupted before it was done'}")
        return INTERRUPTED
    except TerminatedError as ended:
        return int(ended.code or 0)
    except MemoryError as problem:
        what = "error: there is not enough memory\n  do: free some, or raise its limit (ulimit -v)"
        _tell(problem, what, traceback=options.debug)
        code = NOT_MEASURED
    except Exception as problem:
        _tell(problem, "this is a bug of retrieval-bench, please report it", traceback=True)
        return BUG
    except BaseException as problem:  # of foreign code: ours raises none of that kind
        from retrieval_bench.core.calls.foreign import message_of

        _tell(problem, f"error: loaded code raised {message_of(problem)}", traceback=options.debug)
        return NOT_MEASURED
    return code


def _check_folder() -> None:
    """Raises:
    ConfigError: the current folder was removed, so that no path can start there.
    """
    from retrieval_bench.core.errors import ConfigError

    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        raise ConfigError(
            "the current folder is gone",
            where=os.environ.get("PWD", ""),
            accepted="a folder that exists",
            fix="go to another one: cd",
        ) from None


_LEAST_MEMORY_MB = 300
"""Below, loading the numeric libraries fails inside of them, or never ends."""


def _check_memory() -> None:
    """Raises:
    ConfigError: a limit leaves less address space than is loaded before any work is done.
    """
    from retrieval_bench.core.errors import ConfigError

    try:
        import resource
    except ImportError:  # Windows
        return
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed != resource.RLIM_INFINITY and allowed < _LEAST_MEMORY_MB * 1_000_000:
        raise ConfigError(
            f"a limit leaves this process {allowed // 1_000_000:,} MB of address space",
            where="ulimit -v",
            accepted=f"{_LEAST_MEMORY_MB} MB and more, for Python and its numeric libraries",
            fix="raise it: ulimit -v unlimited",
        )


_REFUSALS = (EACCES, EPERM, EROFS, ENOSPC, EDQUOT, ELOOP, ENAMETOOLONG)


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Raises:
    ConfigError: a path that the system does not let us look at or write to, wherever it came up.
    """
    from retrieval_bench.core.errors import ConfigError

    try:
        yield
    except OSError as problem:
        if problem.errno not in _REFUSALS or problem.filename is None:
            raise
        raise ConfigError(
            f"a path that cannot be used: {problem.strerror}",
            where=str(problem.filename),
            accepted="one that is there, or can be made, and that you may read and write",
            fix="correct its name or its rights, make room there, or name another one",
        ) from problem


def _check_needs(options: argparse.Namespace) -> None:
    """Raises:
    ConfigError: what the command is about is not named, where that is needed.
    """
    needs = getattr(options, "needs", None)
    if needs is None or getattr(options, needs.name) is not None:
        return
    from retrieval_bench.core.config import retriever_names
    from retrieval_bench.core.errors import ConfigError, listed

    accepted, fix = needs.accepted, f"give it behind the command, or with {needs.option}"
    if needs.name == "retriever":
        accepted = f"{listed(retriever_names())}, a YAML file, or module:Class"
        fix = "name one, such as hybrid"
    raise ConfigError(f"no {needs.option.lstrip('-')}", accepted=accepted, fix=fix)


def _put_error(problem: HarnessError, code: int) -> None:
    """The message as a document, for whoever reads stdout."""
    from retrieval_bench.cli.console import put_document
    from retrieval_bench.cli.problem import Error, Fault
    from retrieval_bench.core import secrets

    parts = {"what": "given", "where": "where", "accepted": "accepted", "do": "fix"}
    told = {name: secrets.redact(getattr(problem, part)) for name, part in parts.items()}
    faults = [secrets.redact(fault) for fault in getattr(problem, "faults", ())]
    put_document(Error(Fault(problem.kind, **told, faults=faults), code))


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
