"""Queries in groups: nobody is lost, equals stay together, labels say what is inside."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from retrieval_bench import compare
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.types import Dataset, Document, Qrels, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_explain.groupings import DIMENSIONS, Grouping, check_names, dimensions, grouped
from retrieval_bench_explain.slices import slicings


def queries(*metadata: Any, key: str = "tags") -> list[Query]:
    """One for each value of ``key``; ``...`` leaves the key out."""
    return [
        Query(f"q{i}", "text", metadata={} if value is ... else {key: value})
        for i, value in enumerate(metadata)
    ]


def texts(*given: str) -> list[Query]:
    return [Query(f"q{i}", text) for i, text in enumerate(given)]


def slices(
    by: str, given: list[Query], qrels: Qrels | None = None, most: int = 20
) -> dict[str, list[int]]:
    found = grouped(by, given, qrels or {}, most=most)
    labels = [label for label, _ in found.groups]
    assert len(set(labels)) == len(labels)
    assert all(rows for _, rows in found.groups)
    return dict(found.groups)


def test_where_truth_is_by_rule_no_query_has_no_relevant_document() -> None:
    asked = queries({"any": "x"}, {"any": "y"}, key="expect")
    data = build_dataset("ruled", [Document("a", "x y")], asked, None)
    found = grouped("relevant", asked, data.qrels, most=20)
    assert (found.groups, found.notes) == ((), ("Truth is by rules: no document is judged.",))


# -- by value ------------------------------------------------------------------------------------


def test_a_query_counts_in_each_of_its_tags_and_one_without_in_none() -> None:
    given = queries(["a", "b"], ["b", "b"], [], ..., "c")
    assert slices("tags", given) == {"b": [0, 1], "a": [0], "c": [4], "(none)": [2, 3]}
    assert (
        "A query that has several counts in each of them."
        in grouped("tags", given, {}, most=20).notes
    )
    given = queries("b", "a", "c", "c")
    assert list(slices("tags", given)) == ["c", "a", "b"]
    assert grouped("tags", queries("a", "a", "b", "b"), {}, most=20).notes == ()
    found = grouped("tags", queries(..., []), {}, most=20)
    assert found == Grouping("tags", "tag", (), ("No query has a tag.",))


def test_the_source_is_the_first_key_that_is_there() -> None:
    given = [Query("q0", "t", metadata={"domain": "x", "source_ds": "s"}), *queries(...)]
    assert slices("source", given) == {"s": [0], "(none)": [1]}
    assert grouped("source", given, {}, most=20).what == "source (metadata.source_ds)"
    assert grouped("source", queries(...), {}, most=20).groups == ()


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("news", ["news"]),
        ("", ["(none)"]),
        (None, ["(none)"]),
        (True, ["true"]),
        (3, ["3"]),
        (0.5, ["0.5"]),
        ([2, 2.0, 1e300], ["1e+300", "2"]),
        ([1, "x"], ["1", "x"]),
        (("x",), ["x"]),
        ({"level": "hard", "of": None}, ["level: hard"]),
        ("뉴스", ["뉴스"]),
    ],
)
def test_any_metadata_value_is_a_label(value: Any, labels: list[str]) -> None:
    given = queries(value, "other", key="key")
    assert sorted(set(slices("key", given)) - {"other"}) == labels


def test_many_values_leave_the_smallest_together_and_a_query_counts_once_in_the_rest() -> None:
    given = queries(*(f"v{i:02}" for i in range(30) for _ in range(30 - i)), key="key")
    found = grouped("key", given, {}, most=20)
    assert len(found.groups) == 20
    label, rows = found.groups[-1]
    assert label == "(11 others)"
    assert len(rows) == sum(range(1, 12))
    assert "The 11 smallest of 30 are one slice together." in found.notes
    given = queries("a", "a", "b", ["c", "d"], [])
    assert slices("tags", given, most=4) == {
        "a": [0, 1],
        "b": [2],
        "(2 others)": [3],
        "(none)": [4],
    }
    assert len(slices("tags", given, most=5)) == 5
    assert grouped("key", queries(*"abcdee", key="key"), {}, most=20).one_by_one
    assert not grouped("key", queries(*"aabbcc", key="key"), {}, most=20).one_by_one


def test_few_numbers_are_labels_many_are_thirds_and_what_is_none_makes_labels_of_all() -> None:
    assert list(slices("year", queries(1, 2, 2, 3, key="year"))) == ["2", "1", "3"]
    given = queries(..., *(2000 + i for i in range(9)), None, key="year")
    assert slices("year", given) == {
        "2000 to 2002": [1, 2, 3],
        "2003 to 2005": [4, 5, 6],
        "2006 to 2008": [7, 8, 9],
        "(none)": [0, 10],
    }
    given = queries(*range(9), float("nan"), key="key")
    assert "nan" in slices("key", given)
    given = queries(*range(9), True, key="key")
    assert "true" in slices("key", given)


# -- by length -----------------------------------------------------------------------------------


def test_lengths_are_words_in_thirds_that_are_as_even_as_ties_allow() -> None:
    given = texts(*(" ".join(["word"] * n) for n in (1, 2, 3, 4, 5, 9)))
    assert slices("length", given) == {
        "1-2 words": [0, 1],
        "3-4 words": [2, 3],
        "5-9 words": [4, 5],
    }
    assert grouped("length", given, {}, most=20).what == "length in words"
    given = texts("한국어", "한국어 검색", "한국어 검색 성능")
    assert list(slices("length", given)) == ["1 word", "2 words", "3 words"]
    given = texts(*(["w"] * 5 + ["w w"] * 5 + ["w w w"] * 5))
    assert [len(rows) for rows in slices("length", given).values()] == [5, 5, 5]
    given = texts(*(["w"] * 9 + ["w w"] * 1 + ["w w w"] * 2))
    assert [len(rows) for rows in slices("length", given).values()] == [9, 3]


@pytest.mark.parametrize("unit", ["日本語の", "中文查询", "ภาษาไทย"])
def test_scripts_without_blanks_count_characters(unit: str) -> None:
    given = texts(unit, unit + " " + unit, unit * 3)
    n = len(unit)
    labels = [f"{n} characters", f"{2 * n} characters", f"{3 * n} characters"]
    assert list(slices("length", given)) == labels


def test_composed_and_decomposed_letters_are_equally_long() -> None:
    composed = "がぎぐ"
    given = texts(composed, unicodedata.normalize("NFD", composed))
    assert slices("length", given) == {"3 characters": [0, 1]}


def test_equal_lengths_are_never_torn_apart_and_nobody_is_lost() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        lengths = rng.integers(1, int(rng.integers(2, 12)), n)
        found = slices("length", texts(*("w " * int(size) for size in lengths)))
        assert sorted(at for rows in found.values() for at in rows) == list(range(n))
        assert len(found) <= 3
        spans = [(lengths[rows].min(), lengths[rows].max()) for rows in found.values()]
        assert all(before[1] < after[0] for before, after in pairwise(spans))
        shown = [f"{low}-{high} words" if low < high else f"{low} words" for low, high in spans]
        shown = ["1 word" if label == "1 words" else label for label in shown]
        assert list(found) == shown


# -- by number of relevant documents -------------------------------------------------------------


def _relevant(*numbers: int) -> dict[str, list[int]]:
    qrels = {
        f"q{i}": {"not": 0, "bad": -1} | {f"d{j}": 1 + j % 2 for j in range(n)}
        for i, n in enumerate(numbers)
    }
    return slices("relevant", texts(*("t" for _ in numbers)), qrels)


def test_relevant_documents_are_counted_by_grade_or_in_thirds_where_there_are_many() -> None:
    assert _relevant(1, 3, 0, 2, 4, 1, 1, 1, 9) == {
        "none relevant": [2],
        "1 relevant": [0, 5, 6, 7],
        "2-3 relevant": [1, 3],
        "4 or more relevant": [4, 8],
    }
    assert _relevant(1, 2, 10, 20, 30, 40) == {
        "1-2 relevant": [0, 1],
        "10-20 relevant": [2, 3],
        "30-40 relevant": [4, 5],
    }
    assert list(_relevant(1, 1, 4, 4)) == ["1 relevant", "4 or more relevant"]


# -- names ---------------------------------------------------------------------------------------


def test_a_name_that_is_no_key_is_refused_with_near_ones() -> None:
    given = tuple(queries("x", key="topic"))
    data = Dataset("mine", None, given, {"q0": {"d": 1}}, "test", None, "f")
    check_names([*DIMENSIONS, "topic"], data)
    with pytest.raises(ConfigError) as raised:
        check_names(["topics"], data)
    assert raised.value.render().splitlines() == [
        "slices by 'topics'",
        "  where: queries of mine",
        "  accepted: did you mean topic? all: length, relevant, source, tags, topic",
        "  do: name some of them, or none for all that there are",
    ]


def test_no_queries_give_no_groups() -> None:
    for by in DIMENSIONS:
        assert slices(by, []) == {}


def shop(*filters: dict[str, Any] | None) -> Dataset:
    """Four documents of two tenants; a query for each of ``filters``."""
    texts = ("red apples", "green apples", "blue apples", "no fruit at all")
    documents = [
        Document(f"d{i}", text, metadata={"tenant": "ab"[i % 2], "year": 2020 + i})
        for i, text in enumerate(texts)
    ]
    asked = [
        Query(f"q{i}", "apples", filter=None if given is None else parse_filter(given))
        for i, given in enumerate(filters, start=1)
    ]
    qrels = {"q1": {"d0": 1}, "q2": {"d1": 1}, "q3": {"d2": 1}}
    return build_dataset("shop", documents, asked, qrels, language="en")


def test_slices_by_filter_and_by_selectivity() -> None:
    dataset = shop({"tenant": "a"}, {"tenant": "b", "year": {"gte": 2021}}, None)
    assert dimensions(dataset)[-2:] == ("filter", "selectivity")
    by_filter = grouped("filter", dataset.queries, dataset.qrels, most=9)
    assert by_filter.groups == (("tenant", [0]), ("tenant + year", [1]), ("(none)", [2]))
    by_share = grouped(
        "selectivity", dataset.queries, dataset.qrels, most=9, filtering=dataset.filtering
    )
    assert by_share.groups == (("up to 50%", [0, 1]), ("(none)", [2]))
    once = Protocol(rounds=1, warm_up_s=0.0)
    comparison = compare(["bm25", "bm25"], dataset, k=3, protocol=once).comparison
    found = slicings(comparison.groups[0], dataset, ["selectivity"])
    assert [one.label for one in found[0].slices] == ["up to 50%", "(none)"]
    assert dimensions(shop(None, None, None))[-1] == "relevant"
