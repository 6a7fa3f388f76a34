"""All joins give one joined run, and its parts are what they say."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics import JudgedRun, Judgements, judge, judge_lists
from tests.builders.generated import as_arrays, generated, in_order, single
from tests.optional import installed

IDS = ["a", "b", "B", "aa", "é", "é", "문서", "書", "وثيقة", "～", "😀", "10", "9", " ", ""]
"""Two ways to write é, and two ids that UTF-16 and code points order differently."""

EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.700000001, 0.7, 16777216.0, 16777217.0, 1e39, 2e39, -1e39, -2e39),
    *(1e-50, -1e-50, 5e-324, 1e-45, 1e-46, 1.7976931348623157e308, 3.4028235e38, 3.4028236e38),
]

scores_of = st.one_of(
    st.sampled_from(EDGES),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
)
runs = st.dictionaries(
    st.sampled_from(["q1", "q2", "질의", "q4"]),
    st.dictionaries(st.one_of(st.sampled_from(IDS), st.text(max_size=3)), scores_of, max_size=8),
)
qrels_of = st.dictionaries(
    st.sampled_from(["q1", "q2", "질의", "q5"]),
    st.dictionaries(st.sampled_from(IDS), st.integers(-2, 5), max_size=8),
)


def parts(run: JudgedRun) -> list[tuple[str, np.dtype[np.generic], list[object]]]:
    """All that a joined run holds, in a form that compares."""
    arrays = {
        **{f"judged.{name}": value for name, value in run.judged._asdict().items()},
        **{f"ideal.{name}": value for name, value in run.ideal._asdict().items()},
        "lengths": run.lengths,
        "n_judged": run.n_judged,
    }
    return [(name, array.dtype, array.tolist()) for name, array in arrays.items()]


class WithPairs(Judgements):
    """Arrays are joined by their table of pairs, however few hits there are."""

    def pairs_pay(self, n_hits: int) -> bool:
        return True


class WithoutPairs(Judgements):
    """Arrays are joined by their ids, however many hits there are."""

    def pairs_pay(self, n_hits: int) -> bool:
        return False


def of_scores(
    scores: Mapping[str, Mapping[str, float]], query_ids: Sequence[str], judgements: Judgements
) -> list[JudgedRun]:
    """The join of scores, where the package that has it is here."""
    if not installed("retrieval_bench_score"):
        return []
    from retrieval_bench_score.scored import judge_scores

    return [judge_scores(scores, query_ids, judgements)]


def every_join(
    qrels: Mapping[str, Mapping[str, int]],
    scores: Mapping[str, Mapping[str, float]],
    query_ids: Sequence[str],
) -> list[JudgedRun]:
    lists = {query_id: in_order(row) for query_id, row in scores.items()}
    ranking, doc_ids = as_arrays(lists, query_ids)
    return [
        judge(ranking, doc_ids, query_ids, WithPairs(qrels)),
        judge(ranking, doc_ids, query_ids, WithoutPairs(qrels)),
        judge(ranking, doc_ids, query_ids, Judgements(qrels)),
        judge_lists(lists, query_ids, Judgements(qrels)),
        *of_scores(scores, query_ids, Judgements(qrels)),
    ]


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples, deadline=None, derandomize=True)
@given(runs, qrels_of)
@example({}, {})
@example({}, {"q1": {"a": 1}})
@example({"q1": {}}, {"q1": {"a": 1}})
@example({"q1": {}, "q2": {}}, {})
@example({"q1": {"a": 1.0}}, {"q1": {}})
@example({"q1": {"a": 1.0}}, {"q1": {"a": -1}})
@example({"q1": {}, "q2": {"a": 1.0, "b": 1.0}, "질의": {}}, {"q2": {"a": 1}, "질의": {"b": 0}})
@example({"q1": {"a": 0.0, "b": -0.0, "c": 1e-50}}, {"q1": {"a": 2, "b": 1}})
@example({"q1": {"a": 2e39, "b": 1e39}}, {"q1": {"a": 1}})
@example({"q1": {"～": 1.0, "😀": 1.0}}, {"q1": {"～": 1}})
def test_arrays_lists_and_scores_give_the_same(
    scores: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    query_ids = list(dict.fromkeys([*scores, *qrels, "nobody's"]))
    first, *others = map(parts, every_join(qrels, scores, query_ids))
    assert all(other == first for other in others)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(runs, qrels_of)
def test_no_join_changes_what_it_is_given(
    scores: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    lists = {query_id: in_order(row) for query_id, row in scores.items()}
    query_ids = list(scores)
    ranking, doc_ids = as_arrays(lists, query_ids)
    given_ = (scores, qrels, lists, query_ids, ranking.tolist(), doc_ids)
    before = copy.deepcopy(given_)
    judge(ranking, doc_ids, query_ids, Judgements(qrels))
    judge_lists(lists, query_ids, Judgements(qrels))
    of_scores(scores, query_ids, Judgements(qrels))
    assert (scores, qrels, lists, query_ids, ranking.tolist(), doc_ids) == before
    # and in the same order, which == of dictionaries does not see
    assert [list(row) for row in scores.values()] == [list(row) for row in before[0].values()]
    assert [list(row) for row in qrels.values()] == [list(row) for row in before[1].values()]


@pytest.mark.parametrize("seed", range(3))
def test_long_generated_runs_join_the_same_in_blocks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = generated(700 + seed, 60)
    query_ids = list(data.qrels)
    whole, *others = map(parts, every_join(data.qrels, data.scores, query_ids))
    assert all(other == whole for other in others)
    monkeypatch.setattr("retrieval_bench.metrics.judged._CHUNK_ELEMENTS", 1)
    in_blocks = every_join(data.qrels, data.scores, query_ids)[:2]
    assert [parts(run) for run in in_blocks] == [whole] * 2


def test_pairs_that_share_a_place_in_the_table_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = generated(710, 60)
    query_ids = [*data.qrels, "nobody's"]
    expected = parts(every_join(data.qrels, data.scores, query_ids)[3])
    for bits in (1, 3, 9):
        monkeypatch.setattr("retrieval_bench.metrics.judged._MOST_BITS", bits)
        assert parts(every_join(data.qrels, data.scores, query_ids)[0]) == expected


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(runs, qrels_of, st.randoms(use_true_random=False))
def test_some_of_the_queries_in_any_order_join_the_same(
    scores: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], random: Random
) -> None:
    query_ids = list(dict.fromkeys([*qrels, *scores]))
    random.shuffle(query_ids)
    query_ids = query_ids[: random.randint(0, len(query_ids))]
    first, *others = map(parts, every_join(qrels, scores, query_ids))
    assert all(other == first for other in others)


def test_a_judgement_of_one_query_is_none_of_another() -> None:
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(200)}
    lists = {f"q{i}": [f"d{j}" for j in range(200)] for i in range(200)}
    ranking, doc_ids = as_arrays(lists, qrels)
    hits = judge(ranking, doc_ids, list(qrels), Judgements(qrels)).judged
    assert hits.row.tolist() == list(range(200))
    assert hits.rank.tolist() == list(range(1, 201))


def test_the_order_of_judgements_and_queries_is_free() -> None:
    qrels = {"q1": {"a": 1, "b": 2}, "q2": {"a": 0}}
    lists = {"q1": ["b", "x", "a"], "q2": ["a"]}
    straight = judge_lists(lists, ["q1", "q2"], Judgements(qrels))
    turned = {"q2": {"a": 0}, "q1": {"b": 2, "a": 1}}
    assert parts(judge_lists(lists, ["q1", "q2"], Judgements(turned))) == parts(straight)
    other = judge_lists(lists, ["q2", "q1"], Judgements(qrels))
    assert other.judged.row.tolist() == [0, 1, 1]
    assert other.judged.grade.tolist() == [0, 2, 1]


def test_one_joined_run_by_hand() -> None:
    qrels = {"q": {"a": 2, "b": 0, "c": 1, "n": -1, "far": 3}}
    run = judge_lists({"q": ["x", "b", "n", "a"]}, ["q", "none"], Judgements(qrels))
    assert run.judged.row.tolist() == [0, 0]
    assert run.judged.rank.tolist() == [2, 4]
    assert run.judged.grade.tolist() == [0, 2]
    assert run.lengths.tolist() == [4, 0]
    assert run.n_judged.tolist() == [4, 0]
    assert run.ideal.row.tolist() == [0, 0, 0, 0, 0]
    assert run.ideal.rank.tolist() == [1, 2, 3, 4, 5]
    assert run.ideal.grade.tolist() == [3, 2, 1, 0, 0]
    assert run.n_queries == 2
    assert [run.n_relevant(rel).tolist() for rel in (1, 2, 3, 4)] == [
        [3, 0],
        [2, 0],
        [1, 0],
        [0, 0],
    ]
    assert run.relevant(1).rank.tolist() == [4]
    assert run.relevant(1, 3).rank.tolist() == []
    assert run.ideal.within(2).grade.tolist() == [3, 2]


def test_grades_are_a_matrix_of_the_depth_asked_for() -> None:
    run = judge_lists(
        {"q1": ["b", "x", "a"], "q2": []}, ["q1", "q2"], Judgements({"q1": {"a": 1, "b": 2}})
    )
    assert run.grades(2).tolist() == [[2, 0], [0, 0]]
    assert run.grades(4).tolist() == [[2, 0, 1, 0], [0, 0, 0, 0]]
    assert run.grades(4).dtype == np.int32


def test_a_document_that_stands_again_is_marked_from_the_second_time_on() -> None:
    run = judge_lists({"q": ["a", "x", "a", "b", "x", "a"]}, ["q"], Judgements({"q": {"a": 1}}))
    assert run.judged.rank.tolist() == [1, 3, 6]
    assert run.judged.repeated.tolist() == [False, True, True]
    assert run.lengths.tolist() == [6]


def test_lists_may_be_any_sequence_and_are_not_needed_for_every_query() -> None:
    lists: dict[str, Any] = {"q1": ("a", "b"), "q2": np.array(["b"]), "other": ["a"]}
    run = judge_lists(lists, ["q1", "q2", "q3"], Judgements({"q1": {"b": 1}, "q2": {"b": 1}}))
    assert run.judged.rank.tolist() == [2, 1]
    assert run.lengths.tolist() == [2, 1, 0]


@pytest.mark.parametrize("grade", [1.0, 0.5, "1", None, True, np.float64(1), np.True_])
def test_a_grade_that_is_no_whole_number_is_told_with_its_query_and_document(grade: int) -> None:
    with pytest.raises(DataError) as caught:
        Judgements({"q": {"a": 1}, "질의": {"b": 1, "문서": grade}})
    assert caught.value.given == f"grade {grade!r} of document '문서', query '질의'"
    assert "whole numbers" in caught.value.accepted
    assert caught.value.fix


def test_whole_numbers_of_numpy_are_grades() -> None:
    grades = {"a": np.int64(2), "b": np.int8(1)}
    judgements = Judgements({"q": grades})  # type: ignore[dict-item]
    assert judgements.ideal.tolist() == [2, 1]


def test_judgements_are_grouped_by_query_with_the_highest_first() -> None:
    judgements = Judgements({"q1": {"a": 0, "b": 3, "c": -7, "d": 1}, "empty": {}, "q2": {"a": 2}})
    assert judgements.starts.tolist() == [0, 4, 4, 5]
    assert judgements.ideal.tolist() == [3, 1, 0, 0, 2]
    assert judgements.n_judged.tolist() == [3, 0, 1]
    assert judgements.rows(["q2", "nobody's", "q1"]).tolist() == [2, -1, 0]


def test_judgements_are_made_once_for_many_runs() -> None:
    judgements = Judgements({"q": {"a": 1, "b": 1}})
    for docs in itertools.permutations("abx"):
        run = judge_lists({"q": docs}, ["q"], judgements)
        ranking, doc_ids = as_arrays({"q": list(docs)}, ["q"])
        assert parts(judge(ranking, doc_ids, ["q"], judgements)) == parts(run)
        assert [docs[rank - 1] for rank in run.judged.rank.tolist()] == [
            d for d in docs if d != "x"
        ]


def test_the_generator_s_single_precision_is_numpy_s() -> None:
    with np.errstate(over="ignore"):
        assert [single(score) for score in EDGES] == np.array(EDGES).astype(np.float32).tolist()
