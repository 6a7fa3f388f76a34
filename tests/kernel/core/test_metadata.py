"""Metadata as columns: what fits is what fits one by one, whatever the values are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.filters import RANGES, parse_filter
from retrieval_bench.core.metadata import Filtering, MetadataTable

VALUES: list[Any] = [
    *(0, 1, -1, 2**53 + 1, 2**60, 1.5, float("inf"), True, False, None),
    *("", "a", "b", "ab", "a\0", "a ", "2026-01-01", "가을", "\U0001f40d", "1"),
    *(["a", "x"], [1, 2], (), {"in": 1}, {"a"}),
]


def table(documents: list[dict[str, Any]], *fields: str) -> MetadataTable:
    made = MetadataTable(fields)
    for metadata in documents:
        made.add(metadata)
    return made


@pytest.mark.parametrize("operator", ["eq", "in", *RANGES])
def test_a_mask_is_what_fits_one_by_one(operator: str) -> None:
    draw = random.Random(4)
    documents = [{"v": draw.choice(VALUES)} for _ in range(300)] + [{}]
    columns = table(documents, "v")
    given = [v for v in VALUES if isinstance(v, str | bool | int | float) and v != float("inf")]
    for value in given:
        wanted = parse_filter({"v": {operator: [value, "a"] if operator == "in" else value}})
        expected = [wanted.matches(metadata) for metadata in documents]
        assert columns.mask(wanted).tolist() == expected, wanted.source


def test_groups_and_fields() -> None:
    documents = [{"a": i % 3, "b": str(i % 2)} for i in range(12)]
    columns = table(documents, "a", "b")
    for given in (
        {"a": 1, "b": "0"},
        {"or": [{"a": 1}, {"b": "1"}]},
        {"not": {"a": {"in": [0, 2]}}},
        {"and": [{"a": {"gte": 1}}, {"not": {"b": "1"}}]},
    ):
        wanted = parse_filter(given)
        assert columns.mask(wanted).tolist() == [wanted.matches(one) for one in documents]
    with pytest.raises(ContractError, match="'c', which was not announced"):
        columns.mask(parse_filter({"c": 1}))


def test_another_order_and_documents_that_come_later() -> None:
    documents = [{"v": i} for i in range(5)]
    columns = table(documents, "v")
    wanted = parse_filter({"v": {"gte": 3}})
    assert columns.reordered([4, 0, 3, 1, 2]).mask(wanted).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]
    columns.add({"v": 9})
    assert columns.mask(wanted).tolist() == [False, False, False, True, True, True]
    assert not len(table([], "v").mask(wanted))


def test_units_fit_where_one_of_their_documents_does() -> None:
    documents = [{"v": i} for i in range(4)]
    units = {"d0": "u", "d1": "u", "d2": "w", "d3": "w"}
    filtering = Filtering(table(documents, "v"), list(units), units)
    wanted = parse_filter({"v": 1})
    assert filtering.fits(wanted, ["u", "w", "gone"]) == [True, False, False]
    assert filtering.share(wanted) == 0.25


def test_long_texts_take_no_array() -> None:
    documents = [{"v": "x" * 60_000}, *({"v": str(i)} for i in range(1_000))]
    wanted = parse_filter({"v": {"lt": "5"}})
    found = table(documents, "v").mask(wanted)
    assert found.tolist() == [wanted.matches(one) for one in documents]
    assert found.dtype == np.bool_
