"""seekdb, a process of its own that pylibseekdb starts; or a server of it or of OceanBase."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.folder_store import FolderStore
from retrieval_bench_retrievers.engines.seekdb_server import END_S, SeekdbServer, is_server
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.embedded_postgres import watch

_TASKS = "SELECT task_id, status FROM oceanbase.__all_ddl_task_status"
"""Indexes that are being built; 0 before anything was done."""
_HELD = "SELECT create_trans_id FROM oceanbase.__all_virtual_obj_lock WHERE obj_type = 'RUNTIME'"
"""Transactions that hold the lock of all changes of tables."""


class _Embedded(SeekdbServer, FolderStore):
    """A server that ends with this process, and its folder."""

    _remedy = "free what it lacks; where its server was killed as it made the folder, remove that"
    _instance: Any = None
    _alias: Any = None
    _second: Any = None
    _since = 0.0
    _restarted = False

    def made(self) -> bool:
        return (self.address.path / "store").is_dir()

    def open(self) -> None:
        if self.made():
            super().open()
            if hasattr(self, "plan"):
                self._refuse_a_dead_lock()

    def remember(self, loaded: Mapping[str, Any]) -> None:
        if self._instance is None:
            super().open()
        super().remember(loaded)
        self._mark.unlink(missing_ok=True)

    def _building(self, begun: set[str]) -> bool:
        """A server whose client was killed as it asked for an index may keep that waiting for
        good; another server goes on with it."""
        tasks = dict(self._ask(_TASKS))
        if not tasks or any(tasks.values()) or not self._since:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > END_S:
            if self._restarted:
                raise ConfigError(
                    "a load was killed as it asked for an index, and seekdb does not begin with it",
                    where=self.address.shown,
                    accepted="a folder whose server ends when nobody uses it",
                    fix="end all processes that use the folder; the same command then goes on",
                )
            self._restarted, self._since = True, 0.0
            self._let_go()
            until = time.monotonic() + END_S
            while self._alive() and time.monotonic() < until:  # it is no child of this process
                time.sleep(0.1)
            self.open()
        return bool(tasks)

    def _started(self) -> Any:
        """One that ends because its process was killed is gone before another one starts."""
        import pylibseekdb

        if self._watch is None and self._second is None:
            until = time.monotonic() + END_S
            while self._mark.exists() and not self._alive() and time.monotonic() < until:
                _swept(self.folder, self._mark)
            self._second = _user_of(self.folder / "run")
            if not self.made():
                self._mark.touch()
        until = time.monotonic() + END_S * self.made()
        while True:
            try:
                return pylibseekdb.open(str(self.folder))
            except pylibseekdb.SeekdbError:
                if time.monotonic() >= until:
                    self._dismiss()
                    raise
                time.sleep(0.5)

    @property
    def _mark(self) -> Path:
        """There until something was kept in the folder."""
        return self.folder / "retrieval-bench-begun"

    def _alive(self) -> bool:
        try:
            os.kill(int((self.folder / "run" / "seekdb.pid").read_text()), 0)
        except PermissionError:  # another user's
            return True
        except (OSError, ValueError):
            return False
        return True

    def _dismiss(self) -> None:
        for helper in filter(None, (self._alias, self._second)):
            helper.kill()
            helper.communicate()
        self._alias = self._second = None

    def _refuse_a_dead_lock(self) -> None:
        """A server that was killed amid a change of tables leaves the lock of it to its folder, for
        good: the next change would wait for 17 minutes, and fail. One of the living is short."""
        first, until = None, time.monotonic() + END_S
        while held := set(self._ask(_HELD)):
            first = held if first is None else first & held
            if not first:
                return
            if time.monotonic() > until:
                raise ConfigError(
                    "a load was killed while seekdb changed the tables of this folder, and their "
                    "lock stays: it takes no further table or index",
                    where=self.address.shown,
                    accepted="searches of what was loaded to its end; loads into another folder",
                    fix=f"remove {self.address.path}, and load everything in it again",
                )
            time.sleep(0.1)

    def server_pid(self) -> int | None:
        return int((self.folder / "run" / "seekdb.pid").read_text())

    def close(self) -> None:
        try:
            self._let_go()
        finally:
            self.leave()

    def _let_go(self) -> None:
        super().close()
        instance, self._instance = self._instance, None
        if instance is not None:
            self._end(instance)

    def _end(self, instance: Any) -> None:
        """End the server, and wait until it is gone: another one would wait for its locks."""
        server = None
        with suppress(OSError, ValueError):
            server = self.server_pid()
        instance.close()
        self._dismiss()
        if server:
            until = time.monotonic() + END_S
            with suppress(ChildProcessError):
                while os.waitpid(server, os.WNOHANG) == (0, 0) and time.monotonic() < until:
                    time.sleep(0.01)

    def _options(self) -> dict[str, Any]:
        if self._instance is None:
            self._instance = self._started()
            socket = Path(self._instance.connection_options()["unix_socket"])
            self._alias = watch(str(socket.parents[1]))  # it would outlive a process that is killed
        return {"database": "test", **self._instance.connection_options()}


class _Seekdb(SeekdbServer):
    """One of the two, by the address."""

    @classmethod
    def at(cls, address: Address | None, table: str) -> base.EngineStore:
        return (SeekdbServer if is_server(address) else _Embedded).at(address, table)


class Seekdb(Engine):
    """See :class:`.Engine`; ``bm25`` is ``MATCH ... AGAINST``."""

    store = _Seekdb


def _swept(folder: Path, begun: Path) -> None:
    """A folder whose server was killed as it made it holds nothing, and a server that opens it may
    wait for good: it is made anew, once nobody uses it."""
    import fcntl

    users = folder / "run" / "seekdb.clients"
    users.parent.mkdir(exist_ok=True)
    with users.open("ab") as file, suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever opened it before a sweep has the lock of a file that nobody else sees.
        if os.fstat(file.fileno()).st_ino == users.stat().st_ino:
            for made in ("etc", "log", "store", "run"):
                shutil.rmtree(folder / made, ignore_errors=True)
            if not (folder / "store").exists():
                begun.unlink(missing_ok=True)
                return
    time.sleep(0.1)


def _user_of(folder: Path) -> Any:
    """A second user of a server: it goes on for ten seconds when this process is killed. Without
    any user a server ends at once, whatever it does, and may leave a lock to its folder."""
    import fcntl

    folder.mkdir(exist_ok=True)
    with (folder / "seekdb.clients").open("ab") as users:
        fcntl.flock(users, fcntl.LOCK_SH)  # as pylibseekdb does, and the shell keeps it
        return subprocess.Popen(
            ["/bin/sh", "-c", "cat > /dev/null; sleep 10"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[users.fileno()],
        )
