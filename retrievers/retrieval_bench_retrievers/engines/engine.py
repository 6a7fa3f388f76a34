"""Any engine as a retriever, by its URI, and as a store that ``data load`` fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, ClassVar, TypeVar

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError, HarnessError, check_known
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import Document, Documents, Query, Ranking
from retrieval_bench_retrievers.encoders.encoder import Encoder, whole_number
from retrieval_bench_retrievers.encoders.model_files import ACCEPTED
from retrieval_bench_retrievers.encoders.vectors import normalised
from retrieval_bench_retrievers.engines import engine_store as base
from retrieval_bench_retrievers.engines.loading import LoadedByURI
from retrieval_bench_retrievers.functions.uri import EMBEDDED, Address
from retrieval_bench_retrievers.sql import params
from retrieval_bench_retrievers.sql.filling import Plan, identity_of
from retrieval_bench_retrievers.sql.health import of_others, unfinished

_Given = TypeVar("_Given")
_FIX = "correct the parameters of the retriever"


class Engine(LoadedByURI, Retriever):
    """Documents of one collection.

    Args:
        uri: ``embedded`` fills one of the harness's own with the dataset; otherwise what ``data
            load --into`` filled.
        table: its name.
        mode: ``dense``, ``hybrid``, and ``bm25`` or ``text``, as the engine has it.
        exact: search all vectors; by default the engine's index is used.
        ef: candidates of an approximate index; never fewer than the hits of a leg.
        encoder: of the vectors:
        load: of the embedded one:
        language: of the embedded one's words: ``auto`` takes that of the dataset, ``simple`` has
            no stems, ``english`` and others do.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: the engine's extra is not installed.
    """

    accepts: ClassVar[Mapping[str, str]] = {
        "encoder": f"{{model: NAME, ...}}, where NAME is {ACCEPTED}; all keys: "
        + ", ".join(params.EncoderSettings.model_fields),
        "load": "{index: exact or hnsw, m, ef_construction, cache}",
    }

    def __init__(
        self,
        *,
        uri: str = EMBEDDED,
        table: str = "documents",
        mode: str = "dense",
        exact: bool = False,
        ef: int | None = None,
        encoder: Mapping[str, Any] | None = None,
        load: Mapping[str, Any] | None = None,
        language: str = "auto",
    ) -> None:
        self._where = where = f"retriever {self.store.extra}"
        check_known(mode, self.store.modes, f"mode = {mode!r}", where=where)
        self._address = None if uri == EMBEDDED else Address.parse(uri, self.store.schemes, where)
        if self._address is not None and (load is not None or language != "auto"):
            raise ConfigError(
                "load or language beside a uri",
                where=where,
                accepted=f"both with uri: {EMBEDDED}",
                fix="remove them: a collection keeps what it was filled with",
            )
        self.require_packages(self._address, where)
        self._table, self._mode, self._exact = params.check_table(table, where), mode, exact
        self._ef, self._ef_told = 0 if ef is None else self._checked(ef), 0
        settings = {"index": "exact" if exact else "hnsw", **(load or {})}
        self._load = validate(params.LoadSettings, settings, where=where, fix=_FIX)
        self._given, self._language = params.check_language(language, where), ""
        self._vectors = mode in ("dense", "hybrid")
        self._encoder: Encoder | None = None
        self._writer: Encoder | None = None
        if self._vectors and (encoder is not None or self._address is None):
            given = validate(params.EncoderSettings, encoder or {}, where=where, fix=_FIX)
            self._encoder = Encoder(**given.model_dump(exclude_unset=True))
        self._fields: tuple[str, ...] = ()
        self._store: base.EngineStore | None = None
        self._loaded: dict[str, Any] = {}
        self._texts: dict[str, None] = {}
        self._corpus: Documents | None = None

    @property
    def capabilities(self) -> Capabilities:
        """External unless embedded; exact where no approximate index is asked, nor a fusion, whose
        ranks another number of documents changes."""
        whole = self._mode != "hybrid" and (self._exact or not self._vectors)
        external = self._address is not None
        return Capabilities(
            external=external, exact=whole, filters=True, score_tolerance=1e-5, writes=True
        )

    def use_language(self, language: str | None) -> None:
        """Decides on stems and stop words, unless ``language`` was given."""
        self._language = params.configuration(self._given, language)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Fields that the engine makes indexes for."""
        self._fields = tuple(fields)

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Documents that a collection which was filled before should hold."""
        self._corpus = None if self._address is None else documents

    def use_k(self, k: int) -> None:
        """Open what runs already: what is wrong is told before anything is measured."""
        if self._address is not None:
            self.prepare()

    def prepare(self) -> None:
        """Load the encoder, and open the collection that is searched where it is."""
        if self._address is not None and self._store is None:
            self._open(self.store.at(self._address, self._table))
        if self._encoder is not None:
            self._encoder.load()

    def index(self, documents: Iterable[Document]) -> None:
        """Fill a new collection with the documents, and wait for its indexes."""
        self._close_store()
        self.prepare()
        language = self._language or params.configuration(self._given, None)
        self._store = store = self.store.at(None, self._table)
        store.open()
        store.plan = Plan(self._encoder, language, self._fields, self._load)
        filled = store.fill(documents, self.progress)
        self._loaded = {**(store.known() or {}), "documents": filled.sent}

    def collection(self) -> str:
        """The table, where it was filled before."""
        return "" if self._address is None else self._table

    def add(self, documents: Sequence[Document]) -> None:
        """Add them as they were filled: with vectors, also where this mode searches by words.

        Raises:
            CallError: the engine failed.
        """
        store = self._written()
        self._calling(store, lambda: store.write(documents))
        self._loaded["documents"] = max(1, self._loaded["documents"])

    def delete(self, ids: Sequence[str]) -> None:
        """Take documents out.

        Raises:
            CallError: the engine failed.
        """
        store = self._written()
        self._calling(store, lambda: store.remove(ids))

    def _written(self) -> base.EngineStore:
        """The store, whose plan has the encoder that it was filled with."""
        require_index(self._store is not None or self._address is not None, self)
        self.prepare()
        assert self._store is not None
        encoder = self._loaded.get("encoder")
        if encoder is not None and self._store.plan.encoder is None:
            self._writer = Encoder(encoder["model"])
            self._writer.load()
            self._store.plan = replace(self._store.plan, encoder=self._writer)
        return self._store

    def search(self, query: Query, k: int) -> Ranking:
        """The ``k`` best; stages ``encode`` and ``engine``. A blank query finds nothing.

        Raises:
            CallError, ContractError: the engine failed; it has no words for the filter.
        """
        require_k(k)
        require_index(self._store is not None or self._address is not None, self)
        self.prepare()
        assert self._store is not None
        if not query.text.strip() or not self._loaded["documents"]:
            return Ranking([], [])
        if len(self._texts) < 20:  # whose terms the manifest shows
            self._texts.setdefault(query.text)
        stages, vector, begin = dict[str, int](), None, perf_counter_ns()
        if self._encoder is not None:
            vector = normalised(self._encoder.encode_query(query.text)[0])
            stages["encode"] = perf_counter_ns() - begin
            begin = perf_counter_ns()
        store = self._store
        hits = self._calling(store, lambda: self._ranked(store, query, vector, k))
        stages["engine"] = perf_counter_ns() - begin
        return Ranking([doc_id for doc_id, _ in hits], [score for _, score in hits], stages)

    @staticmethod
    def _calling(store: base.EngineStore, call: Callable[[], _Given]) -> _Given:
        try:
            return call()
        except (HarnessError, CallError):
            raise
        except Exception as problem:
            raise store.failed(problem) from None

    def _ranked(self, store: base.EngineStore, query: Query, vector: Any, k: int) -> base.Hits:
        """By score, ties by id. What is exact is asked on while the cut goes through a tie, unless
        the engine orders ties as we do."""
        whole = self.capabilities.exact and not store.ties_by_id
        wanted = k + whole
        while True:
            depth = max(base.DEPTH, wanted)
            fewest = depth if self._mode == "hybrid" else wanted  # engines refuse an ef below
            ef = self._ef_told = min(max(self._ef or store.usual_ef, fewest), store.most_ef)
            how = (self._mode, query.text, vector, wanted, depth, query.filter, self._exact, ef)
            hits = sorted(store.search(base.Asked(*how)), key=lambda hit: (-hit[1], hit[0]))
            if not whole or len(hits) < wanted or hits[k][1] < hits[k - 1][1]:
                return hits[:k]
            wanted *= 4

    def searching(self, changed: Mapping[str, Any]) -> Engine | None:
        """``exact`` and ``ef``, in the same collection; not where a graph stands in the way."""
        given, other = dict(changed), copy(self)
        other._exact = bool(given.pop("exact", self._exact))
        if "ef" in given:
            other._ef = self._checked(given.pop("ef"))
            if not self._vectors:
                raise ConfigError(
                    f"ef changes nothing in mode {self._mode}",
                    where=self._where,
                    accepted="ef in the modes dense and hybrid",
                    fix="vary another parameter, or choose another mode",
                )
        graph = other._exact and self.store.graph_only and self._load.index == "hnsw"
        return None if given or graph else other

    def _checked(self, ef: Any) -> int:
        value, most = whole_number(ef, "ef", where=self._where), self.store.most_ef
        if value > most:
            raise ConfigError(
                f"ef = {ef}", where=self._where, accepted=f"at most {most:,}", fix=_FIX
            )
        return value

    def describe(self) -> Mapping[str, Any]:
        """Kind and version of the engine and whether it is a stand-in, what was loaded, and how it
        splits the first queries into terms."""
        store, kind = self._store, self.store.kind
        engine = {"kind": kind, "version": "", "stand_in": False}
        found = {"engine": engine, "table": self._table, "mode": self._mode, "exact": self._exact}
        found |= {"uri": getattr(self._address, "shown", EMBEDDED), "loaded": self._loaded}
        if store is not None:
            engine |= {"kind": store.kind, "version": store.version, "stand_in": store.stand_in}
            found |= {"ef": self._ef_told, "similarity": "cosine"}
            if self._mode == "hybrid":
                found["rrf"] = {"k": base.RRF_K, "first_rank": store.first_rank}
            with suppress(Exception):  # a server that ended tells nothing more
                found |= store.facts()
                found["split"] = [store.split(text) for text in self._texts]
        return found | ({"encoder": self._encoder.describe()} if self._encoder else {})

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Warnings: a load that never finished or was of other documents, an engine that is a
        stand-in."""
        found = unfinished(self._table, self._loaded or None)
        found += of_others(self._table, self._loaded or None, self._corpus)
        if self._store is not None and self._store.stand_in:
            found.append(f"a stand-in of {self.store.kind}: its times are not those of a server")
        return found

    def disk_bytes(self) -> int | None:
        """Of the collection, where the engine is on this machine."""
        return None if self._store is None else self._store.disk_bytes()

    def server_pid(self) -> int | None:
        """Of the embedded server, where it is a process of its own."""
        return None if self._store is None else self._store.server_pid()

    def close(self) -> None:
        """Let go of the engine, of what was embedded, and of the model."""
        self._close_store()
        for encoder in filter(None, (self._encoder, self._writer)):
            encoder.close()

    def _close_store(self) -> None:
        store, self._store, self._loaded = self._store, None, {}
        if store is not None:
            store.close()

    def _open(self, store: base.EngineStore) -> None:
        """Open what was filled before, with the encoder that it was filled with."""
        store.open()
        self._store, shown = store, store.address.shown
        loaded = store.known()
        if not loaded:
            add = " --encoder all-MiniLM-L6-v2" * self._vectors
            raise ConfigError(
                f"there is no collection {self._table} that `data load` filled",
                where=f"{self._where}, uri {shown}",
                fix=f"retrieval-bench data load DATASET --into {shown} --table {self._table}{add}",
            )
        if self._vectors and not loaded["encoder"]:
            words = " or ".join(mode for mode in self.store.modes if mode in ("bm25", "text"))
            raise ConfigError(
                f"{self._table} holds no vectors: it was filled without an encoder",
                where=f"{self._where}, mode {self._mode}, uri {shown}",
                accepted=f"mode {words}, or a table that was loaded with --encoder",
                fix=f"write mode: {words}, or load the documents into another table with --encoder",
            )
        if self._vectors and self._encoder is None:
            self._encoder = Encoder(loaded["encoder"]["model"])
        if self._encoder is not None:
            self._encoder.load()
        if self._vectors and loaded["encoder"] != identity_of(self._encoder):
            raise ConfigError(
                f"{self._table} was filled by the encoder {loaded['encoder']}",
                where=f"{self._where}, mode {self._mode}, encoder {identity_of(self._encoder)}",
                accepted="the encoder of the documents for the queries, too",
                fix="correct `encoder` or `mode`, or load the documents into another table",
            )
        if self._vectors and (size := store.vector_size()) != loaded["encoder"]["dimension"]:
            held = "no vectors" if size is None else f"vectors of {size} numbers"
            raise ConfigError(
                f"{self._table} holds {held}: it is not what `data load` filled",
                where=f"{self._where}, uri {shown}",
                accepted=f"vectors of {loaded['encoder']['dimension']} numbers, as the encoder "
                f"{loaded['encoder']['model']} gives them",
                fix="load the documents into another table, and name that one",
            )
        fields = tuple(loaded.get("fields", ()))
        index = self._load.model_copy(update={"index": loaded["index"]})
        store.plan = Plan(self._encoder, loaded["language"], fields, index)
        self._loaded = loaded
