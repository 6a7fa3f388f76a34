"""Judgements as TREC text, BEIR table and JSON."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from retrieval_bench.data import read_qrels
from tests.builders.files import save
from tests.builders.refusals import faults_of

HEADER = "query-id\tcorpus-id\tscore\n"
TABS = "query-id<TAB>corpus-id<TAB>score"
COMPETITION = (
    '{"eval_id": 78, "docids": ["a", "b"], "more": {}}\n{"topk": [], "eval_id": 3}\r\n\n'
    '{"docid": ["c"], "eval_id": "안녕"}\n'
)


def faults_in(path: Path) -> tuple[str, ...]:
    return faults_of(read_qrels, path)


def write(tmp_path: Path, content: str, name: str = "qrels") -> Path:
    return save(tmp_path / name, content)


@pytest.mark.parametrize(
    ("content", "qrels"),
    [
        (
            "q1 0 d1 1\nq1\t0\td2\t0\r\n\n  q2  Q0   d1 \t-1\n",
            {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": -1}},
        ),
        # ids may hold blanks where tabs separate
        ("q 1\t0\td - 4\t2\n", {"q 1": {"d - 4": 2}}),
        (HEADER + "질문 1\t문서 2\t1\n", {"질문 1": {"문서 2": 1}}),
        # blanks that only Unicode knows do not split an id, and any may stand around a grade
        (
            "q1 0 a\u3000b\u00a0c 1\nq1\t0\t\u3000d\t1\n",
            {"q1": {"a\u3000b\u00a0c": 1, "\u3000d": 1}},
        ),
        (HEADER + "q\td\t\x1c1 \n", {"q": {"d": 1}}),
        ("q 0 d \x1c1\n", {"q": {"d": 1}}),
        # a whole number may have a point, and a line may be a comment
        ("q1 0 d 2.0\n", {"q1": {"d": 2}}),
        ("# made by hand\nq1 0 d 2\n", {"q1": {"d": 2}}),
        ("#a\tb\tc\nq1 0 d +2\n", {"q1": {"d": 2}}),
        ('{"q1": {"d": 2.0}}', {"q1": {"d": 2}}),
        ('{"q": []}', {"q": {}}),  # unanswerable queries alone are no fault
        (COMPETITION, {"78": {"a": 1, "b": 1}, "3": {}, "안녕": {"c": 1}}),
        (
            '{"78": ["a"], "3": []}\n{"안녕": {"c": 1}}\n',
            {"78": {"a": 1}, "3": {}, "안녕": {"c": 1}},
        ),
    ],
)
def test_what_may_stand_in_a_line(
    tmp_path: Path, content: str, qrels: dict[str, dict[str, int]]
) -> None:
    path = write(tmp_path, content)
    assert read_qrels(str(path)) == read_qrels(path) == qrels


def test_beir_files_are_recognised_also_with_mark_crlf_and_gzip(tmp_path: Path) -> None:
    content = "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t2\r\n"
    path = save(tmp_path / "test.tsv.gz", gzip.compress(content.encode()))
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


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("qid\tdocid\trel\nq1\td1\t1\n", ["header is 'qid\\tdocid\\trel'; accepted: ", TABS]),
        (
            "query-id corpus-id score\nq1 d1 1\nq2 d2 1\n",
            ["columns separated by blanks in 'query-id corpus-id score'", f"by tabs: {TABS}"],
        ),
        (
            "q1 d1\n",
            ["2 columns in 'q1 d1'; accepted: 4 columns: query, iteration, document", TABS],
        ),
    ],
)
def test_what_is_wrong_with_the_columns_is_told_once(
    tmp_path: Path, content: str, parts: list[str]
) -> None:
    (told,) = faults_in(write(tmp_path, content))
    assert all(part in told for part in parts)


def test_a_missing_header_does_not_swallow_the_first_judgement(tmp_path: Path) -> None:
    assert "header is 'q1\\td1\\t1'" in faults_in(write(tmp_path, "q1\td1\t1\nq2\td2\t1\n"))[0]


@pytest.mark.parametrize("grade", ["1.5", "1.", "1e0", "", "x", "१", "1_0", "9" * 5000])
def test_a_grade_that_is_no_whole_number_is_refused(tmp_path: Path, grade: str) -> None:
    assert "grade is" in faults_in(write(tmp_path, f"q1\t0\td 1\t{grade}\n"))[0]


@pytest.mark.parametrize("content", ["", "\n\n", HEADER])
def test_a_file_without_judgements_is_a_fault(tmp_path: Path, content: str) -> None:
    assert "no judgements" in faults_in(write(tmp_path, content))[0]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    assert faults_in(tmp_path / "none") == (f"{tmp_path / 'none'}: no such file",)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["qrels", "qrels.tsv", "qrels.json.gz"])
def test_a_json_object_holds_grades_or_lists(tmp_path: Path, name: str, indent: int | None) -> None:
    content = {"q2": {"문서": 2, "b": 0, "c": -1}, "q1": ["b", 7, "b"], "q4": [], "q3": {}}
    data = ("\ufeff\r\n" + json.dumps(content, indent=indent)).encode()
    path = save(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data)
    qrels = read_qrels(path)
    assert qrels == {"q2": {"문서": 2, "b": 0, "c": -1}, "q1": {"b": 1, "7": 1}, "q4": {}, "q3": {}}
    assert list(qrels) == ["q2", "q1", "q4", "q3"]
    assert read_qrels(str(path)) == qrels


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{}", "no judgements; accepted: 4 columns: query, iteration, document, grade; or 3"),
        ('{"q": {"d": 1.5}}', " query 'q': grade of 'd' is 1.5; accepted: a whole number such as"),
        ('{"q": {"d": true}}', " query 'q': grade of 'd' is True; accepted: a whole number"),
        ('{"q": {"d": null}}', " query 'q': grade of 'd' is None; accepted: a whole number"),
        ('{"q": {"d": [1]}}', " query 'q': grade of 'd' is [1]; accepted: a whole number"),
        ('{"q": {"d": NaN}}', "no JSON: NaN is no JSON value"),
        ('{"q": {"d": %s}}' % ("9" * 30), " query 'q': grade of 'd' is 9999"),
        ('{"q": {" ": 1}}', " query 'q': document is ' '; accepted: text or a whole number"),
        ('{"q": [null]}', " query 'q': document is None; accepted: text or a whole number"),
        ('{"": ["d"]}', " query '': query is ''; accepted: text or a whole number"),
        ('{"q": "d"}', " query 'q': the value is 'd'; accepted: {document: grade, ...} or"),
        ('{"q": {"d": 1, "d": 2}}', "no JSON: key 'd' given twice in one object"),
        ('["q"]', " ['q']; accepted: one JSON object with query ids as keys"),
        ('{"q": ' + "[" * 100_000, "no JSON: nested too deeply"),
        ('{"q": ["d"', ":1: no JSON: Expecting ',' delimiter"),
        ('{"eval_id": 1}', ':1: {\'eval_id\': 1}; accepted: {"eval_id": ..., "docids": [...]}'),
        ('{"eval_id": 1, "docids": [1.5]}', ":1: document is 1.5; accepted: text or a whole"),
    ],
)
def test_what_json_cannot_mean_is_told_with_its_place(
    tmp_path: Path, content: str, fault: str
) -> None:
    (told,) = faults_in(write(tmp_path, content))
    assert fault in told
    assert len(told) < 500


def test_a_query_on_two_lines_of_json_is_a_fault_beside_all_others(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"eval_id": 1, "docids": []}\n{"1": ["d"]}\n{"docids": []}\n{"2": 1}\n[]\n'
    )
    told = [text.removeprefix(f"{path}:") for text in faults_in(path)]
    assert [text[0] for text in sorted(told)] == list("2345")
    assert f"2: query '1' again, first at {path}:1; accepted: each once" in told


def test_a_folder_and_a_pipe_are_faults(tmp_path: Path) -> None:
    assert "a folder; accepted: a file" in faults_in(tmp_path)[0]
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe or a device; accepted: a file" in faults_in(tmp_path / "pipe")[0]


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"a" * 10**7, b"a " * (5 * 10**6), b'{"q": "' + b"a" * 10**7])
def test_a_line_of_ten_megabytes_gives_one_short_line(tmp_path: Path, line: bytes) -> None:
    path = save(tmp_path / "qrels", line)
    (told,) = faults_in(path)
    assert len(told) < 400
