"""A factory for :class:`.LangChainRetriever` to run and to copy.

It needs langchain-core alone: put your own embeddings and vector store in its place.
"""

from __future__ import annotations

import math
import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import VectorStoreRetriever

_WORD = re.compile(r"\w+")


def in_memory(documents: list[Document], k: int, dimensions: int = 256) -> VectorStoreRetriever:
    """An ``InMemoryVectorStore`` over ``documents``, searched for ``k`` hits.

    The embeddings count hashed character trigrams: the same everywhere, in any script, and with no
    sense of meaning.
    """
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class TrigramEmbeddings(Embeddings):
        """Vectors of ``dimensions`` numbers."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            """One vector for each text."""
            return [trigram_counts(text, dimensions) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            """The same as for a document."""
            return trigram_counts(text, dimensions)

    store = InMemoryVectorStore(TrigramEmbeddings())
    store.add_documents(documents)  # they bring their ids, which the store keeps
    return store.as_retriever(search_kwargs={"k": k})


def trigram_counts(text: str, dimensions: int) -> list[float]:
    """Damped counts of the trigrams of the words in ``text``, hashed to ``dimensions`` places."""
    counts = [0] * dimensions
    for word in _WORD.findall(text.lower()):
        padded = f" {word} "
        for start in range(len(padded) - 2):
            counts[zlib.crc32(padded[start : start + 3].encode()) % dimensions] += 1
    vector = [math.log1p(count) for count in counts]
    # A text without words must not be the zero vector: the store cannot compare with that.
    vector[0] += 1e-6
    return vector
