"""Documents in a table of PostgreSQL: made, filled by COPY in batches, indexed.

The table holds ``id``, ``title``, ``text``, ``metadata`` (jsonb), ``tsv`` (words for full-text
search) and, with an encoder, ``embedding``. A second table says what was loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.sql.connection import learn_vectors
from retrieval_bench_retrievers.sql.failures import may_pass, refused
from retrieval_bench_retrievers.sql.filling import Filled, Filling, Plan, Progress, Row

if TYPE_CHECKING:
    import psycopg

LOADS = "retrieval_bench_loads"
"""The table that says what was loaded, one row for each table."""


class Table(Filling):
    """One table and its row among the loads, behind a connection that may write.

    Args:
        connection: that commits each statement by itself.
        name: of the table, perhaps with its schema.
        plan: whose language is the name of a text search configuration.
    """

    kind, unit_vectors = "PostgreSQL", False

    def __init__(self, connection: psycopg.Connection[Any], name: str, plan: Plan) -> None:
        self._connection = connection
        self.table = name
        self.plan = plan

    @property
    def place(self) -> str:
        """The table."""
        return f"table {self.table}"

    def fill(self, documents: Iterable[Document], progress: Progress | None = None) -> Filled:
        """Fill it, unless a second process does: that would send the same documents again."""
        key = "hashtext(concat_ws('.', current_schema(), %s::text))"  # until the connection ends
        if not _one(self._connection, f"SELECT pg_try_advisory_lock({key})", self.table):
            raise ConfigError(
                f"another process fills {self.table}",
                where=self.place,
                accepted="one at a time",
                fix="wait for it; the same command then says what is there",
            )
        if self.plan.encoder is not None:
            learn_vectors(self._connection, self.place)
        return super().fill(documents, progress)

    def unfilled(self, problem: Exception) -> Exception:
        import psycopg

        lasting = isinstance(problem, psycopg.Error) and not may_pass(problem)
        return refused(problem, "load", self.place) if lasting else super().unfilled(problem)

    def known(self) -> dict[str, Any] | None:
        loaded = load_of(self._connection, self.table)
        if loaded and hasattr(self, "plan"):  # the indexes of fields are made where they lack
            loaded["fields"] = list(self.plan.fields)
        return loaded

    def remember(self, loaded: Mapping[str, Any]) -> None:
        self._run(
            f"CREATE TABLE IF NOT EXISTS {LOADS} (name text PRIMARY KEY, content text NOT NULL,"
            " documents bigint NOT NULL, language text NOT NULL, encoder jsonb, index text,"
            " finished timestamptz)"
        )
        row = [self.table, *(loaded[what] for what in ("content", "documents", "language"))]
        row += [json.dumps(loaded["encoder"]), loaded["index"], loaded["finished"]]
        with self._connection.transaction():
            self._run(f"DELETE FROM {LOADS} WHERE name = %s", self.table)
            values = "%s, %s, %s, %s, %s::jsonb, %s, CASE WHEN %s THEN now() END"
            self._run(f"INSERT INTO {LOADS} VALUES ({values})", *row)

    def create(self) -> None:
        encoder, language = self.plan.encoder, self.plan.language
        column = f", embedding vector({encoder.dimension})" if encoder else ""
        words = f"to_tsvector('{language}', title || ' ' || text)"
        # The collation C: ties by id come by code point, whatever the database sorts by.
        self._run(
            f'CREATE TABLE {self.table} (id text COLLATE "C" PRIMARY KEY, title text NOT NULL,'
            " text text NOT NULL, metadata jsonb NOT NULL,"
            f" tsv tsvector GENERATED ALWAYS AS ({words}) STORED{column})"
        )

    def missing(self, ids: Sequence[str]) -> set[str]:
        rows = self._run(f"SELECT id FROM {self.table} WHERE id = ANY(%s)", list(ids))
        return {*ids} - {row[0] for row in rows}

    def send(self, rows: Sequence[Row]) -> None:
        """All of them, or none where it is interrupted."""
        columns, types = "id, title, text, metadata", ["text", "text", "text", "jsonb"]
        if self.plan.encoder is not None:
            columns, types = f"{columns}, embedding", [*types, "vector"]
        copying = f"COPY {self.table} ({columns}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(copying.encode()) as copy:
            copy.set_types(types)
            for row in rows:  # the driver writes the JSON
                values = (row.id, row.title, row.text, row.metadata, row.vector)
                copy.write_row(values[: len(types)])

    def put(self, rows: Sequence[Row]) -> None:
        """In one transaction: nobody sees neither version."""
        if self.plan.encoder is not None and not self._connection.adapters.types.get("vector"):
            learn_vectors(self._connection, self.place)
        with self._connection.transaction():
            self.remove([row.id for row in rows])
            self.send(rows)

    def remove(self, ids: Sequence[str]) -> None:
        self._run(f"DELETE FROM {self.table} WHERE id = ANY(%s)", list(ids))

    def finish(self) -> None:
        """Indexes after the rows, which is faster; those that are there stay."""
        name, settings = self.table, self.plan.index
        short = name.rpartition(".")[2]
        self._run(f"CREATE INDEX IF NOT EXISTS {short}_tsv ON {name} USING gin (tsv)")
        if settings.index == "hnsw" and self.plan.encoder is not None:
            self._run(
                f"CREATE INDEX IF NOT EXISTS {short}_hnsw ON {name} USING hnsw "
                f"(embedding vector_cosine_ops) WITH (m = {settings.m}, "
                f"ef_construction = {settings.ef_construction})"
            )
        if self.plan.fields:
            made = f"{short}_metadata ON {name} USING gin (metadata jsonb_path_ops)"
            self._run(f"CREATE INDEX IF NOT EXISTS {made}")
        self._run(f"VACUUM ANALYZE {name}")

    def _run(self, statement: str, *values: Any) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.encode(), values or None)


def load_of(connection: psycopg.Connection[Any], table: str) -> dict[str, Any] | None:
    """What was loaded into ``table``: content, documents, language, encoder, index, finished; {}
    where nothing is known, None where it is not there."""
    if _one(connection, "SELECT to_regclass(%s)::text", table) is None:
        return None
    if _one(connection, "SELECT to_regclass(%s)::text", LOADS) is None:
        return {}
    columns = "content, documents, language, encoder, index, finished IS NOT NULL"
    rows = connection.execute(f"SELECT {columns} FROM {LOADS} WHERE name = %s".encode(), (table,))
    row = rows.fetchone()
    names = ("content", "documents", "language", "encoder", "index", "finished")
    return {} if row is None else dict(zip(names, row, strict=True))


def _one(connection: psycopg.Connection[Any], statement: str, value: str) -> Any:
    row = connection.execute(statement.encode(), (value,)).fetchone()
    return None if row is None else row[0]
