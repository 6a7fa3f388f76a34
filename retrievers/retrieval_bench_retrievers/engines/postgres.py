"""PostgreSQL with pgvector. Its ``ts_rank`` knows no document frequencies: the mode is called
``text``, and not BM25. Tables are those of ``data load`` for ``sql``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.calls.failures import Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import Condition, Filter
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.columns import sql_group
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.functions.uri import EMBEDDED, Address
from retrieval_bench_retrievers.sql import connection as sql_connection
from retrieval_bench_retrievers.sql import failures
from retrieval_bench_retrievers.sql.statement import plain_text
from retrieval_bench_retrievers.sql.table import Table

if TYPE_CHECKING:
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

_COMPARISONS = {"eq": "==", "in": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

_TEXT = """
SELECT id, ts_rank(tsv, words, 1)::float8 AS score FROM {table},
  CAST(replace(plainto_tsquery(%(language)s::regconfig, %(text)s)::text, ' & ', ' | ') AS tsquery)
  AS words WHERE tsv @@ words AND {filter} ORDER BY score DESC, id LIMIT {k}"""
_EXACT = """
SELECT id, 1 - (embedding <=> %(vector)s) AS score FROM {table} WHERE {filter}
ORDER BY score DESC, id LIMIT {k}"""
_NEAR = """
SELECT id, 1 - (embedding <=> %(vector)s) AS score FROM {table} WHERE {filter}
ORDER BY embedding <=> %(vector)s LIMIT {k}"""
_FUSED = """
WITH a AS (SELECT id, row_number() OVER (ORDER BY score DESC, id) AS rank FROM ({text}) AS t),
  b AS (SELECT id, row_number() OVER (ORDER BY score DESC, id) AS rank FROM ({dense}) AS d)
SELECT id, (coalesce(1.0 / ({rrf} + a.rank), 0) + coalesce(1.0 / ({rrf} + b.rank), 0))::float8
  AS score FROM a FULL JOIN b USING (id) ORDER BY score DESC, id LIMIT {k}"""


class _Postgres(base.EngineStore, Table):
    """A table. What is exact is an expression that no index fits: nothing has to be switched off,
    and a plan that the server keeps stays right."""

    kind, extra, schemes = "PostgreSQL", "postgres", ("postgresql", "postgres")
    modes, usual_ef, most_ef = ("dense", "text", "hybrid"), 40, 1000
    ties_by_id = True
    _connection: Any = None
    _near: dict[int, Any]
    _rooms: Rooms | None = None

    @classmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        own = () if address else ("embedded-postgres",)
        return ("psycopg", "psycopg-pool", "pgvector", *own)

    def open(self) -> None:
        from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

        if self.address.uri == EMBEDDED:
            self._rooms = Rooms(f"retriever {self.extra}, uri {EMBEDDED}")
        self._connection, self._near = self._connect(), {}
        facts = sql_connection.server_facts(self._connection)
        vector = facts["extensions"].get("vector", "none")
        self.version = f"{facts['server'].removeprefix('PostgreSQL ')}, pgvector {vector}"

    def search(self, asked: base.Asked) -> base.Hits:
        try:
            connection = self._connected(asked)
        except ConfigError as problem:
            raise TransientError(problem.given, Kind.CONNECTION) from None
        values: dict[str, Any] = {"text": plain_text(asked.text), "vector": asked.vector}
        values["language"] = self.plan.language
        how = {"table": self.table, "filter": _where(asked.filter, values), "rrf": base.RRF_K}
        k = asked.k if asked.mode != "hybrid" else asked.depth
        text = _TEXT.format(k=k, **how)
        dense = (_EXACT if asked.exact else _NEAR).format(k=k, **how)
        fused = _FUSED.format(k=asked.k, text=text, dense=dense, **how)
        statement = {"text": text, "dense": dense, "hybrid": fused}[asked.mode]
        return list(connection.execute(statement.encode(), values).fetchall())

    def vector_size(self) -> int | None:
        asked = "SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
        row = self._connection.execute(asked, (self.table, "embedding")).fetchone()
        return None if row is None else int(row[0])

    def _connect(self) -> Any:
        dsn = self._rooms.dsn if self._rooms else self.address.uri
        try:
            return sql_connection.connect(sql_connection.Address.parse(dsn))
        except ConfigError as problem:  # which speaks of the parameters of `sql`
            raise ConfigError(
                problem.given.removeprefix("dsn: "),
                where=self.address.shown,
                accepted="a server that runs and lets this user in",
                fix="start the server, or correct the address, where special characters of a "
                "password are written as %XX; `uri: embedded` needs no server",
            ) from None

    def _connected(self, asked: base.Asked) -> Any:
        """A connection of its own for each ``ef``: ways that take turns would set it at every
        search, in the time of some and not of others.

        pgvector gives no more than ``hnsw.ef_search`` rows, and fewer behind a filter, unless it
        goes on.
        """
        if asked.vector is None:
            if self._connection.closed:
                self._connection = self._connect()
            return self._connection
        ef = 0 if asked.exact else asked.ef
        near = self._near.get(ef)
        if near is None or near.closed:
            near = self._near[ef] = self._connect()
            sql_connection.learn_vectors(near, self.address.shown)
            if ef:
                near.execute("SET hnsw.iterative_scan = strict_order")
                near.execute(f"SET hnsw.ef_search = {ef}".encode())
        return near

    def split(self, text: str) -> list[str]:
        asked = "SELECT tsvector_to_array(to_tsvector(%s::regconfig, %s))"
        values = (self.plan.language, plain_text(text))
        return list(self._connection.execute(asked, values).fetchone()[0])

    def facts(self) -> dict[str, Any]:
        """Whether the planner takes the index of the vectors: small tables are read without."""
        if self.plan.dimension is None:
            return {}
        zero = f"'[{','.join(['1'] * self.plan.dimension)}]'::vector"
        asked = f"EXPLAIN SELECT id FROM {self.table} ORDER BY embedding <=> {zero} LIMIT 10"
        plan = " ".join(row[0] for row in self._connection.execute(asked.encode()).fetchall())
        return self.plan.index_facts("Index Scan" in plan, "the planner reads the whole table")

    def failed(self, problem: Exception) -> Exception:
        return failures.failed(problem, self.address.shown)

    def disk_bytes(self) -> int | None:
        if self._rooms is None:
            return None
        asked = "SELECT pg_total_relation_size(%s::regclass)"
        return int(self._connection.execute(asked, (self.table,)).fetchone()[0])

    def server_pid(self) -> int | None:
        return None if self._rooms is None else self._rooms.server_pid

    def close(self) -> None:
        connection, self._connection = self._connection, None
        for opened in () if connection is None else (connection, *self._near.values()):
            opened.close()
        rooms, self._rooms = self._rooms, None
        if rooms is not None:
            rooms.close()


def _where(wanted: Filter | None, values: dict[str, Any]) -> str:
    """A condition of SQL on the JSON of the metadata, whose paths are put into ``values``."""

    def condition(one: Condition) -> str:
        sign = _COMPARISONS[one.operator]
        tests = " || ".join(f"@ {sign} {json.dumps(value)}" for value in one.values)
        name = f"filter{len(values)}"
        plain = f"$.{json.dumps(one.field)} ? ({tests})"
        values[name] = plain
        if "." not in one.field:
            return f"metadata @? %({name})s::jsonpath"
        values[f"{name}k"], values[f"{name}n"] = one.field, f"{_nested(one.field)} ? ({tests})"
        path = f"CASE WHEN metadata ? %({name}k)s THEN %({name})s ELSE %({name}n)s END"
        return f"metadata @? CAST({path} AS jsonpath)"

    return "true" if wanted is None else wanted.translated(condition, sql_group)


def _nested(field: str) -> str:
    """The path of a field with dots, through mappings only: a path goes into lists by itself."""
    keys = [json.dumps(part) for part in field.split(".")]
    outer = (".".join(keys[:end]) for end in range(1, len(keys)))
    mappings = " && ".join(f'@.{path}.type() == "object"' for path in outer)
    return f"$ ? ({mappings}).{'.'.join(keys)}"


class Postgres(Engine):
    """See :class:`.Engine`; ``text`` is ``ts_rank`` over any word of the query."""

    store = _Postgres
