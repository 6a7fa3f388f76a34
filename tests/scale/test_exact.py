"""Exact nearest documents: those of a naive search with exact numbers, however the work is cut."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document
from retrieval_bench_scale.shards.blocks import SIZE, BlockFolder, Corpus
from retrieval_bench_scale.shards.exact import Candidates, Search, exact_products

Vectors = NDArray[np.float32]


def made(n: int, dimension: int, seed: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal((n, dimension)).astype(np.float32)


def naive(queries: Vectors, vectors: Vectors, k: int) -> list[set[int]]:
    """All rows whose exact product is at least that of the k-th."""
    found = []
    for query in queries.astype(np.float64):
        scores = [math.fsum(row) for row in (vectors.astype(np.float64) * query).tolist()]
        kth = sorted(scores)[-k]
        found.append({at for at, score in enumerate(scores) if score >= kth})
    return found


def candidates(queries: Vectors, vectors: Vectors, k: int, size: int) -> list[set[int]]:
    best = Candidates(queries, k)
    for start in range(0, len(vectors), size):
        best.add(vectors[start : start + size], start, np.empty(0, np.int64))
    rows, positions = best.left()
    return [set(positions[rows == at].tolist()) for at in range(len(queries))]


@pytest.mark.parametrize("size", [7, 64, 300, 1_000])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_candidates_hold_all_of_the_best_and_few_others(k: int, size: int) -> None:
    queries, vectors = made(6, 24, 1), made(1_000, 24, 2)
    for wanted, found in zip(
        naive(queries, vectors, k), candidates(queries, vectors, k, size), strict=True
    ):
        assert wanted <= found
        assert len(found) <= len(wanted) + 3


def test_scores_that_float32_cannot_tell_apart_are_all_candidates() -> None:
    queries = np.ones((1, 3), np.float32)
    vectors = np.full((500, 3), 1 / 3, np.float32)
    vectors[123] = np.nextafter(np.float32(1 / 3), np.float32(1))
    (found,) = candidates(queries, vectors, 1, 100)
    assert len(found) == 500
    rows = np.zeros(500, np.int64)
    scores = exact_products(queries, rows, vectors, np.arange(500))
    assert int(scores.argmax()) == 123
    assert len(set(scores.tolist())) == 2


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 12, 100, 384])
def test_exact_products_are_sums_of_exact_numbers_whatever_stands_beside_them(
    dimension: int,
) -> None:
    left, right = made(50, dimension, 3), made(3_000, dimension, 4)
    columns = np.arange(3_000)
    rows = columns % 50
    found = exact_products(left, rows, right, columns)
    wanted = [
        math.fsum((left[a].astype(np.float64) * right[b]).tolist())
        for a, b in zip(rows, columns, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * dimension)
    alone = exact_products(left, rows[7:8], right[2:9], columns[7:8] - 2)
    assert alone.tobytes() == found[7:8].tobytes()


def test_odd_numbers_of_documents_and_products_that_float32_cannot_hold() -> None:
    with pytest.raises(ConfigError, match="vectors of length"):
        candidates(made(2, 3, 1) * 1e20, made(5, 3, 2) * 1e20, 2, 5)
    (found,) = candidates(made(1, 4, 1), made(9, 4, 2), 50, 4)
    assert found == set(range(9))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_directions_of_very_short_and_long_vectors_are_compared(scale: float) -> None:
    search = Search(BlockFolder(Path(), {}, 24), {}, None, True, 1)
    found = search.comparable(made(5, 24, 1) * np.float32(scale))
    np.testing.assert_allclose(found, search.comparable(made(5, 24, 1)), rtol=1e-5)


def documents(texts: list[str]) -> list[Document]:
    return [Document(f"d{at}", text) for at, text in enumerate(texts)]


def test_a_corpus_knows_its_blocks_and_the_first_of_equal_texts() -> None:
    texts = [f"text {at % (SIZE + 5)}" for at in range(SIZE + 20)]
    corpus = Corpus.of(documents(texts))
    assert len(corpus.digests) == 2
    assert corpus.first.tolist() == [texts.index(text) for text in texts]
    again = Corpus.of(documents([*texts, "more"]))
    assert again.digests[0] == corpus.digests[0]
    assert again.digests[1] != corpus.digests[1]
    assert Corpus.of(documents([])).ids == ()
