"""`title: null`: the texts of documents without their titles, in each format that names columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.data import load_dataset
from tests.builders.files import save_all

UNTITLED = "columns: {documents: {title: null}}\n"
TREC_TEXT = "<DOC>\n<DOCNO>d</DOCNO>\n<TITLE>Leave</TITLE>\n<TEXT>25 days</TEXT>\n</DOC>\n"
JSON = '{"_id": "d", "title": "Leave", "text": "25 days"}\n'
TABLE = "id,title,text\nd,Leave,25 days\n"
QRELS = "query-id\tcorpus-id\tscore\nq\td\t1\n"
QUERIES = {"_id": '{"_id": "q", "text": "days"}\n', "id": '{"id": "q", "text": "days"}\n'}
JUDGED = '{"query_id": "q", "doc_id": "d", "grade": 1}\n'
FORMATS = {
    "beir": ("format: beir\n", {"corpus.jsonl": JSON, "qrels/test.tsv": QRELS}, "_id"),
    "plain": (
        "format: plain\nfiles: {documents: d.csv, queries: queries.jsonl}\nsplits: {test: j}\n",
        {"d.csv": TABLE, "j": JUDGED},
        "id",
    ),
    "trec": (
        "format: trec\nfiles: {documents: d.txt, queries: q.tsv}\nsplits: {test: qrels.tsv}\n",
        {"d.txt": TREC_TEXT, "q.tsv": "q\tdays\n", "qrels.tsv": QRELS},
        "id",
    ),
    "trec, JSON": (
        "format: trec\nfiles: {documents: d.jsonl, queries: q.tsv}\nsplits: {test: qrels.tsv}\n",
        {"d.jsonl": JSON, "q.tsv": "q\tdays\n", "qrels.tsv": QRELS},
        "id",
    ),
    "quotes": (
        "format: quotes\nfiles: {documents: c.jsonl}\nsplits: {test: t.jsonl}\n",
        {"c.jsonl": JSON, "t.jsonl": '{"question": "days", "quote": "25 days"}\n'},
        "id",
    ),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.needs("retrieval_bench_exchange")
def test_titles_are_left_out_and_the_fingerprint_says_so(tmp_path: Path, name: str) -> None:
    described, files, key = FORMATS[name]
    files = files | {"queries.jsonl": QUERIES[key]}
    made = [
        load_dataset(save_all(tmp_path / folder, {**files, "dataset.yaml": described + columns}))
        for folder, columns in (("with", ""), ("without", UNTITLED))
    ]
    titles = [[(one.id, one.title, one.text) for one in data.documents or ()] for data in made]
    assert titles == [[("d", "Leave", "25 days")], [("d", "", "25 days")]]
    assert made[0].fingerprint != made[1].fingerprint


def test_a_column_that_must_be_there_cannot_be_null(tmp_path: Path) -> None:
    described, files, _ = FORMATS["plain"]
    columns = "columns: {documents: {text: null}}\n"
    folder = save_all(tmp_path, {**files, "dataset.yaml": described + columns})
    with pytest.raises(ConfigError, match=r"'columns.documents.text'"):
        load_dataset(folder)
