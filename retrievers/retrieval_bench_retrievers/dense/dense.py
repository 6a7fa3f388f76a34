"""Dense retrieval: an encoder and a FAISS index, exact unless HNSW or IVF is chosen.

Equal texts are encoded once and share one row of the index, so their scores are equal to the last
bit; ties come out by document id, and none is lost at the cut. The order of the corpus has no
influence: documents are sorted by id, and texts are encoded in an order of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, check_known, counted
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.retriever import Capabilities, Rung, require_index
from retrieval_bench.core.types import Document, Query
from retrieval_bench.stats.recall import Recall
from retrieval_bench_retrievers.dense.document_encoder import DenseEncoder
from retrieval_bench_retrievers.dense.faiss_index import IndexSettings
from retrieval_bench_retrievers.dense.maxsim import checked_precision
from retrieval_bench_retrievers.encoders import encoded
from retrieval_bench_retrievers.encoders.encoded import Encoded
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors, whole_number
from retrieval_bench_retrievers.encoders.fit import EncoderFit, fit_of, sample
from retrieval_bench_retrievers.encoders.model_files import DEFAULT_MODEL
from retrieval_bench_retrievers.encoders.packaged import ONNXRUNTIME, WHERE
from retrieval_bench_retrievers.encoders.vectors import DocumentVectors
from retrieval_bench_retrievers.index_files import (
    code_hash,
    read_json,
    read_metadata,
    write_json,
    write_metadata,
)

_SIMILARITIES = ("cosine", "dot")
_PAST_THE_CUT = 16
_RECALL_SAMPLE = 100


class Dense(Encoded[Encoder]):
    """Documents by the similarity of their vector to the query's.

    Args:
        model, backend: see :class:`retrieval_bench_retrievers.encoders.encoder.Encoder`.
        index: ``flat``, ``hnsw``, ``ivf``, or ``{type: hnsw, m, ef_construction, ef_search}``,
            ``{type: ivf, nlist, nprobe}``.
        precision: of the vectors that are kept: ``float32``, or ``int8``, a quarter of the memory.
        dimensions: so many first numbers of each vector are kept; all by default. For models that
            were trained so that these suffice (Matryoshka).
        similarity: ``cosine``, or ``dot`` for models that were trained with the inner product.
        prompts: ``{query: ..., document: ...}``, put before each text; the model's own by default.
        device: ``auto``, or as torch names it (``cpu``, ``cuda:1``, ``mps``).
        batch_size: documents in one pass through the model.
        max_seq_length: tokens read of a text; the model's own by default.
        cache: keep the vectors of documents on disk, for the next run.

    Raises:
        ConfigError, MissingDependencyError, ModelError: as :class:`.Encoder`.
    """

    stage = "dense"
    progress: Callable[[int, int], None] | None = None
    """Called while documents are encoded, with (distinct texts done, distinct texts in all)."""

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        backend: str = "torch",
        index: str | dict[str, Any] = "flat",
        precision: str = "float32",
        dimensions: int | None = None,
        similarity: str = "cosine",
        prompts: dict[str, str] | None = None,
        device: str = "auto",
        batch_size: int = 32,
        max_seq_length: int | None = None,
        cache: bool = True,
    ) -> None:
        self._settings = IndexSettings.parse(index, checked_precision(precision, WHERE))
        if dimensions is not None:
            whole_number(dimensions, "dimensions")
        self._dimensions = dimensions
        check_known(similarity, _SIMILARITIES, f"similarity = {similarity!r}", where=WHERE)
        if not isinstance(cache, bool):
            raise ConfigError(f"cache = {cache!r}", where=WHERE, accepted="true or false")
        self._similarity = similarity
        encoder = Encoder(
            model,
            backend=backend,
            prompts=prompts,
            device=device,
            batch_size=batch_size,
            max_seq_length=max_seq_length,
        )
        super().__init__(encoder)
        require("faiss-cpu", encoder.engine.extra, WHERE)
        self._language: str | None = None
        self._exactly = self._exact_filters = False
        self._groups: _Groups | None = None
        self._sample: list[str] = []
        self._fitted: tuple[tuple[Query, ...], EncoderFit] | None = None
        self._cache = cache
        self._stored = DocumentVectors(self._encoder, cache)
        self._facts: dict[str, Any] = {}
        self._k = 10

    @property
    def capabilities(self) -> Capabilities:
        """Exact with a flat index. A vector depends a little on what it was encoded together with,
        hence the tolerance."""
        return Capabilities(
            exact=self._settings.kind == "flat",
            score_tolerance=1e-5,
            filters=True,
            threads=self._encoder.engine is ONNXRUNTIME,  # other tokenizers may not be shared
        )

    def use_k(self, k: int) -> None:
        """Remembered, for the recall of a graph under filters."""
        self._k = k

    def use_language(self, language: str | None) -> None:
        """Remembered, to be compared with the languages that the model's card names."""
        self._language = language

    def prepare(self) -> None:
        """Load the model.

        Raises:
            ConfigError: it has fewer dimensions than are to be kept.
            ModelError: it cannot be loaded.
        """
        self._encoder.load()
        if self._dimensions is not None and self._dimensions > self._encoder.dimension:
            raise ConfigError(
                f"dimensions = {self._dimensions}",
                where=WHERE,
                accepted=f"at most {self._encoder.dimension}, which {self._encoder.name} has",
            )

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents, or take their vectors from the cache, and build the index.

        What was encoded before an interruption is kept in the cache.

        Raises:
            ContractError: two documents of one id.
            ConfigError, ModelError: as :meth:`prepare`.
        """
        self._fitted = None
        contents = self._read(documents)
        row_of: dict[str, int] = {}
        rows = np.array([row_of.setdefault(text, len(row_of)) for text in contents], dtype=np.intp)
        texts = list(row_of)
        self._groups = _Groups(rows) if len(texts) < len(contents) else None
        self._sample = sample(contents)
        vectors = self._kept(self._stored.of(texts, self.progress))
        self._facts = {
            "encoded": self._stored.encoded,
            "from_cache": self._stored.from_cache,
            "documents": len(contents),
            "distinct_texts": len(texts),
        }
        self._index = self._settings.build(vectors)
        self._facts["index_bytes"] = self._index.nbytes

    def index_identity(self) -> Mapping[str, Any] | None:
        """The model, what is kept of its vectors, and the code and libraries behind both; None
        where the files of the model are not known, and of a class of a user's."""
        if type(self) is not Dense:
            return None
        self.prepare()
        model = self._encoder.identity()
        if model is None:
            return None
        return {
            "kind": "dense",
            "model": model,
            "similarity": self._similarity,
            "dimensions": self._dimensions,
            "index": asdict(self._settings),
            "fields": list(self._fields),
            "versions": {"faiss-cpu": version("faiss-cpu")},
            "code": code_hash(__file__, encoded.__file__),
        }

    def document_encoder(self) -> DenseEncoder:
        """The model, its cache, and what is compared of its vectors."""
        cosine = self._similarity == "cosine"
        return DenseEncoder(self._encoder, self._stored, self._dimensions, cosine)

    def save(self, folder: Path) -> None:
        """See :meth:`retrieval_bench.core.retriever.Retriever.save`."""
        require_index(self._index is not None, self)
        write_json(folder / "ids.json", self._ids)
        write_json(folder / "facts.json", {"facts": self._facts, "sample": self._sample})
        write_metadata(folder, self._metadata)
        if self._groups is not None:
            np.save(folder / "rows.npy", self._groups.rows)
        if self._index is not None:
            self._index.save(folder)

    def load(self, folder: Path) -> None:
        """Load files that :meth:`save` wrote, and the model."""
        self._index = None
        self._fitted = None
        self.prepare()
        rows = folder / "rows.npy"
        self._groups = _Groups(np.load(rows)) if rows.is_file() else None
        self._metadata = read_metadata(folder)
        kept = read_json(folder / "facts.json")
        self._sample = kept["sample"]
        self._facts = kept["facts"] | {"encoded": 0, "from_cache": 0}
        self._ids = read_json(folder / "ids.json")
        self._index = self._settings.load(folder)

    def describe(self) -> Mapping[str, Any]:
        """Model, index, cache: how many vectors were encoded for this index and how many were on
        disk (``encoded``, ``from_cache``)."""
        return {
            **self._encoder.describe(),
            "similarity": self._similarity,
            "precision": self._settings.precision,
            "dimensions": self._dimensions,
            "index": self._settings.describe(self._facts.get("distinct_texts", 0)),
            "cache": self._stored.state,
            **self._facts,
        }

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """What the encoder cuts off and does not know, of a sample of the texts, and whether the
        time of indexing is that of reading a cache."""
        fits = self._fits(queries)
        if fits is None:
            return ()
        facts = fits.facts()
        cached, texts = self._facts["from_cache"], self._facts["distinct_texts"]
        if cached:
            facts.append(
                f"{cached:,} of {texts:,} vectors came from the cache: index seconds are not those "
                "of a first run"
            )
        return facts + self._recall_under_filters(queries)

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Warnings: an encoder that does not fit the language or gets no prompts, trouble with the
        cache."""
        if self._index is None:
            return ()
        trouble = self._stored.trouble()
        if self._encoder.backend not in ("torch", ONNXRUNTIME.name):
            trouble.append(
                f"the threads of the backend {self._encoder.backend} are its own: timed searches "
                "may use more of them than the protocol says"
            )
        fits = self._fits(queries)
        return [*(fits.warnings(self._language) if fits is not None else ()), *trouble]

    def _recall_under_filters(self, queries: Sequence[Query]) -> list[str]:
        """Of an approximate index: how much of the exact filtered list it finds, on a sample."""
        filtered = [query for query in queries if query.filter and query.text.strip()]
        if not filtered or self._settings.kind == "flat":
            return []
        sample = filtered[:: -(-len(filtered) // _RECALL_SAMPLE)]
        recalls = list[float]()
        for query in sample:
            allowed = self._metadata.mask(query.filter) if query.filter else None
            if allowed is not None and allowed.any():
                vector = self._encoded(query.text)
                exact, _ = self._ranked(vector, self._k, allowed, exactly=True)
                right = {*exact} & {*self._ranked(vector, self._k, allowed)[0]}
                recalls += [len(right) / len(exact)] if len(exact) else []
        asked = f"{len(sample)} of {counted(len(filtered), 'query')} with a filter"
        return [f"under filters the index finds {Recall.of(recalls).text(self._k)} ({asked})"]

    def _fits(self, queries: Sequence[Query]) -> EncoderFit | None:
        """The encoder beside documents and queries; None when there is no index. Looked at once for
        facts and warnings."""
        if self._index is None:
            return None
        if self._fitted is None or self._fitted[0] != tuple(queries):
            fit = fit_of(self._encoder, self._sample, queries)
            self._fitted = (tuple(queries), fit)
        return self._fitted[1]

    def rungs(self) -> Sequence[Rung]:
        """From float32 vectors of whole texts, searched exhaustively, to this one."""
        self.prepare()
        encoder, settings = self._encoder, self._settings
        n, read, could = encoder.dimension, encoder.max_seq_length, encoder.positions
        cut = read is not None and could is not None and read < could
        now = self._with(
            _encoder=encoder.reading(could or 0) if cut else encoder,
            _dimensions=None,
            _settings=IndexSettings(),
            _exact_filters=True,
        )
        whole = f"{could if cut else read:,} tokens" if read else "whole texts"
        made = [Rung("exact", f"{whole}, {n} dimensions, float32, exhaustive", now)]
        if encoder.engine.name:
            what = f"no weights of float32 of {encoder.name} are at hand"
            made.append(Rung("weights", what, known=False))

        def add(name: str, what: str, differs: bool, **changed: Any) -> None:
            nonlocal now
            now = now._with(**changed) if differs else now
            made.append(Rung(name, what, now if differs else None))

        if read is not None and could is None:
            what = f"{read:,} are read; how many the model could read, it does not say"
            made.append(Rung("tokens", what, known=False))
        else:
            add("tokens", f"{read:,} of {could:,}" if cut else whole, cut, _encoder=encoder)
        kept = self._dimensions or n
        add("dimensions", f"{kept} of {n}", kept < n, _dimensions=self._dimensions)
        exhaustive = IndexSettings(precision=settings.precision)
        int8 = settings.precision == "int8"
        add("int8", "8 of 32 bits" if int8 else "float32", int8, _settings=exhaustive)
        approximate = settings.kind != "flat"
        add("index", settings.text, approximate, _settings=settings)
        filtering = approximate and bool(self._fields)
        what = "in the index" if filtering else "exact, or none is given"
        add("filter", what, filtering, _exact_filters=False)
        return made

    def searching(self, changed: Mapping[str, Any]) -> Dense | None:
        """``exact``, and ``index.ef_search`` or ``index.nprobe``, whose path may be left out."""
        given = dict(changed)
        exactly = bool(given.pop("exact", self._exactly))
        settings = self._settings.searched(given)
        if settings is None:
            return None
        other = copy(self)
        other._exactly, other._settings = exactly, settings
        other._index = self._index and self._index.searched(settings)
        return other

    def _with(self, **changed: Any) -> Dense:
        """The same, not indexed, with other attributes."""
        other = copy(self)
        vars(other).update(changed, _index=None, _fitted=None, _facts={})
        other._stored = DocumentVectors(other._encoder, self._cache)
        return other

    def disk_bytes(self) -> int | None:
        """Bytes of the cache files that hold this index's vectors; None without a cache."""
        return self._stored.bytes_used

    def close(self) -> None:
        """Let go of the model and the vectors."""
        self._fitted = None
        super().close()

    def _encoded(self, text: str) -> Vectors:
        return self._kept(self._encoder.encode_query(text))

    def _best(
        self, asked: Vectors, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.float64]]:
        exactly = self._exactly or (self._exact_filters and allowed is not None)
        return self._ranked(asked, k, allowed, exactly=exactly)

    def _kept(self, vectors: Vectors) -> Vectors:
        """What is compared of ``vectors``."""
        if self._dimensions is not None:
            vectors = np.ascontiguousarray(vectors[:, : self._dimensions])
        if self._similarity == "cosine":
            _normalise(vectors)
        return vectors

    def _ranked(
        self, vector: Vectors, k: int, allowed: NDArray[np.bool_] | None, *, exactly: bool = False
    ) -> tuple[list[str], NDArray[np.float64]]:
        """Ids and scores of the best ``k`` of the ``allowed`` documents (None = all)."""
        scores, rows = self._nearest(vector, k, allowed, exactly=exactly)
        if self._groups is not None:
            scores, rows = self._groups.spread(scores, rows)
            if allowed is not None:
                scores, rows = scores[allowed[rows]], rows[allowed[rows]]
        order = np.lexsort((rows, -scores))[:k]
        ids = [self._ids[position] for position in rows[order].tolist()]
        return ids, scores[order].astype(np.float64)

    def _nearest(
        self, vector: Vectors, k: int, allowed: NDArray[np.bool_] | None, *, exactly: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """At least the ``k`` best rows with all that tie with the last of them, best first."""
        n = len(self._groups) if self._groups is not None else len(self._ids)
        among = None
        if allowed is not None and not allowed.all():
            among = np.flatnonzero(allowed)
            if self._groups is not None:
                among = self._groups.rows_of(among)
            n = len(among)
        nearest = self._index.exactly_nearest if exactly else self._index.nearest
        want = min(k + _PAST_THE_CUT, n)
        while True:
            scores, rows = nearest(vector, want, among)
            if want == n or len(rows) < want or scores[-1] < scores[k - 1]:
                return scores, rows
            want = min(2 * want, n)


class _Groups:
    """Which documents share a row of the index, because their texts are equal.

    Args:
        rows: the row of each document, documents in the order of their ids.
    """

    def __init__(self, rows: NDArray[np.intp]) -> None:
        self.rows = rows
        self._members = np.argsort(rows, kind="stable")
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(rows))))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def rows_of(self, documents: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows of these documents, ascending, each once."""
        return np.unique(self.rows[documents])

    def spread(
        self, scores: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and positions of the documents that the rows stand for."""
        counts = self._starts[rows + 1] - self._starts[rows]
        members = [self._members[self._starts[r] : self._starts[r + 1]] for r in rows.tolist()]
        return np.repeat(scores, counts), np.concatenate(members)


def _normalise(vectors: Vectors) -> None:
    """Scale every row to length 1, in place; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    vectors /= lengths[:, np.newaxis]
