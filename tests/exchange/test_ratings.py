"""Ratings of Quepid and of _rank_eval: as judgements of a run, and as a dataset."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.data import load_dataset, read_qrels
from tests.builders.files import json_lines, save, save_all
from tests.builders.refusals import dataset_faults

CASE = "query,docid,rating\nnotes de frais,d1,2\nnotes de frais,d2,0\n연차 휴가,d1,1\n年假,,\n"
BOOK = "query,docid,Ana,Bo,チエ\nleave,d1,3,2,3\nleave,d2,0,1,\nleave,d3,,,\nfare,d1,2,,\n"
DOCUMENTS = [{"_id": "d1", "text": "Holidays"}, {"_id": "d2", "title": "Rail", "text": "Fares"}]


def rated(*pairs: tuple[str, Any], index: str = "articles") -> list[dict[str, Any]]:
    return [{"_index": index, "_id": id_, "rating": grade} for id_, grade in pairs]


def body(*requests: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"requests": requests, **more}, ensure_ascii=False)


def match(text: str) -> dict[str, Any]:
    return {"query": {"match": {"body": {"query": text}}}}


LEAVE = {"id": "q1", "request": match("연차 휴가"), "ratings": rated(("d1", 2), ("d2", 0))}


class TestQuepid:
    @pytest.mark.parametrize("name", ["case.csv", "case.csv.gz"])
    def test_ratings_of_a_case_judge_runs_by_the_text_of_a_query(
        self, tmp_path: Path, name: str
    ) -> None:
        content = CASE.encode()
        path = save(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
        expected = {"notes de frais": {"d1": 2, "d2": 0}, "연차 휴가": {"d1": 1}}
        assert read_qrels(path) == expected

    def test_a_folder_is_recognised_and_its_corpus_is_found(self, tmp_path: Path) -> None:
        files = {"case_7.csv": CASE, "corpus.jsonl": json_lines(DOCUMENTS)}
        data = load_dataset(save_all(tmp_path, files), "case_7")
        assert [query.text for query in data.queries] == ["notes de frais", "연차 휴가", "年假"]
        assert [query.id for query in data.evaluated] == ["notes de frais", "연차 휴가"]
        assert [document.contents for document in data.documents or ()] == [
            "Holidays",
            "Rail Fares",
        ]

    def test_several_judges_are_combined_as_quepid_does(self, tmp_path: Path) -> None:
        path = save(tmp_path / "test.csv", BOOK)
        # The lowest of the best three, a mean of two that is rounded up, and one alone.
        assert read_qrels(path) == {"leave": {"d1": 2, "d2": 1}, "fare": {"d1": 2}}
        (warning,) = load_dataset(tmp_path).warnings
        assert warning.startswith("pairs on which judges differ, rated as Quepid does: 2 (")

    @pytest.mark.parametrize(
        ("ratings", "grade"),
        [("3,3,3", 3), ("3,3,0", 0), ("1,2,3", 1), ("0,1,", 1), ("1,1,", 1), ("0,0,1", 0)],
    )
    def test_combinations(self, tmp_path: Path, ratings: str, grade: int) -> None:
        path = save(tmp_path / "book.csv", f"query,docid,a,b,c\nq,d,{ratings}\n")
        assert read_qrels(path) == {"q": {"d": grade}}

    def test_the_best_three_of_four_count(self, tmp_path: Path) -> None:
        path = save(tmp_path / "book.csv", "query,docid,a,b,c,d\nq,d,0,2,3,3\n")
        assert read_qrels(path) == {"q": {"d": 2}}

    def test_one_judge_is_chosen_by_the_column_of_grades(self, tmp_path: Path) -> None:
        files = {
            "book.csv": BOOK,
            "dataset.yaml": "format: quepid\nsplits: {test: book.csv}\n"
            "columns: {judgements: {grade: Bo}}\n",
        }
        data = load_dataset(save_all(tmp_path, files))
        assert data.qrels == {"leave": {"d1": 2, "d2": 1}}
        assert data.warnings == ()

    def test_the_blank_that_guards_a_formula_is_taken_off_and_no_other(
        self, tmp_path: Path
    ) -> None:
        rows = 'query,docid,rating\n" =1+1",d1,1\n" two",d1,1\n-x, @d,1\n'
        path = save(tmp_path / "case.csv", rows)
        assert read_qrels(path) == {"=1+1": {"d1": 1}, " two": {"d1": 1}, "-x": {"@d": 1}}

    def test_all_faults_come_at_once(self, tmp_path: Path) -> None:
        rows = "q,d1,good\nq,d2,1.5\nq,,1\n ,d1,1\nq,d3,2\nq,d3,1\nq,d4\n"
        save(tmp_path / "test.csv", "query,docid,rating\n" + rows)
        told = dataset_faults(tmp_path)
        assert [fault.split(":")[1] for fault in told] == ["2", "3", "4", "5", "8", "7"]
        assert "rating is 'good'; accepted: a number such as 0, 1, 2" in told[0]
        assert "rating is 1.5; accepted: a whole number" in told[1]
        assert "docid is ''" in told[2]
        assert "query is ' '" in told[3]
        assert "2 columns in 'q d4'; accepted: 3" in told[4]
        assert "has grade 1 here and 2 at" in told[5]

    def test_a_file_without_ratings_is_a_fault(self, tmp_path: Path) -> None:
        path = save(tmp_path / "case.csv", "query,docid,rating\nq,,\n")
        with pytest.raises(DataError, match="no judgements"):
            read_qrels(path)

    def test_columns_without_a_meaning_are_refused(self, tmp_path: Path) -> None:
        files = {
            "test.csv": CASE,
            "dataset.yaml": "format: quepid\nsplits: {test: test.csv}\n"
            "columns: {rows: {answer: x}, queries: {id: x}}\n",
        }
        with pytest.raises(ConfigError) as caught:
            load_dataset(save_all(tmp_path, files))
        assert "`columns: {queries: ...}` has no meaning for format quepid" in str(caught.value)
        assert "accepted: documents, judgements" in str(caught.value)


class TestRankEval:
    @pytest.mark.parametrize("name", ["test.json", "test.json.gz"])
    def test_a_body_judges_runs_by_the_id_of_a_request(self, tmp_path: Path, name: str) -> None:
        empty = {"id": "q2", "request": match("x"), "ratings": []}
        content = body(LEAVE, empty, metric={"dcg": {"k": 10}}).encode()
        path = save(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
        assert read_qrels(path) == {"q1": {"d1": 2, "d2": 0}}

    def test_judgements_in_json_with_a_query_called_requests_are_not_one(
        self, tmp_path: Path
    ) -> None:
        path = save(tmp_path / "qrels.json", '{"requests": ["d1"], "x": {"d2": 1}}')
        assert read_qrels(path) == {"requests": {"d1": 1}, "x": {"d2": 1}}

    @pytest.mark.parametrize(
        "query",
        [
            {"match": {"body": "물은 언제"}},
            {"match_phrase": {"body.ko": {"query": "물은 언제", "slop": 1}}},
            {"multi_match": {"query": "물은 언제", "fields": ["title", "body"]}},
            {"query_string": {"query": "물은 언제"}},
            {"bool": {"must": [{"match": {"a": "물은 언제"}}, {"match": {"b": "물은 언제"}}],
                      "filter": {"term": {"lang": "ko"}}}},
        ],
    )  # fmt: skip
    def test_the_text_is_what_the_request_searches_for(
        self, tmp_path: Path, query: dict[str, Any]
    ) -> None:
        request = {"id": 1, "request": {"query": query, "size": 5}, "ratings": rated(("d1", 1))}
        files = {"test.json": body(request), "corpus.jsonl": json_lines(DOCUMENTS)}
        data = load_dataset(save_all(tmp_path, files))
        assert [(query.id, query.text) for query in data.queries] == [("1", "물은 언제")]
        assert data.n_documents == 2

    @pytest.mark.parametrize(
        "template",
        [
            {"inline": {"query": {"match": {"{{field}}": {"query": "{{q}}"}}}}},
            {"source": '{"query": {"match": {"{{field}}": "{{ q }}"}}, "size": {{size}}}'},
        ],
    )
    def test_a_template_is_filled_with_the_parameters(
        self, tmp_path: Path, template: dict[str, Any]
    ) -> None:
        request = {
            "id": "q1",
            "template_id": "t",
            "params": {"field": "body", "q": 'le "grand" \\ large', "size": 5},
            "ratings": rated(("d1", 1)),
        }
        templates = [{"id": "t", "template": template}]
        save(tmp_path / "test.json", body(request, templates=templates))
        assert load_dataset(tmp_path).queries[0].text == 'le "grand" \\ large'

    def test_the_place_of_the_text_may_be_named(self, tmp_path: Path) -> None:
        script = {"id": "stored", "params": {"q": "leave"}, "template_id": "elsewhere"}
        files = {
            "a.json": body({**script, "ratings": rated(("d1", 1))}),
            "dataset.yaml": "format: rank_eval\nsplits: {test: a.json}\n"
            "columns: {queries: {text: params.q}}\n",
        }
        assert load_dataset(save_all(tmp_path, files)).queries[0].text == "leave"

    def test_all_faults_come_at_once(self, tmp_path: Path) -> None:
        two = {"bool": {"should": [{"match": {"a": "x"}}, {"match": {"b": "y"}}]}}
        requests: Sequence[Any] = [
            {"id": "q1", "request": {"query": two}, "ratings": rated(("d1", 1.5))},
            {"id": "q2", "request": {"query": {"match_all": {}}}, "ratings": rated(("", 1))},
            {"request": match("x"), "ratings": {"d1": 1}},
            {"id": "q4", "request": match("x"), "ratings": rated(("d1", 1))},
            {"id": "q5", "request": match("x"), "ratings": rated(("d1", 1), index="b")},
            7,
        ]
        save(tmp_path / "test.json", body(*requests))
        told = dataset_faults(tmp_path)
        assert [fault.removeprefix("test.json: ").split(": ")[0] for fault in told] == [
            "requests[0].ratings[0]",
            "requests[0]",
            "requests[1].ratings[0]",
            "requests[1]",
            "requests[2]",
            "requests[2].ratings",
            "requests[4].ratings[0]",
            "requests[5]",
        ]
        assert "rating is 1.5" in told[0]
        assert "it searches for 'x', 'y'; accepted: one text" in told[1]
        assert "no text that is known" in told[3]
        assert "in the index 'b', and in 'articles'" in told[6]
        with pytest.raises(DataError, match=r"rating is 1\.5"):
            read_qrels(tmp_path / "test.json")
