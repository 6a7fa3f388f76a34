"""Qdrant: its core in this process (qdrant-edge-py), or a server. BM25 is that of Qdrant's own text
index."""

from __future__ import annotations

import errno
import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.folder_store import FolderStore
from retrieval_bench_retrievers.engines.qdrant_server import QdrantServer
from retrieval_bench_retrievers.engines.qdrant_words import QdrantWords
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.failures import text_of

_SPARE = 1 << 27
"""Bytes of the disk that stay free: its log alone takes several pieces of 32 MB."""
_GRAPH_FROM = 10_000
"""Kilobytes of vectors in a segment that has a graph: Qdrant's own."""


class _Edge(QdrantWords, FolderStore):
    """The core in this process; one thread searches, as the protocol has it."""

    module, point, range = "qdrant_edge", "Point", "RangeFloat"
    _shard: Any = None

    @classmethod
    def at(cls, address: Address | None, table: str) -> base.EngineStore:
        """A server, where the address names one."""
        on_server = address is not None and address.host
        return QdrantServer.at(address, table) if on_server else super().at(address, table)

    @property
    def _place(self) -> Path:
        return self.folder / self.table

    def open(self) -> None:
        self.version = f"edge {version('qdrant-edge-py')}"
        if not self.made():
            return
        try:
            self._shard = self.words.EdgeShard.load(str(self._place))
        except Exception as problem:
            busy = "WouldBlock" in str(problem)
            raise ConfigError(
                f"Qdrant cannot open {self.table}: {text_of(problem)}",
                where=self.address.shown,
                fix="end the other process that has it open" if busy else "load it anew elsewhere",
            ) from problem

    def made(self) -> bool:
        return (self._place / "edge_config.json").is_file()

    def known(self) -> dict[str, Any] | None:
        """{} also where a folder of that name is not one that a load of ours began."""
        place = self._place
        if self.made() or self._half_made() or not os.path.lexists(place):
            return super().known()
        return None if place.is_dir() and not any(place.iterdir()) else {}

    def _half_made(self) -> bool:
        """Whether a load began here, and its process ended before there was a collection."""
        told = self._note
        return told.is_file() and not json.loads(told.read_bytes()).get("finished", True)

    def create(self) -> None:
        words, plan = self.words, self.plan
        # What :meth:`known` let through is empty, or made in part by a process that ended.
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir()
        config: dict[str, Any] = {"sparse_vectors": {"none": words.EdgeSparseVectorParams()}}
        if plan.dimension is not None:
            params = words.EdgeVectorParams(size=plan.dimension, distance=words.Distance.Dot)
            config = {"vectors": {"dense": params}}
        if plan.index.index == "hnsw":
            how = (plan.index.m, plan.index.ef_construction, _GRAPH_FROM)
            config["hnsw_config"] = words.HnswIndexConfig(*how)
        threshold = _GRAPH_FROM if plan.index.index == "hnsw" else 1 << 40
        config["optimizers"] = words.EdgeOptimizersConfig(indexing_threshold=threshold)
        made = words.EdgeConfig(max_search_threads=1, **config)
        self._shard = words.EdgeShard.create(str(self._place), made)

    def finish(self) -> None:
        index = self.words.TextIndexParams(scoring=True, **self._analysis())
        self._require_space(_SPARE + 2 * (self.disk_bytes() or 0))
        self._index_field("text", index)
        while self._shard.optimize():
            pass
        self._shard.flush()

    def _require_space(self, needed: int) -> None:
        """It writes by mapped memory: where the disk is full, the process is killed (SIGBUS)."""
        if shutil.disk_usage(self._place).free < needed:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, or soon")

    def vector_size(self) -> int | None:
        held = json.loads((self._place / "edge_config.json").read_bytes()).get("vectors") or {}
        return int(held["dense"]["size"]) if "dense" in held else None

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "search_threads": 1}

    def split(self, text: str) -> list[str]:
        """Numbers in place of terms, which it does not tell: equal terms have equal numbers."""
        words = self.words
        plain = {"stemmer": words.DisabledStemmer(), "stopwords": words.StopwordsSet()}
        model = words.Bm25(words.Bm25Config(**{**plain, **self._analysis()}))
        return [str(number) for number in model.embed_query(text).indices]

    def close(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            shard.close()
        self.leave()

    def _snowball(self, language: Any) -> Any:
        return self.words.SnowballParams(language)

    def _info(self) -> Any:
        return self._shard.info()

    def _leg(self, mode: str, asked: base.Asked) -> dict[str, Any]:
        if mode == "bm25":
            return {"query": self.words.TextQuery("text", asked.text)}
        assert asked.vector is not None
        return {"query": self.words.Query.Nearest(asked.vector.tolist(), using="dense")}

    def _fusion(self, legs: list[Any]) -> dict[str, Any]:
        return {"query": self.words.Fusion.Rrf(k=base.RRF_K), "prefetches": legs}

    def _query(self, k: int, **request: Any) -> base.Hits:
        asked = self.words.QueryRequest(limit=k, with_payload=["id"], **request)
        return [(point.payload["id"], point.score) for point in self._shard.query(asked)]

    def _index_field(self, name: str, schema: Any) -> None:
        self._shard.update(self.words.UpdateOperation.create_field_index(name, schema))

    def _there(self, points: list[str]) -> list[str]:
        found = self._shard.retrieve(points, with_payload=False, with_vector=False)
        return [str(record.id) for record in found]

    def _upsert(self, points: list[Any]) -> None:
        self._require_space(_SPARE)
        self._shard.update(self.words.UpdateOperation.upsert_points(points))
        self._shard.flush()

    def _delete(self, points: list[str]) -> None:
        self._shard.update(self.words.UpdateOperation.delete_points(points))
        self._shard.flush()


class Qdrant(Engine):
    """See :class:`.Engine`; ``bm25`` is that of Qdrant's text index."""

    store = _Edge
