"""How far two lists can be apart: bounds that hold whatever is judged, and that are reached."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics import Judgements, judge_lists, parse_metric
from retrieval_bench.metrics.bounds import bounds

NAMES = ["nDCG@3", "RR@3", "P@3", "R@3", "Success@3", "AP@3", "nDCG(gain=exp)@3"]


def values(name: str, a: list[str], b: list[str], grades: dict[str, int]) -> float:
    judged = Judgements({"q": grades or {"": 0}})
    both = [parse_metric(name).compute(judge_lists({"q": one}, ["q"], judged))[0] for one in (a, b)]
    return float(both[1] - both[0])


documents = st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True)


@pytest.mark.parametrize("name", NAMES)
@given(
    a=documents,
    b=documents,
    grades=st.dictionaries(st.sampled_from("abcdefghi"), st.integers(0, 3)),
)
def test_no_judgement_moves_a_difference_out_of_its_bounds(
    name: str, a: list[str], b: list[str], grades: dict[str, int]
) -> None:
    low, high = bounds(parse_metric(name), a, b)
    assert low - 1e-12 <= values(name, a, b, grades) <= high + 1e-12


@pytest.mark.parametrize("name", ["nDCG@3", "RR@3", "P@3", "R@3", "Success@3"])
@pytest.mark.parametrize(
    ("a", "b"), [("abc", "bad"), ("abc", "def"), ("ab", "abc"), ("", "abc"), ("abcd", "abce")]
)
def test_bounds_are_reached(name: str, a: str, b: str) -> None:
    pool = sorted({*a, *b})
    reached = [
        values(name, list(a), list(b), dict(zip(pool, grades, strict=True)))
        for grades in product((0, 1), repeat=len(pool))
    ]
    low, high = bounds(parse_metric(name), list(a), list(b))
    assert min(reached) == pytest.approx(low)
    assert max(reached) == pytest.approx(high)


def test_what_lies_behind_the_cut_changes_nothing() -> None:
    assert bounds(parse_metric("nDCG@2"), list("abc"), list("abd")) == (0.0, 0.0)


def test_a_metric_of_no_known_range_cannot_decide() -> None:
    with pytest.raises(ConfigError, match="known range, such as nDCG@10"):
        bounds(parse_metric("Utility"), ["a"], ["b"])
