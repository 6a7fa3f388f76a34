"""Facts on slots: what is lost and what was forbidden, in words and with an exact bound."""

from __future__ import annotations

import pytest

from retrieval_bench.core.notices import Code, is_note, says
from retrieval_bench_rules.facts import facts_of, notices


@pytest.mark.parametrize(
    ("with_hit", "queries", "upper"),
    [(0, 60, 0.0487), (0, 1, 0.95), (1, 60, 0.0766), (3, 10, 0.6066), (10, 10, 1.0)],
)
def test_the_bound_is_that_of_clopper_and_pearson_on_one_side(
    with_hit: int, queries: int, upper: float
) -> None:
    record = {
        f"q{n}": {'not any "x"': [2] if n < with_hit else [], 'any "y"': [1]}
        for n in range(queries)
    }
    forbidden = facts_of(record).forbidden
    assert forbidden is not None
    assert (forbidden.queries, forbidden.with_hit) == (queries, with_hit)
    assert forbidden.upper95 == pytest.approx(upper, abs=5e-5)


def test_none_of_60_is_told_with_its_bound() -> None:
    record = {f"q{n}": {'not any "x"': list[int]()} for n in range(60)}
    (text,) = notices(record, 0, corpus=True)
    assert text == (
        "None of 60 queries with `forbid` had a forbidden hit; at most 4.9 % of such queries do "
        "(exact, one-sided 95 %)."
    )
    assert is_note(text)


def test_what_came_too_late_is_lost_and_says_so() -> None:
    record = {"q1": {'id "a" within 2': [4], 'any "b"': [1, 3]}, "q2": {'not id "c" within 1': [2]}}
    facts = facts_of(record)
    assert (facts.slots, facts.filled) == (2, 1)
    assert [place.text for place in facts.lost] == ['q1: id "a" within 2 (at rank 4)']
    assert facts.forbidden is not None
    assert facts.forbidden.with_hit == 0


def test_many_are_named_in_part() -> None:
    record = {f"q{n}": {'any "x"': list[int]()} for n in range(9)}
    (text,) = notices(record, 0, corpus=True)
    assert text.startswith(
        '9 of 9 slots stayed empty: q0: any "x"; q1: any "x"; q2: any "x"; and 6'
    )


def test_hits_without_a_text_are_a_loud_warning() -> None:
    told = notices({"q": {'any "x"': [1]}}, 3, corpus=True)
    assert "3 hits came without a text, and the corpus does not have them" in told[0]
    assert says(told, Code.NOTHING_FOUND)
