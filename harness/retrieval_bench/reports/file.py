"""A page or a picture on disk: all of it, or what was there before."""

from __future__ import annotations

from pathlib import Path

from retrieval_bench.core.errors import RecordError
from retrieval_bench.core.installed.cache import write_whole
from retrieval_bench.runs.records import probe

_NAMES = {"report": "report.html", "picture": "history.svg"}


def check_place(path: Path, what: str = "report") -> None:
    """Find out before anything is measured that ``path`` can be written; leaves no trace.

    Raises:
        RecordError: it is a folder, or nothing can be written there.
    """
    if path.is_dir():
        raise RecordError(
            f"the {what} would replace a folder",
            where=str(path),
            accepted="a file, which is overwritten when it is there",
            fix=f"name a file, such as {path / _NAMES.get(what, what)}",
        )
    if path.exists() and not path.is_file():
        return  # such as /dev/stdout
    try:
        probe(path.parent)
    except OSError as problem:
        raise _cannot_write(path, problem, what) from None


def write_page(path: Path, text: str, what: str = "report") -> None:
    """Write ``text`` to ``path`` at once; an earlier file is replaced.

    Raises:
        RecordError: it cannot be written; what was there is there still.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as problem:
        raise _cannot_write(path, problem, what) from None


def _cannot_write(path: Path, problem: OSError, what: str) -> RecordError:
    return RecordError(
        f"cannot write the {what}: {problem.strerror or problem}",
        where=str(path),
        accepted="a place with free space that you may write to",
        fix="name another file",
    )
