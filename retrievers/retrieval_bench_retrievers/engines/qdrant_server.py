"""A server of Qdrant, through qdrant-client; its local mode, which is numpy, is not offered."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.qdrant_words import QdrantWords
from retrieval_bench_retrievers.sql.failures import text_of

_POLL_S = 0.5
_NOTE = "retrieval_bench"
_THROTTLED = 429


class QdrantServer(QdrantWords):
    """A server, or a cluster behind one address; the password of the URI is its API key."""

    module, point, range = "qdrant_client.models", "PointStruct", "Range"
    _client: Any = None
    _told: Mapping[str, Any] = {}

    def open(self) -> None:
        from qdrant_client import QdrantClient

        secure = self.address.parts.scheme.endswith("https")
        self._client = QdrantClient(
            host=self.address.host,
            port=self.address.parts.port or 6333,
            https=secure,
            api_key=self.address.password,
            check_compatibility=False,
            timeout=60,
        )
        try:
            self.version = str(self._client.info().version)
        except Exception as problem:
            raise ConfigError(
                f"no answer from Qdrant: {text_of(problem)}",
                where=self.address.shown,
                accepted="a server that runs and takes this key",
                fix="start the server, or correct the address; `uri: embedded` needs no server",
            ) from None

    def known(self) -> dict[str, Any] | None:
        if not self._client.collection_exists(self.table):
            return None
        return dict((self._info().config.metadata or {}).get(_NOTE, {}))

    def remember(self, loaded: Mapping[str, Any]) -> None:
        self._told = {_NOTE: dict(loaded)}
        if self._client.collection_exists(self.table):
            self._client.update_collection(self.table, metadata=self._told)

    def create(self) -> None:
        """With the note, so that no collection is there without it."""
        words, plan = self.words, self.plan
        graph = plan.index.index == "hnsw" and plan.dimension is not None
        m, threads = (plan.index.m, plan.index.ef_construction) if graph else (0, None)
        vectors = {}
        if plan.dimension is not None:
            params = words.VectorParams(size=plan.dimension, distance=words.Distance.DOT)
            vectors = {"dense": params}
        self._client.create_collection(
            self.table,
            vectors_config=vectors,
            hnsw_config=words.HnswConfigDiff(m=m, ef_construct=threads),
            metadata=self._told,
        )
        self._text_index()

    def finish(self) -> None:
        """Until the optimiser is done: green, and no longer grey or yellow."""
        self._text_index()
        while (status := str(self._info().status.value)) != "green":
            if status == "red":
                raise RuntimeError("the optimiser failed: the collection is red")
            time.sleep(_POLL_S)

    def vector_size(self) -> int | None:
        held = self._info().config.params.vectors or {}
        return int(held["dense"].size) if "dense" in held else None

    def failed(self, problem: Exception) -> Exception:
        text, status = f"Qdrant: {text_of(problem)}", getattr(problem, "status_code", None)
        if type(problem).__name__ == "ResponseHandlingException":
            return TransientError(text, Kind.CONNECTION)
        if status == _THROTTLED or (status or 0) >= 500:
            return TransientError(text, Kind.THROTTLED if status == _THROTTLED else Kind.SERVER)
        return CallError(text)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _text_index(self) -> None:
        kind = self.words.TextIndexType.TEXT
        index = self.words.TextIndexParams(type=kind, scoring=True, **self._analysis())
        self._index_field("text", index)

    def _snowball(self, language: Any) -> Any:
        kind = self.words.Snowball.SNOWBALL
        return self.words.SnowballParams(type=kind, language=language)

    def _info(self) -> Any:
        return self._client.get_collection(self.table)

    def _leg(self, mode: str, asked: base.Asked) -> dict[str, Any]:
        if mode == "bm25":
            return {"query": self.words.TextQuery(text=asked.text), "using": "text"}
        assert asked.vector is not None
        return {"query": asked.vector.tolist(), "using": "dense"}

    def _fusion(self, legs: list[Any]) -> dict[str, Any]:
        fusion = self.words.RrfQuery(rrf=self.words.Rrf(k=base.RRF_K))
        return {"query": fusion, "prefetch": legs}

    def _query(self, k: int, **request: Any) -> base.Hits:
        named = {"filter": "query_filter", "params": "search_params"}
        how = {named.get(name, name): value for name, value in request.items()}
        found = self._client.query_points(self.table, limit=k, with_payload=["id"], **how)
        return [(point.payload["id"], point.score) for point in found.points]

    def _index_field(self, name: str, schema: Any) -> None:
        self._client.create_payload_index(self.table, name, field_schema=schema)

    def _there(self, points: list[str]) -> list[str]:
        found = self._client.retrieve(self.table, points, with_payload=False)
        return [str(record.id) for record in found]

    def _upsert(self, points: list[Any]) -> None:
        self._client.upsert(self.table, points, wait=True)

    def _delete(self, points: list[str]) -> None:
        self._client.delete(self.table, points, wait=True)
