"""Parts of a dataset in several files: by list, by folder, by pattern, in every format that may."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.data import load_dataset
from tests.builders.files import save, save_all

DOCS = [f'{{"id": "d{n}", "title": "", "text": "text {n}"}}\n' for n in range(4)]
QUERIES = ['{"id": "q0", "text": "a"}\n', '{"id": "q1", "text": "b"}\n']
JUDGED = [
    f'{{"query_id": "{query}", "doc_id": "{document}", "grade": 1}}\n'
    for query, document in (("q0", "d0"), ("q1", "d3"))
]
WHOLE = {"d.jsonl": "".join(DOCS), "q.jsonl": "".join(QUERIES), "j.jsonl": "".join(JUDGED)}
PARTS = {
    "d/part-0.jsonl": "".join(DOCS[:2]),
    "d/part-1.jsonl": "".join(DOCS[2:]),
    "d/_SUCCESS": "",
    "d/README.md": "about",
    "q/0.jsonl": QUERIES[0],
    "q/1.jsonl": QUERIES[1],
    "j/0.jsonl": JUDGED[0],
    "j/1.jsonl": JUDGED[1],
}


def plain(documents: str, queries: str, judged: str) -> str:
    return (
        f"format: plain\nfiles: {{documents: {documents}, queries: {queries}}}\n"
        f"splits: {{test: {judged}}}\n"
    )


@pytest.mark.parametrize(
    "names",
    [
        ("d", "q", "j"),
        ("d/part-*.jsonl", "q/*", "'j/[01].jsonl'"),
        ("[d/part-1.jsonl, d/part-0.jsonl]", "[q/1.jsonl, q/0.jsonl]", "[j/0.jsonl, j/1.jsonl]"),
        ("['d/part-0*', d/part-1.jsonl]", "[q]", "{judgements: [j/*]}"),
    ],
    ids=["folders", "patterns", "lists", "both"],
)
def test_shards_are_the_same_dataset_as_one_file(
    tmp_path: Path, names: tuple[str, str, str]
) -> None:
    one = save_all(tmp_path / "one", {**WHOLE, "dataset.yaml": plain(*WHOLE)})
    several = save_all(tmp_path / "several", {**PARTS, "dataset.yaml": plain(*names)})
    whole, parts = load_dataset(one), load_dataset(several)
    assert parts.fingerprint == whole.fingerprint
    assert len(parts.documents or ()) == 4
    assert {document.id for document in parts.documents or ()} == {"d0", "d1", "d2", "d3"}
    assert parts.qrels == whole.qrels


def test_a_packed_shard_and_one_of_another_kind_may_stand_in_a_list(tmp_path: Path) -> None:
    parts: dict[str, str | bytes] = {
        "a.jsonl.gz": gzip.compress("".join(DOCS[:3]).encode()),
        "b.csv": "id,title,text\nd3,,text 3\n",
    }
    described = plain("[a.jsonl.gz, b.csv]", "q.jsonl", "j.jsonl")
    one = save_all(tmp_path / "one", {**WHOLE, "dataset.yaml": plain(*WHOLE)})
    several = save_all(tmp_path / "several", {**WHOLE, **parts, "dataset.yaml": described})
    assert load_dataset(several).fingerprint == load_dataset(one).fingerprint


def test_faults_name_the_shard_and_its_line(tmp_path: Path) -> None:
    parts = PARTS | {"d/part-1.jsonl": DOCS[0] + '{"id": "d9"}\n'}
    folder = save_all(tmp_path, {**parts, "dataset.yaml": plain("d/part-*", "q", "j")})
    with pytest.raises(DataError) as caught:
        load_dataset(folder)
    told = [fault.removeprefix(f"{folder}/") for fault in caught.value.faults]
    again = f"document id 'd0' again, first at {folder}/d/part-*: part-0.jsonl:1"
    assert told[0] == f"d/part-*: part-1.jsonl:1: {again}"
    assert told[1].startswith("d/part-1.jsonl:2: no 'text'")


def test_a_shard_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    folder = save_all(tmp_path, {**PARTS, "dataset.yaml": plain("d/part-*", "q", "j")})
    data = load_dataset(folder)
    save(folder / "d/part-1.jsonl", DOCS[2])
    with pytest.raises(DataError, match="changed or removed after it was checked"):
        list(data.documents or ())


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ("'none/*.jsonl'", "no file of 'none/\\*.jsonl'"),
        ("empty", "no file of 'empty'"),
        ("mixed", "a folder with files of several kinds: a.csv, b.jsonl"),
    ],
)
def test_names_that_lead_to_nothing_or_to_too_much_are_told(
    tmp_path: Path, documents: str, says: str
) -> None:
    files = {**PARTS, "empty/.keep": "", "mixed/a.csv": "", "mixed/b.jsonl": ""}
    folder = save_all(tmp_path, {**files, "dataset.yaml": plain(documents, "q", "j")})
    with pytest.raises(ConfigError, match=says) as caught:
        load_dataset(folder)
    assert "a pattern such as corpus/train-*.parquet" in str(caught.value)


@pytest.mark.parametrize("name", ['"a\\0b"', '"\\ud800"', "~nobody-of-that-name/x"])
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, name: str) -> None:
    folder = save_all(tmp_path, {**PARTS, "dataset.yaml": plain(name, "q", "j")})
    with pytest.raises(ConfigError, match="no file can be looked for under"):
        load_dataset(folder)


@pytest.mark.needs("retrieval_bench_exchange")
def test_a_format_that_reads_one_file_says_so(tmp_path: Path) -> None:
    files = {
        "a.json": "{}",
        "b.json": "{}",
        "dataset.yaml": "format: squad\nsplits: {test: '*.json'}",
    }
    with pytest.raises(ConfigError, match="2 files of judgements") as caught:
        load_dataset(save_all(tmp_path, files))
    assert "format squad reads judgements from a single one" in str(caught.value)


@pytest.mark.needs("retrieval_bench_exchange")
def test_other_formats_read_shards_too(tmp_path: Path) -> None:
    trec = {
        "a.trec": "<DOC><DOCNO>d0</DOCNO><TEXT>x</TEXT></DOC>\n",
        "b.trec": "<DOC><DOCNO>d1</DOCNO><TEXT>y</TEXT></DOC>\n",
        "t1.tsv": "q0\ta\n",
        "t2.tsv": "q1\tb\n",
        "qrels.1": "q0 0 d0 1\n",
        "qrels.2": "q1 0 d1 1\n",
        "dataset.yaml": "format: trec\nfiles: {documents: '*.trec', queries: 't?.tsv'}\n"
        "splits: {test: 'qrels.*'}\n",
    }
    marco = {
        **{"c/0.tsv": "d0\tx\n", "c/1.tsv": "d1\ty\n", "q.tsv": "q0\ta\nq1\tb\n"},
        **{"r/0.tsv": "q0\t0\td0\t1\n", "r/1.tsv": "q1\t0\td1\t1\n"},
        "dataset.yaml": "format: marco\nfiles: {documents: c, queries: q.tsv}\nsplits: {test: r}\n",
    }
    fingerprints = {
        load_dataset(save_all(tmp_path / name, files)).fingerprint
        for name, files in (("trec", trec), ("marco", marco))
    }
    assert len(fingerprints) == 1


@pytest.mark.needs("retrieval_bench_exchange")
def test_rows_of_questions_in_shards_are_one_dataset(tmp_path: Path) -> None:
    rows = ['{"question": "a", "quote": "x"}\n', '{"question": "b", "quote": "y"}\n',
            '{"question": "a", "quote": "y"}\n']  # fmt: skip
    described = "format: quotes\nsplits: {test: rows}\n"
    one = {"rows": "".join(rows), "dataset.yaml": described}
    several = {
        **{"rows/0.jsonl": rows[0], "rows/1.jsonl": rows[1] + rows[2], "dataset.yaml": described},
    }
    whole, parts = (
        load_dataset(save_all(tmp_path / name, files))
        for name, files in (("1", one), ("2", several))
    )
    assert parts.fingerprint == whole.fingerprint
    assert len(parts.documents or ()) == 2
