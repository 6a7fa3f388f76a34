"""What one says to Qdrant, in this process as on a server: searches, points, filters."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

from retrieval_bench.core.filters import MISSING, Condition, Filter, value_at
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.columns import require_exact, unfit
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.filling import Row


class QdrantWords(base.EngineStore):
    """Searches and points by the classes of :attr:`module`; what is sent how, a subclass knows."""

    kind, extra, schemes = "Qdrant", "qdrant", ("qdrant", "qdrant+https")
    modes, usual_ef, first_rank = ("dense", "bm25", "hybrid"), 100, 0
    module: ClassVar[str]
    point: ClassVar[str]
    range: ClassVar[str]
    _indexed: frozenset[str] = frozenset()

    @classmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        return ("qdrant-client",) if address and address.host else ("qdrant-edge-py",)

    @property
    def words(self) -> Any:
        """The classes that requests are made of."""
        return importlib.import_module(self.module)

    def search(self, asked: base.Asked) -> base.Hits:
        words, chosen = self.words, self._filter(asked.filter)
        params = words.SearchParams(hnsw_ef=asked.ef, exact=asked.exact)
        if asked.mode != "hybrid":
            leg = self._leg(asked.mode, asked)
            return self._query(asked.k, filter=chosen, params=params, **leg)
        legs = [
            words.Prefetch(limit=asked.depth, filter=chosen, params=params, **self._leg(one, asked))
            for one in ("dense", "bm25")
        ]
        return self._query(asked.k, **self._fusion(legs))

    def send(self, rows: Sequence[Row]) -> None:
        """Points named by a hash of the id, since Qdrant takes numbers and UUIDs only."""
        words = self.words
        for name in set(self.plan.fields) - self._indexed:
            values = (value_at(row.metadata, name) for row in rows)
            firsts = (one[0] if isinstance(one, list) and one else one for one in values)
            known = next((one for one in firsts if one is not MISSING and one is not None), None)
            if known is not None and '"' not in name:
                kinds = {int: "Float", float: "Float"}
                schema = _member(words.PayloadSchemaType, kinds.get(type(known), "Keyword"))
                self._index_field(f"metadata.{_path(name)}", schema)
                self._indexed |= {name}
        for start in range(0, len(rows), 256):
            self._upsert(
                [
                    getattr(words, self.point)(
                        id=_point_id(row.id),
                        vector={} if row.vector is None else {"dense": row.vector.tolist()},
                        payload={
                            "id": row.id,
                            "text": row.contents,
                            "metadata": _unambiguous(_marked(row.metadata)),
                        },
                    )
                    for row in rows[start : start + 256]
                ]
            )

    def put(self, rows: Sequence[Row]) -> None:
        """A point of the same name is replaced."""
        self.send(rows)

    def remove(self, ids: Sequence[str]) -> None:
        self._delete([_point_id(doc_id) for doc_id in ids])

    def missing(self, ids: Sequence[str]) -> set[str]:
        points = {_point_id(one): one for one in ids}
        return set(ids) - {points[found] for found in self._there(list(points))}

    def facts(self) -> dict[str, Any]:
        info = self._info()
        found = {"indexed_vectors": info.indexed_vectors_count, "segments": info.segments_count}
        return {**found, **self.plan.index_facts(info.indexed_vectors_count)}

    def _analysis(self) -> dict[str, Any]:
        """Of the text index: words of any script, stems and stop words as the language has them."""
        words, name = self.words, self.plan.language.capitalize()
        found = {"tokenizer": _member(words.TokenizerType, "Multilingual"), "lowercase": True}
        if (stems := _member(words.SnowballLanguage, name)) is not None:
            found["stemmer"] = self._snowball(stems)
        stops = _member(words.Language, name)
        return found if stops is None else {**found, "stopwords": stops}

    def _filter(self, wanted: Filter | None) -> Any:
        if wanted is None:
            return None
        names = {"and": "must", "or": "should", "not": "must_not"}
        return wanted.translated(
            self._condition, lambda operator, parts: self.words.Filter(**{names[operator]: parts})
        )

    def _condition(self, one: Condition) -> Any:
        words, equal = self.words, one.operator in ("eq", "in")
        if '"' in one.field:
            raise unfit(self.kind, one, "fields without a quotation mark")
        fits = []
        for value in one.values:
            if isinstance(value, int | float) and not isinstance(value, bool):
                require_exact(self.kind, one)
                bounds = ("gte", "lte") if equal else (one.operator,)
                ends = dict.fromkeys(bounds, value)
                how = {"range": getattr(words, self.range)(**ends)}
            elif equal:
                how = {"match": words.MatchValue(value=_marked(value))}
            else:
                raise unfit(self.kind, one, "ranges of numbers; texts by eq and in")
            paths = dict.fromkeys((f'"{one.field}"', _path(one.field)))
            fits += [words.FieldCondition(key=f"metadata.{path}", **how) for path in paths]
        return words.Filter(should=fits)

    @abstractmethod
    def _snowball(self, language: Any) -> Any:
        """A stemmer."""

    @abstractmethod
    def _info(self) -> Any:
        """Counts: segments, indexed vectors."""

    @abstractmethod
    def _leg(self, mode: str, asked: base.Asked) -> dict[str, Any]:
        """The query of one mode, and what goes with it."""

    @abstractmethod
    def _fusion(self, legs: list[Any]) -> dict[str, Any]:
        """Fusion by rank over these."""

    @abstractmethod
    def _query(self, k: int, **request: Any) -> base.Hits:
        """The answer to a request."""

    @abstractmethod
    def _index_field(self, name: str, schema: Any) -> None:
        """Make an index, unless it is there."""

    @abstractmethod
    def _there(self, points: list[str]) -> list[str]:
        """Those that are there."""

    @abstractmethod
    def _upsert(self, points: list[Any]) -> None:
        """Send them, and wait."""

    @abstractmethod
    def _delete(self, points: list[str]) -> None:
        """Take them out, and wait."""


def _point_id(doc_id: str) -> str:
    return str(uuid5(NAMESPACE_URL, doc_id))


def _path(field: str) -> str:
    """Each part in quotation marks, since a plain one has neither spaces nor slashes."""
    return ".".join(f'"{part}"' for part in field.split("."))


def _unambiguous(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without values that a key with dots hides, as :func:`.value_at` has it: both are asked."""
    for field in metadata:
        *outer, last = field.split(".")
        inside: Any = metadata
        for part in outer:
            inside = inside.get(part) if isinstance(inside, dict) else None
        if outer and isinstance(inside, dict) and not isinstance(inside.get(last), dict):
            inside.pop(last, None)
    return metadata


def _marked(value: Any) -> Any:
    """With a text in place of a truth value, which the core in this process reads as a number."""
    if isinstance(value, bool):
        return f"\ue000{value}"
    if isinstance(value, Mapping):
        return {key: _marked(one) for key, one in value.items()}
    return [_marked(one) for one in value] if isinstance(value, list) else value


def _member(names: Any, name: str) -> Any:
    """Of an enumeration, whose members one module writes in capitals."""
    return getattr(names, name, None) or getattr(names, name.upper(), None)
