"""What holds for every ranking, whatever stands in it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval_bench.metrics import Judgements, judge, judge_lists, parse_metrics
from tests.builders.generated import as_arrays

Grades = Mapping[str, Mapping[str, int]]
Lists = Mapping[str, Sequence[str]]

CUT = [
    *("nDCG@3", "nDCG(gain=exp)@5", "AP@3", "AP(norm=hits)@3", "RR@3", "P@3", "R@3", "F1@3"),
    *("Success@3", "RBP(p=0.8)@5", "ERR@3", "AP(rel=2)@5", "P(rel=2)@3", "RR(rel=3)@5"),
]
WHOLE = [
    *("nDCG", "nDCG(gain=exp)", "AP", "AP(norm=hits)", "RR", "R", "Success", "Rprec", "Bpref"),
    *("RBP(p=0.8)", "ERR", "set_R", "AP(rel=2)", "Bpref(rel=2)", "Rprec(rel=2)", "GMAP"),
]
OF_LENGTH = ["set_P", "set_F", "Judged@3", "nDCG(ideal=returned)", "nDCG(ideal=returned)@3"]

DOCS = [f"d{i}" for i in range(12)]
grades_of = st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 4), max_size=10)
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=10)
queries = st.lists(st.tuples(grades_of, rankings), min_size=1, max_size=4)


def taken_apart(
    pairs: Sequence[tuple[Mapping[str, int], Sequence[str]]],
) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    qrels = {f"q{i}": dict(grades) for i, (grades, _) in enumerate(pairs)}
    return qrels, {f"q{i}": list(ranking) for i, (_, ranking) in enumerate(pairs)}


def values(names: Sequence[str], lists: Lists, qrels: Grades) -> NDArray[np.float64]:
    """(queries, metrics), in the order of ``qrels``."""
    run = judge_lists(lists, list(qrels), Judgements(qrels))
    return np.column_stack([metric.compute(run) for metric in parse_metrics(names)])


def one(names: Sequence[str], ranking: Sequence[str], grades: Mapping[str, int]) -> list[float]:
    row: list[float] = values(names, {"q": ranking}, {"q": grades})[0].tolist()
    return row


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(queries)
def test_values_lie_between_zero_and_one(pairs: list[tuple[dict[str, int], list[str]]]) -> None:
    qrels, lists = taken_apart(pairs)
    found = values([*CUT, *WHOLE, *OF_LENGTH], lists, qrels)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()


IDEAL = [
    *("nDCG", "nDCG@1", "nDCG@3", "nDCG@100", "nDCG(gain=exp)", "nDCG(gain=exp)@3", "AP", "AP@100"),
    *("AP(norm=hits)", "AP(norm=hits)@3", "RR", "RR@1", "R", "R@100", "Success@1", "P@1", "Rprec"),
    *("Bpref", "set_R", "Judged@3", "GMAP", "nDCG(ideal=returned)", "nDCG(ideal=returned)@3"),
]


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(grades_of.filter(lambda grades: any(g >= 1 for g in grades.values())))
def test_the_ideal_ranking_gives_one(grades: dict[str, int]) -> None:
    judged = [doc_id for doc_id, grade in grades.items() if grade >= 0]
    ideal = sorted(judged, key=grades.__getitem__, reverse=True)
    assert one(IDEAL, ideal, grades) == pytest.approx([1] * len(IDEAL), abs=1e-12)
    relevant = [doc_id for doc_id in ideal if grades[doc_id] >= 1]
    exact = ["set_P", "set_F", f"P@{len(relevant)}", f"F1@{len(relevant)}"]
    assert one(exact, relevant, grades) == pytest.approx([1] * len(exact), abs=1e-12)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(grades_of, rankings, st.integers(1, 5))
def test_appending_what_is_not_relevant_changes_nothing(
    grades: dict[str, int], ranking: list[str], more: int
) -> None:
    unjudged = [f"new{i}" for i in range(more)]
    assert one(WHOLE, [*ranking, *unjudged], grades) == one(WHOLE, ranking, grades)
    filled = [*ranking, *(f"fill{i}" for i in range(5))]
    names = [*CUT, "Judged@3", "nDCG(ideal=returned)@3"]
    assert one(names, [*filled, *unjudged], grades) == one(names, filled, grades)
    assert one(CUT, filled, grades) == one(CUT, ranking, grades)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(grades_of, rankings, st.data())
def test_what_stands_beyond_the_cut_does_not_matter(
    grades: dict[str, int], ranking: list[str], data: st.DataObject
) -> None:
    filled = [*ranking, *(f"fill{i}" for i in range(5))]
    rest = data.draw(st.permutations(filled[5:]))
    assert one(CUT, [*filled[:5], *rest], grades) == one(CUT, filled, grades)
    assert one(CUT, filled[:5], grades) == one(CUT, filled, grades)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(grades_of, rankings, st.integers(1, 4))
def test_a_relevant_document_at_the_end_never_costs(
    grades: dict[str, int], ranking: list[str], grade: int
) -> None:
    grades = {**grades, "late": grade}
    names = [name for name in [*CUT, *WHOLE, "set_F"] if "norm=hits" not in name]
    before, after = one(names, ranking, grades), one(names, [*ranking, "late"], grades)
    assert all(a >= b - 1e-12 for a, b in zip(after, before, strict=True))


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(grades_of, rankings.filter(lambda ranking: len(ranking) > 1), st.data())
def test_moving_a_better_document_up_never_costs(
    grades: dict[str, int], ranking: list[str], data: st.DataObject
) -> None:
    names = [name for name in [*CUT, *WHOLE] if "norm=hits" not in name]
    at = data.draw(st.integers(0, len(ranking) - 2))
    upper, lower = ranking[at : at + 2]
    if grades.get(lower, 0) < grades.get(upper, 0):
        upper, lower = lower, upper
    worse = [*ranking[:at], upper, lower, *ranking[at + 2 :]]
    better = [*ranking[:at], lower, upper, *ranking[at + 2 :]]
    before, after = one(names, worse, grades), one(names, better, grades)
    assert all(a >= b - 1e-12 for a, b in zip(after, before, strict=True))


ALL = [*CUT, *WHOLE, *OF_LENGTH]


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(queries, st.randoms(use_true_random=False))
def test_the_order_of_queries_judgements_and_documents_changes_nothing(
    pairs: list[tuple[dict[str, int], list[str]]], random: Random
) -> None:
    qrels, lists = taken_apart(pairs)
    before = dict(zip(qrels, values(ALL, lists, qrels).tolist(), strict=True))

    def shuffled(items: Sequence[str]) -> list[str]:
        copied = list(items)
        random.shuffle(copied)
        return copied

    turned = {q: {d: qrels[q][d] for d in shuffled([*qrels[q]])} for q in shuffled([*qrels])}
    after = dict(zip(turned, values(ALL, lists, turned).tolist(), strict=True))
    assert after == before
    # documents in another order under the arrays
    ranking, doc_ids = as_arrays(lists, qrels)
    order = shuffled(doc_ids)
    numbers = np.array([order.index(doc_id) for doc_id in doc_ids] + [-1], dtype=np.int32)
    run = judge(numbers[ranking], order, list(qrels), Judgements(turned))
    found = np.column_stack([metric.compute(run) for metric in parse_metrics(ALL)])
    assert dict(zip(qrels, found.tolist(), strict=True)) == before


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(queries)
def test_other_queries_change_nothing(pairs: list[tuple[dict[str, int], list[str]]]) -> None:
    qrels, lists = taken_apart(pairs)
    together = values(ALL, lists, qrels).tolist()
    alone = [one(ALL, ranking, grades) for grades, ranking in pairs]
    assert together == pytest.approx(np.array(alone), abs=1e-12)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(queries)
def test_other_names_for_documents_and_queries_change_nothing(
    pairs: list[tuple[dict[str, int], list[str]]],
) -> None:
    qrels, lists = taken_apart(pairs)
    named = {doc_id: f"문서 {len(DOCS) - i} 😀" for i, doc_id in enumerate(DOCS)}
    other_qrels = {f"질문{q}": {named[d]: g for d, g in row.items()} for q, row in qrels.items()}
    other_lists = {f"질문{q}": [named[d] for d in row] for q, row in lists.items()}
    assert values(ALL, other_lists, other_qrels).tolist() == values(ALL, lists, qrels).tolist()


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(queries)
def test_metrics_leave_their_input_alone_and_give_the_same_again(
    pairs: list[tuple[dict[str, int], list[str]]],
) -> None:
    qrels, lists = taken_apart(pairs)
    run = judge_lists(lists, list(qrels), Judgements(qrels))
    arrays: list[NDArray[Any]] = [*run.judged, *run.ideal, run.lengths, run.n_judged]
    before = copy.deepcopy((qrels, lists, [array.tolist() for array in arrays]))
    first = [metric.compute(run).tolist() for metric in parse_metrics(ALL)]
    again = [metric.compute(run).tolist() for metric in reversed(parse_metrics(ALL))]
    assert first == again[::-1]
    assert (qrels, lists, [array.tolist() for array in arrays]) == before
