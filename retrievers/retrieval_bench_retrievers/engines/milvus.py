"""Milvus: a server or a cluster, or Milvus Lite in this process, which is another engine behind the
same client, written in Python: a stand-in, whose times say nothing about Milvus."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import Condition
from retrieval_bench_retrievers.engines import columns
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.folder_store import FolderStore
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.filling import Row

_literal = partial(json.dumps, ensure_ascii=False)
_NOTE = "retrieval_bench"
_LONGEST = 65_535
"""Bytes of a text."""
_SEND = 512
_FILE = "milvus.db"
_POLL_S = 0.2
_UNREACHABLE, _THROTTLED = 2, 8
_LOST = ("MilvusUnavailableException", "ConnectError", "RpcError")


class _Milvus(FolderStore):
    """A collection; a folder holds the file of Milvus Lite."""

    kind, extra, schemes = "Milvus", "milvus", ("milvus", "milvus+https")
    modes, usual_ef, graph_only = ("dense", "bm25", "hybrid"), 64, True
    _client: Any = None
    _told: Mapping[str, Any] = {}

    @classmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        return ("pymilvus",) if address and address.host else ("pymilvus", "milvus-lite")

    def open(self) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it tells of pings
        from pymilvus import MilvusClient

        for name in ("pymilvus", "milvus_lite"):  # what fails is in the exception
            logging.getLogger(name).setLevel(logging.CRITICAL)
        parts = self.address.parts
        try:
            if not self.address.host:
                self._client = MilvusClient(str(self.folder / _FILE))
            else:
                secure = "https" if parts.scheme.endswith("https") else "http"
                self._client = MilvusClient(
                    f"{secure}://{self.address.host}:{parts.port or 19530}",
                    user=parts.username or "",
                    password=self.address.password or "",
                    db_name=parts.path.strip("/"),
                    timeout=30,
                )
            self.version = str(self._client.get_server_version())
            self.stand_in = "lite" in self.version  # also where it serves over a port
            if self.made():
                self._client.load_collection(self.table)
        except ConfigError:
            raise
        except Exception as problem:
            raise ConfigError(
                f"no answer from Milvus: {text_of(problem)}",
                where=self.address.shown,
                accepted="a server that runs and lets this user in, or a folder that nobody uses",
                fix="start the server, or correct the address; `uri: embedded` needs no server",
            ) from None

    def made(self) -> bool:
        return bool(self._client.has_collection(self.table))

    def known(self) -> dict[str, Any] | None:
        if not self.made():
            return None
        properties = self._client.describe_collection(self.table).get("properties", {})
        return dict(json.loads(properties.get(_NOTE, "{}")))

    def remember(self, loaded: Mapping[str, Any]) -> None:
        self._told = {_NOTE: json.dumps(loaded)}
        if self.made():
            self._client.alter_collection_properties(self.table, dict(self._told))

    def create(self) -> None:
        from pymilvus import DataType, Function, FunctionType

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        text = {"datatype": DataType.VARCHAR, "max_length": _LONGEST}
        schema.add_field("id", is_primary=True, **text)
        schema.add_field("contents", enable_analyzer=True, analyzer_params=self._analysis(), **text)
        for at in range(len(self.plan.fields)):
            for kind in columns.KINDS:
                single = {"datatype": DataType.DOUBLE} if kind == "n" else text
                how = {**single, "datatype": DataType.ARRAY, "max_capacity": 4096}
                schema.add_field(f"f{at}{kind}", element_type=single["datatype"], **how)
                for end in ("low", "high") if kind != "b" else ():
                    schema.add_field(f"f{at}{kind}{end}", **single)
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        bm25 = {"input_field_names": ["contents"], "output_field_names": ["words"]}
        schema.add_function(Function(name="bm25", function_type=FunctionType.BM25, **bm25))
        indexes = self._client.prepare_index_params()
        indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        if self.plan.dimension is not None:
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.plan.dimension)
            index = self.plan.index
            how = {"params": {"M": index.m, "efConstruction": index.ef_construction}}
            kind, how = ("HNSW", how) if index.index == "hnsw" else ("FLAT", {})
            indexes.add_index("vector", index_type=kind, metric_type="IP", **how)
        how_kept = {"properties": dict(self._told), "consistency_level": "Strong"}
        self._client.create_collection(self.table, schema=schema, index_params=indexes, **how_kept)

    def missing(self, ids: Sequence[str]) -> set[str]:
        rows = self._client.query(self.table, f"id in {_literal(list(ids))}", ["id"])
        return set(ids) - {row["id"] for row in rows}

    def send(self, rows: Sequence[Row]) -> None:
        records = self._records(rows)
        for start in range(0, len(records), _SEND):
            self._client.insert(self.table, records[start : start + _SEND])
        self._client.flush(self.table)

    def put(self, rows: Sequence[Row]) -> None:
        self._client.upsert(self.table, self._records(rows))

    def remove(self, ids: Sequence[str]) -> None:
        self._client.delete(self.table, ids=list(ids))

    def _records(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        records = []
        for row in rows:
            if (n := len(row.contents.encode())) > _LONGEST:
                raise ContractError(
                    f"document {row.id!r} has {n:,} bytes, and Milvus holds {_LONGEST:,} of a text",
                    fix="split the documents into chunks (`unit_key` of dataset.yaml)",
                )
            record: dict[str, Any] = {"id": row.id, "contents": row.contents}
            if row.vector is not None:
                record["vector"] = row.vector
            for name, value in columns.cells(row, self.plan.fields).items():
                none = "" if "t" in name else 0.0
                record[name] = none if value is None else value
            records.append(record)
        return records

    def finish(self) -> None:
        """Until every row is in its indexes."""
        self._client.flush(self.table)
        for name in self._client.list_indexes(self.table):
            while int(self._client.describe_index(self.table, name).get("pending_index_rows", 0)):
                time.sleep(_POLL_S)
        self._client.load_collection(self.table)

    def search(self, asked: base.Asked) -> base.Hits:
        """A graph is never searched exactly: that takes a collection without one."""
        given = asked.filter
        chosen = "" if given is None else given.translated(self._condition, columns.group)
        if asked.mode == "hybrid":
            from pymilvus import AnnSearchRequest, RRFRanker

            legs = [
                AnnSearchRequest(limit=asked.depth, expr=chosen or None, **self._leg(mode, asked))
                for mode in ("dense", "bm25")
            ]
            ranker = RRFRanker(base.RRF_K)
            found = self._client.hybrid_search(self.table, legs, ranker, limit=asked.k)
        else:
            leg = self._leg(asked.mode, asked)
            how = {"search_params": leg.pop("param"), "limit": asked.k, "filter": chosen}
            found = self._client.search(self.table, output_fields=["id"], **leg, **how)
        sign = -1 if self.stand_in and asked.mode == "bm25" else 1  # Lite gives it negated
        return [(one["id"], sign * float(one["distance"])) for one in found[0]]

    def _leg(self, mode: str, asked: base.Asked) -> dict[str, Any]:
        if mode == "bm25":
            return {"data": [asked.text], "anns_field": "words", "param": {}}
        if asked.exact and self.plan.index.index != "exact":
            raise ConfigError(
                "exact: true, and the collection has an HNSW graph",
                where=f"retriever milvus, table {self.table}",
                accepted="a collection without one: Milvus cannot search past its index",
                fix="load it with --index exact, or `load: {index: exact}` where it is embedded",
            )
        assert asked.vector is not None
        param = {"params": {"ef": asked.ef} if self.plan.index.index == "hnsw" else {}}
        return {"data": [asked.vector.tolist()], "anns_field": "vector", "param": param}

    def _condition(self, one: Condition) -> str:
        name = columns.column_of(one, self.plan.fields, self.kind)
        if one.operator in columns.ENDS:
            end, sign = columns.ENDS[one.operator]
            kind, value = columns.literal(one.value)
            if kind == "b":
                return "(1 == 2)"
            held = f"{name}{kind}"
            return f"({held}{end} {sign} {_literal(value)} and array_length({held}) > 0)"
        tests = [
            f"array_contains_any({name}{kind}, {_literal(values)})"
            for kind, values in columns.by_kind(one, self.kind).items()
        ]
        return f"({' or '.join(tests)})"

    def _analysis(self) -> dict[str, Any]:
        """Milvus Lite has words of Latin script only, and no stems."""
        language = self.plan.language
        if language == "simple":
            return {"tokenizer": "standard" if self.stand_in else "icu", "filter": ["lowercase"]}
        stop = {"type": "stop", "stop_words": [f"_{language}_"]}
        stems = {"type": "stemmer", "language": language}
        return {"tokenizer": "standard", "filter": ["lowercase", stop, stems]}

    def split(self, text: str) -> list[str]:
        if self.stand_in:
            from milvus_lite.analyzer.factory import create_analyzer

            return list(create_analyzer(self._analysis()).tokenize(text))
        terms = self._client.run_analyzer([text], analyzer_params=self._analysis())
        return [str(token) for token in terms[0].tokens]

    def vector_size(self) -> int | None:
        fields = self._client.describe_collection(self.table)["fields"]
        sizes = (int(held["params"]["dim"]) for held in fields if held["name"] == "vector")
        return next(sizes, None)

    def facts(self) -> dict[str, Any]:
        if self.plan.dimension is None:
            return {}
        index = self._client.describe_index(self.table, "vector")
        vectors = index.get("indexed_rows") if index.get("index_type") == "HNSW" else 0
        return {"indexed_vectors": vectors, **self.plan.index_facts(vectors)}

    def failed(self, problem: Exception) -> Exception:
        text, code = f"Milvus: {text_of(problem)}", getattr(problem, "code", None)
        if code == _THROTTLED:
            return TransientError(text, Kind.THROTTLED)
        names = {one.__name__ for one in type(problem).__mro__}
        lost = code == _UNREACHABLE or names & set(_LOST)
        return TransientError(text, Kind.CONNECTION) if lost else CallError(text)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
        self.leave()


class Milvus(Engine):
    """See :class:`.Engine`; ``bm25`` is that of Milvus."""

    store = _Milvus
