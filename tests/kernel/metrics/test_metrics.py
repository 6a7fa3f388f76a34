"""Worked values: cases with one answer, and definitions computed again.

The oracle tests compare with other libraries; here stands what none of them has, and what needs no
library to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics import Judgements, judge, judge_lists, parse_metric
from tests.builders.by_hand import pattern
from tests.builders.generated import generated_lists


def direct(name: str, ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """The metric alone, without the rules on queries and lists."""
    run = judge_lists({"q": ranking}, ["q"], Judgements({"q": grades}))
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
        ("ERR@3", 0.5569),
        ("Bpref", 0.6),
        ("set_F", 0.9091),
        ("Rprec", 0.8),
        ("F1@3", 0.75),
    ],
)
def test_the_graded_case(name: str, value: float) -> None:
    assert f"{direct(name, 'abcdef', GRADED):.4f}" == f"{value:.4f}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AP", 0.5),
        ("nDCG@3", 0.6131),
        ("P@3", 0.3333),
        ("Rprec", 0.5),
        ("F1@3", 0.4),
        ("Judged@3", 1),
    ],
)
def test_a_list_shorter_than_the_cut(name: str, value: float) -> None:
    assert f"{direct(name, ['a'], {'a': 1, 'b': 1}):.4f}" == f"{value:.4f}"
    ranking = np.array([[0, -1, -1, -1]], dtype=np.int32)
    run = judge(ranking, ["a"], ["q"], Judgements({"q": {"a": 1, "b": 1}}))
    assert f"{parse_metric(name).compute(run)[0]:.4f}" == f"{value:.4f}"


def test_average_precision_divided_by_hits_is_its_own_metric() -> None:
    ranking, grades = pattern("XOXO", 6)
    assert direct("AP(norm=hits)@3", ranking, grades) == pytest.approx(1 / 2)
    assert direct("AP(norm=hits)", ranking, grades) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert direct("AP(norm=hits)@1", ranking, grades) == 0
    assert direct("AP(norm=hits, rel=2)", "ab", {"a": 1, "b": 2}) == pytest.approx(1 / 2)


def test_an_ideal_of_what_was_returned_sorts_the_whole_list_and_then_cuts() -> None:
    grades = {"a": 1, "b": 2, "c": 3, "far": 3}
    best = 3 + 2 / math.log2(3)
    assert direct("nDCG(ideal=returned)@2", "abc", grades) == pytest.approx(
        (1 + 2 / math.log2(3)) / best
    )
    exponential = direct("nDCG(gain=exp, ideal=returned)@2", "abc", grades)
    assert exponential == pytest.approx((1 + 3 / math.log2(3)) / (7 + 3 / math.log2(3)))
    assert direct("nDCG(ideal=returned)", "cab", {"a": 0, "c": 1}) == 1


def test_bpref_counts_at_most_as_many_as_there_are_relevant_ones() -> None:
    # R = 2, N = 3: above c stand three that are not relevant, of which two count.
    assert direct("Bpref", "xyzc", {"c": 1, "far": 1, "x": 0, "y": 0, "z": 0}) == 0
    # R = 2, N = 1: the only one that is not relevant costs all.
    assert direct("Bpref", "xc", {"c": 1, "far": 1, "x": 0}) == 0
    assert direct("Bpref", "cx", {"c": 1, "far": 1, "x": 0}) == 0.5
    # R = 4, N = 2, one of two above.
    grades = {**dict.fromkeys("abcd", 1), "x": 0, "y": 0}
    assert direct("Bpref", "axb", grades) == pytest.approx((1 + 1 / 2) / 4)
    # What is not judged, or negative, does not count; with rel=2 a grade of 1 is not relevant.
    assert direct("Bpref", "?nc", {"c": 1, "n": -1}) == 1
    assert direct("Bpref(rel=2)", "bc", {"c": 2, "b": 1}) == 0


def test_rank_biased_precision_by_hand() -> None:
    ranking, grades = pattern("OXO", 2)
    assert direct("RBP(p=0.5)", ranking, grades) == pytest.approx(0.5 * (1 + 0.25))
    assert direct("RBP(p=0.9)@2", ranking, grades) == pytest.approx(0.1)
    assert direct("RBP(p=0.9, rel=2)", "ab", {"a": 1, "b": 2}) == pytest.approx(0.1 * 0.9)


def test_expected_reciprocal_rank_by_hand() -> None:
    chances = {grade: (2**grade - 1) / 16 for grade in range(5)}
    by_hand = chances[1] + (1 - chances[1]) * chances[4] / 3
    assert direct("ERR@3", "axb", {"a": 1, "b": 4}) == pytest.approx(by_hand)
    assert direct("ERR@2", "axb", {"a": 1, "b": 4}) == pytest.approx(chances[1])
    assert direct("ERR(highest=1)", "xa", {"a": 1}) == pytest.approx(1 / 4)
    assert direct("ERR(highest=1)", "ab", {"a": 1, "b": 1}) == pytest.approx(1 / 2 + 1 / 8)


def test_a_grade_that_a_metric_cannot_take_is_an_error() -> None:
    with pytest.raises(DataError) as caught:
        direct("ERR@3", "a", {"a": 1, "far": 5})
    assert caught.value.given.startswith("grade 5 in the judgements")
    assert caught.value.accepted == "grades from 0 to 4"
    assert "ERR(highest=5)" in caught.value.fix
    assert direct("ERR(highest=5)@3", "a", {"a": 1, "far": 5}) == pytest.approx(1 / 32)
    assert direct("nDCG(gain=exp)", "a", {"a": 900}) == 1
    with pytest.raises(DataError, match="grade 901"):
        direct("nDCG(gain=exp)", "x", {"a": 901})
    assert direct("nDCG", "a", {"a": 2_000_000_000}) == 1


def test_judged_divides_by_the_hits_there_are() -> None:
    grades = {"a": 0, "b": 2, "n": -1}
    assert direct("Judged@3", "axbnn", grades) == pytest.approx(2 / 3)
    assert direct("Judged@10", "axbny", grades) == pytest.approx(2 / 5)
    assert direct("Judged@10", "", grades) == 0
    assert direct("Judged@2", "n", grades) == 0


def test_sets_and_the_harmonic_mean_by_hand() -> None:
    ranking, grades = pattern("OXOX", 3)
    assert direct("set_P", ranking, grades) == pytest.approx(2 / 4)
    assert direct("set_R", ranking, grades) == pytest.approx(2 / 3)
    assert direct("set_F", ranking, grades) == pytest.approx(4 / 7)
    assert direct("F1@2", ranking, grades) == pytest.approx(2 / (2 + 3))
    assert direct("R", ranking, grades) == pytest.approx(2 / 3)
    assert direct("set_P(rel=2)", "ab", {"a": 2, "b": 1}) == 0.5


def test_success_and_reciprocal_rank_without_a_cut_look_at_the_whole_list() -> None:
    ranking, grades = pattern("XXXO", 1)
    assert [direct(name, ranking, grades) for name in ("Success", "Success@3")] == [1, 0]
    assert [direct(name, ranking, grades) for name in ("RR", "RR@3")] == [0.25, 0]


@pytest.mark.parametrize("name", ["R@4", "R", "Rprec", "set_R"])
def test_where_documents_are_counted_a_repeated_one_counts_once(name: str) -> None:
    grades = {"a": 1, "b": 1, "c": 1}
    assert direct(name, "aaxa", grades) == pytest.approx(1 / 3)
    assert direct(name, "aabx", grades) == pytest.approx(2 / 3)


def test_where_ranks_are_counted_a_repeated_document_counts_again() -> None:
    assert direct("P@2", "aa", {"a": 1}) == 1
    assert direct("AP", "xaa", {"a": 1}) == pytest.approx(1 / 2 + 2 / 3)
    assert direct("nDCG@2", "aa", {"a": 1}) == pytest.approx(1 + 1 / math.log2(3))
    assert direct("set_P", "aax", {"a": 1}) == pytest.approx(1 / 3)
    assert direct("Judged@3", "aax", {"a": 1}) == pytest.approx(2 / 3)
    assert direct("RR", "xaa", {"a": 1}) == 0.5


EVERY = [
    *("nDCG@10", "nDCG", "nDCG(gain=exp)@3", "nDCG(ideal=returned)@3", "AP", "AP@3"),
    *("AP(norm=hits)@3", "RR", "RR@3", "P@5", "R@5", "R", "F1@5", "Success@1", "Success", "Rprec"),
    *("Bpref", "RBP(p=0.8)", "RBP(p=0.8)@3", "ERR", "ERR@3", "set_P", "set_R", "set_F"),
]


@pytest.mark.parametrize("name", EVERY)
def test_nothing_retrieved_nothing_relevant_and_nothing_judged_give_zero(name: str) -> None:
    assert direct(name, [], {"a": 1}) == 0
    assert direct(name, ["a"], {"a": 0}) == 0
    assert direct(name, ["a"], {"a": -1}) == 0
    assert direct(name, ["a"], {}) == 0
    assert direct(name, [], {}) == 0
    no_queries = judge(np.empty((0, 0), np.int32), [], [], Judgements({"q": {"a": 1}}))
    values = parse_metric(name).compute(no_queries)
    assert values.dtype == np.float64
    assert values.shape == (0,)


@pytest.mark.parametrize("name", [*EVERY, "Judged@3", "GMAP"])
def test_values_are_doubles_one_for_each_query(name: str) -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    values = parse_metric(name).compute(
        judge_lists({"q1": ["a"]}, ["q1", "q2", "q3"], Judgements(qrels))
    )
    assert values.dtype == np.float64
    assert values.shape == (3,)


def test_a_negative_grade_counts_as_not_judged() -> None:
    assert direct("nDCG@3", ["b", "a"], {"a": 1, "b": -2}) == pytest.approx(1 / math.log2(3))
    assert direct("P@2", ["b", "a"], {"a": 1, "b": -2}) == 0.5


def _again_err(rel: Sequence[int], grades: Mapping[str, int]) -> float:
    total, goes_on = 0.0, 1.0
    for rank, grade in enumerate(rel, start=1):
        chance = (2 ** max(0, grade) - 1) / 16
        total += goes_on * chance / rank
        goes_on *= 1 - chance
    return total


def _again_rbp(rel: Sequence[int], grades: Mapping[str, int]) -> float:
    return 0.3 * sum(0.7**i for i, grade in enumerate(rel) if grade >= 1)


def _again_judged(rel: Sequence[int], grades: Mapping[str, int]) -> float:
    top = rel[:4]
    return sum(grade >= 0 for grade in top) / len(top) if top else 0.0


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("ERR", _again_err),
        ("RBP(p=0.7)", _again_rbp),
        ("Judged@4", _again_judged),
    ],
)
def test_a_definition_written_again_gives_the_same(
    name: str, again: Callable[[Sequence[int], Mapping[str, int]], float]
) -> None:
    qrels, lists = generated_lists(800, 1000, repeated=False)
    # a rank without a judgement is -1
    rel = {q: [qrels[q].get(d, -1) for d in lists.get(q, ())] for q in qrels}
    values = parse_metric(name).compute(judge_lists(lists, list(qrels), Judgements(qrels)))
    for query_id, value in zip(qrels, values.tolist(), strict=True):
        assert value == pytest.approx(again(rel[query_id], qrels[query_id]), abs=1e-12)
