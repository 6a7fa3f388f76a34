"""The checks of a whole dataset, and its fingerprint."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Message, Query
from retrieval_bench.data import build_dataset, dataset_fingerprint
from tests.builders.refusals import faults_of

DOCUMENTS = [
    Document("d1", "Water boils at 100 degrees.", "Water", {"source": "a"}),
    Document("d2", "물은 100도에서 끓는다.", "", {"source": "a"}),
    Document("d3", "L'eau bout à 100 degrés.", "Eau", {"source": "b"}),
]
QUERIES = [
    Query("q1", "boiling water"),
    Query("q2", "hello", metadata={"answerable": False}),
    Query("q3", "not judged"),
    Query("q4", "what then?", (Message("user", "water"), Message("user", "what then?"))),
]
ID_ACCEPTED = "text or a whole number, not blank, without tabs and line breaks"
FLAG = "accepted: grade 0, or a query without the flag"
QRELS = {"q1": {"d1": 2, "d3": 0}, "q4": {"d2": 1}}


def build(
    documents: Any = DOCUMENTS,
    queries: Any = QUERIES,
    qrels: Any = QRELS,
    **kwargs: Any,
) -> Dataset:
    return build_dataset("tiny", documents, queries, qrels, **kwargs)


def test_queries_are_evaluated_unanswerable_or_only_counted() -> None:
    dataset = build()
    assert [query.id for query in dataset.evaluated] == ["q1", "q4"]
    assert [query.id for query in dataset.unanswerable] == ["q2"]
    assert len(dataset.queries) == 4
    assert dataset.n_documents == 3
    assert dataset.warnings == ()


def test_an_unanswerable_query_is_not_evaluated_though_its_documents_are_judged() -> None:
    dataset = build(qrels=QRELS | {"q2": {"d1": 0}})
    assert [query.id for query in dataset.evaluated] == ["q1", "q4"]
    assert [query.id for query in dataset.unanswerable] == ["q2"]


def test_a_dataset_without_a_corpus_serves_external_retrievers() -> None:
    dataset = build(documents=None)
    assert dataset.documents is None
    assert dataset.n_documents == 0
    assert dataset.warnings == ()


def test_all_faults_come_in_one_error() -> None:
    told = faults_of(
        build,
        documents=[*DOCUMENTS, DOCUMENTS[0], "text", Document("", "x")],
        queries=[*QUERIES, QUERIES[0], Query("q9", " \n"), Query("q8", "x", metadata=bad("yes"))],
        qrels={**QRELS, "q7": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 0.5}},
    )
    assert told == (
        "documents: item 3: document id 'd1' again, first at documents: item 0",
        "documents: item 4: 'text'; accepted: retrieval_bench.core.types.Document",
        f"documents: item 5: id is ''; accepted: {ID_ACCEPTED}",
        "queries: item 4: query id 'q1' again, first at queries: item 0",
        "queries: item 6: answerable is 'yes'; accepted: true or false",
        "judgements: query 'q3': grade is 0.5; accepted: a whole number such as 0, 1, 2",
        f"judgements: query 'q2': query 'q2' is flagged unanswerable, but 'd1' is relevant; {FLAG}",
    )


def test_a_query_without_a_text_is_left_out_and_told() -> None:
    """K5: one of them stops no dataset; where there is no other, there is nothing to ask."""
    blank = [Query("q9", " \n"), Query("q10", "")]
    dataset = build(queries=[*QUERIES, *blank], qrels={**QRELS, "q9": {"d1": 1}})
    assert [query.id for query in dataset.queries] == [query.id for query in QUERIES]
    assert dataset.qrels.keys() == build(queries=QUERIES).qrels.keys()
    assert dataset.warnings[0] == (
        "queries with an empty text, left out: 2 (queries: item 4 'q9', queries: item 5 'q10')"
    )
    told = "queries: no queries; accepted: at least one with a text"
    assert told in faults_of(build, queries=blank)


def bad(flag: Any) -> Mapping[str, Any]:
    return {"answerable": flag}


def test_empty_parts_are_faults() -> None:
    assert faults_of(build, documents=[], queries=[], qrels={}) == (
        "documents: no documents; accepted: at least one; leave the file out for no corpus",
        "queries: no queries; accepted: at least one with a text",
        "judgements: no judgements in this split; accepted: at least one",
    )


def test_a_judged_document_outside_of_the_corpus_is_a_counted_warning() -> None:
    dataset = build(qrels={"q1": {"d1": 1, "x1": 1, "x2": 0}})
    (warning,) = dataset.warnings
    assert warning.startswith("judgements on documents that are not in the corpus: 2 (")
    assert warning.endswith("(judgements: query 'q1' 'x1', judgements: query 'q1' 'x2')")
    assert dataset.qrels["q1"]["x1"] == 1


@pytest.mark.parametrize("spelt", ["D1", "d01", " d1", "d1\u200b"])
def test_a_judged_id_that_is_written_differently_is_told(spelt: str) -> None:
    """I1: of documents and of queries, beside the count of those that are not there."""
    told = build(qrels={**QRELS, "q1": {spelt: 1, "d2": 1}}).warnings
    assert any("1 judged document is written otherwise than those of the corpus" in w for w in told)
    told = build(qrels={**QRELS, spelt.replace("d", "q").replace("D", "Q"): {"d1": 1}}).warnings
    assert any("1 judged query is written otherwise than those of the queries" in w for w in told)
    told = build(qrels={**QRELS, "q1": {"e1": 1, "d2": 1}}).warnings
    assert not any("otherwise" in w for w in told)


def test_judgements_of_whole_documents_beside_chunks_are_a_fault_with_its_cause() -> None:
    chunks = [Document("문서1-청크0", "one"), Document("문서2-청크0", "two")]
    (told,) = faults_of(build, documents=chunks, qrels={"q1": {"문서1": 1, "문서2": 1}})
    assert "'문서1' for example: they differ in a number behind: chunks on one side" in told
    assert told.endswith("ids such as '문서1-청크0'; where documents are chunks, `unit_key: NAME` "
                         "says which of their keys is judged")  # fmt: skip


def test_judgements_that_all_miss_the_corpus_are_a_fault() -> None:
    (told,) = faults_of(build, qrels={"q1": {"1": 1, "2": 1}})
    assert "not one judged document is in the corpus, '1' for example" in told
    assert told.endswith("accepted: ids such as 'd1'")


def test_an_empty_document_is_legal_and_counted() -> None:
    dataset = build(documents=[*DOCUMENTS, Document("d4", " ", "only a title")])
    assert dataset.warnings == ("documents with an empty text: 1 (documents: item 3 'd4')",)
    assert dataset.n_documents == 4


def test_judgements_may_be_on_units() -> None:
    dataset = build(qrels={"q1": {"a": 1}}, unit_key="source")
    assert dataset.unit_of == {"d1": "a", "d2": "a", "d3": "b"}
    assert dataset.warnings == ()
    assert dataset_fingerprint(dataset) == dataset.fingerprint


def test_a_document_without_its_unit_is_a_fault() -> None:
    told = faults_of(
        build,
        documents=[*DOCUMENTS, Document("d4", "x")],
        qrels={"q1": {"a": 1}},
        unit_key="source",
    )
    assert told == ("documents: item 3: no 'source'; found: none",)


def test_text_of_wrong_type_in_memory_is_a_fault() -> None:
    wrong: Any = None
    told = faults_of(
        build, documents=[*DOCUMENTS, Document("d4", wrong)], queries=[Query(wrong, "x")]
    )
    assert told[0] == "documents: item 3: text is None; accepted: text"
    assert told[1] == "queries: item 0: id is None; accepted: text"


def test_the_fingerprint_does_not_depend_on_any_order() -> None:
    expected = build().fingerprint
    shuffle = random.Random(3)
    for _ in range(5):
        documents, queries = DOCUMENTS[:], QUERIES[:]
        shuffle.shuffle(documents)
        shuffle.shuffle(queries)
        qrels = {q: dict(reversed(QRELS[q].items())) for q in reversed(QRELS)}
        assert build(documents, queries, qrels).fingerprint == expected


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    # A change of this value is a change of the format: old results are no longer comparable.
    assert build().fingerprint == "bb4425dce8dd834044d2532917998ad7"


def changed(position: int, **change: Any) -> list[Document]:
    documents = DOCUMENTS[:]
    documents[position] = replace(documents[position], **change)
    return documents


@pytest.mark.parametrize(
    "part",
    [
        {"documents": changed(2, id="d9")},
        {"documents": changed(0, text="Water boils at 100 degrees")},
        {"documents": changed(0, title="water")},
        {"documents": changed(0, title="Water Water", text="boils at 100 degrees.")},
        {"documents": DOCUMENTS[:2]},
        {"documents": None},
        {"queries": [replace(QUERIES[0], text="boiling  water"), *QUERIES[1:]]},
        {"queries": [*QUERIES[:3], replace(QUERIES[3], messages=QUERIES[3].messages[1:])]},
        {"queries": [QUERIES[0], *QUERIES[2:]]},
        {"queries": [*QUERIES[:2], replace(QUERIES[2], metadata=bad(False)), QUERIES[3]]},
        {"qrels": {"q1": {"d1": 1, "d3": 0}, "q4": {"d2": 1}}},
        {"qrels": {"q1": {"d1": 2}, "q4": {"d2": 1}}},
        {"qrels": {"q1": {"d1": 2, "d3": 0}, "q3": {"d2": 1}}},
    ],
)
def test_the_fingerprint_changes_with_the_content(part: dict[str, Any]) -> None:
    assert build(**part).fingerprint != build().fingerprint


def test_the_fingerprint_changes_with_the_units() -> None:
    def with_unit_of_second(unit: str) -> Dataset:
        documents = [Document("d1", "x", "", {"u": "d1"}), Document("d2", "y", "", {"u": unit})]
        return build(documents, qrels={"q1": {"d1": 1}}, unit_key="u")

    assert with_unit_of_second("d1").fingerprint != with_unit_of_second("d2").fingerprint


def test_the_fingerprint_leaves_out_what_changes_no_result() -> None:
    expected = build().fingerprint
    tagged = [replace(QUERIES[0], metadata={"tags": ["x"]}), *QUERIES[1:]]
    assert build(queries=tagged).fingerprint == expected
    unjudged = [*QUERIES, Query("q77", "of another split")]
    assert build(queries=unjudged, language="en", split="dev").fingerprint == expected
    assert build(documents=changed(1, metadata={"source": "z"})).fingerprint == expected


def test_a_field_boundary_cannot_move_unnoticed() -> None:
    one = build([Document("d1", "bc", "a")], qrels={"q1": {"d1": 1}})
    other = build([Document("d1", "c", "ab")], qrels={"q1": {"d1": 1}})
    assert one.fingerprint != other.fingerprint


def test_the_fingerprint_is_computed_anew_from_a_dataset() -> None:
    for dataset in (build(), build(documents=None)):
        assert dataset_fingerprint(dataset) == dataset.fingerprint


def test_no_corpus_is_not_an_empty_one() -> None:
    dataset = build(documents=None)
    assert dataset_fingerprint(replace(dataset, documents=())) != dataset.fingerprint


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\u2028b", " ", "\x00"])
def test_an_id_that_no_line_of_a_run_could_hold_is_a_fault(name: str) -> None:
    assert faults_of(build, [*DOCUMENTS, Document(name, "x")])[0].startswith(
        "documents: item 3: id is "
    )


def test_judgements_of_queries_that_are_not_there_are_counted_and_do_not_count() -> None:
    plain, more = (
        build_dataset("x", DOCUMENTS, QUERIES, qrels)
        for qrels in (QRELS, {**QRELS, "PLAIN-2": {"d1": 1, "d2": 2}, "q0": {"nowhere": 1}})
    )
    assert dict(more.qrels) == dict(plain.qrels)
    assert more.fingerprint == plain.fingerprint
    (warning,) = set(more.warnings) - set(plain.warnings)
    assert warning.startswith("judgements of queries that are not among the queries: 3 (")
    assert "'PLAIN-2'" in warning


def test_judgements_of_which_no_query_is_there_are_a_fault() -> None:
    with pytest.raises(
        DataError, match="among the queries, '질문' for example; accepted: ids such as"
    ):
        build_dataset("x", DOCUMENTS, QUERIES, {"질문": {"d1": 1}})
