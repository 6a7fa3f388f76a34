"""LanceDB, in this process: its tables in a folder. Filters are columns, since it has none for what
stands in JSON: of each field its texts, numbers and truth values, and their ends for ranges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import Condition
from retrieval_bench_retrievers.engines import columns
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.folder_store import FolderStore
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.filling import Row

_STEMMERS = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek"),
    *("hungarian", "italian", "norwegian", "portuguese", "romanian", "russian", "spanish"),
    *("swedish", "tamil", "turkish"),
)
_FEWEST = 256
"""Vectors that an index is made for."""


class _Lance(FolderStore):
    """A table and its indexes."""

    kind, extra, schemes = "LanceDB", "lancedb", ("lancedb",)
    modes, usual_ef = ("dense", "bm25", "hybrid"), 100
    _table: Any = None

    @classmethod
    def packages(cls, _address: Address | None) -> tuple[str, ...]:
        return ("lancedb",)

    def open(self) -> None:
        if self.address.host:
            raise ConfigError(
                f"LanceDB at the host {self.address.host}",
                where=self.address.shown,
                accepted="lancedb:///FOLDER: its tables in a folder of this machine",
                fix="name a folder; one that is mounted is one, too",
            )
        os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of columns at every hybrid search
        import lancedb

        self.version = version("lancedb")
        self._base = lancedb.connect(str(self.folder))
        if self.made():
            self._table = self._base.open_table(self.table)

    def made(self) -> bool:
        return (self.folder / f"{self.table}.lance").is_dir()

    def create(self) -> None:
        import pyarrow as pa

        made = [("id", pa.string()), ("contents", pa.string())]
        for at in range(len(self.plan.fields)):
            for kind, single in (("t", pa.string()), ("n", pa.float64())):
                made += [(f"f{at}{kind}", pa.list_(single)), (f"f{at}{kind}low", single)]
                made.append((f"f{at}{kind}high", single))
            made.append((f"f{at}b", pa.list_(pa.string())))
        if self.plan.dimension is not None:
            made.append(("vector", pa.list_(pa.float32(), self.plan.dimension)))
        self._table = self._base.create_table(self.table, schema=pa.schema(made))

    def missing(self, ids: Sequence[str]) -> set[str]:
        if not self._table.count_rows():
            return set(ids)
        chosen = f"id IN ({', '.join(map(_quoted, ids))})"
        found = self._table.search().where(chosen).select(["id"]).limit(len(ids)).to_arrow()
        return set(ids) - set(found["id"].to_pylist())

    def send(self, rows: Sequence[Row]) -> None:
        self._table.add(self._records(rows))

    def put(self, rows: Sequence[Row]) -> None:
        """One new version of the table for each call."""
        merged = self._table.merge_insert("id").when_matched_update_all()
        merged.when_not_matched_insert_all().execute(self._records(rows))

    def remove(self, ids: Sequence[str]) -> None:
        self._table.delete(f"id IN ({', '.join(map(_quoted, ids))})")

    def _records(self, rows: Sequence[Row]) -> Any:
        import pyarrow as pa

        records = []
        for row in rows:
            filtered = columns.cells(row, self.plan.fields)
            own = {"id": row.id, "contents": row.contents, "vector": row.vector}
            records.append({**own, **filtered})
        return pa.Table.from_pylist(records, schema=self._table.schema)

    def finish(self) -> None:
        """Indexes of words, of filters, and of the vectors, from so many on; then one file each."""
        from lancedb import index

        language = self.plan.language
        stems = language in _STEMMERS
        words = index.FTS(
            base_tokenizer="icu",
            language=language.capitalize() if stems else "English",
            stem=stems,
            remove_stop_words=stems,
            max_token_length=None,
        )
        if n := self._table.count_rows():
            self._table.create_index("contents", config=words)
            for at in range(len(self.plan.fields)):
                for kind in "tb":
                    self._table.create_index(f"f{at}{kind}", config=index.LabelList())
                for column in ("tlow", "thigh", "nlow", "nhigh"):
                    self._table.create_index(f"f{at}{column}", config=index.BTree())
        plan = self.plan
        if plan.dimension is not None and plan.index.index == "hnsw" and n >= _FEWEST:
            settings = {"m": plan.index.m, "ef_construction": plan.index.ef_construction}
            graph = index.HnswFlat(distance_type="dot", **settings)
            self._table.create_index("vector", config=graph)
        self._table.optimize()

    def search(self, asked: base.Asked) -> base.Hits:
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        words = MatchQuery(asked.text, "contents")
        if asked.mode == "bm25":
            query = self._table.search(words, query_type="fts")
        elif asked.mode == "dense":
            query = self._near(self._table.search(asked.vector), asked)
        else:
            query = self._table.search(query_type="hybrid").vector(asked.vector).text(words)
            query = self._near(query, asked).rerank(RRFReranker(K=base.RRF_K))
        if asked.filter is not None:
            chosen = asked.filter.translated(self._condition, columns.group)
            query = query.where(chosen, prefilter=True)
        score = {"bm25": "_score", "dense": "_distance", "hybrid": "_relevance_score"}[asked.mode]
        wanted = ["id"] if asked.mode == "hybrid" else ["id", score]
        n = asked.depth if asked.mode == "hybrid" else asked.k
        found = query.limit(n).select(wanted).to_arrow()
        scores = found[score].to_pylist()
        if asked.mode == "dense":
            scores = [1 - one for one in scores]
        return list(zip(found["id"].to_pylist(), scores, strict=True))[: asked.k]

    def _near(self, query: Any, asked: base.Asked) -> Any:
        query = query.distance_type("dot")
        return query.bypass_vector_index() if asked.exact else query.ef(asked.ef)

    def _condition(self, one: Condition) -> str:
        name = columns.column_of(one, self.plan.fields, self.kind)
        if one.operator in columns.ENDS:
            end, sign = columns.ENDS[one.operator]
            kind, value = columns.literal(one.value)
            found = f"{name}{kind}{end} {sign} {_literal(value)}" if kind != "b" else "false"
            return f"coalesce({found}, false)"
        tests = [
            f"array_has_any({name}{kind}, [{', '.join(map(_literal, values))}])"
            for kind, values in columns.by_kind(one, self.kind).items()
        ]
        return f"coalesce({' OR '.join(tests)}, false)"

    def vector_size(self) -> int | None:
        schema = self._table.schema
        kind = schema.field("vector").type if "vector" in schema.names else None
        return getattr(kind, "list_size", None)

    def facts(self) -> dict[str, Any]:
        found = {i.columns[0]: i for i in self._table.list_indices()}
        vectors = found["vector"].num_indexed_rows if "vector" in found else 0
        return {"indexed_vectors": vectors, **self.plan.index_facts(vectors)}

    def close(self) -> None:
        self._table = self._base = None
        self.leave()


class LanceDB(Engine):
    """See :class:`.Engine`; ``bm25`` is that of Lance's index of words."""

    store = _Lance


def _literal(value: Any) -> str:
    return repr(value) if isinstance(value, float) else _quoted(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
