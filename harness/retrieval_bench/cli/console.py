"""How commands speak: results on stdout, in the format asked for; everything else on stderr."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrieval_bench.reports.render.table import Table

OK, REGRESSION, BAD_INPUT, UNDECIDED, NOT_MEASURED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
"""Exit codes, each with one meaning; see :mod:`retrieval_bench.cli`."""


def show(options: argparse.Namespace, document: Any, tables: Callable[[], Sequence[Table]]) -> None:
    """Print a result: ``document`` as JSON, or the tables that are made from it."""
    from retrieval_bench.reports.render import csv, latex, markdown, terminal
    from retrieval_bench.runs.records import to_json

    if options.format == "json":
        put(to_json(document) + "\n")
        return
    laid_out = tables()
    texts = {"markdown": markdown, "latex": latex, "csv": csv}
    if options.format in texts:
        put(texts[options.format].render(laid_out))
        return
    from rich.console import Console

    drawn = io.StringIO()
    terminal.to_console(laid_out, Console(file=drawn, force_terminal=sys.stdout.isatty() or None))
    put(drawn.getvalue())


def put(text: str) -> None:
    """Print a result. A reader that went away, as `head` does, is no error: the command goes on,
    and its exit code is its own.

    Raises:
        RecordError: it cannot be printed for another reason, such as a full disk.
    """
    from retrieval_bench.core.errors import RecordError

    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as problem:
        # Python flushes stdout once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(problem, BrokenPipeError):
            raise RecordError(
                f"cannot print the result: {problem.strerror}",
                where="stdout",
                fix="free some space, or print to another place",
            ) from None


@contextmanager
def output_kept_clean() -> Iterator[None]:
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


def say(text: str) -> None:
    """Tell the user something that is no result."""
    from retrieval_bench.core.figures import visible

    if sys.stderr is None:  # closed by the caller
        return
    with suppress(OSError):  # nobody reads it
        sys.stderr.write(visible(text, keep="\n\t") + "\n")
        sys.stderr.flush()


@contextmanager
def reporter() -> Iterator[Any]:
    """Progress bars on stderr when it is a terminal, nothing otherwise."""
    from retrieval_bench.core.progress import Silent

    if sys.stderr is None or not sys.stderr.isatty():
        yield Silent()
        return
    from retrieval_bench.reports.progress import Bars

    with Bars(sys.stderr) as bars:
        yield bars


@contextmanager
def working() -> Iterator[Any]:
    """Both of these, for as long as a command works; gives the reporter."""
    with output_kept_clean(), reporter() as bars:
        yield bars
