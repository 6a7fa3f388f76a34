"""The oracles against values computed by hand, and against trying every order and every leg."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from retrieval_bench.core.types import Qrels
from retrieval_bench.metrics import Judgements, judge_lists, parse_metric, parse_metrics
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench_explain.ceilings import Ceiling, Positions, ceilings, perfect_fusion
from tests.builders import some

IDS = "abcdefgh"


def rows(*lists: str) -> Positions:
    """Documents of one letter each as positions."""
    width = max(1, *map(len, lists))
    return np.array([[IDS.index(c) for c in row] + [-1] * (width - len(row)) for row in lists],
                    dtype=np.int32)  # fmt: skip


def one(
    legs: dict[str, Positions], fused: Positions | None, qrels: Qrels, metric: str, k: int = 3
) -> Ceiling:
    given = (legs, fused, IDS, list(qrels), Judgements(qrels))
    (found,) = ceilings(*given, metrics=[parse_metric(metric)], k=k)
    return found


QRELS: Qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1, "d": 1}, "q4": {"e": 1}}
SPARSE = rows("a", "xb".replace("x", "a"), "gh", "fghe")
DENSE = rows("ba", "b", "hgfdc", "fgh")
FUSED = rows("ba", "b", "ghd", "f")


def test_means_of_legs_fusion_and_oracles_are_those_computed_by_hand() -> None:
    found = one({"sparse": SPARSE, "dense": DENSE}, FUSED, QRELS, "RR@3")
    assert {leg: mean.mean for leg, mean in found.legs.items()} == {
        "sparse": pytest.approx((1 + 1 / 2 + 0 + 0) / 4),
        "dense": pytest.approx((1 / 2 + 1 + 0 + 0) / 4),
    }
    assert some(found.fused).mean == pytest.approx((1 / 2 + 1 + 1 / 3 + 0) / 4)
    assert found.choice.mean == pytest.approx((1 + 1 + 0 + 0) / 4)
    assert found.fusion.mean == 1.0  # "e" is fourth in one leg, "d" and "c" deep in the other
    assert found.best_leg == "sparse"
    best, fused = 1.5 / 4, (1.5 + 1 / 3) / 4
    assert found.realised(found.choice) == pytest.approx((fused - best) / (0.5 - best))
    assert found.realised(found.fusion) == pytest.approx((fused - best) / (1 - best))


def test_fusion_below_the_best_leg_realises_less_than_nothing() -> None:
    legs = {"good": rows("a"), "bad": rows("b")}
    found = one(legs, rows("ba"), {"q": {"a": 1, "c": 1}}, "RR@3")
    assert found.realised(Mean(1.5, None, 1)) == pytest.approx(-1.0)
    assert found.realised(found.choice) is None  # no distance: one leg is best everywhere
    found = one({"a": rows("a"), "b": rows("b")}, None, {"q": {"b": 1}}, "RR@3")
    assert (found.fused, found.realised(found.choice)) == (None, None)
    assert found.as_dict()["fused"] is None


def test_higher_grades_come_first_the_cut_counts_and_so_does_k() -> None:
    qrels: Qrels = {"q": {"a": 1, "b": 3, "c": 2, "d": 0}}
    found = one({"x": rows("da"), "y": rows("hcb")}, None, qrels, "nDCG@2", k=2)
    assert found.fusion.mean == 1.0
    assert one({"x": rows("da"), "y": rows("hb")}, None, qrels, "R@3", k=1).fusion.mean == (
        pytest.approx(1 / 3)
    )
    found = one({"x": rows("gha"), "y": rows("bca")}, rows("bga"), {"q": {"a": 1, "b": 1}}, "R", 2)
    assert {leg: mean.mean for leg, mean in found.legs.items()} == {"x": 0, "y": 1 / 2}
    assert (some(found.fused).mean, found.choice.mean, found.fusion.mean) == (1 / 2, 1 / 2, 1)
    found = one({"x": rows("ab"), "y": rows("ba")}, None, {"q": {"a": 1, "b": 1}}, "P@3")
    assert found.fusion.mean == pytest.approx(2 / 3)


@pytest.mark.slow
def test_no_order_of_the_pool_is_better_than_the_perfect_one() -> None:
    rng = np.random.default_rng(5)
    metrics = parse_metrics(["nDCG@3", "AP@3", "RR@3", "R@3", "P@3", "Success@1", "ERR@3"])
    for _ in range(20):
        first, second = ("".join(rng.choice(list(IDS[:5]), 3, replace=False)) for _ in range(2))
        qrels: Qrels = {"q": {c: int(rng.integers(0, 3)) for c in "abcfg"} | {"h": 1}}
        judgements = Judgements(qrels)
        ideal = perfect_fusion([rows(first), rows(second)], IDS, ["q"], judgements, 3)
        pool = sorted({*first, *second})
        for metric in metrics:
            best = max(
                metric.compute(judge_lists({"q": order}, ["q"], judgements))[0]
                for order in permutations(pool, min(3, len(pool)))
            )
            assert metric.compute(ideal)[0] == pytest.approx(best), metric


def test_where_hits_judgements_or_queries_are_missing_there_are_zeros_or_no_mean() -> None:
    found = one({"x": rows("", ""), "y": rows("", "")}, rows("", ""), {"q": {"a": 1}, "r": {}},
                "nDCG@3")  # fmt: skip
    assert [found.choice.mean, found.fusion.mean, found.legs["x"].mean] == [0, 0, 0]
    assert found.realised(found.fusion) is None
    single = one({"x": rows("a"), "y": rows("b")}, rows("ab"), {"q": {"a": 1}}, "RR@3")
    assert (single.choice.ci95, single.choice.n) == (None, 1)
    empty = rows("a")[:0]
    none = one({"x": empty, "y": empty}, empty, {}, "RR@3")
    assert none.choice.n == 0
    assert none.as_dict()["perfect_choice"]["mean"] is None
    assert none.realised(none.choice) is None


def test_a_geometric_mean_is_taken_over_the_best_legs_too() -> None:
    found = one({"x": rows("a", "ab"), "y": rows("ba", "b")}, None,
                {"q": {"a": 1}, "r": {"b": 1}}, "GMAP")  # fmt: skip
    assert found.choice.mean == pytest.approx(1.0)
    assert found.legs["x"].mean == pytest.approx(np.sqrt(0.5))
