"""Calls into code that is not ours: whatever leaves it becomes an error with a remedy.

A retriever may raise what is no ``Exception``: SystemExit, ``asyncio.CancelledError``, a panic of a
Rust extension. None of these may decide an exit code or print a traceback. Ctrl-C passes through.
"""

from __future__ import annotations

import os
import re
import signal
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import walk_tb
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ContractError, HarnessError

_LONGEST_MESSAGE = 2_000
"""Characters of a message that are kept: a library may put a whole response into one."""

_LIBRARY = re.compile(
    r"[/\\](site|dist)-packages[/\\]|^<|^" + re.escape(sysconfig.get_path("stdlib")) + r"\b"
    r"|^" + re.escape(str(Path(__file__).parents[2])) + r"\b|[/\\]retrieval_bench_[a-z]+[/\\]"
)
"""Files that are no code of the user: installed ones, Python's own, and this project's."""

FORKED = 70
"""Exit code of a process that foreign code forked and let run on; nobody waits for it."""


def message_of(problem: BaseException) -> str:
    """The type and the message of ``problem``, without secrets and shortened; never raises."""
    try:
        text = str(problem)
    except BaseException as unprintable:  # its own __str__ is foreign code, too
        text = f"(its message cannot be shown: {type(unprintable).__name__})"
    text = secrets.redact(text)  # before a cut could leave the half of one
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[:_LONGEST_MESSAGE]}... ({len(text):,} characters)"
    return f"{type(problem).__name__}: {text}"


def innermost(problem: BaseException) -> str:
    """``file:line`` of the user's code that ``problem`` came from: the last call in a file that is
    neither a library nor ours. Where there is none, the line that raised it."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(problem.__traceback__)]
    own = [(file, line) for file, line in lines if not _LIBRARY.search(file)]
    place = (own or lines)[-1:]
    return "".join(f"{file}:{line}" for file, line in place)


def failing(
    what: str, kind: type[HarnessError] = ContractError, where: str = "", **parts: Any
) -> Callable[[BaseException], HarnessError]:
    """What :func:`foreign_code` raises where ``what`` fails; ``where`` stands before the line.

    Args:
        what: the beginning of a sentence.
        kind: of the error.
        where: such as the retriever.
        **parts: further ones of the error.
    """

    def failed(problem: BaseException) -> HarnessError:
        place = ", ".join(filter(None, [where, innermost(problem)]))
        return kind(f"{what} failed with {message_of(problem)}", where=place, **parts)

    return failed


class TerminatedError(SystemExit):
    """This process was told to end, by the signal whose number stands behind 128 in its code."""


@contextmanager
def foreign_code(translate: Callable[[BaseException], HarnessError]) -> Iterator[None]:
    """Run foreign code; raise what ``translate`` makes of anything that leaves it.

    Errors of this project and Ctrl-C pass as they are. A process that was forked inside ends here:
    it must not go on with the work of its parent.
    """
    process = os.getpid()
    try:
        yield
    except (HarnessError, KeyboardInterrupt, TerminatedError):
        end_if_forked(process)
        raise
    except BaseException as problem:
        end_if_forked(process)
        raise translate(problem) from problem
    end_if_forked(process)


@contextmanager
def folder_kept() -> Iterator[None]:
    """Stand in the same folder afterwards, wherever foreign code goes."""
    with WorkingFolder().lent():
        yield


class WorkingFolder:
    """The folder that the process stands in: ours, and the one that foreign code went to.

    What is named relative to the user's folder stays there, whatever a retriever does; and a
    retriever finds itself where it went.
    """

    def __init__(self) -> None:
        self._ours = self._theirs = Path.cwd()

    @property
    def place(self) -> Path:
        """The folder that foreign code went to."""
        return self._theirs

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let foreign code run in its folder; afterwards return to ours."""
        with suppress(OSError):  # it may be gone
            os.chdir(self._theirs)
        try:
            yield
        finally:
            with suppress(OSError):
                self._theirs = Path.cwd()
            with suppress(OSError):
                os.chdir(self._ours)


def end_if_forked(process: int) -> None:
    """End this process, without a word, unless it is ``process``."""
    if os.getpid() != process:
        os._exit(FORKED)


def how_ended(code: int) -> str:
    """Return how a process with this exit code ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (" (perhaps for lack of memory)" if name == "SIGKILL" else "")
