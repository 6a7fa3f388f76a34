"""Collections of engines in this process: each in a folder, which may be temporary."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.cache import write_whole
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.engines.engine_store import EngineStore
from retrieval_bench_retrievers.functions.uri import EMBEDDED, Address
from retrieval_bench_retrievers.sql.embedded_postgres import watch
from retrieval_bench_retrievers.sql.filling import Filled, Progress


class FolderStore(EngineStore):
    """One of an engine in this process: a folder, with a file that says what was loaded."""

    _watch: Any = None

    @classmethod
    def at(cls, address: Address | None, table: str) -> EngineStore:
        """A temporary folder also vanishes with a process that is killed."""
        if address is not None:
            return cls(address, table)
        folder = tempfile.mkdtemp(prefix=f"retrieval-bench-{cls.extra}-")
        store = cls(Address.embedded(folder), table)
        store._watch = watch(folder)
        return store

    @abstractmethod
    def made(self) -> bool:
        """Whether the collection is there."""

    @property
    def folder(self) -> Path:
        """Made where it is not there yet, by who fills it."""
        path = self.address.path
        if not path.is_dir():
            if not hasattr(self, "plan"):
                raise ConfigError(
                    f"there is no collection {self.table}: its folder is not there",
                    where=self.address.shown,
                    fix=f"correct the address, or data load DATASET --into {self.address.shown}",
                )
            try:
                path.mkdir(parents=True)
            except OSError as problem:
                raise ConfigError(
                    f"the folder cannot be made: {problem.strerror}", where=self.address.shown
                ) from None
        return path

    @property
    def _note(self) -> Path:
        return self.folder / f"retrieval-bench-{self.table}.json"

    def known(self) -> dict[str, Any] | None:
        if not self.made():
            return None
        return dict(json.loads(self._note.read_bytes())) if self._note.is_file() else {}

    def remember(self, loaded: Mapping[str, Any]) -> None:
        write_whole(self._note, json.dumps(loaded).encode())

    def fill(self, documents: Iterable[Document], progress: Progress | None) -> Filled:
        """One process at a time: a second one would add the same documents again."""
        if self.address.host or os.name == "nt":
            return super().fill(documents, progress)
        import fcntl

        with self._note.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # gone with its process
            except OSError:
                raise ConfigError(
                    f"another process fills {self.table}",
                    where=self.address.shown,
                    accepted="one at a time",
                    fix="wait for it; the same command then says what is there",
                ) from None
            return super().fill(documents, progress)

    def disk_bytes(self) -> int | None:
        if self.address.host:
            return None
        files = [path.stat() for path in self.folder.rglob("*") if path.is_file()]
        return sum(getattr(one, "st_blocks", one.st_size // 512) * 512 for one in files)

    def leave(self) -> None:
        """Remove a temporary folder; for :meth:`close`."""
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
        if self.address.uri == EMBEDDED:
            shutil.rmtree(self.address.path, ignore_errors=True)
