"""Lists of chunks for the questions of Chroma's data: half of them drawn from chunks that hold
truth, so that every case of a scorer comes up. They depend on no retriever."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.cutting import BY_LEVELS, Chunker, Levels, TokenWindows, Windows
from retrieval_bench_chunks.ranges import Place

CUTS = (1, 5, 10)


class Lists(NamedTuple):
    """Lists of a chunker.

    Attributes:
        name: of the chunker.
        chunks: of all corpora.
        hits: ten for each question, in the order of the questions.
    """

    name: str
    chunks: Sequence[Place]
    hits: Sequence[Sequence[Place]]


def chunkers() -> dict[str, Chunker]:
    """Six of them, with overlaps of up to a half."""
    by_levels = {name: Levels(800, 100, levels) for name, levels in BY_LEVELS.items()}
    windows = {"characters": Windows(600, 300)}
    return {"estimated": TokenWindows(200, 20, Counter("estimate")), **windows, **by_levels}


def data_of(folder: Path) -> Dataset:
    """The data, all corpora together."""
    return load_dataset(folder)


def lists_of(data: Dataset) -> Iterator[Lists]:
    """The lists of each chunker."""
    spans: Any = data.qrels
    for name, chunker in chunkers().items():
        chunks = [
            Place(document.id, *given)
            for document in data.documents or ()
            for given in chunker.cut(document.text)
        ]
        hits = []
        for query in data.queries:
            seed = hashlib.sha256(f"{name} {query.id}".encode()).digest()
            chance = random.Random(seed)
            holding = [
                chunk
                for chunk in chunks
                for place in spans[query.id].truth
                if place.doc_id == chunk.doc_id
                and chunk.start < place.end
                and place.start < chunk.end
            ]
            drawn = chance.sample(holding, min(len(holding), 5)) + chance.sample(chunks, 10)
            hits.append(chance.sample(list(dict.fromkeys(drawn)), 10))
        yield Lists(name, chunks, hits)


def summed_up(values: Sequence[float]) -> list[float]:
    """The mean, and four sums with weights, which two lists of values share only if they are
    equal."""
    at = np.arange(len(values))
    weights = [np.ones(len(values)), *(np.cos(at * step) for step in (0.7, 1.1, 1.9, 2.3))]
    return [float(np.dot(weight, values) / len(values)) for weight in weights]
