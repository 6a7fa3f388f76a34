"""Figures that the sources of the conventions print, and the geometric mean, worked out again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from retrieval_bench.metrics import Judgements, judge_lists
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, score
from tests.builders import some
from tests.builders.by_hand import pattern

Lists = Mapping[str, Sequence[str]]
Grades = Mapping[str, Mapping[str, int]]


def mean(name: str, lists: Lists, qrels: Grades, *, under: str) -> float:
    """One figure over all judged queries."""
    (metric,) = convention(under).parse([name])
    values = metric.compute(judge_lists(lists, sorted(qrels), Judgements(qrels)))
    return float(values.mean())


def one(
    name: str, ranking: Sequence[str], grades: Mapping[str, int], *, under: str = "trec"
) -> float:
    return mean(name, {"q": ranking}, {"q": grades}, under=under)


def test_the_competition_divides_by_the_hits_found_and_counts_a_repeated_document_again() -> None:
    ranking, grades = pattern("OXO", 5)
    assert f"{one('AP', ranking, grades, under='scienceqa'):.6f}" == "0.833333"
    assert f"{one('AP@3', ranking, grades):.6f}" == "0.333333"
    assert f"{one('AP', ['x', 'a', 'a'], {'a': 1}, under='scienceqa'):.6f}" == "0.583333"


def test_the_article_divides_by_all_relevant_documents_and_its_ideal_is_all_judged_ones() -> None:
    first, last = pattern("OOXXX", 3), pattern("XXXOO", 3)
    assert f"{one('AP@5', *first, under='blog'):.6f}" == "0.666667"
    assert f"{one('AP@5', *last, under='blog'):.6f}" == "0.216667"
    both = mean(
        "MAP@5",
        {"q1": first[0], "q2": last[0]},
        {"q1": first[1], "q2": last[1]},
        under="blog",
    )
    assert f"{both:.6f}" == "0.441667"
    grades = dict(zip("abcdefg", [1, 0, 3, 3, 0, 3, 0], strict=True))
    assert f"{one('nDCG@5', 'abcde', grades, under='blog'):.6f}" == "0.555734"
    assert f"{one('nDCG(ideal=returned)@5', 'abcde', grades):.6f}" == "0.703167"
    assert f"{one('nDCG(gain=exp)@5', 'abcde', grades):.6f}" == "0.489649"
    assert one("HitRate@5", "ABCDE", dict.fromkeys("CFG", 1), under="blog") == 1
    assert one("HitRate@2", "ABCDE", dict.fromkeys("CFG", 1), under="blog") == 0


def test_the_paper_s_notes() -> None:
    queries = {f"q{i}": pattern(marks, 2) for i, marks in enumerate(("OXO", "OOX", "XOO"))}
    lists = {query_id: ranking for query_id, (ranking, _) in queries.items()}
    qrels = {query_id: grades for query_id, (_, grades) in queries.items()}
    assert f"{mean('MAP@3', lists, qrels, under='mala2025'):.6f}" == "0.805556"
    assert f"{mean('nDCG@3', lists, qrels, under='mala2025'):.6f}" == "0.871049"


def test_the_text_of_piaf() -> None:
    ranking, grades = pattern("XOXOX", 2)
    assert one("AP", ranking, grades, under="piaf") == pytest.approx(0.5)
    queries = {f"q{n}": pattern("X" * (n - 1) + "O", 1) for n in (1, 2, 4)}
    lists = {query_id: ranking for query_id, (ranking, _) in queries.items()}
    qrels = {query_id: grades for query_id, (_, grades) in queries.items()}
    assert f"{mean('MRR', lists, qrels, under='piaf'):.6f}" == "0.583333"


def test_the_notebook_finds_eight_of_ten() -> None:
    ranking, grades = pattern("OOOOXOOOOX", 10)
    assert one("Recall@10", ranking, grades, under="tutorial") == pytest.approx(0.8)


def test_the_geometric_mean_takes_small_values_for_one_in_a_hundred_thousand() -> None:
    grades = {"a": 1, "b": 1}
    lists = {"q1": ["a", "b"], "q2": ["x", "a"], "q3": ["x"]}
    qrels = dict.fromkeys(lists, grades)
    rules = convention("trec")
    scored = score(Answers(lists=lists), Judgements(qrels), rules, rules.parse(["GMAP"]))
    values = [1.0, 0.25, 1e-5]
    assert scored.evaluation.per_query[:, 0].tolist() == pytest.approx(values)
    got = scored.evaluation.means[0]
    assert got.mean == pytest.approx(math.prod(values) ** (1 / 3))
    assert 0.999e-5 <= some(got.ci95)[0] <= got.mean <= some(got.ci95)[1] <= 1
