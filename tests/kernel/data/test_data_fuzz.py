"""Whatever the bytes: a dataset or an error of the harness, never another exception."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data import dataset_fingerprint, load_dataset

ROUNDS = 250
POOL = [
    *(b"\xff", b"\xc3", b"\x00", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b" ", b'"', b"\\"),
    *(b"{", b"}", b"[", b"]", b":", b",", b"null", b"true", b"NaN", b"-1", b"1.5", b"1e999"),
    *(b'"\\ud800"', b"9" * 5000, b"<", b">", b"</DOC>", b"<DOC>", b"<top>", b"<num>", b"&#0;"),
    *(b"q1", b"d1", b'{"_id": "d1"}', b"\xe2\x80\xa8", "한글".encode(), b"\x1f\x8b"),
]
BEIR = {
    "corpus.jsonl": '{"_id": "d1", "title": "a", "text": "b", "metadata": {"x": 1}}\n'
    '{"_id": "d2", "text": "물"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "x", "metadata": {"answerable": true}}\n'
    '{"_id": "q2", "text": "\\ud83d\\ude00", "metadata": {"answerable": false}}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n",
}
SETS: dict[str, dict[str, str]] = {
    "beir": BEIR,
    "units": {
        **BEIR,
        "corpus.jsonl": '{"_id": "c1", "text": "b", "x": "d1"}\n{"_id": 2, "text": "", "x": "d2"}',
        "dataset.yaml": "format: beir\nunit_key: x\nlanguage: ko\n",
    },
    "scienceqa": {
        "documents.jsonl": '{"docid": "d1", "src": "s", "content": "물"}\n',
        "eval.jsonl": '{"eval_id": 1, "msg": [{"role": "user", "content": "물"}]}\n'
        '{"eval_id": 2, "msg": [{"role": "user", "content": "안녕"}]}\n',
        "ground_truth.json": '{"1": ["d1"], "2": []}',
    },
    "scienceqa-lines": {
        "documents.jsonl": '{"docid": "d1", "content": "물"}\n',
        "eval.jsonl": '{"eval_id": 1, "msg": [{"role": "user", "content": "물"}]}\n'
        '{"eval_id": "2", "msg": [{"role": "user", "content": "a"}], "more": {}}\n',
        "ground_truth.jsonl": '{"1": ["d1"]}\n{"eval_id": 2, "docids": []}\n',
    },
    "squad": {
        "test.json": json.dumps(
            {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [
                            {
                                "context": "c",
                                "qas": [
                                    {"id": "1", "question": "?", "is_impossible": False},
                                    {"id": "2", "question": "?", "is_impossible": True},
                                ],
                            }
                        ],
                    }
                ]
            },
            indent=1,
        )
    },
    "trec-text": {
        "dataset.yaml": "format: trec\nfiles: {documents: d, queries: t}\nsplits: {test: q}\n",
        "d": "<DOC>\n<DOCNO> d1 </DOCNO>\n<TITLE>a</TITLE>\n<TEXT>\nb\n</TEXT>\n</DOC>\n",
        "t": "<top>\n<num> Number: q1\n<title> x &amp; y\n<desc> Description:\nz\n</top>\n",
        "q": "q1 0 d1 1\n",
    },
    "trec-lines": {
        "dataset.yaml": "format: trec\nfiles: {documents: d, queries: t}\nsplits: {test: q}\n",
        "d": '{"id": "d1", "contents": "b"}\n',
        "t": "q1\tx\nq2\ty\n",
        "q": "q1\t0\td1\t1\n",
    },
    "plain": {
        "dataset.yaml": "format: plain\nfiles: {documents: d.csv, queries: q.tsv}\n"
        "splits: {test: j.jsonl}\ncolumns: {documents: {title: t}}\n",
        "d.csv": 'id,t,text\nd1,"a ""b"", c","d\ne"\n',
        "q.tsv": "id\ttext\tanswerable\nq1\tx\tyes\nq2\ty\tno\n",
        "j.jsonl": '{"query_id": "q1", "doc_id": "d1", "grade": 2}\n',
    },
    "quepid": {
        "corpus.jsonl": BEIR["corpus.jsonl"],
        "test.csv": 'query,docid,Ana,Bo\n물,d1,2,1\n물,d2,,0\n" -x, y",d1,1.0,\nz,,,\n',
    },
    "rank_eval": {
        "test.json": json.dumps(
            {
                "requests": [
                    {
                        "id": "q1",
                        "request": {"query": {"match": {"text": "물"}}},
                        "ratings": [{"_index": "i", "_id": "d1", "rating": 1}],
                    },
                    {"id": "q2", "template_id": "t", "params": {"q": "x"}, "ratings": []},
                ],
                "templates": [
                    {"id": "t", "template": {"source": '{"query": {"match": {"a": "{{q}}"}}}'}}
                ],
            },
            indent=1,
        )
    },
    "quotes": {
        "dataset.yaml": "format: quotes\nfiles: {documents: d.jsonl}\nsplits: {test: t.csv}\n",
        "d.jsonl": BEIR["corpus.jsonl"],
        "t.csv": "id,question,answer,quote,answerable\nq1,x,y,b,yes\nq2,z,,물,\n",
    },
    "ragas": {
        "test.json": json.dumps(
            [
                {"user_input": "x", "reference": "y", "reference_contexts": ["<1-hop>\n\nb", "c"]},
                {
                    "user_input": [{"type": "human", "content": "물"}],
                    "reference_contexts": ["d"],
                    "reference_context_ids": [7],
                },
            ]
        )
    },
    "langsmith": {
        "dataset.yaml": "format: langsmith\nsplits: {test: t.csv}\n",
        "t.csv": 'inputs,outputs\n"{""question"": ""x""}","{\'contexts\': [\'b\', \'c\']}"\n',
    },
}


def mutated(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        start = chance.randrange(len(data) + 1)
        stop = start + chance.choice((0, 0, 1, 2, 10, 40))
        action = chance.randrange(4)
        if action == 0:
            data[start:stop] = chance.choice(POOL)
        elif action == 1:
            del data[start:stop]
        elif action == 2:
            data[start:start] = data[start:stop]
        elif start < len(data):
            data[start] ^= 1 << chance.randrange(8)
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_mutated_files_give_a_dataset_or_a_clear_error(tmp_path: Path, name: str) -> None:
    chance = random.Random(f"{name} 1")
    files = {key: text.encode() for key, text in SETS[name].items()}
    outcomes = {"loaded": 0, "refused": 0}
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        victim = chance.choice([key for key in files if key != "dataset.yaml" or number % 10 == 0])
        for key, content in files.items():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(mutated(content, chance) if key == victim else content)
        try:
            dataset = load_dataset(folder)
        except HarnessError as problem:
            outcomes["refused"] += 1
            str(problem).encode()
        else:
            outcomes["loaded"] += 1
            assert dataset_fingerprint(dataset) == dataset.fingerprint
            assert dataset.documents is None or len(list(dataset.documents)) == dataset.n_documents
            assert all(query.text.strip() for query in dataset.queries)
    assert outcomes["loaded"] > ROUNDS // 20
    assert outcomes["refused"] > ROUNDS // 20
