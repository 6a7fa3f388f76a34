"""Folders whose layout is not known: the lines that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.data import load_dataset
from tests.builders.files import save, save_all


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (
            {
                "collection.tsv": "1\tone\n2\ttwo\n",
                "queries.dev.tsv": "q1\tone?\nq2\ttwo?\n",
                "qrels.dev.tsv": "q1\t0\t1\t1\nq2\t0\t2\t2\n",
            },
            "marco",
        ),
        (
            {
                "documents.csv": "id,text\n1,one\n2,two\n",
                "questions.csv": "id,text\nq1,one?\nq2,two?\n",
                "judgements.csv": "query_id,doc_id,grade\nq1,1,1\nq2,2,2\n",
            },
            "plain",
        ),
        (
            {
                "docs.trec": "<DOC><DOCNO>1</DOCNO>one</DOC>\n<DOC><DOCNO>2</DOCNO>two</DOC>\n",
                "topics.txt": "q1\tone?\nq2\ttwo?\n",
                "qrels.txt": "q1 0 1 1\nq2 0 2 2\n",
            },
            "trec",
        ),
        (
            {
                "corpus.jsonl": '{"id": "1", "contents": "one"}\n{"id": "2", "contents": "two"}\n',
                "queries.tsv": "q1\tone?\nq2\ttwo?\n",
                "qrels.txt": "q1 0 1 1\nq2 0 2 2\n",
            },
            "trec",
        ),
        (
            {
                "documents.csv": "id,text\n1,one\n2,two\n",
                "questions.csv": "id,text\nq1,one?\nq2,two?\n",
                "qrels.txt": "q1 0 1 1\nq2 0 2 2\n",
            },
            "plain",
        ),
        (
            {
                "documents.csv": "docno,body\n1,one\n2,two\n",
                "topics.tsv": "q1\tone?\nq2\ttwo?\n",
                "qrels.txt": "q1 0 1 1\nq2 0 2 2\n",
            },
            "trec",
        ),
        (
            {
                "documents.jsonl": '{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n',
                "queries.tsv": "qid\tquery\nq1\tone?\nq2\ttwo?\n",
                "qrels.txt": "q1 0 1 1\nq2 0 2 2\n",
            },
            "plain",
        ),
        (
            {
                "documents.jsonl": '{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n',
                "queries.txt": '{"id": "q1", "text": "one?"}\n{"id": "q2", "text": "two?"}\n',
                "qrels.csv": "query_id,doc_id,grade\nq1,1,1\nq2,2,2\n",
            },
            "plain",
        ),
        (
            {
                "my corpus.csv": "docno,body\n1,one\n2,two\n",
                "questions.csv": "qid,question\nq1,one?\nq2,two?\n",
                "relevance.csv": "qid,docno,label\nq1,1,1\nq2,2,2\n",
            },
            "plain",
        ),
        (
            {
                "corpus.jsonl": '{"doc_id": "1", "contents": "one"}\n'
                '{"doc_id": "2", "contents": "two"}\n',
                "qa.jsonl": '{"qid": "q1", "query": "one?", "retrieval_gt": [["1"]]}\n'
                '{"qid": "q2", "query": "two?", "retrieval_gt": [["2"]]}\n',
            },
            "quotes",
        ),
        (
            {
                "문서.json": '[{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]',
                "faq, 2024.csv": "id,question,context\nq1,one?,one\nq2,two?,two\n",
            },
            "quotes",
        ),
    ],
)
def test_a_folder_of_known_names_gets_the_lines_that_read_it(
    tmp_path: Path, files: Mapping[str, str], kind: str
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
