from __future__ import annotations

import os
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Ranking
from retrieval_bench_retrievers.hybrid.fusion import Pool, convex, min_max, rrf

NAN = float("nan")


def test_a_pool_holds_every_document_once_in_ascending_order_with_its_ranks_and_scores() -> None:
    pool = Pool.of([Ranking(["나", "b"], [2.0, 1.0]), Ranking(["c", "b"]), Ranking([])])
    assert pool.doc_ids == ["b", "c", "나"]
    assert pool.ranks.tolist() == [[2, 0, 1], [2, 1, 0], [0, 0, 0]]
    assert pool.scores[0] == pytest.approx([1.0, NAN, 2.0], nan_ok=True)
    assert np.isnan(pool.scores[1:]).all()


def test_a_pool_of_empty_rankings_is_empty() -> None:
    pool = Pool.of([Ranking([]), Ranking([], [])])
    assert pool.doc_ids == []
    assert rrf(pool.ranks).shape == (0,)
    assert convex(pool.ranks, pool.scores, weights=[0.5, 0.5]).shape == (0,)


@pytest.mark.parametrize(
    ("ranks", "options", "fused"),
    [
        ([[1, 2, 0], [0, 1, 2]], {}, [1 / 61, 1 / 62 + 1 / 61, 1 / 62]),
        ([[1, 2], [0, 1]], {"k": 2, "base": 0}, [1 / 2, 1 / 3 + 1 / 2]),
        ([[1, 2, 0], [2, 0, 1]], {"k": 0}, [1.5, 0.5, 1.0]),
        ([[1, 2], [0, 1]], {"weights": [0.7, 0.3]}, [0.7 / 61, 0.7 / 62 + 0.3 / 61]),
    ],
    ids=["60 plus the one-based rank", "from zero", "the rank alone", "weighted"],
)
def test_rrf_adds_one_over_a_constant_plus_the_rank(
    ranks: list[list[int]], options: dict[str, Any], fused: list[float]
) -> None:
    assert rrf(ranks, **options).tolist() == pytest.approx(fused, rel=1e-15)


def test_three_legs_with_the_same_ranks_in_any_order_tie_exactly() -> None:
    orders = list(permutations((1, 2, 7)))
    # Added leg by leg, these parts give more than one sum.
    naive = {(1 / (60 + a) + 1 / (60 + b)) + 1 / (60 + c) for a, b, c in orders}
    assert len(naive) > 1
    assert len(set(rrf(np.array(orders).T).tolist())) == 1


def test_a_document_that_only_a_leg_of_weight_zero_has_is_left_out() -> None:
    assert rrf([[1, 0], [0, 1]], weights=[1, 0]).tolist() == [1 / 61, -np.inf]
    fused = convex([[1, 0], [0, 1]], [[1, NAN], [NAN, 1]], weights=[0, 1])
    assert fused.tolist() == [-np.inf, 1.0]


@pytest.mark.parametrize("high", [1.7e308, np.finfo(np.float64).max])
def test_scores_at_the_end_of_double_precision_are_fused_as_any_other(high: float) -> None:
    """S2: their difference overflowed, with warnings of numpy, and the best document was lost."""
    assert min_max([high, 0.0, -high]).tolist() == [1.0, 0.5, 0.0]
    assert min_max([high, 1.0]).tolist() == [1.0, 0.0]
    assert min_max([high, high]).tolist() == [1.0, 1.0]
    scores = np.array([[high, 0, -high], [0, 1, 2]])
    fused = convex([[1, 2, 3], [3, 2, 1]], scores, weights=[0.75, 0.25])
    assert fused.tolist() == [0.75, 0.5, 0.25]


def test_min_max_of_nothing_is_nothing() -> None:
    assert min_max([]).shape == (0,)


def test_convex_refuses_hits_without_scores() -> None:
    with pytest.raises(ContractError, match="without scores") as caught:
        convex([[1, 0], [0, 1]], [[1, NAN], [NAN, NAN]], weights=[0.5, 0.5])
    assert caught.value.where == "leg 2 of 2"
    assert "rrf" in caught.value.fix


def test_what_is_given_is_not_changed() -> None:
    ranks, scores = np.array([[1, 2], [2, 1]]), np.array([[4.0, 2.0], [3.0, 5.0]])
    before = ranks.copy(), scores.copy()
    rrf(ranks)
    convex(ranks, scores, weights=[0.5, 0.5])
    assert (ranks == before[0]).all()
    assert (scores == before[1]).all()


def test_fusion_equals_a_slow_restatement_of_its_definition() -> None:
    rng = random.Random(7)
    documents = [f"문서{i}" for i in range(40)]
    weights = [0.2, 0.3, 0.5]
    for _ in range(50):
        legs = []
        for _ in range(3):
            n = rng.randrange(0, 30)
            scores = sorted((rng.randrange(8) / 4 for _ in range(n)), reverse=True)
            legs.append(dict(zip(rng.sample(documents, n), scores, strict=True)))
        pool = Pool.of([Ranking(list(leg), list(leg.values())) for leg in legs])
        by_rank = rrf(pool.ranks, weights=weights)
        by_score = convex(pool.ranks, pool.scores, weights=weights)
        for i, doc_id in enumerate(pool.doc_ids):
            rank_sum = score_sum = 0.0
            for leg, weight in zip(legs, weights, strict=True):
                if doc_id in leg:
                    low, high = min(leg.values()), max(leg.values())
                    rank_sum += weight / (61 + list(leg).index(doc_id))
                    score_sum += weight * (1 if low == high else (leg[doc_id] - low) / (high - low))
            assert by_rank[i] == pytest.approx(rank_sum, rel=1e-12)
            assert by_score[i] == pytest.approx(score_sum, rel=1e-12, abs=1e-15)


@pytest.mark.realdata
def test_rrf_reproduces_the_result_of_a_peer_with_sixty_from_one() -> None:
    folder = Path(os.environ.get("BENCH_DATA", "")) / "fusion"
    if "BENCH_DATA" not in os.environ or not folder.is_dir():
        pytest.skip("BENCH_DATA names no folder with fusion/")
    runs = [read_run(folder / f"simple_trec_run_fusion_{i}.txt", 3) for i in (1, 2)]
    expected = read_run(folder / "simple_trec_run_rrf_verify.txt", 4)
    assert len(expected) == 3
    for query, fused in expected.items():
        # The peer reads the column of ranks, which has a gap in one of the runs.
        ranks = [[int(run.get(query, {}).get(doc_id, 0)) for doc_id in fused] for run in runs]
        assert rrf(ranks).tolist() == list(fused.values())


def read_run(path: Path, column: int) -> dict[str, dict[str, float]]:
    """Query -> document -> the value in ``column``."""
    run: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split()
        run.setdefault(fields[0], {})[fields[2]] = float(fields[column])
    return run
