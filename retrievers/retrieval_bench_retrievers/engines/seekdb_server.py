"""Servers that speak as seekdb does over the protocol of MySQL: seekdb and OceanBase."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines import seekdb_words as words
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.filling import Row
from retrieval_bench_retrievers.sql.statement import plain_text

_NOTES = "retrieval_bench_loads"
_PASSING: Mapping[Any, Kind] = {
    **dict.fromkeys((0, 2002, 2003, 2006, 2013), Kind.CONNECTION),
    **{1040: Kind.THROTTLED, 1205: Kind.SERVER, 1213: Kind.SERVER, 4012: Kind.TIMEOUT},
}
"""Codes of what may work later: of the connection, too many of them, locks, the time limit."""
_MISSING = (1049, 1146)
"""Codes of a database and of a table that is not there."""
END_S = 30.0
"""Within which an ended server is gone."""


class SeekdbServer(base.EngineStore):
    """A table of a server, or of a cluster behind one address. Without the word APPROXIMATE a
    search reads all vectors, whatever indexes and plans there are; indexes are made once all
    documents are there."""

    kind, extra, schemes = "seekdb", "seekdb", ("seekdb", "mysql")
    modes, usual_ef = ("dense", "bm25", "hybrid"), 64
    _remedy = "start the server, correct the address, or see to what it says"

    def __init__(self, address: Address, table: str) -> None:
        super().__init__(address, table)
        self._connections: dict[int, Any] = {}

    @classmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        return ("pymysql",) if is_server(address) else ("pylibseekdb", "pymysql")

    @property
    def _table(self) -> str:
        return _quoted(self.table)

    def known(self) -> dict[str, Any] | None:
        if not self._connections or not self._there(self.table):
            return None
        if not self._there(_NOTES):
            return {}
        rows = self._ask(f"SELECT loaded FROM {_NOTES} WHERE name = %s", (self.table,))
        return dict(json.loads(rows[0][0])) if rows else {}

    def remember(self, loaded: Mapping[str, Any]) -> None:
        columns = "name VARCHAR(200) PRIMARY KEY, loaded LONGTEXT"
        self._ask(f"CREATE TABLE IF NOT EXISTS {_NOTES} ({columns})")
        self._ask(f"REPLACE INTO {_NOTES} VALUES (%s, %s)", (self.table, json.dumps(loaded)))

    def create(self) -> None:
        """Ids are bytes: texts are equal here that differ in blanks at their end."""
        columns = "id VARBINARY(1024) PRIMARY KEY, contents MEDIUMTEXT CHARACTER SET utf8mb4, "
        columns += "metadata JSON, ends JSON"
        if self.plan.dimension is not None:
            columns += f", embedding VECTOR({self.plan.dimension})"
        self._ask(f"CREATE TABLE {self._table} ({columns}) ORGANIZATION = HEAP")

    def missing(self, ids: Sequence[str]) -> set[str]:
        asked = f"SELECT id FROM {self._table} WHERE id IN %s"
        rows = self._ask(asked, ([doc_id.encode() for doc_id in ids],))
        return set(ids) - {row[0].decode() for row in rows}

    def send(self, rows: Sequence[Row]) -> None:
        self._write("INSERT", rows)

    def put(self, rows: Sequence[Row]) -> None:
        self._write("REPLACE", rows)

    def remove(self, ids: Sequence[str]) -> None:
        self._ask(
            f"DELETE FROM {self._table} WHERE id IN %s", ([doc_id.encode() for doc_id in ids],)
        )

    def _write(self, how: str, rows: Sequence[Row]) -> None:
        marks = "%s, %s, %s, %s" + ", %s" * (self.plan.dimension is not None)
        values = []
        for row in rows:
            metadata, ends = map(json.dumps, (row.metadata, words.ends(row.metadata)))
            vector = () if row.vector is None else (_written(row.vector),)
            values.append((row.id.encode(), row.contents, metadata, ends, *vector))
        with self._connections[0].cursor() as cursor:
            cursor.executemany(f"{how} INTO {self._table} VALUES ({marks})", values)

    def finish(self) -> None:
        plan, there = self.plan, self._indexes()
        if "words" not in there:
            self._ask(f"CREATE FULLTEXT INDEX words ON {self._table} (contents) {words.PARSER}")
        if plan.dimension is not None and plan.index.index == "hnsw" and "vectors" not in there:
            graph = f"M={plan.index.m}, EF_CONSTRUCTION={plan.index.ef_construction}"
            how = f"DISTANCE=inner_product, TYPE=hnsw, LIB=vsag, {graph}"
            self._ask(f"CREATE VECTOR INDEX vectors ON {self._table} (embedding) WITH ({how})")

    def _indexes(self) -> set[str]:
        """Those that are there, once none is being built: a load that was killed leaves its last
        one to the server. What nobody builds any more is dropped."""
        until = time.monotonic() + END_S
        while True:
            rows = self._ask(f"SHOW INDEX FROM {self._table}")
            begun = {row[2] for row in rows if row[11] != "available"}
            if self._building(begun):
                until = time.monotonic() + END_S
            elif not begun:
                return {row[2] for row in rows}
            elif time.monotonic() > until:
                for index in begun:
                    self._ask(f"DROP INDEX {index} ON {self._table}")
            time.sleep(0.1)

    def _building(self, begun: set[str]) -> bool:
        """Whether the server is at one of them; one of its own goes on by itself."""
        return bool(begun)

    def search(self, asked: base.Asked) -> base.Hits:
        ef = 0 if asked.vector is None or asked.exact else asked.ef
        if ef not in self._connections or not self._connections[ef].open:
            self._connect(ef)
        values: dict[str, Any] = {"text": plain_text(asked.text)}
        if asked.vector is not None:
            values["vector"] = _written(asked.vector)
        chosen = words.where(asked.filter, values)
        statement = words.statement(asked, self._table, chosen)
        return [(doc_id.decode(), score) for doc_id, score in self._ask(statement, values, ef)]

    def vector_size(self) -> int | None:
        rows = self._ask(f"SHOW COLUMNS FROM {self._table} LIKE 'embedding'")
        return int("".join(filter(str.isdecimal, rows[0][1]))) if rows else None

    def split(self, text: str) -> list[str]:
        rows = self._ask("SELECT tokenize(%s, 'space', %s)", (plain_text(text), words.TERMS))
        return sorted(term for token in json.loads(rows[0][0])["tokens"] for term in token)

    def facts(self) -> dict[str, Any]:
        """Whether the planner takes the index of the vectors, and how much memory it may take."""
        memory = [row[3] for row in self._ask("SHOW PARAMETERS LIKE 'memory_budget'")]
        if self.plan.dimension is None:
            return {"memory_budget": memory}
        near = words.NEAR.format(table=self._table, filter="true", k=10)
        values = {"vector": _written([1.0] * self.plan.dimension)}
        plan = str(self._ask(f"EXPLAIN {near}", values))
        used = self.plan.index_facts("VECTOR INDEX" in plan, "the planner reads the whole table")
        return {"memory_budget": memory, **used}

    def failed(self, problem: Exception) -> Exception:
        kind = _PASSING.get(problem.args[0] if problem.args else None)
        text = f"{self.kind}: {text_of(problem)}"
        return CallError(text) if kind is None else TransientError(text, kind)

    def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            if connection.open:
                connection.close()

    def open(self) -> None:
        try:
            self._connect()
        except Exception as problem:
            raise ConfigError(
                f"no answer from seekdb or OceanBase: {text_of(problem)}",
                where=self.address.shown,
                accepted="a server of one of them and a database that is there (MariaDB, MySQL and "
                "TiDB have other words for vectors); for a folder 1 GB of memory, 300 MB of disk",
                fix=self._remedy,
            ) from problem

    def _options(self) -> dict[str, Any]:
        """Where it answers; what stands behind ``?`` is of pymysql: ``ssl_ca``, ``unix_socket``."""
        parts = self.address.parts
        how: dict[str, Any] = {"database": parts.path.strip("/"), "port": parts.port or 2881}
        how |= {"user": unquote(parts.username or "root"), "host": parts.hostname or "localhost"}
        given = {name: _read(value) for name, value in parse_qsl(parts.query)}
        return {**how, "password": self.address.password or "", **given}

    def _connect(self, ef: int = 0) -> None:
        """One for each ``ef``: ways that take turns would set it within the time of some."""
        import pymysql

        how = {"charset": "utf8mb4", "connect_timeout": 10, **self._options(), "autocommit": True}
        self._connections[ef] = pymysql.connect(**how)
        answer = str(self._ask("SELECT version()", None, ef)[0][0])
        match = re.search(r"OceanBase[ -](seekdb-)?v([\d.]+)", answer)
        if not match:
            raise ValueError(f"the server says that it is {answer}")
        self.kind, self.version = "seekdb" if match[1] else "OceanBase", match[2]
        self._ask("SET ob_query_timeout = 36000000000", None, ef)  # 10 hours in µs; it is 10 s
        if ef:
            self._ask(f"SET ob_hnsw_ef_search = {ef}", None, ef)

    def _there(self, table: str) -> bool:
        """Asked of the table: what is asked of a view first has seekdb write down what the view
        depends on, and a server that ends meanwhile leaves the lock of that to its folder."""
        from pymysql import MySQLError

        try:
            self._ask(f"SELECT 1 FROM {_quoted(table)} LIMIT 0")
        except MySQLError as problem:
            if problem.args[0] in _MISSING:
                return False
            raise
        return True

    def _ask(self, statement: str, values: Any = None, ef: int = 0) -> Sequence[tuple[Any, ...]]:
        with self._connections[ef].cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


def _read(value: str) -> Any:
    """A parameter of the address as pymysql takes it: a number, a truth value, or the text."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return int(value) if value.isdecimal() else value


def is_server(address: Address | None) -> bool:
    """True unless it is a folder, or the embedded one."""
    return address is not None and (bool(address.host) or address.parts.scheme == "mysql")


def _quoted(table: str) -> str:
    return f"`{table}`".replace(".", "`.`")


def _written(vector: Any) -> str:
    return f"[{','.join(map(str, vector))}]"
