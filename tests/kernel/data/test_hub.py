"""BEIR datasets as hubs hand them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.data import load_dataset
from tests.builders.files import json_lines, save, save_all

CORPUS = [{"_id": "1", "title": "A", "text": "one"}, {"_id": "2", "title": "", "text": "two"}]
QUERIES = [{"_id": "q1", "text": "one?"}, {"_id": "q2", "text": "two?"}]
JUDGED = [
    {"query-id": "q1", "corpus-id": "1", "score": 1},
    {"query-id": "q2", "corpus-id": "2", "score": 2},
]
TABLE = "query-id\tcorpus-id\tscore\nq1\t1\t1\nq2\t2\t2\n"
TEXTS = {"corpus.jsonl": json_lines(CORPUS), "queries.jsonl": json_lines(QUERIES)}
QRELS = {"q1": {"1": 1}, "q2": {"2": 2}}


def parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pyarrow as arrow
    from pyarrow import parquet as writer

    path.parent.mkdir(parents=True, exist_ok=True)
    writer.write_table(arrow.Table.from_pylist(list(rows)), path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels/test.tsv", TABLE),
        ("qrels/test.jsonl", json_lines(JUDGED)),
        ("qrels/test.csv", TABLE.replace("\t", ",")),
        ("qrels.tsv", TABLE),
        ("qrels.jsonl", json_lines(JUDGED)),
        ("qrels/test.tsv", TABLE.replace("\tscore", "\tscore\tannotator").replace("1\n", "1\tA\n")
         .replace("2\n", "2\tB\n")),
        ("qrels/test.tsv", "corpus-id\tquery-id\tscore\n1\tq1\t1\n2\tq2\t2\n"),
    ],
    ids=["tsv", "jsonl", "csv", "beside", "lines beside", "a fourth column", "another order"],
)  # fmt: skip
def test_judgements_are_read_where_hubs_put_them(tmp_path: Path, name: str, content: str) -> None:
    data = load_dataset(save_all(tmp_path, {**TEXTS, name: content}))
    assert data.qrels == QRELS


def test_a_row_without_the_column_that_the_header_names_is_a_fault(tmp_path: Path) -> None:
    table = TABLE.replace("\tscore", "\tscore\tannotator")
    with pytest.raises(DataError, match="3 columns in 'q1 1 1'; accepted: 4 columns"):
        load_dataset(save_all(tmp_path, {**TEXTS, "qrels/test.tsv": table}))


def test_one_split_in_two_forms_is_read_once(tmp_path: Path) -> None:
    files = {"qrels/test.tsv": TABLE, "qrels/test.jsonl": json_lines(JUDGED * 2)}
    assert load_dataset(save_all(tmp_path, {**TEXTS, **files})).warnings == ()


def test_a_download_that_stopped_half_way_is_no_smaller_corpus(tmp_path: Path) -> None:
    files = {"queries.jsonl": TEXTS["queries.jsonl"], "qrels/test.tsv": TABLE}
    last = "corpus/corpus-00001-of-00002.jsonl"
    save_all(tmp_path, {**files, last: TEXTS["corpus.jsonl"]})
    named = "format: beir\nfiles: {documents: %s}\n"
    for config in (None, named % "corpus", named % "corpus/*.jsonl"):
        if config is not None:
            save(tmp_path / "dataset.yaml", config)
        with pytest.raises(ConfigError, match=r"1 of the 2 files of .*corpus/corpus, by"):
            load_dataset(tmp_path)
    save(tmp_path / "dataset.yaml", named % last)  # it is named, so it is meant
    assert load_dataset(tmp_path).n_documents == len(CORPUS)
    (tmp_path / "dataset.yaml").unlink()
    save(tmp_path / "corpus/corpus-00000-of-00002.jsonl", '{"_id": "0", "text": "x"}\n')
    assert load_dataset(tmp_path).n_documents == len(CORPUS) + 1


@pytest.mark.needs("pyarrow")
class TestParquetFolders:
    @pytest.mark.parametrize("key", ["_id", "id"])
    @pytest.mark.parametrize("judged", ["qrels", "data", "default"])
    def test_shards_of_each_part_are_joined(self, tmp_path: Path, key: str, judged: str) -> None:
        def named(rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
            return [
                {key: row["_id"], **{k: v for k, v in row.items() if k != "_id"}} for row in rows
            ]

        for at, row in enumerate(named(CORPUS)):
            parquet(tmp_path / f"corpus/corpus-0000{at}-of-00002.parquet", [row])
        parquet(tmp_path / "queries/queries-00000-of-00001.parquet", named(QUERIES))
        grades = [{**row, "score": float(str(row["score"]))} for row in JUDGED]
        parquet(tmp_path / f"{judged}/test-00000-of-00001.parquet", grades)
        beside = load_dataset(save_all(tmp_path / "b", {**TEXTS, "qrels/test.tsv": TABLE}))
        data = load_dataset(tmp_path)
        assert (data.qrels, data.fingerprint) == (QRELS, beside.fingerprint)

    def test_a_split_may_have_documents_and_queries_of_its_own(self, tmp_path: Path) -> None:
        for at, split in enumerate(("dev", "test")):
            parquet(tmp_path / f"corpus/{split}-00000-of-00001.parquet", [CORPUS[at]])
            parquet(tmp_path / f"queries/{split}-00000-of-00001.parquet", [QUERIES[at]])
            parquet(tmp_path / f"qrels/{split}-00000-of-00001.parquet", [JUDGED[at]])
        for at, split in enumerate(("dev", "test")):
            data = load_dataset(tmp_path, split)
            assert [document.id for document in data.documents or ()] == [CORPUS[at]["_id"]]
            assert list(data.qrels) == [QUERIES[at]["_id"]]

    def test_whole_numbers_as_ids_are_texts(self, tmp_path: Path) -> None:
        parquet(tmp_path / "corpus/a.parquet", [{"_id": 7, "title": None, "text": "x"}])
        parquet(tmp_path / "queries/a.parquet", [{"_id": 1, "text": "x"}])
        row = {"query-id": 1, "corpus-id": 7, "score": 1.0}
        parquet(tmp_path / "data/default-00000-of-00001.parquet", [row])
        assert load_dataset(tmp_path, "default").qrels == {"1": {"7": 1}}
        with pytest.raises(ConfigError, match="has no split 'test'") as caught:
            load_dataset(tmp_path)
        assert "default" in caught.value.accepted

    def test_a_pointer_named_parquet_is_one_fault(self, tmp_path: Path) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\n"
        folder = save_all(tmp_path, {"d.parquet": pointer, "q.jsonl": json_lines(QUERIES)})
        described = "format: plain\nfiles: {documents: d.parquet, queries: q.jsonl}\n"
        columns = "columns: {queries: {id: _id}}\n"
        save(folder / "dataset.yaml", described + columns)
        with pytest.raises(DataError, match="a pointer of Git LFS, not the file itself") as caught:
            load_dataset(folder)
        assert len(caught.value.faults) == 1


class TestWhatIsNotRead:
    def test_judgements_by_another_name_are_named_with_the_lines_to_paste(
        self, tmp_path: Path
    ) -> None:
        folder = save_all(tmp_path, {**TEXTS, "qrels/test.txt": "q1 0 1 1\nq2 0 2 2\n"})
        with pytest.raises(ConfigError) as caught:
            load_dataset(folder)
        assert "qrels/test.txt is not read as such" in caught.value.fix
        lines = caught.value.fix.split("dataset.yaml:", 1)[1]
        save(folder / "dataset.yaml", "\n".join(line.strip() for line in lines.splitlines()))
        assert load_dataset(folder).qrels == QRELS
