"""Folders that are made once and used by many processes, the longest unused removed.

A folder is whole when ``about.json`` is in it, which is written last and by renaming: what a killed
process left is never taken for whole. It stays at the place where it was made, since environments
of Python cannot be moved. Locks belong to the system and end with their process:

* one lock for the whole store, held while a folder is looked for, checked, made or removed;
* one lock in each folder, shared by the processes that use it until they end. A folder is changed
  or removed only by whoever gets that lock alone, and nobody waits for it, so that two processes
  never wait for each other.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.cache import write_whole
from retrieval_bench.core.progress import Phase, Reporter, Step

MOST_KEPT = 10
"""So many are kept, the most recently used ones, and all that are in use."""

_ABOUT = "about.json"
_LOCK = ".lock"

_in_use: dict[Path, IO[str]] = {}
"""Open files that hold the locks of the folders in use. A place is used by processes that come and
go until the program ends, and so do these."""


def kept(
    folder: Path,
    make: Callable[[], dict[str, Any]],
    whole: Callable[[dict[str, Any]], bool],
    reporter: Reporter,
) -> dict[str, Any]:
    """Have ``folder`` whole, in use by this process from now on; what ``make`` said of it.

    Args:
        make: fills the empty folder; what it returns (JSON types) is kept beside.
        whole: whether a folder that was made before can still be used.

    Raises:
        ConfigError: the cache cannot be used, or the folder has to be made again and another
            process uses it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _store_lock(folder.parent, reporter):
            about = _about(folder)
            if about is None or not whole(about):
                about = _made(folder, make)
            _use(folder)
            _forget_old(folder.parent)
            return about
    except OSError as problem:
        raise ConfigError(
            f"revisions cannot be kept: {problem.strerror or problem}",
            where=str(problem.filename or folder.parent),
            fix="make room or correct the rights there, or let RETRIEVAL_BENCH_CACHE name "
            "another folder",
        ) from problem


def _made(folder: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if not _removed(folder):
        raise ConfigError(
            "a folder of the cache has to be made again, and another process uses it",
            where=str(folder),
            fix="wait until that process has ended, then try again",
        )
    folder.mkdir()
    try:
        about = make()
        write_whole(folder / _ABOUT, json.dumps(about, sort_keys=True).encode())
    except BaseException:
        _removed(folder)
        raise
    return about


def _about(folder: Path) -> dict[str, Any] | None:
    """Read the facts kept beside a folder; None where it is not there or only half made."""
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) else None


@contextmanager
def _store_lock(root: Path, reporter: Reporter) -> Iterator[None]:
    with (root / _LOCK).open("a", encoding="utf-8") as file:
        if not _locked(file):
            with reporter.phase(Phase(Step.WAITING, "revisions")):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _use(folder: Path) -> None:
    if folder not in _in_use:
        _in_use[folder] = (folder / _LOCK).open("a", encoding="utf-8")
        fcntl.flock(_in_use[folder], fcntl.LOCK_SH)
    os.utime(folder / _LOCK)  # the last use


def _removed(folder: Path) -> bool:
    """Remove it, unless another process uses it; whether it is gone."""
    if (held := _in_use.pop(folder, None)) is not None:
        held.close()
    if folder.exists():
        with (folder / _LOCK).open("a", encoding="utf-8") as file:
            if not _locked(file):
                return False
            (folder / _ABOUT).unlink(missing_ok=True)  # from here on it is half made
            shutil.rmtree(folder)
    return True


def _forget_old(root: Path) -> None:
    """Remove what was not used for the longest time, and what is only half made."""
    idle = [folder for folder in root.iterdir() if folder.is_dir() and folder not in _in_use]
    whole = [folder for folder in idle if (folder / _LOCK).exists() and _about(folder) is not None]
    whole.sort(key=lambda folder: (folder / _LOCK).stat().st_mtime, reverse=True)
    room = max(0, MOST_KEPT - sum(folder.parent == root for folder in _in_use))
    for folder in {*idle} - {*whole[:room]}:
        with suppress(OSError):  # it costs room, and nothing else
            _removed(folder)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
