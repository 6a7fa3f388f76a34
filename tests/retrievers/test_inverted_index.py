from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench_retrievers.lexical import inverted_index
from retrieval_bench_retrievers.lexical.inverted_index import InvertedIndex, Postings


def _postings(matrix: NDArray[Any], has: NDArray[np.bool_]) -> Postings:
    """Postings of a (terms, documents) matrix where ``has`` is true."""
    positions = [np.flatnonzero(row) for row in has]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in positions])))
    return Postings(
        matrix.shape[1],
        starts.astype(np.int64),
        np.concatenate(positions).astype(np.int32),
        np.concatenate([matrix[term, row] for term, row in enumerate(positions)]).__getitem__,
    )


def _random(
    seed: int, *, lowest: int = 1, dtype: type = np.float32
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Weights in quarters, whose sums are exact and often tie."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.01, 0.05, 0.2, 0.3, 0.6, 1.0, 0.0])
    has: NDArray[np.bool_] = rng.random((len(shares), 900)) < shares[:, None]
    weights = rng.integers(lowest, 12, has.shape) / 4
    return np.where(has, weights, 0).astype(dtype), has


def _sums(matrix: NDArray[Any], counts: dict[int, int]) -> NDArray[np.float64]:
    terms = list(counts)
    sums: NDArray[np.float64] = np.array([counts[term] for term in terms]) @ matrix[terms]
    return sums


def _expected(
    matrix: NDArray[Any], has: NDArray[np.bool_], counts: dict[int, int], k: int
) -> list[int]:
    scores = _sums(matrix, counts)
    candidates = np.flatnonzero(has[list(counts)].any(axis=0))
    return sorted(candidates.tolist(), key=lambda at: (-scores[at], at))[:k]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("lowest", [1, 0, -12])
@pytest.mark.parametrize("counts", [{0: 1}, {2: 2, 3: 1}, {0: 1, 1: 3, 5: 1}, {4: 2, 5: 1}, {6: 1}])
@pytest.mark.parametrize("k", [1, 10, 899, 5000])
def test_search_is_the_head_of_all_sums_over_documents_with_a_term(
    seed: int, lowest: int, counts: dict[int, int], k: int
) -> None:
    matrix, has = _random(seed, lowest=lowest, dtype=np.float64)
    positions, scores = InvertedIndex(_postings(matrix, has)).search(counts, k)
    assert positions.tolist() == _expected(matrix, has, counts, k)
    assert scores.tolist() == _sums(matrix, counts)[positions].tolist()


def test_frequent_terms_are_rows_and_need_no_postings() -> None:
    matrix, has = _random(3)
    index = InvertedIndex(_postings(matrix, has))
    assert sorted(index._row_of) == [3, 4, 5]
    assert len(index._positions) == has[[0, 1, 2]].sum()
    rows, postings = 3 * 900 * 4, int(has[[0, 1, 2]].sum()) * 8
    assert index.nbytes == rows + postings + 8 * 8 + 7 * 4


def test_a_frequent_term_with_a_weight_of_zero_stays_in_postings() -> None:
    matrix = np.array([[1.0, 0.0, 1.0, 1.0]])
    index = InvertedIndex(_postings(matrix, np.array([[True, True, True, False]])))
    assert not index._row_of
    assert index.search({0: 1}, 4)[0].tolist() == [0, 2, 1]


def test_sums_of_many_terms_are_taken_in_double_precision() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.uniform(0.1, 9, (3000, 40)).astype(np.float32)
    has = rng.random(matrix.shape) < rng.uniform(0, 1, (3000, 1))
    index = InvertedIndex(_postings(matrix, has))
    scores = index.scores(dict.fromkeys(range(3000), 1))
    assert scores.dtype == np.float64
    assert scores == pytest.approx(np.where(has, matrix, 0).sum(axis=0, dtype=float), rel=1e-12)


def _zipf(seed: int, n: int = 4000, *, lowest: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Terms from very rare to very frequent, weights whose sums depend on their order."""
    rng = np.random.default_rng(seed)
    shares = np.geomspace(2 / n, 0.7, 30)
    has: NDArray[np.bool_] = rng.random((len(shares), n)) < shares[:, None]
    weights = rng.uniform(0.1, 3, has.shape) - np.log(shares)[:, None] * rng.choice([1, 1.5])
    weights[rng.random(len(shares)) < 0.3] *= lowest
    dtype = np.float64 if lowest < 0 else np.float32
    return np.where(has, weights, 0).astype(dtype), has


@pytest.mark.parametrize("lowest", [1, 0, -1])
@pytest.mark.parametrize("share", [None, 0.5, 0.02])
def test_few_documents_are_scored_where_the_others_cannot_be_better(
    lowest: int, share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverted_index, "_LARGE", 0)
    monkeypatch.setattr(inverted_index, "_FEW", 0.5)
    rng = np.random.default_rng(8)
    among_few = 0
    for seed in range(40):
        matrix, has = _zipf(seed, lowest=lowest)
        index = InvertedIndex(_postings(matrix, has))
        terms = rng.choice(30, rng.integers(1, 9), replace=False).tolist()
        counts = {term: int(rng.choice([1, 1, 2])) for term in terms}
        k = int(rng.choice([1, 3, 10, 60]))
        allowed: NDArray[np.bool_] | None = None
        if share is not None:
            allowed = np.asarray(rng.random(matrix.shape[1]) < share)
        found = index.search(counts, k, allowed)
        among_few += index._among_few(counts, k, allowed) is not None
        with monkeypatch.context() as patch:
            patch.setattr(InvertedIndex, "_among_few", lambda *_: None)
            everything = index.search(counts, k, allowed)
        assert found[0].tolist() == everything[0].tolist()
        assert found[1].tolist() == everything[1].tolist()
    assert among_few


def test_a_tie_with_what_the_others_can_reach_is_no_reason_to_leave_them_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inverted_index, "_LARGE", 0)
    matrix = np.zeros((2, 1000), dtype=np.float32)
    matrix[0, 900], matrix[1, 100:300] = 2, 2
    index = InvertedIndex(_postings(matrix, matrix > 0))
    assert index.search({0: 1, 1: 1}, 1)[0].tolist() == [100]
    matrix[0, 900] = 2.5
    index = InvertedIndex(_postings(matrix, matrix > 0))
    assert index._among_few({0: 1, 1: 1}, 1, None) is not None
    assert index.search({0: 1, 1: 1}, 1)[0].tolist() == [900]


def test_terms_without_postings_have_no_bound_of_their_neighbours() -> None:
    has = np.zeros((4, 10), dtype=bool)
    has[1, :3] = has[2, 4] = True
    matrix = np.where(has, [[9.0], [1.0], [7.0], [9.0]], 0)
    assert InvertedIndex(_postings(matrix, has))._bounds.tolist() == [0, 1, 7, 0]
