"""Folders that are made once and used by many processes, the longest unused removed.

A folder is whole when ``about.json`` is in it, which is written last and by renaming: what a killed
process left is never taken for whole. It stays at the place where it was made, since environments
of Python cannot be moved. Locks belong to the system and end with their process:

* one lock for the whole store, held while a folder is looked for, checked, made or removed;
* one lock for each folder, shared by the processes that use it until they end. A folder is changed
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
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step

_ABOUT = "about.json"
_STORE_LOCK = ".lock"

_in_use: dict[Path, IO[str]] = {}
"""Open files that hold the locks of the folders in use. A place is used by processes that come and
go until the program ends, and so do these."""


class Kept:
    """A store of folders.

    Args:
        root: where they lie; made when it is missing.
        what: what a folder holds, in the plural, for messages.
        most: so many are kept, the most recently used ones, and all that are in use.
    """

    def __init__(
        self, root: Path, what: str, *, most: int, reporter: Reporter | None = None
    ) -> None:
        self.root = root
        self.what = what
        self.most = most
        self.reporter = reporter or Silent()

    def folder(
        self,
        key: str,
        make: Callable[[Path], dict[str, Any]],
        whole: Callable[[Path, dict[str, Any]], bool],
    ) -> tuple[Path, dict[str, Any]]:
        """The folder of ``key``, in use by this process from now on, and what ``make`` said of it.

        Args:
            make: fills the empty folder; what it returns (JSON types) is kept beside.
            whole: whether a folder that was made before can still be used.

        Raises:
            ConfigError: the store cannot be used, or the folder is damaged and another process
                uses it.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with self._store_lock():
                return self._found_or_made(key, make, whole)
        except OSError as problem:
            raise ConfigError(
                f"{self.what} cannot be kept: {problem.strerror or problem}",
                where=str(problem.filename or self.root),
                fix="make room or correct the rights there, or let RETRIEVAL_BENCH_CACHE name "
                "another folder",
            ) from problem

    def _found_or_made(
        self,
        key: str,
        make: Callable[[Path], dict[str, Any]],
        whole: Callable[[Path, dict[str, Any]], bool],
    ) -> tuple[Path, dict[str, Any]]:
        folder = self.root / key
        about = self._about(folder)
        if about is None or not whole(folder, about):
            if not self._removed(folder):
                raise ConfigError(
                    "a folder of the cache was changed, and another process uses it",
                    where=str(folder),
                    fix="wait until that process has ended, then try again",
                )
            folder.mkdir()
            try:
                about = make(folder)
                write_whole(folder / _ABOUT, json.dumps(about, sort_keys=True).encode())
            except BaseException:
                self._removed(folder)
                raise
        self._use(folder)
        self._forget_old()
        return folder, about

    def _about(self, folder: Path) -> dict[str, Any] | None:
        """Read the facts kept beside a folder; None where it is not there or only half made."""
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return about if isinstance(about, dict) else None

    @contextmanager
    def _store_lock(self) -> Iterator[None]:
        with (self.root / _STORE_LOCK).open("a", encoding="utf-8") as file:
            if not _locked(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
                with self.reporter.phase(Phase(Step.WAITING, self.what)):
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _lock_of(self, folder: Path) -> Path:
        return self.root / f"{folder.name}.lock"

    def _use(self, folder: Path) -> None:
        path = self._lock_of(folder)
        if folder not in _in_use:
            file = path.open("a", encoding="utf-8")
            fcntl.flock(file, fcntl.LOCK_SH)
            _in_use[folder] = file
        os.utime(path)  # the last use

    def _removed(self, folder: Path) -> bool:
        """Remove it with its lock, unless another process uses it; whether it is gone."""
        held = _in_use.pop(folder, None)
        path = self._lock_of(folder)
        with path.open("a", encoding="utf-8") as file:
            if held is not None:
                held.close()
            if not _locked(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return False
            with suppress(FileNotFoundError):
                (folder / _ABOUT).unlink()  # from here on it is half made
            if folder.exists():
                shutil.rmtree(folder)
            path.unlink()
        return True

    def _forget_old(self) -> None:
        """Remove what was not used for the longest time, and what is only half made."""
        idle = [f for f in self.root.iterdir() if f.is_dir() and f not in _in_use]
        whole = [folder for folder in idle if self._about(folder) is not None]
        whole.sort(key=self._last_use, reverse=True)
        room = max(0, self.most - sum(folder.parent == self.root for folder in _in_use))
        for folder in {*idle} - {*whole[:room]}:
            with suppress(OSError):  # it costs room, and nothing else
                self._removed(folder)

    def _last_use(self, folder: Path) -> float:
        try:
            return self._lock_of(folder).stat().st_mtime
        except FileNotFoundError:
            return 0.0


def _locked(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        return False
    return True
