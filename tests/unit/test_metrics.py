"""Worked values: published ones, and cases with one answer. The oracle tests compare the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.metrics import judge, parse_metric


def score(name: str, ranking: list[str], grades: dict[str, int], depth: int = 0) -> float:
    ids = sorted({*ranking, *grades})
    row = [ids.index(doc_id) for doc_id in ranking] + [-1] * max(0, depth - len(ranking))
    array = np.array([row], dtype=np.int32).reshape(1, len(row))
    run = judge(array, ids, ["q"], {"q": grades})
    return float(parse_metric(name).compute(run)[0])


GRADED = {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AP", 0.9267),
        ("AP@3", 0.6),
        ("AP(rel=2)@3", 0.75),
        ("nDCG", 0.9608),
        ("nDCG@3", 0.9778),
        ("nDCG(gain=exp)@3", 0.9595),
        ("F1@3", 0.75),
    ],
)
def test_the_graded_case(name: str, value: float) -> None:
    assert score(name, list("abcdef"), GRADED) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "value"), [("AP", 0.5), ("nDCG@3", 0.6131), ("P@3", 1 / 3), ("F1@3", 0.4)]
)
def test_a_list_shorter_than_the_cut(name: str, value: float) -> None:
    assert score(name, ["a"], {"a": 1, "b": 1}) == pytest.approx(value, abs=5e-5)
    assert score(name, ["a"], {"a": 1, "b": 1}, depth=7) == pytest.approx(value, abs=5e-5)


def test_an_article_s_ndcg_with_the_ideal_over_all_judged_documents() -> None:
    grades = dict(zip("abcdefg", [1, 0, 3, 3, 0, 3, 0], strict=True))
    assert score("nDCG@5", list("abcde"), grades) == pytest.approx(0.555734, abs=5e-7)
    assert score("nDCG(gain=exp)@5", list("abcde"), grades) == pytest.approx(0.489649, abs=5e-7)


def test_average_precision_divides_by_all_relevant_documents() -> None:
    relevant = {"a": 1, "b": 1, "r": 1}
    assert score("AP@5", ["a", "b", "x", "y", "z"], relevant) == pytest.approx(2 / 3)
    assert score("AP@5", ["x", "y", "z", "a", "b"], relevant) == pytest.approx(0.65 / 3)


def test_recall_of_eight_in_ten() -> None:
    relevant = {str(i): 1 for i in range(10)}
    assert score("R@10", [*map(str, range(8)), "x", "y"], relevant) == pytest.approx(0.8)


def test_reciprocal_ranks() -> None:
    values = [score("RR", ["x"] * 0 + list("xyz")[:n] + ["a"], {"a": 1}) for n in (0, 1, 3)]
    assert sum(values) / 3 == pytest.approx(0.583333, abs=5e-7)
    assert score("RR@2", ["x", "y", "a"], {"a": 1}) == 0


def test_success_is_any_hit() -> None:
    assert score("Success@5", list("ABCDE"), {"C": 1, "F": 1, "G": 1}) == 1
    assert score("Success@2", list("ABCDE"), {"C": 1, "F": 1, "G": 1}) == 0


NAMES = ["nDCG@10", "nDCG", "AP", "AP@3", "RR", "RR@3", "P@5", "R@5", "F1@5", "Success@1"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_retrieved_nothing_relevant_and_nothing_judged_give_zero(name: str) -> None:
    assert score(name, [], {"a": 1}) == 0
    assert score(name, [], {"a": 1}, depth=4) == 0
    assert score(name, ["a"], {"a": 0}) == 0
    assert score(name, ["a"], {}) == 0


@pytest.mark.parametrize("name", [n.replace("@3", "@5") for n in NAMES])
def test_the_ideal_ranking_gives_one(name: str) -> None:
    ranking, grades = list("abcde"), {c: 5 - i for i, c in enumerate("abcde")}
    assert score(name, ranking, grades) == pytest.approx(1)


def test_a_negative_grade_counts_as_not_judged() -> None:
    assert score("nDCG@3", ["b", "a"], {"a": 1, "b": -2}) == pytest.approx(1 / math.log2(3))
    assert score("P@2", ["b", "a"], {"a": 1, "b": -2}) == 0.5


def test_the_join_leaves_its_input_alone_and_ignores_other_queries() -> None:
    ranking = np.array([[0, 1], [1, -1]], dtype=np.int32)
    before = ranking.copy()
    qrels = {"q1": {"a": 1}, "q9": {"b": 1}}
    run = judge(ranking, ["a", "b"], ["q1", "q2"], qrels)
    assert np.array_equal(ranking, before)
    assert run.grades.tolist() == [[1, 0], [0, 0]]
    assert run.lengths.tolist() == [2, 1]
    assert run.n_relevant(1).tolist() == [1, 0]
