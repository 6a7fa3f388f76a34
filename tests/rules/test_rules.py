"""Rules as queries say them: their names, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Query, by_rule
from retrieval_bench.data import build_dataset, dataset_fingerprint
from retrieval_bench.data.faults import Faults
from retrieval_bench_rules.rules import Rule, in_time, is_forbidden, rules_of


def read(metadata: dict[str, Any]) -> tuple[Rule, ...]:
    faults = Faults()
    found = rules_of(Query("q", "?", metadata=metadata), faults.of("here"))
    faults.raise_if_any("rules", "here")
    return found


def dataset(*metadata: dict[str, Any], corpus: bool = True, **more: Any) -> Dataset:
    queries = [Query(f"q{n}", "words", metadata=given) for n, given in enumerate(metadata, 1)]
    documents = [Document("a", "red apples"), Document("b", "green pears")] if corpus else None
    return build_dataset("toy", documents, queries, None, **more)


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        ("leave", 'any "leave"'),
        (404, 'any "404"'),
        (3.5, 'any "3.5"'),
        ({"any": "leave"}, 'any "leave"'),
        ({"any": ["a", "b"], "words": True}, 'any "a" or "b" as words'),
        ({"all": ["a", "b"], "source": "x/*"}, 'all "a" and "b" source "x/*"'),
        ({"matches": "[0-9]+ days", "id": 7}, 'matches "[0-9]+ days" id "7"'),
        ({"id": "faq-12", "within": 3}, 'id "faq-12" within 3'),
    ],
)
def test_a_rule_has_a_name_that_says_all_of_it(entry: Any, label: str) -> None:
    assert [rule.label for rule in read({"expect": [entry]})] == [label]
    (forbidden,) = read({"forbid": entry})
    assert forbidden.label == f"not {label}"
    assert is_forbidden(forbidden.label)
    assert not is_forbidden(label)


def test_a_name_says_which_ranks_count() -> None:
    assert in_time('id "x" within 3', (1, 3, 4)) == (1, 3)
    assert in_time('any "within 3"', (1, 4)) == (1, 4)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (["leave"], "a phrase, or an object such as"),
        ({}, "it asks nothing of a hit"),
        ({"within": 3}, "one or more of any, all, matches, source, id"),
        ({"anny": ["x"]}, "unknown key 'anny'; accepted: did you mean any"),
        ({"any": []}, "any is empty"),
        ({"any": [" "]}, "any is ' '; accepted: a text that is not blank"),
        ({"all": [None]}, "all is None"),
        ({"source": True}, "source is True"),
        ({"id": "x", "within": 0}, "within is 0; accepted: a rank, from 1"),
        ({"id": "x", "within": "3"}, "within is '3'"),
        ({"id": "x", "words": True}, "true or false, beside any or all"),
        ({"matches": "("}, "no regular expression"),
        ({"matches": "a*"}, "it matches the empty text, and so every hit"),
        ({"matches": "(a+)+b"}, "may take for ever"),
    ],
)
def test_faults_of_an_entry_say_where_and_what_is_accepted(entry: Any, says: str) -> None:
    with pytest.raises(DataError) as caught:
        read({"expect": ["fine", entry]})
    assert says in str(caught.value)
    assert "query 'q', expect, entry 2" in str(caught.value)


def test_entries_may_stand_in_a_cell_as_json() -> None:
    (rule,) = read({"expect": '[{"source": "a/*"}]'})
    assert rule.source == "a/*"
    with pytest.raises(DataError, match="is no JSON; accepted: a list of entries, as JSON"):
        read({"expect": "[{source: a}]"})
    with pytest.raises(DataError, match=r"'\[1\]'; accepted: a list of entries, as JSON"):
        read({"forbid": "[1]"})  # a phrase, or a list of a number


def test_all_faults_come_at_once() -> None:
    with pytest.raises(DataError) as caught:
        dataset({"expect": [{"any": ""}, "x", "x"]}, {"forbid": [{"within": 1}]})
    assert len(caught.value.faults) == 3
    assert "twice; accepted: each entry once" in str(caught.value)


def test_an_unanswerable_query_has_no_rules() -> None:
    with pytest.raises(DataError, match="flagged unanswerable, and has rules"):
        dataset({"expect": ["x"], "answerable": False})


def test_rules_stand_for_judgements_where_there_are_none() -> None:
    data = dataset({"expect": ["apples"], "forbid": ["pears"]}, {"tags": "none"})
    assert data.judged
    assert [query.id for query in data.evaluated] == ["q1"]
    assert dict(data.qrels["q1"]) == {}  # no document is judged
    assert by_rule(data.qrels)["q1"].slots == {'any "apples"': 1, 'not any "pears"': -1}
    assert not data.without_relevant
    assert not any("nothing is judged" in text for text in data.warnings)


def test_beside_judgements_rules_are_not_read_and_that_is_told() -> None:
    queries = [Query("q1", "words", metadata={"expect": ["apples"]})]
    data = build_dataset("toy", [Document("a", "red")], queries, {"q1": {"a": 1}})
    assert not by_rule(data.qrels)
    assert any("expect or forbid is not read beside judgements: 1" in t for t in data.warnings)


def test_units_are_refused_beside_rules() -> None:
    documents = [Document("c1", "red", metadata={"page": "p"})]
    with pytest.raises(DataError, match="`unit_key` beside truth by rule"):
        build_dataset(
            "toy",
            documents,
            [Query("q1", "?", metadata={"expect": ["red"]})],
            None,
            unit_key="page",
        )


def test_rules_are_part_of_the_fingerprint() -> None:
    first = dataset({"expect": ["apples", "red"]})
    again = dataset({"expect": ["red", "apples"], "tags": ["x"]})
    other = dataset({"expect": ["apples", {"any": ["red"], "words": True}]})
    assert first.fingerprint == again.fingerprint == dataset_fingerprint(first)
    assert first.fingerprint != other.fingerprint
    rebuilt = build_dataset("toy", first.documents, first.queries, first.qrels)
    assert rebuilt.fingerprint == first.fingerprint
