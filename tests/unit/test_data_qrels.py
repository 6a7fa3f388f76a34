"""Judgements in TREC and BEIR format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from harness.data import read_qrels
from harness.errors import DataError

HEADER = "query-id\tcorpus-id\tscore\n"


def faults_in(path: Path) -> tuple[str, ...]:
    with pytest.raises(DataError) as caught:
        read_qrels(path)
    return caught.value.faults


def write(tmp_path: Path, content: str, name: str = "qrels") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def test_trec_lines_are_separated_by_any_blanks(tmp_path: Path) -> None:
    path = write(tmp_path, "q1 0 d1 1\nq1\t0\td2\t0\r\n\n  q2  Q0   d1 \t-1\n")
    assert read_qrels(path) == {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": -1}}


def test_a_path_as_text_reads_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, "q1 0 d1 1\n")
    assert read_qrels(str(path)) == read_qrels(path) == {"q1": {"d1": 1}}


def test_ids_may_hold_blanks_where_tabs_separate(tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path, "q 1\t0\td - 4\t2\n")) == {"q 1": {"d - 4": 2}}
    assert read_qrels(write(tmp_path, HEADER + "질문 1\t문서 2\t1\n")) == {"질문 1": {"문서 2": 1}}


def test_beir_files_are_recognised_also_with_mark_crlf_and_gzip(tmp_path: Path) -> None:
    content = "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t2\r\n"
    path = tmp_path / "test.tsv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert read_qrels(path) == {"q1": {"d1": 2}}


def test_all_faults_come_at_once_with_their_lines(tmp_path: Path) -> None:
    content = "q1\td1\t1\nq2\td1\nq3\td1\t1.5\nq4\t \t1\nq5\td1\tone\nq1\td1\t1\nq1\td1\t2\n"
    path = write(tmp_path, HEADER + content)
    told = faults_in(path)
    assert [text.removeprefix(f"{path}:")[0] for text in told] == list("34568")
    assert "2 columns in 'q2 d1'" in told[0]
    assert "query-id<TAB>corpus-id<TAB>score" in told[0]
    assert "score is '1.5'; accepted: a whole number" in told[1]
    assert "corpus-id is ' '" in told[2]
    assert f"grade 2 here and 1 at {path}:2" in told[4]


def test_a_missing_header_does_not_swallow_the_first_judgement(tmp_path: Path) -> None:
    assert "header is 'q1\\td1\\t1'" in faults_in(write(tmp_path, "q1\td1\t1\nq2\td2\t1\n"))[0]


def test_a_wrong_header_is_told(tmp_path: Path) -> None:
    told = faults_in(write(tmp_path, "qid\tdocid\trel\nq1\td1\t1\n"))
    assert len(told) == 1
    assert "header is 'qid\\tdocid\\trel'; accepted: query-id<TAB>corpus-id<TAB>score" in told[0]


@pytest.mark.parametrize("grade", ["1.0", "", "x", "१", "1_0", "9" * 5000])
def test_a_grade_that_is_no_whole_number_is_refused(tmp_path: Path, grade: str) -> None:
    assert "grade is" in faults_in(write(tmp_path, f"q1\t0\td 1\t{grade}\n"))[0]


def test_both_formats_are_named_when_the_columns_fit_neither(tmp_path: Path) -> None:
    told = faults_in(write(tmp_path, "q1 d1\n"))
    assert "2 columns in 'q1 d1'; accepted: 4 columns: query, iteration, document" in told[0]
    assert "query-id<TAB>corpus-id<TAB>score" in told[0]


@pytest.mark.parametrize("content", ["", "\n\n", HEADER])
def test_a_file_without_judgements_is_a_fault(tmp_path: Path, content: str) -> None:
    assert "no judgements" in faults_in(write(tmp_path, content))[0]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    assert faults_in(tmp_path / "none") == (f"{tmp_path / 'none'}: no such file",)
