"""Placeholders of requests: a closed list, types kept, and nothing else touched."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.secrets import Filled
from retrieval_bench_retrievers.http.templates import (
    GONE,
    Template,
    UrlTemplate,
    unplaced,
    values_of,
)

VALUES: dict[str, Any] = {
    "text": 'a "b" {k}',
    "k": 5,
    "embedding": [0.5, -1.0],
    **values_of(parse_filter({"tenant": "a b", "year": {"gte": 2020}, "open": True})),
}


def render(raw: Any) -> Any:
    return Template(raw, "body").render(VALUES)


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        ("{k}", 5),
        ("{embedding}", [0.5, -1.0]),
        ("{filter.year.gte}", 2020),
        ("{filter.open}", True),
        ("{filter}", {"tenant": "a b", "year": {"gte": 2020}, "open": True}),
        ("{text}", 'a "b" {k}'),
    ],
)
def test_a_placeholder_alone_keeps_its_type(raw: str, made: Any) -> None:
    assert render(raw) == made
    assert type(render(raw)) is type(made)


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        ("top {k} of {filter.tenant}", "top 5 of a b"),
        ("[{embedding}]", "[[0.5, -1.0]]"),
        ("{filter.open}!", "true!"),
        ("in {filter}", 'in {"tenant": "a b", "year": {"gte": 2020}, "open": true}'),
    ],
)
def test_in_a_longer_text_values_are_written_out(raw: str, made: str) -> None:
    assert render(raw) == made


@pytest.mark.parametrize(
    "raw",
    [
        "{!edismax qf=text}",
        "{ Get { Article { id } } }",
        "{query}",
        "{TEXT}",
        "{ text }",
        "{text",
        "text}",
        "{}",
        "{filter.}",
        "{{#toJson}}a{{/toJson}}",
    ],
)
def test_any_other_brace_is_left_alone(raw: str) -> None:
    assert render(raw) == raw


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        ("{{text}}", "{text}"),
        ("{{filter.tenant}} {{k}}", "{filter.tenant} {k}"),
        ("{{{k}}}", "{{k}}"),
        ("{targetHits:{k}}nearestNeighbor(e,q)", "{targetHits:5}nearestNeighbor(e,q)"),
        ("{!knn f=v topK={k}}{embedding}", "{!knn f=v topK=5}[0.5, -1.0]"),
    ],
)
def test_two_braces_write_one(raw: str, made: str) -> None:
    assert render(raw) == made


def test_a_value_is_never_looked_at_for_placeholders() -> None:
    assert render(["{text}", "{text}."]) == ['a "b" {k}', 'a "b" {k}.']


def test_keys_are_left_alone() -> None:
    assert render({"{text}": ["{k}"]}) == {"{text}": [5]}


def test_what_came_from_the_environment_is_left_alone() -> None:
    raw = Filled("{text} and {text}", [(0, 6)])
    assert render({"a": [raw]}) == {"a": ['{text} and a "b" {k}']}
    url = Filled("http://h/{k}?q={text}", [(0, 12)])
    assert UrlTemplate(url).render(VALUES) == "http://h/{k}?q=a%20%22b%22%20%7Bk%7D"


def test_what_came_from_the_environment_makes_no_placeholder_with_what_stands_beside_it() -> None:
    assert render(Filled("{text}", [(0, 3)])) == "{text}"


def test_what_has_no_value_goes_with_what_holds_it() -> None:
    raw = {
        "query": "{text}",
        "filter": {"and": [{"term": {"x": "{filter.x}"}}, {"term": {"t": "{filter.tenant}"}}]},
        "rest": {"range": {"gte": "since {filter.x}"}},
        "empty": {},
        "none": [],
    }
    assert render(raw) == {
        "query": VALUES["text"],
        "filter": {"and": [{"term": {"t": "a b"}}]},
        "empty": {},
        "none": [],
    }
    assert render(["{filter.x}"]) is GONE


def test_an_item_of_which_only_constants_remain_goes_too() -> None:
    gone = {"key": "x", "match": {"value": "{filter.x}"}}
    kept = {"field": "e", "k": "{k}", "filter": {"x": "{filter.x}"}}
    assert render({"must": [gone, kept, {"a": 1}]}) == {"must": [{"field": "e", "k": 5}, {"a": 1}]}
    assert render({"must": [gone]}) is GONE
    assert render({"range": {"gte": "{filter.x}", "lt": 9}}) == {"range": {"lt": 9}}


def test_a_url_is_encoded_and_loses_parameters_without_a_value() -> None:
    url = UrlTemplate("http://h/{filter.tenant}/s?x={filter.x}&q={text}&k={k}&z=a?b")
    assert url.render(VALUES) == "http://h/a%20b/s?q=a%20%22b%22%20%7Bk%7D&k=5&z=a?b"
    assert url.in_path == {"filter.tenant"}
    assert UrlTemplate("http://h/s?x={filter.x}").render(VALUES) == "http://h/s"


def test_literal_templates_have_no_placeholders() -> None:
    assert Template("{text} {{k}}", "", literal=True).render(VALUES) == "{text} {{k}}"
    assert UrlTemplate("http://h/{text}?{k}", literal=True).render(VALUES) == "http://h/{text}?{k}"


@pytest.mark.parametrize("name", ["k", "text", "filter.tenant"])
def test_a_placeholder_without_quotes_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Template({"a": [{"size": {name: None}}]}, "body")
    assert f'"{{{name}}}"' in str(caught.value)
    assert "body.a.0.size" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "names", "left"),
    [
        ({"a": 1}, {"filter.a"}, []),
        ({"a": 1, "b": 2}, {"filter.a"}, ["b"]),
        ({"a": {"gte": 1, "lt": 2}}, {"filter.a.gte"}, ["a.lt"]),
        ({"a": {"in": [1, 2]}}, {"filter.a"}, []),
        ({"or": [{"a": 1}, {"b": 2}]}, {"filter.a", "filter.b"}, ["one in"]),
        ({"not": {"a": 1}}, {"filter.a"}, ["one in"]),
        ({"and": [{"a": 1}, {"a": 2}]}, {"filter.a"}, ["one in"]),
        ({"not": {"a": 1}}, {"filter"}, []),
    ],
)
def test_conditions_that_nothing_carries_are_found(
    written: Any, names: set[str], left: list[str]
) -> None:
    found = unplaced(parse_filter(written), frozenset(names))
    assert len(found) == len(left)
    assert all(one.startswith(start) for one, start in zip(found, left, strict=True))
