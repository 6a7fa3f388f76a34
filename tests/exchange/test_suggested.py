"""Folders whose layout is not known: the lines that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.data import load_dataset
from tests.builders.files import save, save_all

TABLE = "id,text\n1,one\n2,two\n"
BODIES = "docno,body\n1,one\n2,two\n"
LINES = '{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n'
ASKED = "q1\tone?\nq2\ttwo?\n"
QUESTIONS = "id,text\nq1,one?\nq2,two?\n"
QRELS = "q1 0 1 1\nq2 0 2 2\n"
GRADES = "query_id,doc_id,grade\nq1,1,1\nq2,2,2\n"


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        (
            "marco",
            {
                "collection.tsv": "1\tone\n2\ttwo\n",
                "queries.dev.tsv": ASKED,
                "qrels.dev.tsv": QRELS.replace(" ", "\t"),
            },
        ),
        ("plain", {"documents.csv": TABLE, "questions.csv": QUESTIONS, "judgements.csv": GRADES}),
        (
            "trec",
            {
                "docs.trec": "<DOC><DOCNO>1</DOCNO>one</DOC>\n<DOC><DOCNO>2</DOCNO>two</DOC>\n",
                "topics.txt": ASKED,
                "qrels.txt": QRELS,
            },
        ),
        (
            "trec",
            {
                "corpus.jsonl": LINES.replace("text", "contents"),
                "queries.tsv": ASKED,
                "qrels.txt": QRELS,
            },
        ),
        ("plain", {"documents.csv": TABLE, "questions.csv": QUESTIONS, "qrels.txt": QRELS}),
        ("trec", {"documents.csv": BODIES, "topics.tsv": ASKED, "qrels.txt": QRELS}),
        (
            "plain",
            {"documents.jsonl": LINES, "queries.tsv": "qid\tquery\n" + ASKED, "qrels.txt": QRELS},
        ),
        (
            "plain",
            {
                "documents.jsonl": LINES,
                "queries.txt": '{"id": "q1", "text": "one?"}\n{"id": "q2", "text": "two?"}\n',
                "qrels.csv": GRADES,
            },
        ),
        (
            "plain",
            {
                "my corpus.csv": BODIES,
                "questions.csv": "qid,question\nq1,one?\nq2,two?\n",
                "relevance.csv": "qid,docno,label\nq1,1,1\nq2,2,2\n",
            },
        ),
        (
            "quotes",
            {
                "corpus.jsonl": LINES.replace("id", "doc_id").replace("text", "contents"),
                "qa.jsonl": '{"qid": "q1", "query": "one?", "retrieval_gt": [["1"]]}\n'
                '{"qid": "q2", "query": "two?", "retrieval_gt": [["2"]]}\n',
            },
        ),
        (
            "quotes",
            {
                "문서.json": '[{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]',
                "faq, 2024.csv": "id,question,context\nq1,one?,one\nq2,two?,two\n",
            },
        ),
    ],
)
def test_a_folder_of_known_names_gets_the_lines_that_read_it(
    tmp_path: Path, kind: str, files: Mapping[str, str]
) -> None:
    folder = save_all(tmp_path, files)
    with pytest.raises(ConfigError, match="no layout of a dataset recognised") as caught:
        load_dataset(folder)
    lines = [line.removeprefix(" " * 6) for line in caught.value.fix.splitlines()[1:]]
    assert lines[0] == f"format: {kind}"
    save(folder / "dataset.yaml", "\n".join(lines))
    found = load_dataset(folder)
    texts = {document.id: document.text for document in found.documents or ()}
    judged = {q: {texts[doc] for doc in grades} for q, grades in found.qrels.items()}
    assert judged == {"q1": {"one"}, "q2": {"two"}}


def test_questions_beside_ids_of_no_known_corpus_get_no_lines_that_would_not_read_them(
    tmp_path: Path,
) -> None:
    folder = save_all(tmp_path, {"qa.csv": "qid,question,doc_id\nq1,one?,1\n"})
    with pytest.raises(ConfigError) as caught:
        load_dataset(folder)
    assert "format: quotes" not in caught.value.fix


def test_a_folder_of_pointers_says_so(tmp_path: Path) -> None:
    folder = save_all(tmp_path, {"dev.json": "version https://git-lfs.github.com/spec/v1\n"})
    with pytest.raises(ConfigError) as caught:
        load_dataset(folder)
    assert caught.value.fix.startswith("dev.json is a pointer of Git LFS, not the file itself")
