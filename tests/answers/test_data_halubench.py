"""HaluBench: rows of answers become passages, questions and judgements; nothing is lost unsaid."""

from __future__ import annotations

import builtins
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, DataError, MissingDependencyError
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench_answers.formats.halubench import passage_id
from tests.builders.files import json_lines, save_all
from tests.builders.refusals import dataset_faults

ROWS: list[dict[str, Any]] = [
    {
        "id": "r1",
        "passage": "The café has 12 tables.",
        "question": "How many tables are there?",
        "answer": "12",
        "label": "PASS",
        "source_ds": "DROP",
    },
    {
        "id": "r2",
        "passage": "Seoul is the capital of Korea. 서울은 한국의 수도이다.",
        "question": "What is the capital of Korea?",
        "answer": "Seoul",
        "label": "PASS",
        "source_ds": "halueval",
    },
]


def row(**changes: Any) -> dict[str, Any]:
    return {**ROWS[0], **changes}


def write(folder: Path, rows: Sequence[Mapping[str, Any]], name: str = "test.jsonl") -> Path:
    return save_all(folder, {name: json_lines(rows)})


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist(list(rows)), path)


def texts(dataset: Dataset) -> list[str]:
    return [document.text for document in dataset.documents or ()]


def test_each_row_is_a_question_judged_by_its_passage(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, ROWS))
    assert texts(data) == [one["passage"] for one in ROWS]
    assert [query.text for query in data.queries] == [one["question"] for one in ROWS]
    assert data.qrels == {one["id"]: {passage_id(one["passage"]): 1} for one in ROWS}
    assert data.warnings == ()


def test_the_source_is_a_tag_and_the_answer_stays_with_its_label(tmp_path: Path) -> None:
    query = load_dataset(write(tmp_path, ROWS)).queries[0]
    assert query.metadata["source"] == "DROP"
    assert query.tags == ("DROP",)
    assert query.metadata["answers"] == [{"id": "r1", "answer": "12", "label": "PASS"}]


def test_a_passage_of_several_rows_is_one_document(tmp_path: Path) -> None:
    other = row(id="r3", question="Where are the tables?")
    data = load_dataset(write(tmp_path, [*ROWS, other]))
    assert data.n_documents == 2
    assert data.qrels["r3"] == data.qrels["r1"]
    assert "3 rows give 2 passages and 3 questions" in data.warnings[0]


def test_unicode_forms_and_blanks_at_the_ends_make_no_second_passage(tmp_path: Path) -> None:
    decomposed = row(id="r3", question="Where?", passage=" The cafe\u0301 has 12 tables.\n")
    rows = [*ROWS, decomposed]
    data = load_dataset(write(tmp_path / "one", rows))
    assert data.n_documents == 2
    turned = load_dataset(write(tmp_path / "turned", rows[::-1]))
    assert turned.fingerprint == data.fingerprint
    assert sorted(texts(turned)) == sorted(texts(data))


def test_right_and_wrong_answers_to_one_question_are_one_query(tmp_path: Path) -> None:
    wrong = row(id="r0", answer="13", label="FAIL")
    data = load_dataset(write(tmp_path, [*ROWS, wrong]))
    query = next(query for query in data.queries if query.text == ROWS[0]["question"])
    assert query.id == "r0"
    assert [answer["label"] for answer in query.metadata["answers"]] == ["FAIL", "PASS"]
    assert set(data.qrels) == {"r0", "r2"}
    assert "rows that repeat a pair of both: 1" in data.warnings[0]


def test_a_question_asked_of_two_passages_is_answered_by_both(tmp_path: Path) -> None:
    other = row(id="r3", passage="The hall has 90 tables.")
    data = load_dataset(write(tmp_path, [*ROWS, other]))
    assert len(data.queries) == 2
    assert set(data.qrels["r1"]) == {passage_id(ROWS[0]["passage"]), passage_id(other["passage"])}
    assert "questions asked of more than one passage, all of them relevant: 1" in data.warnings[0]


def test_one_question_of_two_sources_stays_two_queries(tmp_path: Path) -> None:
    other = row(id="r3", source_ds="covidQA", passage="The hall has 90 tables.")
    data = load_dataset(write(tmp_path, [*ROWS, other]))
    assert {query.id: query.tags for query in data.queries}["r3"] == ("covidQA",)
    assert len(data.qrels["r1"]) == len(data.qrels["r3"]) == 1


@pytest.mark.parametrize("passage", [None, "", "  \n"])
def test_a_row_without_a_passage_is_counted_and_its_question_is_kept(
    tmp_path: Path, passage: str | None
) -> None:
    data = load_dataset(write(tmp_path, [*ROWS, row(id="r3", question="?!", passage=passage)]))
    assert len(data.queries) == 3
    assert "r3" not in data.qrels
    assert data.n_documents == 2
    (warning,) = [text for text in data.warnings if "without a passage" in text]
    assert "rows without a passage, which judge nothing: 1" in warning
    assert "test.jsonl:3 'r3'" in warning


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (
            {key: value for key, value in ROWS[1].items() if key not in ("label", "id")},
            ["test.jsonl:2: no 'id'", "test.jsonl:2: no 'label'"],
        ),
        (
            row(question="Another?"),
            ["test.jsonl:2: id 'r1' again with another question, first at 1"],
        ),
        (ROWS[1] | {"passage": 7}, ["passage is 7; accepted: text, or null"]),
    ],
    ids=["missing columns", "an id of two questions", "a passage that is no text"],
)
def test_faults_are_told_with_their_lines(
    tmp_path: Path, second: Mapping[str, Any], told: list[str]
) -> None:
    faults = dataset_faults(write(tmp_path, [ROWS[0], second]))
    assert len(faults) == len(told)
    assert all(any(part in fault for fault in faults) for part in told)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([*ROWS, ROWS[0], ROWS[0]], "ids given again with the same question: 2"),
        ([ROWS[0], ROWS[1] | {"label": "MAYBE"}], "labels other than PASS and FAIL: 1"),
    ],
)
def test_what_is_odd_is_counted(tmp_path: Path, rows: list[dict[str, Any]], told: str) -> None:
    data = load_dataset(write(tmp_path, rows))
    assert any(text.startswith(told) for text in data.warnings)
    assert len(data.queries) == 2


def test_each_file_is_a_split_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, ROWS[:1], "dev.jsonl")
    write(tmp_path, ROWS, "test.ndjson")
    (tmp_path / "notes.json").write_text('{"nothing": 1}', encoding="utf-8")
    assert len(load_dataset(tmp_path, "dev").queries) == 1
    assert len(load_dataset(tmp_path, "test").queries) == 2
    with pytest.raises(ConfigError, match="dev, test"):
        load_dataset(tmp_path, "notes")


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    plain = load_dataset(write(tmp_path / "plain", ROWS))
    folder = tmp_path / "zipped"
    folder.mkdir()
    content = (tmp_path / "plain" / "test.jsonl").read_bytes()
    (folder / "test.jsonl.gz").write_bytes(gzip.compress(content))
    assert load_dataset(folder).fingerprint == plain.fingerprint


@pytest.mark.needs("pyarrow")
def test_parquet_as_published_gives_the_same_as_json_lines(tmp_path: Path) -> None:
    rows = [*ROWS, row(id="r3", question="?!", passage=None)]
    write_parquet(tmp_path / "published" / "data" / "test-00000-of-00001.parquet", rows)
    data = load_dataset(tmp_path / "published")
    lines = load_dataset(write(tmp_path / "lines", rows))
    assert data.fingerprint == lines.fingerprint
    assert data.queries == lines.queries
    assert any("row 3 'r3'" in warning for warning in data.warnings)


@pytest.mark.needs("pyarrow")
def test_missing_columns_of_parquet_are_told_once(tmp_path: Path) -> None:
    rows = [{k: v for k, v in one.items() if k not in ("label", "answer")} for one in ROWS]
    write_parquet(tmp_path / "test.parquet", rows)
    with pytest.raises(DataError) as raised:
        load_dataset(tmp_path)
    assert "no column 'answer', 'label'; found: 'id'" in raised.value.faults[0]


@pytest.mark.needs("pyarrow")
def test_damaged_parquet_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "test.parquet").write_bytes(b"PAR1 passage question nothing PAR1")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        load_dataset(tmp_path)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test.parquet").write_bytes(b"PAR1 passage question nothing PAR1")

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("retrieval_bench.data.files.rows.import_module", missing)
    with pytest.raises(MissingDependencyError) as raised:
        load_dataset(tmp_path)
    assert "pip install" in str(raised.value)
    assert "JSON lines" in str(raised.value)


def test_reading_json_lines_imports_no_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def guarded(name: str, *args: Any) -> Any:
        assert not name.startswith("pyarrow")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", guarded)
    assert load_dataset(write(tmp_path, ROWS)).n_documents == 2


def test_a_file_with_another_name_is_named_in_dataset_yaml(tmp_path: Path) -> None:
    write(tmp_path, ROWS, "halubench.data.jsonl")
    (tmp_path / "dataset.yaml").write_text(
        "format: halubench\nlanguage: en\nsplits: {all: halubench.data.jsonl}\n", encoding="utf-8"
    )
    assert load_dataset(tmp_path, "all").language == "en"
