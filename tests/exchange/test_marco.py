"""Tables of MS MARCO and LoTTE, which have no header."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from retrieval_bench.data import load_dataset
from tests.builders.files import save_all
from tests.builders.refusals import faults_of

YAML = (
    "format: marco\nfiles: {documents: collection.tsv, queries: queries.dev.tsv}\n"
    "splits: {test: qrels.dev.tsv}\n"
)
PASSAGES = '0\tThe presence of "communication" amid scientific minds\n7\tno quotes, one " mark\n'
QUERIES = "1048585\twhat is paula deen's brother\n2\t연차 휴가\n"
QRELS = "1048585\t0\t7\t1\n2\t0\t0\t1\n"
SCORE = "query-id\tcorpus-id\tscore\n"


def folder(path: Path, **files: str) -> Path:
    named = {
        "dataset.yaml": YAML,
        "collection.tsv": PASSAGES,
        "queries.dev.tsv": QUERIES,
        "qrels.dev.tsv": QRELS,
    }
    return save_all(path, named | {name.replace("_", "."): text for name, text in files.items()})


class TestDatasets:
    def test_passages_queries_and_judgements_need_no_header(self, tmp_path: Path) -> None:
        data = load_dataset(folder(tmp_path))
        assert [(one.id, one.text) for one in data.documents or ()] == [
            ("0", 'The presence of "communication" amid scientific minds'),
            ("7", 'no quotes, one " mark'),
        ]
        assert [query.text for query in data.queries] == [
            "what is paula deen's brother",
            "연차 휴가",
        ]
        assert data.qrels == {"1048585": {"7": 1}, "2": {"0": 1}}

    def test_whole_documents_have_a_url_and_a_title(self, tmp_path: Path) -> None:
        table = "7\thttp://x\tA title\tThe text.\n0\thttp://y\t\tAnother.\n"
        data = load_dataset(folder(tmp_path / "a", collection_tsv=table))
        first, second = data.documents or ()
        assert (first.title, first.text, first.metadata) == (
            "A title",
            "The text.",
            {"url": "http://x"},
        )
        assert second.title == ""
        yaml = YAML + "columns: {documents: {title: null}}\n"
        untitled = load_dataset(folder(tmp_path / "b", collection_tsv=table, dataset_yaml=yaml))
        assert [one.title for one in untitled.documents or ()] == ["", ""]
        assert untitled.fingerprint != data.fingerprint

    def test_lotte_names_its_answers_in_json_lines(self, tmp_path: Path) -> None:
        answers = '{"qid": 2, "query": "연차 휴가", "answer_pids": [0, 7]}\n'
        data = load_dataset(folder(tmp_path, qrels_dev_tsv=answers))
        assert data.qrels == {"2": {"0": 1, "7": 1}}

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            (
                {"collection_tsv": "pid\tpassage\n" + PASSAGES},
                "collection.tsv:1: 'pid\\tpassage' is a header; accepted: no header; `format: ",
            ),
            (
                {"queries_dev_tsv": "qid\tquery\n" + QUERIES},
                "queries.dev.tsv:1: 'qid\\tquery' is a header",
            ),
            (
                {"collection_tsv": PASSAGES + "8\tone\ttwo\n"},
                "collection.tsv:3: 3 columns in '8\\tone\\ttwo'; accepted: id<TAB>text, or",
            ),
            (
                {"qrels_dev_tsv": '{"qid": 2, "answer_pids": "0"}\n'},
                "qrels.dev.tsv:1: answer_pids is '0'; accepted: a list of document ids",
            ),
            (
                {"dataset_yaml": YAML + "columns: {documents: {id: pid}}\n"},
                "columns.documents: tables without a header have no names",
            ),
        ],
        ids=["documents with a header", "queries with a header", "three columns", "LoTTE", "names"],
    )
    def test_what_is_no_such_table_is_told_by_its_place(
        self, tmp_path: Path, files: Mapping[str, str], says: str
    ) -> None:
        assert says in "\n".join(faults_of(load_dataset, folder(tmp_path, **files)))
