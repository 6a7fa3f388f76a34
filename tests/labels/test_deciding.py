"""What is shown of the systems by the queries judged so far."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_labels.decide.deciding import decide, level, sentence
from retrieval_bench_labels.label import Pair
from tests.builders.pools import graded, judged, pool_of, two


def test_a_clear_difference_is_decided_long_before_the_end_but_not_before_the_first_query() -> None:
    pool = pool_of(two())
    (pair,) = decide(pool, {}).pairs
    assert (pair.verdict, pair.difference, pair.ci95) == (Verdict.UNDECIDED, None, None)
    found = decide(pool, judged(pool, 12))
    assert found.pairs[0].verdict is Verdict.BETTER
    assert found.drawn == 12
    assert found.done
    assert found.worth == 0
    assert re.fullmatch(
        r"On these 40 questions themselves b scores higher than a, by 0\.\d{3} to [01]\.\d{3} in "
        r"nDCG@2\.",
        sentence(found, found.pairs[0]),
    )


def test_how_many_more_is_told_from_the_fifth_query_on() -> None:
    lists = two()
    mixed = {
        "a": lists["a"],
        "b": {q: docs if at % 2 else docs[::-1] for at, (q, docs) in enumerate(lists["b"].items())},
    }
    pool = pool_of(mixed)
    assert decide(pool, judged(pool, 4)).pairs[0].more is None
    found = decide(pool, judged(pool, 5)).pairs[0]
    if found.verdict.open:
        assert found.more is not None
        few, about, many = found.more
        assert 1 <= few <= about <= many <= 35


def test_all_queries_give_the_exact_difference_whatever_lies_outside_of_the_pool() -> None:
    pool = pool_of(two(6))
    (pair,) = decide(pool, judged(pool, 6)).pairs
    assert pair.exact
    assert pair.difference == pytest.approx(1.0)
    assert pair.ci95 == pytest.approx((1.0, 1.0))
    more = graded({Pair(query.id, "elsewhere"): 1 for query in pool.queries})
    (pair,) = decide(pool, {**judged(pool, 6), **more}).pairs
    assert pair.difference == pytest.approx(1.0)


def test_of_these_questions_no_system_is_called_better_once_all_is_known() -> None:
    for lists in (two(6), {name: two(6)[name] for name in ("b", "a")}):
        pool = pool_of(lists)
        found = decide(pool, judged(pool, 6))
        told = sentence(found, found.pairs[0])
        assert told == "On these 6 questions themselves b scores higher than a, by 1.000 in nDCG@2."
    pool = pool_of({"a": two(5)["a"], "c": two(5)["a"]})
    found = decide(pool, judged(pool, 5))
    assert sentence(found, found.pairs[0]) == (
        "On these 5 questions themselves a and c score the same."
    )


def test_equal_lists_need_no_judgement() -> None:
    lists = two(5)
    pool = pool_of({"a": lists["a"], "c": lists["a"]})
    found = decide(pool, {})
    assert found.unchanging == 5
    assert found.pairs[0].verdict is Verdict.EQUIVALENT
    assert found.pairs[0].difference == 0.0


def test_queries_count_in_the_order_drawn() -> None:
    pool = pool_of(two())
    grades = judged(pool, 12)
    third = pool.queries[2]
    del grades[Pair(third.id, third.documents[0])]
    found = decide(pool, grades, futures=False)
    assert (found.drawn, found.out_of_turn, found.waiting) == (2, 9, third.id)


def test_what_was_judged_before_the_draw_is_known_exactly() -> None:
    pool = pool_of(two(6))
    known = replace(
        pool, queries=tuple(replace(q, known=at < 4) for at, q in enumerate(pool.queries))
    )
    found = decide(known, judged(pool, 4), futures=False)
    assert (found.known, found.drawn) == (4, 0)
    # Four of six differ by 1, the others by no more: the mean is above 0 whatever they are.
    assert found.pairs[0].verdict is Verdict.BETTER
    assert decide(known, judged(pool, 3), futures=False).known == 3


def test_several_pairs_share_the_chance_of_error() -> None:
    lists = two()
    pool = pool_of({**lists, "c": lists["a"]})
    found = decide(pool, judged(pool, 20), futures=False)
    assert [(p.a, p.b) for p in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [p.verdict for p in found.pairs] == [
        Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE,
    ]  # fmt: skip


def test_one_system_has_nothing_to_compare_with() -> None:
    pool = pool_of({"a": two(3)["a"]})
    assert decide(pool, {}).pairs == ()
    assert decide(pool, {}).done


def test_all_orders_of_a_pool_share_five_percent() -> None:
    assert level(1) == pytest.approx(0.04)
    assert sum(level(at) for at in range(1, 10_000)) == pytest.approx(0.05, abs=1e-5)


@pytest.mark.slow
@pytest.mark.long
def test_no_verdict_is_wrong_more_often_than_promised() -> None:
    """Systems that are equal in truth, looked at after every query."""
    rng = np.random.default_rng(3)
    n, wrong = 40, 0
    for seed in range(60):
        ids = [f"q{at:02}" for at in range(n)]
        better = rng.permutation(np.repeat([True, False], n // 2))
        good = {q: [f"g{q}", f"x{q}"] for q in ids}
        bad = {q: [f"x{q}", f"g{q}"] for q in ids}
        a = {q: (bad if up else good)[q] for q, up in zip(ids, better, strict=True)}
        b = {q: (good if up else bad)[q] for q, up in zip(ids, better, strict=True)}
        pool = pool_of({"a": a, "b": b}, seed)
        said = {
            decide(pool, judged(pool, at), futures=False).pairs[0].verdict for at in range(1, n)
        }
        wrong += bool(said & {Verdict.BETTER, Verdict.WORSE})
    assert wrong <= 6
