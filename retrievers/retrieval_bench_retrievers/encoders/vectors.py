"""Vectors of documents: from the cache as far as it has them, the rest from the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.encoders.cache import (
    FILE_SIZE,
    EmbeddingCache,
    default_root,
    text_key,
)
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors


class DocumentVectors:
    """The vectors that ``encoder``, once it is loaded, gives for texts of documents.

    Args:
        encoder: what makes them.
        use_cache: keep them on disk, for the next run.

    Attributes:
        encoded: how many of the last call were made.
        from_cache: how many of the last call were on disk.
    """

    def __init__(self, encoder: Encoder, use_cache: bool) -> None:
        self._encoder = encoder
        self._use_cache = use_cache
        self._cache: EmbeddingCache | None = None
        self._note = ""
        self.encoded = 0
        self.from_cache = 0

    @property
    def state(self) -> str:
        """Of the cache, for a manifest: on, off, or why there is none."""
        return self._note or ("on" if self._use_cache else "off")

    @property
    def bytes_used(self) -> int | None:
        """Bytes of the files that hold the vectors of the last call; None without a cache."""
        return self._cache.bytes_used if self._cache else None

    def trouble(self) -> list[str]:
        """Faults of the cache, in sentences."""
        return [*(self._cache.notes if self._cache else ()), *([self._note] if self._note else ())]

    def of(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """One row for each of ``texts``, which are distinct; not normalised.

        What was encoded before an interruption is kept in the cache.

        Args:
            progress: told (texts done, texts in all).
        """
        self._cache = self._open_cache()
        vectors = np.empty((len(texts), self._encoder.dimension), dtype=np.float32)
        keys = [text_key(text) for text in texts] if self._cache else []
        missing = self._cache.fill(keys, vectors) if self._cache else list(range(len(texts)))
        self.encoded, self.from_cache = len(missing), len(texts) - len(missing)
        done = len(texts) - len(missing)
        fresh: list[int] = []
        try:
            for chosen, batch in self._encoder.document_batches([texts[i] for i in missing]):
                rows = [missing[i] for i in chosen]
                vectors[rows] = batch
                fresh += rows
                if len(fresh) >= FILE_SIZE:
                    self._keep(keys, vectors, fresh)
                done += len(rows)
                if progress is not None:
                    progress(done, len(texts))
        finally:
            self._keep(keys, vectors, fresh)
        return vectors

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Have :meth:`of` find these vectors of distinct texts, in place of others that are there.

        Raises:
            ConfigError: there is no cache, or it cannot be written.
        """
        cache = self._open_cache()
        if cache is not None:
            cache.store([text_key(text) for text in texts], vectors, first=True)
        if cache is None or cache.notes:
            raise ConfigError(
                "; ".join(cache.notes if cache else [self._note or "cache: false"]),
                where="vectors that were made elsewhere",
                accepted="a retriever with cache: true, and a folder that can be written to",
                fix="make room there, or set RETRIEVAL_BENCH_CACHE to another folder",
            )

    def _keep(self, keys: Sequence[bytes], vectors: Vectors, fresh: list[int]) -> None:
        """Write the rows in ``fresh`` to the cache, if there is one, and empty the list."""
        if self._cache is not None:
            self._cache.store([keys[row] for row in fresh], vectors[fresh])
        fresh.clear()

    def _open_cache(self) -> EmbeddingCache | None:
        self._note = ""
        if not self._use_cache:
            return None
        identity, root = self._encoder.identity(), default_root()
        if identity is None or root is None:
            what = "the model's files were not found" if root else "no home folder is known"
            self._note = f"no embedding cache: {what}, so every run encodes again"
            return None
        return EmbeddingCache(root, identity, self._encoder.dimension)


def normalised(vectors: Vectors) -> Vectors:
    """Rows of length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32, copy=False)
