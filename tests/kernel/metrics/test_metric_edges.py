"""Inputs at the edge of what numbers and names can hold: a value, or a clean error."""

from __future__ import annotations

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.metrics import Judgements, judge_lists, parse_metric


def value_of(name: str, ranking: str, grades: dict[str, int]) -> float:
    run = judge_lists({"q": list(ranking)}, ["q"], Judgements({"q": grades}))
    return float(parse_metric(name).compute(run)[0])


@pytest.mark.parametrize("grade", [2**31, -(2**31) - 1, 10**30])
def test_a_grade_that_is_too_large_is_refused_with_its_place(grade: int) -> None:
    with pytest.raises(DataError, match=r"document 'a', query 'q'"):
        Judgements({"q": {"b": 1, "a": grade}})


@pytest.mark.parametrize(
    "name",
    ["nDCG@" + "9" * 5000, "AP(rel=" + "9" * 5000 + ")", "P@" + "9" * 400, "Judged@" + "9" * 20],
)
def test_a_number_that_no_ranking_reaches_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="1,000,000,000"):
        parse_metric(name)


def test_the_largest_cut_off_works_and_a_leading_zero_is_no_other_one() -> None:
    assert value_of("P@1000000000", "a", {"a": 1}) == 1e-9
    assert parse_metric("nDCG@010") == parse_metric("nDCG@10")


@pytest.mark.parametrize("p", ["0.00001", "0.1", ".95", "0.123456789012345"])
def test_a_probability_prints_back_without_an_exponent(p: str) -> None:
    metric = parse_metric(f"RBP(p={p})@7")
    assert "e" not in str(metric)
    assert parse_metric(str(metric)) == metric


@pytest.mark.parametrize("highest", [31, 1024, 2000])
def test_err_of_a_long_scale_is_small_and_no_overflow(highest: int) -> None:
    assert value_of(f"ERR(highest={highest})@3", "a", {"a": 1}) == 2.0 ** -min(highest, 1074) * (
        highest <= 1074
    )


def test_a_count_of_another_tool_is_no_name_here() -> None:
    with pytest.raises(ConfigError):
        parse_metric("hits@5")


def test_bpref_counts_a_repeated_document_once() -> None:
    assert value_of("Bpref", "xxa", {"a": 1, "b": 1, "x": 0}) == 0.0


def test_a_metric_cannot_change_the_judgements() -> None:
    run = judge_lists({"q": ["a"]}, ["q"], Judgements({"q": {"a": 1}}))
    with pytest.raises(ValueError, match="read-only"):
        run.ideal.grade[0] = 5
