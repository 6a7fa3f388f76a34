"""Documents in a table of PostgreSQL: made, filled by COPY in batches, indexed.

The table holds ``id``, ``title``, ``text``, ``metadata`` (jsonb), ``tsv`` (words for full-text
search) and, with an encoder, ``embedding``. A second table says what was loaded, so that a load
that was interrupted goes on, and another content is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.types import Document
from retrieval_bench.data.fingerprint import Sum
from retrieval_bench_retrievers.encoders.encoder import Encoder, readable
from retrieval_bench_retrievers.encoders.vectors import DocumentVectors
from retrieval_bench_retrievers.sql.connection import learn_vectors
from retrieval_bench_retrievers.sql.failures import may_pass, refused, text_of
from retrieval_bench_retrievers.sql.params import LoadSettings
from retrieval_bench_retrievers.sql.statement import plain_text

if TYPE_CHECKING:
    import psycopg

LOADS = "retrieval_bench_loads"
"""The table that says what was loaded, one row for each table."""

BATCH = 2048
"""Documents that are encoded and sent together: what an interrupted load does again."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What a load did: documents sent, documents that were there before, the content's hash."""

    sent: int
    there: int
    content: str


class Table:
    """One table and its row among the loads, behind a connection that may write.

    Args:
        connection: that commits each statement by itself.
        name: of the table, perhaps with its schema.
        language: name of a text search configuration.
        encoder: loaded; None for a table without vectors.
        fields: of the metadata, which filters name.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        name: str,
        settings: LoadSettings,
        language: str,
        encoder: Encoder | None,
        *,
        fields: Sequence[str] = (),
    ) -> None:
        self._connection = connection
        self._name = name
        self._settings = settings
        self._language = language
        self._encoder = encoder
        self._fields = fields
        self._vectors = DocumentVectors(encoder, settings.cache) if encoder else None
        if encoder is not None:
            learn_vectors(connection, f"table {name}")

    def fill(
        self, documents: Iterable[Document], progress: Callable[[int, int], None] | None = None
    ) -> Filled:
        """Make the table unless it is there, send what it lacks, then build its indexes.

        Args:
            documents: walked twice.
            progress: told (documents done, documents in all) after each batch.

        Raises:
            ConfigError: the table holds another content, or was made by something else.
            ContractError: two documents of one id, or one that PostgreSQL cannot hold.
        """
        import psycopg

        content, total = content_of(documents)
        try:
            finished = self._begun(content, total)
            sent = there = 0
            for batch in () if finished else batches(documents, BATCH):
                new = self._missing(batch)
                there += len(batch) - len(new)
                before = sent + there
                told = None if progress is None else shifted(progress, before, total)
                self._send(new, told)
                sent += len(new)
                if progress is not None:
                    progress(sent + there, total)
            if not finished:
                self._index()
        except psycopg.errors.UniqueViolation as problem:
            raise ContractError(
                f"two documents have one id: {problem.diag.message_detail}",
                accepted="distinct ids",
                fix="correct the corpus; chunks of one document need an id each",
            ) from None
        except psycopg.Error as problem:
            if may_pass(problem):
                raise ConfigError(
                    f"PostgreSQL failed while table {self._name} was filled: {text_of(problem)}",
                    where=f"table {self._name}",
                    fix="see what it says (a full disk, a server that ended); the same command "
                    "then goes on where this ended",
                ) from problem
            raise refused(problem, "load", f"table {self._name}") from problem
        return Filled(sent, total if finished else there, content)

    def facts(self) -> dict[str, Any]:
        """How many vectors were made for the last batch, and what became of the cache."""
        return {} if self._vectors is None else {"cache": self._vectors.state}

    def _begun(self, content: str, total: int) -> bool:
        """Return whether the load was finished before; what it needs is there afterwards."""
        name = self._name
        self._lock()
        known = load_of(self._connection, name)
        exists = _one(self._connection, "SELECT to_regclass(%s)::text", name) is not None
        if known is not None and exists:
            self._require_same(known, content)
            return bool(known["finished"])
        if exists:
            raise ConfigError(
                f"there is a table {name} that this command did not make",
                where=f"table {name}",
                accepted="a new table, or one whose load was begun by this command",
                fix="choose another --table, or remove that one yourself",
            )
        column = f", embedding vector({self._encoder.dimension})" if self._encoder else ""
        words = f"to_tsvector('{self._language}', title || ' ' || text)"
        # One transaction: a table without its row would be refused the next time.
        with self._connection.transaction():
            self._run(
                f"CREATE TABLE IF NOT EXISTS {LOADS} (name text PRIMARY KEY, content text NOT NULL,"
                " documents bigint NOT NULL, language text NOT NULL, encoder jsonb, index text,"
                " finished timestamptz)"
            )
            # The collation C: ties by id come by code point, whatever the database sorts by.
            self._run(
                f'CREATE TABLE {name} (id text COLLATE "C" PRIMARY KEY, title text NOT NULL,'
                " text text NOT NULL, metadata jsonb NOT NULL,"
                f" tsv tsvector GENERATED ALWAYS AS ({words}) STORED{column})"
            )
            self._connection.execute(f"DELETE FROM {LOADS} WHERE name = %s".encode(), (name,))
            self._connection.execute(
                f"INSERT INTO {LOADS} VALUES (%s, %s, %s, %s, %s::jsonb, NULL, NULL)".encode(),
                (name, content, total, self._language, json.dumps(identity_of(self._encoder))),
            )
        return False

    def _lock(self) -> None:
        """Until the connection ends: a second process would send the same documents."""
        key = "hashtext(concat_ws('.', current_schema(), %s::text))"
        if not _one(self._connection, f"SELECT pg_try_advisory_lock({key})", self._name):
            raise ConfigError(
                f"another process fills {self._name}",
                where=f"table {self._name}",
                accepted="one at a time",
                fix="wait for it; the same command then says what is there",
            )

    def _require_same(self, known: Mapping[str, Any], content: str) -> None:
        name = self._name
        found = {
            "content": (known["content"], content),
            "language": (known["language"], self._language),
            "encoder": (known["encoder"], identity_of(self._encoder)),
        }
        if known["finished"] and self._encoder is not None:
            found["index"] = (known["index"], self._settings.index)
        for what, (there, asked) in found.items():
            if there != asked:
                raise ConfigError(
                    f"table {name} was filled with another {what}: {there}, not {asked}",
                    where=f"table {name}, as {LOADS} says",
                    accepted="the same documents, language, encoder and index as before",
                    fix=f"choose another --table; or remove it: DROP TABLE {name}; "
                    f"DELETE FROM {LOADS} WHERE name = '{name}'",
                )

    def _missing(self, batch: Sequence[Document]) -> list[Document]:
        """Those of ``batch`` whose id the table does not have."""
        ids = [document_id(document) for document in batch]
        rows = self._connection.execute(
            f"SELECT id FROM {self._name} WHERE id = ANY(%s)".encode(), (ids,)
        )
        there = {row[0] for row in rows}
        return [document for document in batch if document.id not in there]

    def _send(
        self, documents: Sequence[Document], progress: Callable[[int, int], None] | None
    ) -> None:
        """All of them, or none where it is interrupted."""
        if not documents:
            return
        vectors: Any = None
        row_of: dict[str, int] = {}
        if self._vectors is not None:
            for document in documents:
                row_of.setdefault(readable(document.contents), len(row_of))
            vectors = self._vectors.of(list(row_of), progress)
        columns, types = "id, title, text, metadata", ["text", "text", "text", "jsonb"]
        if vectors is not None:
            columns, types = f"{columns}, embedding", [*types, "vector"]
        copying = f"COPY {self._name} ({columns}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(copying.encode()) as copy:
            copy.set_types(types)
            for document in documents:
                *texts, _ = texts_of(document)
                row: list[Any] = [
                    *texts,
                    plain_metadata(document.metadata),
                ]  # the driver writes the JSON
                if vectors is not None:
                    row.append(vectors[row_of[readable(document.contents)]])
                copy.write_row(row)

    def _index(self) -> None:
        """Indexes after the rows, which is faster; those that are there stay."""
        name, settings = self._name, self._settings
        short = name.rpartition(".")[2]
        self._run(f"CREATE INDEX IF NOT EXISTS {short}_tsv ON {name} USING gin (tsv)")
        if settings.index == "hnsw" and self._encoder is not None:
            self._run(
                f"CREATE INDEX IF NOT EXISTS {short}_hnsw ON {name} USING hnsw "
                f"(embedding vector_cosine_ops) WITH (m = {settings.m}, "
                f"ef_construction = {settings.ef_construction})"
            )
        if self._fields:
            made = f"{short}_metadata ON {name} USING gin (metadata jsonb_path_ops)"
            self._run(f"CREATE INDEX IF NOT EXISTS {made}")
        self._run(f"VACUUM ANALYZE {name}")
        self._connection.execute(
            f"UPDATE {LOADS} SET finished = now(), index = %s WHERE name = %s".encode(),
            (settings.index, name),
        )

    def _run(self, statement: str) -> None:
        self._connection.execute(statement.encode())


def load_of(connection: psycopg.Connection[Any], table: str) -> dict[str, Any] | None:
    """What was loaded into ``table``: content, documents, language, encoder, index, finished; None
    where nothing is known."""
    if _one(connection, "SELECT to_regclass(%s)::text", LOADS) is None:
        return None
    columns = "content, documents, language, encoder, index, finished IS NOT NULL"
    rows = connection.execute(f"SELECT {columns} FROM {LOADS} WHERE name = %s".encode(), (table,))
    row = rows.fetchone()
    names = ("content", "documents", "language", "encoder", "index", "finished")
    return None if row is None else dict(zip(names, row, strict=True))


def identity_of(encoder: Encoder | None) -> dict[str, Any] | None:
    """What must be equal of the encoders of documents and of queries."""
    if encoder is None:
        return None
    return {
        "model": encoder.name,
        "sha256": encoder.content_hash,
        "dimension": encoder.dimension,
        "prompt": encoder.prompts.get("document", ""),
        "max_seq_length": encoder.max_seq_length,
    }


def shifted(
    progress: Callable[[int, int], None], before: int, total: int
) -> Callable[[int, int], None]:
    """Tells of a batch as a part of the whole."""
    return lambda done, _: progress(before + done, total)


def batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    """So many at a time."""
    walk = iter(documents)
    while batch := list(islice(walk, size)):
        yield batch


def _one(connection: psycopg.Connection[Any], statement: str, value: str) -> Any:
    row = connection.execute(statement.encode(), (value,)).fetchone()
    return None if row is None else row[0]


def content_of(documents: Iterable[Document]) -> tuple[str, int]:
    """A hash of ids, titles, texts and metadata that does not depend on their order, and the number
    of documents. Unlike a dataset's fingerprint it knows no queries, and does know metadata."""
    added = Sum()
    for document in documents:
        digest = blake2b(digest_size=32, person=b"table")
        for part in texts_of(document):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        added.add(digest.digest())
    whole = added.count.to_bytes(8, "little") + added.total.to_bytes(32, "little")
    return blake2b(whole, digest_size=16, person=b"table").hexdigest(), added.count


def document_id(document: Document) -> str:
    """The id, as PostgreSQL holds it.

    Raises:
        ContractError: it cannot hold it.
    """
    if plain_text(document.id) != document.id:
        raise ContractError(
            f"document id {document.id!r} cannot be stored in a database",
            accepted="ids without NUL and without halves of surrogate pairs",
            fix="correct the corpus",
        )
    return document.id


def texts_of(document: Document) -> tuple[str, str, str, str]:
    """Id, title, text, and metadata as JSON with its keys in order."""
    metadata = json.dumps(plain_metadata(document.metadata), ensure_ascii=False, sort_keys=True)
    title, text = plain_text(document.title), plain_text(document.text)
    return document_id(document), title, text, metadata


def plain_metadata(value: Any) -> Any:
    """Metadata as jsonb holds them; what JSON does not know as text."""
    if isinstance(value, str):
        return plain_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {plain_text(str(key)): plain_metadata(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_metadata(item) for item in value]
    return plain_text(str(value))
