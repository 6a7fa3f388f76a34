"""What the files of each format hold of a dataset, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import export_dataset
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.types import Document, Message, Qrels, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench_exchange.formats.squad import paragraph_id
from tests.builders.outgoing import DOCUMENTS, QRELS, QUERIES, ROWS, dataset, held_by, refused

SEVERAL: Qrels = {"q1": {"congés": 1, "연차": 2}, "질문-2": {"연차": 0}, "q3": {"报销": 3}}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestPlain:
    def test_metadata_filters_and_flags_come_back(self, tmp_path: Path) -> None:
        queries = [
            replace(QUERIES[0], filter=parse_filter({"page": {"lte": 3}})),
            Query("질문 🙂", '\t"두" 줄\n', metadata={"metadata": {"deep": 1}, "tags": ["x"]}),
            Query("q4", "hello", metadata={"answerable": False}),
        ]
        qrels = {"q1": {"congés": 2}, "질문 🙂": {"연차": -1, "gone": 1}}
        data = dataset(queries, qrels, unit_key=None)
        made = export_dataset(data, "plain", tmp_path / "out")
        back = load_dataset(tmp_path / "out")
        assert back.queries == tuple(queries)
        assert back.fingerprint == data.fingerprint
        assert made.lost == ()

    @pytest.mark.parametrize("to", ["plain", "scienceqa"])
    def test_nothing_need_be_judged_yet(self, tmp_path: Path, to: str) -> None:
        queries = [*QUERIES, Query("q4", "hello", metadata={"answerable": False})]
        data = build_dataset("new", DOCUMENTS, queries, None, split="dev")
        export_dataset(data, to, tmp_path / "out")
        back = load_dataset(tmp_path / "out", "dev")
        assert back.qrels == {}
        assert [(query.id, query.answerable) for query in back.queries] == [
            (query.id, query.answerable) for query in queries
        ]


class TestRows:
    def test_quotes_have_a_row_for_each_relevant_document(self, tmp_path: Path) -> None:
        queries = [replace(QUERIES[0], metadata={"answers": ["25", "x"], "tags": ["t"]})]
        queries.append(Query("q4", "hello", metadata={"answerable": False}))
        export_dataset(dataset(queries, {"q1": SEVERAL["q1"]}), "quotes", tmp_path / "out")
        assert lines_of(tmp_path / "out" / "questions.test.jsonl") == [
            {
                "id": "q1",
                "question": "combien de jours ?",
                "answer": ["25", "x"],
                "quote": text,
                "doc_id": id_,
                "metadata": {"tags": ["t"]},
            }
            for id_, text in [("congés", "25 jours."), ("연차", "15일이 주어진다.\n둘째 줄")]
        ] + [
            {
                "id": "q4",
                "question": "hello",
                "answer": "",
                "quote": "",
                "doc_id": "",
                "metadata": {"answerable": False},
            }
        ]
        back = load_dataset(tmp_path / "out")
        assert back.queries == tuple(replace(one, metadata=dict(one.metadata)) for one in queries)
        assert back.warnings == ()

    def test_ragas_has_a_row_for_each_query(self, tmp_path: Path) -> None:
        queries = [replace(QUERIES[0], metadata={"answers": ["25", "x"]}), *QUERIES[1:]]
        made = export_dataset(dataset(queries, SEVERAL), "ragas", tmp_path / "out")
        assert lines_of(tmp_path / "out" / "questions.test.jsonl") == [
            {
                "id": "q1",
                "user_input": "combien de jours ?",
                "reference": "25",
                "reference_contexts": ["25 jours.", "15일이 주어진다.\n둘째 줄"],
                "reference_context_ids": ["congés", "연차"],
            },
            {
                "id": "q3",
                "user_input": "=SUM(报销)",
                "reference_contexts": ["两周"],
                "reference_context_ids": ["报销"],
            },
        ]
        assert made.lost[0] == "1 query without a relevant document in this split"
        assert made.lost[-1] == "all answers but the first of 1 query"

    def test_langsmith_has_an_example_for_each_query(self, tmp_path: Path) -> None:
        talk = (Message("user", "hi"), Message("assistant", "?"), Message("user", "=SUM(报销)"))
        queries = [
            replace(QUERIES[0], metadata={"answers": ["25"]}),
            Query("q3", "=SUM(报销)", talk),
        ]
        qrels = {id_: SEVERAL[id_] for id_ in ("q1", "q3")}
        export_dataset(dataset(queries, qrels), "langsmith", tmp_path / "out")
        first, second = lines_of(tmp_path / "out" / "questions.test.jsonl")
        assert first == {
            "id": "q1",
            "inputs": {"question": "combien de jours ?"},
            "outputs": {
                "answer": "25",
                "contexts": ["25 jours.", "15일이 주어진다.\n둘째 줄"],
                "context_ids": ["congés", "연차"],
            },
        }
        assert second["inputs"]["messages"][1] == {"role": "assistant", "content": "?"}
        back = load_dataset(tmp_path / "out")
        assert back.queries[1].messages == talk
        assert back.qrels == held_by("langsmith", qrels)

    @pytest.mark.parametrize("to", ["beir", "plain", "quotes"])
    def test_a_conversation_of_one_turn_loses_nothing(self, tmp_path: Path, to: str) -> None:
        queries = [Query("q1", "x", (Message("user", "x"),))]
        made = export_dataset(dataset(queries, {"q1": {"연차": 1}}), to, tmp_path / "out")
        assert made.lost == ()

    @pytest.mark.parametrize("to", ROWS)
    def test_ids_alone_are_enough_without_a_corpus(self, tmp_path: Path, to: str) -> None:
        data = build_dataset("ids", None, QUERIES, SEVERAL)
        made = export_dataset(data, to, tmp_path / "out")
        back = load_dataset(tmp_path / "out")
        assert back.documents is None
        assert back.qrels == held_by(to, SEVERAL)
        assert made.files == ("questions.test.jsonl", "dataset.yaml")

    @pytest.mark.parametrize("to", ROWS)
    def test_a_document_without_a_text_is_judged_by_its_id(self, tmp_path: Path, to: str) -> None:
        documents = [Document("blank", " \n"), Document("full", "x")]
        qrels = {"q1": {"blank": 1, "full": 1, "gone": 1}}
        data = build_dataset("blank", documents, QUERIES[:1], qrels)
        made = export_dataset(data, to, tmp_path / "out")
        assert load_dataset(tmp_path / "out").qrels == qrels
        told = "the contexts of 1 query with a relevant document without a text"
        assert (told in made.lost) == (to != "quotes")

    @pytest.mark.parametrize("to", [*ROWS, "scienceqa"])
    def test_units_are_judged_and_quoted_as_a_whole(self, tmp_path: Path, to: str) -> None:
        documents = [Document(id_, id_ * 2, metadata={"page": "p 🙂"}) for id_ in "ab"]
        data = build_dataset("units", documents, QUERIES[:1], {"q1": {"p 🙂": 1}}, unit_key="page")
        export_dataset(data, to, tmp_path / "out")
        back = load_dataset(tmp_path / "out")
        assert (back.qrels, back.unit_of) == (data.qrels, data.unit_of)
        if to == "quotes":
            (row,) = lines_of(tmp_path / "out" / "questions.test.jsonl")
            assert row["quote"] == "aa\nbb"

    def test_answers_keep_their_texts_and_wrong_ones_stay_out(self, tmp_path: Path) -> None:
        answers = [
            {"text": "25", "answer_start": 0},
            {"id": "a", "answer": "26", "label": "FAIL"},
            {"id": "b", "answer": "twenty-five", "label": "PASS"},
            7,
        ]
        queries = [replace(QUERIES[0], metadata={"answers": answers}), *QUERIES[1:]]
        made = export_dataset(dataset(queries), "quotes", tmp_path / "out")
        back = load_dataset(tmp_path / "out")
        assert back.queries[0].metadata["answers"] == ["25", "twenty-five"]
        assert made.lost[-2:] == (
            "all but the text of 2 answers",
            "2 answers without a text, or labelled as wrong",
        )

    def test_texts_that_would_be_read_as_lists_are_refused_all_at_once(
        self, tmp_path: Path
    ) -> None:
        queries = [
            Query("a", "[{1: 2}]", metadata={"answers": ["[1, 2]"]}),
            Query("b", "[{", metadata={"answers": ["[1, 2"]}),
        ]
        told = refused(tmp_path, "ragas", dataset(queries, {"a": {"연차": 1}, "b": {"연차": 1}}))
        assert [fault.partition(";")[0] for fault in told] == [
            "queries: query 'a': text '[{1: 2}]' would be read as the turns of a conversation",
            "queries: query 'a': answer '[1, 2]' would be read as a list",
        ]


class TestScienceqa:
    def test_its_files_are_those_of_the_competition(self, tmp_path: Path) -> None:
        documents = [Document("d 1", "본문", metadata={"src": "ko", "page": 1}), *DOCUMENTS]
        talk = (Message("user", "hi"), Message("assistant", "?"), Message("user", "x"))
        queries = [
            *QUERIES,
            Query("q4", "x", talk, {"tags": ["t"]}),
            Query("q5", "hello", metadata={"answerable": False}),
        ]
        qrels = {**SEVERAL, "q4": {"d 1": 1}}
        data = build_dataset("sci", documents, queries, qrels)
        made = export_dataset(data, "scienceqa", tmp_path / "out")
        read = lines_of(tmp_path / "out" / "documents.jsonl")
        assert read[0] == {"docid": "d 1", "src": "ko", "content": "본문", "metadata": {"page": 1}}
        truth = json.loads((tmp_path / "out" / "ground_truth.json").read_text(encoding="utf-8"))
        assert truth == {**{"q1": ["congés", "연차"], "q3": ["报销"], "q4": ["d 1"], "q5": []}}
        back = load_dataset(tmp_path / "out")
        assert list(back.documents or ()) == documents
        assert back.queries[3] == queries[3]
        assert [query.answerable for query in back.queries] == [True, True, True, True, False]
        assert made.lost == (
            "the grades above 1 of 2 judgements",
            "1 judgement with a grade below 1",
        )


class TestSquad:
    def test_questions_stand_with_their_paragraphs(self, tmp_path: Path) -> None:
        answers = [
            "jours",
            {"text": "5", "answer_start": 1},
            {"text": "2", "answer_start": 9},
            "26",
        ]
        queries = [
            replace(QUERIES[0], metadata={"answers": answers, "tags": ["t"]}),
            Query("none", "hello", metadata={"answerable": False}),
            Query("named", "x", metadata={"is_impossible": True, "document": "报销", "title": "T"}),
            Query("judged", "y", metadata={"answerable": False}),
        ]
        qrels = {"q1": {"연차": 0, "congés": 1}, "judged": {"연차": 0}}
        made = export_dataset(dataset(queries, qrels), "squad", tmp_path / "out")
        whole = json.loads((tmp_path / "out" / "test.json").read_text(encoding="utf-8"))
        assert [article["title"] for article in whole["data"]] == ["Congés", ""]
        first, second, third = (one for article in whole["data"] for one in article["paragraphs"])
        assert first["context"] == "25 jours."
        assert first["qas"][0] == {
            "id": "q1",
            "question": "combien de jours ?",
            "answers": [
                {"text": "jours", "answer_start": 3},
                {"text": "5", "answer_start": 1},
                {"text": "2", "answer_start": 0},
            ],
            "is_impossible": False,
            "metadata": {"tags": ["t"]},
        }
        assert [[one["id"] for one in place["qas"]] for place in (first, second, third)] == [
            ["q1", "none"], ["judged"], ["named"],
        ]  # fmt: skip
        assert third["qas"][0]["is_impossible"] is True
        assert third["qas"][0]["metadata"] == {"title": "T"}
        assert made.lost[-1] == "1 answer that the paragraph does not contain"
        back = load_dataset(tmp_path / "out")
        assert {query.id: query.answerable for query in back.queries} == {
            "q1": True, "none": False, "named": False, "judged": False,
        }  # fmt: skip

    def test_what_was_squad_comes_back_the_same(self, tmp_path: Path) -> None:
        export_dataset(dataset(qrels=QRELS), "squad", tmp_path / "one")
        first = load_dataset(tmp_path / "one")
        made = export_dataset(first, "squad", tmp_path / "two")
        assert made.lost == ()
        back = load_dataset(tmp_path / "two")
        assert back.fingerprint == first.fingerprint
        assert back.queries == first.queries

    def test_documents_of_one_text_become_one(self, tmp_path: Path) -> None:
        documents = [Document("a", "same", "A"), Document("b", "same", "B"), Document("c", "x")]
        data = build_dataset("twins", documents, QUERIES[:2], {"q1": {"a": 1}, "질문-2": {"b": 1}})
        made = export_dataset(data, "squad", tmp_path / "out")
        back = load_dataset(tmp_path / "out")
        assert len(back.documents or ()) == 2
        assert {tuple(of) for of in back.qrels.values()} == {(paragraph_id("same"),)}
        assert made.lost == ("the ids of documents", "1 document with the text of another one")

    def test_what_it_cannot_hold_is_refused_all_at_once(self, tmp_path: Path) -> None:
        qrels = {**SEVERAL, "q3": {"gone": 1}}
        told = refused(tmp_path, "squad", dataset(qrels=qrels))
        assert [fault.partition(";")[0] for fault in told] == [
            "judgements: query 'q1': it has 2 relevant documents",
            "judgements: query 'q3': relevant document 'gone' is not in the corpus",
        ]

    def test_units_and_datasets_without_texts_are_refused(self, tmp_path: Path) -> None:
        data = build_dataset("ids", None, QUERIES[:1], {"q1": {"a": 1}})
        assert [one.partition(";")[0] for one in refused(tmp_path, "squad", data)] == [
            "documents: no corpus"
        ]
        documents = [Document("c1", "a", metadata={"page": "p1"})]
        units = build_dataset("u", documents, QUERIES[:1], {"q1": {"p1": 1}}, unit_key="page")
        assert "judgements are on units, by 'page'" in refused(tmp_path, "squad", units)[0]
