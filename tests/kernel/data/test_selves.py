"""Queries that are documents: which they are, what is told of them, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.notices import Code
from retrieval_bench.core.types import Document, Query, Selves
from retrieval_bench.data import build_dataset, dataset_fingerprint, given_dataset, load_dataset
from retrieval_bench.data.self_queries import left_out, self_hit_warnings, with_self_hits
from tests.builders.debates import IDS, debates, point


def test_a_query_with_the_id_and_text_of_a_document_is_one(tmp_path: Path) -> None:
    data = load_dataset(debates(tmp_path / "ds"))
    assert data.self_hits == "keep"
    assert data.selves == Selves(same=frozenset(IDS))


def test_published_copies_differ_in_a_heading_or_some_words() -> None:
    text = "one two three four five six seven eight nine ten"
    documents = [
        Document("headed", text, title="About numbers"),
        Document("cut", " ".join(text.split()[:5])),
        Document("blanks", text.replace(" ", "\n").upper()),
        Document("other", "nothing of the kind"),
        Document("title", "an abstract of a paper", title=text),
        Document("한글", "사과는 빨갛다"),
    ]
    queries = [Query(one.id, text) for one in documents[:-1]] + [Query("한글", "사과는 빨갛다")]
    data = build_dataset("near", documents, queries, {q.id: {"far": 0, "cut": 0} for q in queries})
    assert data.selves.unlike == {"other"}
    assert data.selves.same == {"headed", "cut", "blanks", "title", "한글"}
    assert data.selves.copies == {"other": "headed"}


def test_a_relevant_document_is_an_answer_and_not_the_query() -> None:
    documents = [Document("1", "apple"), Document("2", "pear")]
    queries = [Query("1", "apple"), Query("q", "pear")]
    data = build_dataset("known items", documents, queries, {"1": {"1": 1}, "q": {"2": 1}})
    assert data.selves == Selves(unlike=frozenset({"1"}))


def test_the_rule_is_in_the_fingerprint_and_can_be_taken_back(tmp_path: Path) -> None:
    kept = load_dataset(debates(tmp_path / "ds"))
    dropped = load_dataset(tmp_path / "ds", self_hits="drop")
    assert dropped.self_hits == "drop"
    assert dropped.fingerprint != kept.fingerprint
    assert dataset_fingerprint(dropped) == dropped.fingerprint
    assert given_dataset(dropped, "test", self_hits="keep").fingerprint == kept.fingerprint
    named = debates(tmp_path / "named", config="format: beir\nself_hits: drop\n")
    assert load_dataset(named).fingerprint == dropped.fingerprint
    assert load_dataset(named, self_hits="keep").fingerprint == kept.fingerprint


def test_no_other_rule_is_taken(tmp_path: Path) -> None:
    folder = debates(tmp_path / "ds", config="format: beir\nself_hits: ignore\n")
    with pytest.raises(ConfigError, match="self_hits"):
        load_dataset(folder)
    with pytest.raises(ConfigError, match="self_hits 'ignore'"):
        load_dataset(debates(tmp_path / "plain"), self_hits="ignore")


@pytest.mark.parametrize("relevant", [True, False])
def test_ids_that_are_equal_by_accident_lose_nothing(relevant: bool) -> None:
    numbers = [str(at) for at in range(8)]
    texts = [f"number {at} of many {'abcdefgh'[at] * 5}" for at in range(8)]
    documents = [Document(one, text) for one, text in zip(numbers, texts, strict=True)]
    asked = texts if relevant else [f"question {'stuvwxyz'[at] * 4}" for at in range(8)]
    queries = [Query(one, text) for one, text in zip(numbers, asked, strict=True)]
    qrels = {one: {one if relevant else "0": 1} for one in numbers}
    data = build_dataset("numbers", documents, queries, qrels)
    with pytest.raises(DataError) as caught:
        with_self_hits(data, "drop")
    assert "8 of the 8 queries with a document of the same id" in caught.value.given
    assert "equal by accident" in str(caught.value.fix)


def test_most_queries_that_find_themselves_are_told_of_with_both_protocols() -> None:
    selves = Selves(same=frozenset("abcd"))
    lists = {query: [query, "x"] for query in "abcdef"}
    (told,) = self_hit_warnings(selves, lists, "abcdef")
    assert getattr(told, "code", None) == Code.SELF_HITS
    for word in ("4 of 6 queries", "trec_eval", "BEIR", "self_hits: drop", "--self-hits drop"):
        assert word in told


@pytest.mark.parametrize(
    ("selves", "lists"),
    [
        (Selves(same=frozenset("ab")), {q: [q] for q in "abcd"}),  # half of them are not most
        (Selves(same=frozenset("abcd")), {q: ["x"] for q in "abcd"}),  # and none is found
        (Selves(same=frozenset("abcd")), {q: [*"0123456789", q] for q in "abcd"}),  # too deep
        (Selves(unlike=frozenset("abcd")), {q: [q] for q in "abcd"}),  # equal by accident
        (Selves(), {q: [q] for q in "abcd"}),
    ],
)
def test_nothing_is_told_where_it_changes_nothing(
    selves: Selves, lists: dict[str, list[str]]
) -> None:
    assert self_hit_warnings(selves, lists, "abcd") == []


def test_copies_under_other_ids_are_told_of_with_what_makes_them_one(tmp_path: Path) -> None:
    data = load_dataset(debates(tmp_path / "ds", query_id=lambda at: f"q{at}"))
    assert data.selves.copies == {f"q{at}": f"t{at}-pro" for at in range(6)}
    lists = {f"q{at}": [f"t{at}-pro"] for at in range(6)}
    (told,) = self_hit_warnings(data.selves, lists, lists)
    assert "'t0-pro' for 'q0'" in told
    assert "give these queries the ids of their documents" in told


def test_what_is_dropped_of_a_run_is_counted_and_answers_are_not() -> None:
    assert left_out(["a", "b"], {"a": {"x": 1}}) == [
        "2 hits with the id of their query left out (self_hits: drop, as BEIR)."
    ]
    (told,) = left_out(["a", "b", "c"], {"a": {"a": 1}})
    assert "1 of them judged relevant, such as that of 'a'" in told
    (told,) = left_out([], {})
    assert "left nothing out" in told
    with pytest.raises(DataError, match="2 of the 3 hits"):
        left_out(["a", "b", "c"], {"a": {"a": 1}, "b": {"b": 2}})


def test_texts_of_one_template_are_not_one_text(tmp_path: Path) -> None:
    data = load_dataset(debates(tmp_path / "ds", text=lambda at: point(5 - at)))
    assert data.selves.unlike == set(IDS)
    assert data.selves.copies == {f"t{at}-pro": f"t{5 - at}-pro" for at in range(6)}
