"""A retriever from its config, with the chunker that it names in front of it."""

from __future__ import annotations

from retrieval_bench.capabilities import service
from retrieval_bench.core.config import RetrieverConfig
from retrieval_bench.core.retriever import Retriever


def built(config: RetrieverConfig) -> Retriever:
    """The retriever that ``config`` describes.

    Raises:
        HarnessError: it cannot be built, or documents cannot be cut as it says.
    """
    return in_chunks(config, config.build())


def in_chunks(config: RetrieverConfig, retriever: Retriever) -> Retriever:
    """The retriever of ``config``, with its chunker in front."""
    if config.chunk is None:
        return retriever
    where = str(config.source or f"retriever {config.name!r}")
    base = config.source.parent if config.source else None
    cut: Retriever = service("cut documents into chunks")(retriever, config.chunk, where, base)
    return cut
