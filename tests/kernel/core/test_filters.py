"""The vocabulary of filters, and which documents fit."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval_bench.core.filters import Filter, FilterError, parse_filter

DOCUMENT = {
    "tenant": "a",
    "since": "2026-03-01",
    "year": 2026,
    "price": 9.5,
    "open": True,
    "tags": ["red", "가을"],
    "author": {"country": "FR"},
    "nothing": None,
}


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"tenant": "a"}, True),
        ({"tenant": "b"}, False),
        ({"tenant": {"eq": "a"}}, True),
        ({"tenant": {"in": ["b", "a"]}}, True),
        ({"tenant": {"in": ["b"]}}, False),
        ({"since": {"gte": "2026-01-01"}}, True),
        ({"since": {"gte": "2026-01-01", "lt": "2026-03-01"}}, False),
        ({"since": {"gt": "2026-03-01"}}, False),
        ({"since": {"lte": "2026-03-01"}}, True),
        ({"year": 2026.0}, True),
        ({"price": {"gt": 9}}, True),
        ({"price": {"gt": "9"}}, False),  # a text is no number
        ({"year": "2026"}, False),
        ({"open": True}, True),
        ({"open": 1}, False),
        ({"tags": "가을"}, True),
        ({"tags": {"in": ["blue", "red"]}}, True),
        ({"author.country": "FR"}, True),
        ({"nothing": "a"}, False),
        ({"missing": {"lt": 3}}, False),
        ({"not": {"missing": {"lt": 3}}}, True),
        ({"tenant": "a", "year": 2025}, False),
        ({"or": [{"tenant": "b"}, {"year": 2026}]}, True),
        ({"and": [{"tenant": "a"}, {"not": {"year": 2025}}]}, True),
        ({"not": {"tenant": "a"}}, False),
    ],
)
def test_which_documents_fit(given: dict[str, Any], fits: bool) -> None:
    assert parse_filter(given).matches(DOCUMENT) is fits


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "is no filter"),
        ("tenant", "'tenant' is no filter"),
        ({"tenant": {"near": 3}}, "tenant: 'near' is no comparison: eq, in, gt, gte, lt, lte"),
        ({"tenant": {}}, "nothing is no comparison"),
        ({"tenant": None}, "tenant: None is no text, number, true or false"),
        ({"tenant": ["a"]}, "tenant: write {in: [...]}"),
        ({"tenant": {"in": "a"}}, "tenant: 'in' takes a list"),
        ({"tenant": {"in": []}}, "tenant: 'in' takes a list"),
        ({"or": {"tenant": "a"}}, "'or' takes a list of filters"),
        ({"not": []}, "[] is no filter"),
        ({"year": float("nan")}, "year: nan is no text"),
        ({3: "a"}, "the field 3 is no text"),
    ],
)
def test_what_is_no_filter(given: Any, told: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(given)
    assert told in str(caught.value)


def test_two_ways_of_writing_one_filter_are_equal() -> None:
    one = parse_filter({"a": 1, "b": {"in": ["x", "y"]}})
    other = parse_filter({"and": [{"b": {"in": ["y", "x"]}}, {"a": {"eq": 1}}]})
    assert one == other
    assert len({one, other}) == 1
    assert one != parse_filter({"or": [{"b": {"in": ["y", "x"]}}, {"a": 1}]})
    assert parse_filter({"a": 1}) != parse_filter({"a": "1"})
    assert parse_filter({"a": 1}) != parse_filter({"a": True})


def test_groups_that_say_nothing_of_their_own_are_no_difference() -> None:
    plain = parse_filter({"a": 1, "b": 2, "c": 3})
    nested = parse_filter({"and": [{"and": [{"a": 1}, {"or": [{"b": 2}]}]}, {"c": 3}, {"a": 1}]})
    assert plain == nested
    assert parse_filter({"not": {"a": 1, "b": 2}}) != parse_filter(
        {"not": {"or": [{"a": 1}, {"b": 2}]}}
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"a": 1, "b": {"gte": 1, "lt": 3}}, True),
        ({"and": [{"a": 1}, {"a": 2}]}, False),
        ({"or": [{"a": 1}]}, False),
        ({"not": {"a": 1}}, False),
    ],
)
def test_whether_names_say_all_of_it(given: dict[str, Any], named: bool) -> None:
    assert parse_filter(given).is_named is named


def test_fields_and_values_for_templates() -> None:
    found: Filter = parse_filter(
        {
            "tenant": "a",
            "since": {"gte": "2026", "lt": "2027"},
            "and": [{"kind": {"in": ["x", "y"]}}],
            "not": {"secret": True},
        }
    )
    assert found.fields == ("kind", "secret", "since", "tenant")
    assert found.values == {
        "tenant": "a",
        "since.gte": "2026",
        "since.lt": "2027",
        "kind": ["x", "y"],
    }
