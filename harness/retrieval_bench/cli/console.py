"""How commands speak: results on stdout, in the format asked for; everything else on stderr."""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from retrieval_bench.capabilities import SCHEMA_VERSION, service

if TYPE_CHECKING:
    from retrieval_bench.core.as_json.document import Documented
    from retrieval_bench.reports.render.table import Table

OK, REGRESSION, BAD_INPUT, UNDECIDED, NOT_MEASURED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
"""Exit codes, each with one meaning; see :mod:`retrieval_bench.cli`."""


def show(
    options: argparse.Namespace,
    document: Documented | Mapping[str, Any] | None,
    tables: Callable[[], Sequence[Table]],
    brief: Callable[[], Sequence[Table]] | None = None,
    rows: Callable[[], Sequence[Mapping[str, Any]]] | None = None,
) -> None:
    """Print a result: ``document`` as JSON, or ``tables``.

    Args:
        tables: all there is; for LaTeX, and with ``--verbose``.
        brief: the answer and little more, where the command has such a thing.
        rows: tidy ones for CSV, where the command has such a thing; else its tables.
    """
    from retrieval_bench.reports.render import csv, markdown, terminal
    from retrieval_bench.reports.render.table import answers

    if options.format == "json":
        put_document({} if document is None else document, full=getattr(options, "full", False))
        return
    if options.format == "csv" and rows is not None:
        from retrieval_bench.reports.frames import MEANS

        figures = rows()
        put(csv.tidy(figures, () if figures else MEANS))
        return
    short = brief if options.format in ("table", "markdown") and not options.verbose else None
    laid_out = (short or tables)()
    if options.quiet:
        laid_out = answers(laid_out)
    texts = {"markdown": markdown, "csv": csv}
    if options.format in texts:
        put(texts[options.format].render(laid_out))
        return
    if options.format == "latex":
        put(service("write LaTeX")(laid_out))
        return
    import shutil

    from rich.console import Console

    drawn, terminal_ = io.StringIO(), sys.stdout.isatty()
    width = shutil.get_terminal_size((terminal.PLAIN_WIDTH, 0)).columns
    terminal.to_console(
        laid_out, Console(file=drawn, width=width, force_terminal=terminal_ or None)
    )
    put(callable_here(drawn.getvalue()))


def put_document(shown: Documented | Mapping[str, Any], *, full: bool = True) -> None:
    """Print a document of ``--format json``, with its version: on a terminal indented, else on one
    line, which costs a program half of the tokens.

    Args:
        full: with the keys and entries that only whole documents have.
    """
    from retrieval_bench.core.as_json.document import Documented, abridged, plain
    from retrieval_bench.core.notices import to_document
    from retrieval_bench.runs.records import to_json

    if not full and isinstance(shown, Documented):
        shown = shown.shortened()
    with nullcontext() if full else abridged():
        document = {"schema_version": SCHEMA_VERSION, **to_document(plain(shown))}
    put(to_json(document, indented=sys.stdout.isatty()) + "\n")


_COMMAND = re.compile(r"(?<![\w./@\"-])retrieval-bench(?= [a-z@])")
_PIP = re.compile(r"(?<!uv )(?<!-m )\bpip install(?= )")


def callable_here(text: str) -> str:
    """``text`` with its commands as they can be copied: by name where that finds this program, else
    by the path that it was started by."""
    started = sys.argv[0]
    if not (_COMMAND.search(text) or _PIP.search(text)):
        return text
    import shutil
    from pathlib import Path

    program = shutil.which("retrieval-bench")
    there = Path(started)
    if there.name != "retrieval-bench" or (program is not None and there.samefile(program)):
        return text
    python = shlex.quote(str(there.parent / "python"))
    text = _PIP.sub(lambda _: f"{python} -m pip install", text)
    return _COMMAND.sub(lambda _: shlex.quote(started), text)


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
    """Send what a retriever prints, from Python or below, to stderr: stdout is for results."""
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
    from retrieval_bench.core.wrapping import wrapped

    if sys.stderr is None:  # closed by the caller
        return
    try:
        sys.stderr.write(wrapped(callable_here(visible(text, keep="\n\t"))) + "\n")
        sys.stderr.flush()
    except OSError:  # nobody reads it; what is not written yet goes nowhere
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextmanager
def reporter(options: argparse.Namespace) -> Iterator[Any]:
    """Progress on stderr: bars on a terminal, else a line for each phase; none with --quiet."""
    from retrieval_bench.core.progress import Silent
    from retrieval_bench.reports.progress_bar import Bars, Lines

    if sys.stderr is None or options.quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with Bars(sys.stderr) as bars:
            yield bars
    else:
        yield Lines(say)


@contextmanager
def working(options: argparse.Namespace) -> Iterator[Any]:
    """Both of these, for as long as a command works; gives the reporter."""
    with output_kept_clean(), reporter(options) as bars:
        yield bars
