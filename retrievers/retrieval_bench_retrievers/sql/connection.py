"""Connections to PostgreSQL: the first one, which tells what is wrong, and the pool of searches."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.sql.failures import refused, text_of
from retrieval_bench_retrievers.sql.params import PoolSettings
from retrieval_bench_retrievers.sql.statement import WHERE

if TYPE_CHECKING:
    import psycopg
    import psycopg_pool

_HIDDEN = "***"
_USERINFO = re.compile(r"postgres(?:ql)?://[^:/@]*:(.*)@")
"""An address with a password: what stands before its last @."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is: what a driver needs, and what may be shown of it.

    Attributes:
        dsn: as given; never to be shown.
        shown: the same without a password.
    """

    dsn: str
    shown: str

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @classmethod
    def parse(cls, dsn: str) -> Address:
        """Of a DSN, as an address or as key=value; its password is masked from now on.

        Raises:
            ConfigError: it is none. The message does not repeat it.
        """
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts = conninfo_to_dict(dsn)
        except ProgrammingError:
            raise ConfigError(
                "dsn: this is no address of a PostgreSQL server",
                where=WHERE,
                accepted="embedded, postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or "
                "host=... dbname=... user=...",
                fix="export DSN=... and write dsn: ${DSN}; special characters of a password are "
                "written as %XX in an address",
            ) from None
        host = str(parts.get("host") or "local socket")
        port = f":{parts['port']}" if parts.get("port") else ""
        secret = parts.get("password")
        user = f"{parts['user']}{':' + _HIDDEN if secret else ''}@" if parts.get("user") else ""
        shown = f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"
        if (written := _USERINFO.match(dsn)) is not None:
            # A password whose @ or / is not written as %XX is cut by the driver: hide all of it.
            secrets.mask(written[1], _HIDDEN)
            if "@" in written[1] or "/" in written[1]:
                raise ConfigError(
                    "dsn: the password holds an @ or a / as it is",
                    where=WHERE,
                    accepted="%40 for @ and %2F for /",
                    fix="write special characters of the password as %XX",
                )
        if secret or parts.get("sslpassword"):
            secrets.mask(dsn, shown)
            for one in filter(None, (secret, parts.get("sslpassword"))):
                secrets.mask(str(one), _HIDDEN)
        return cls(dsn, shown)

    def scrubbed(self, text: str) -> str:
        """``text`` without this address and its password, for messages of the driver."""
        from psycopg.conninfo import conninfo_to_dict

        parts = conninfo_to_dict(self.dsn)
        for secret in (self.dsn, parts.get("password"), parts.get("sslpassword")):
            if secret:
                text = text.replace(str(secret), _HIDDEN)
        return str(secrets.redact(text))


def connect(address: Address, timeout_s: float = 10.0) -> psycopg.Connection[Any]:
    """A connection that commits each statement by itself.

    Raises:
        ConfigError: there is no server, or it lets nobody in with this DSN.
    """
    import psycopg

    seconds = max(2, round(timeout_s))  # of libpq: whole ones, at least two
    try:
        return psycopg.connect(address.dsn, autocommit=True, connect_timeout=seconds)
    except psycopg.Error as problem:
        raise ConfigError(
            f"no connection to PostgreSQL: {address.scrubbed(text_of(problem))}",
            where=f"{WHERE}, dsn {address.shown}",
            accepted="a server that runs and lets this user in",
            fix="start the server, or correct the DSN; `dsn: embedded` needs no server",
        ) from None


def configure(connection: psycopg.Connection[Any], setup: Sequence[str], vectors: bool) -> None:
    """Make a connection read-only, run ``setup``, and teach it vectors if need be.

    Raises:
        ConfigError: the database has no pgvector.
        ContractError: a statement of ``setup`` does not work.
    """
    import psycopg

    connection.execute("SET default_transaction_read_only = on")
    for at, line in enumerate(setup, start=1):
        try:
            connection.execute(line.encode())
        except psycopg.Error as problem:
            raise refused(problem, f"setup, statement {at}") from None
    if vectors:
        learn_vectors(connection)


def learn_vectors(connection: psycopg.Connection[Any], where: str = WHERE) -> None:
    """Let ``connection`` send arrays of numpy as vectors.

    Raises:
        ConfigError: the database has no pgvector.
    """
    import psycopg
    from pgvector.psycopg import register_vector

    try:
        register_vector(connection)
    except psycopg.ProgrammingError as problem:
        raise refused(problem, "type vector", where) from None


def open_pool(
    address: Address, settings: PoolSettings, setup: Sequence[str], vectors: bool
) -> psycopg_pool.ConnectionPool[Any]:
    """The pool of the searches, with its smallest number of connections made."""
    from psycopg_pool import ConnectionPool

    # It tells of lost connections on a logger; without a handler that would go to the terminal.
    logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
    pool: ConnectionPool[Any] = ConnectionPool(
        address.dsn,
        min_size=settings.min,
        max_size=settings.largest,
        timeout=settings.timeout_s,
        kwargs={"autocommit": True},
        configure=lambda connection: configure(connection, setup, vectors),
        num_workers=1,
        open=False,
    )
    with _closed_if_it_fails(pool, address):
        pool.open(wait=True, timeout=settings.timeout_s)
    return pool


@contextmanager
def _closed_if_it_fails(pool: psycopg_pool.ConnectionPool[Any], address: Address) -> Iterator[None]:
    from psycopg_pool import PoolTimeout

    try:
        yield
    except PoolTimeout as problem:
        pool.close()
        raise ConfigError(
            f"no connections for the pool: {address.scrubbed(text_of(problem))}",
            where=f"{WHERE}, dsn {address.shown}",
            accepted="a server with room for pool.min connections",
            fix="make pool.min smaller, or let the server take more connections",
        ) from None
    except BaseException:
        pool.close()
        raise


def server_facts(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Version of the server, and of the extensions that are installed in the database."""
    version = connection.execute("SHOW server_version").fetchone()
    rows = connection.execute("SELECT extname, extversion FROM pg_extension ORDER BY 1").fetchall()
    extensions = {name: number for name, number in rows if name != "plpgsql"}
    return {"server": f"PostgreSQL {version[0] if version else '?'}", "extensions": extensions}
