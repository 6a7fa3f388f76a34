"""Lines, JSON values and table rows: tolerated forms, and every fault with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.data.faults import LISTED, Faults, reporting
from retrieval_bench.data.files.lines import (
    existing,
    json_file,
    json_lines,
    kind_of,
    lines,
    parse_json,
    table,
)
from tests.builders.files import save


def faults_of(faults: Faults) -> tuple[str, ...]:
    with pytest.raises(DataError) as caught:
        faults.raise_if_any("the data", "here")
    return caught.value.faults


def test_a_byte_order_mark_windows_line_ends_and_blank_lines_are_tolerated(tmp_path: Path) -> None:
    path = save(tmp_path / "x.jsonl", b'\xef\xbb\xbf{"a": "\xea\xb0\x80"}\r\n\r\n  \n{"a": 2}')
    faults = Faults()
    assert list(json_lines(path, faults)) == [(1, {"a": "가"}), (4, {"a": 2})]
    assert faults.count == 0


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    path = save(tmp_path / "x.txt", "a\u2028b\x85c\x0bd\ne")
    assert list(lines(path, Faults())) == [(1, "a\u2028b\x85c\x0bd"), (2, "e")]


def test_gzip_is_recognised_by_the_name(tmp_path: Path) -> None:
    path = save(tmp_path / "x.jsonl.gz", gzip.compress(b'{"a": 1}\n'))
    assert list(json_lines(path, Faults())) == [(1, {"a": 1})]
    assert kind_of(path) == ".jsonl"
    assert existing(tmp_path, "x.jsonl") == "x.jsonl.gz"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.jsonl", gzip.compress(b'{"a": 1}\n'), "gzip data in a file that is not named .gz"),
        ("x.jsonl.gz", b'{"a": 1}\n', "damaged gzip data"),
        ("x.jsonl", '{"a": 1}'.encode("utf-16"), "UTF-16 text"),
    ],
    ids=["gzip data without the name", "text named gz", "UTF-16"],
)
def test_a_file_that_holds_something_else_is_called_what_it_is(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    faults = Faults()
    assert list(json_lines(save(tmp_path / name, content), faults)) == []
    assert says in faults_of(faults)[0]


@pytest.mark.parametrize("cut", [5, 15, -4])
def test_truncated_gzip_is_a_fault(tmp_path: Path, cut: int) -> None:
    path = save(tmp_path / "x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 50)[:cut])
    faults = Faults()
    list(json_lines(path, faults))
    assert "damaged gzip data" in faults_of(faults)[-1]


def test_every_broken_line_is_told_and_the_good_ones_are_read(tmp_path: Path) -> None:
    path = save(
        tmp_path / "x.jsonl", b'{"a": 1}\n{"a": \xff"x"}\n{"a": \n[1]\n{"a": 5}\n{"a": NaN}\n'
    )
    faults = Faults()
    assert list(json_lines(path, faults)) == [(1, {"a": 1}), (5, {"a": 5})]
    told = faults_of(faults)
    assert [text.split(": ")[0] for text in told] == [f"{path}:{n}" for n in (2, 3, 4, 6)]
    assert "byte 0xff after 6 bytes is no UTF-8" in told[0]
    assert "accepted: UTF-8 text" in told[0]
    assert "no JSON: Expecting value (column" in told[1]
    assert "[1]; accepted: one JSON object a line" in told[2]
    assert "NaN is no JSON value" in told[3]


def test_a_missing_file_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    faults = Faults()
    assert list(lines(tmp_path / "no.jsonl", faults)) == []
    assert json_file(tmp_path / "no.json", faults) is None
    assert faults_of(faults) == (
        f"{tmp_path / 'no.jsonl'}: no such file",
        f"{tmp_path / 'no.json'}: no such file",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 2}', "key 'a' given twice"),
        ('{"a": Infinity}', "Infinity is no JSON"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ('{"\\udc00": 1}', "surrogate"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "digits"),
    ],
)
def test_what_the_library_lets_pass_or_crashes_on_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "😀"


def test_a_broken_json_file_names_the_line(tmp_path: Path) -> None:
    path = save(tmp_path / "x.json", '{\n"a": 1,\n"b" 2}')
    faults = Faults()
    assert json_file(path, faults) is None
    assert faults_of(faults)[0].startswith(f"{path}:3: no JSON")


def test_broken_utf_8_in_a_json_file_names_the_line(tmp_path: Path) -> None:
    path = save(tmp_path / "x.json", b'{\n"a": "\xc3"}')
    faults = Faults()
    assert json_file(path, faults) is None
    assert f"{path}:2: byte 0xc3 after 6 bytes is no UTF-8" in faults_of(faults)[0]


def test_csv_cells_hold_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = save(tmp_path / "x.csv", b'id,text\r\n1,"a, ""b""\r\n\r\nc"\r\n\r\n2,d\r\n')
    rows = list(table(path, Faults()))
    assert rows == [(1, ["id", "text"]), (2, ["1", 'a, "b"\n\nc']), (6, ["2", "d"])]


def test_an_open_quote_in_csv_is_a_fault(tmp_path: Path) -> None:
    path = save(tmp_path / "x.csv", 'id,text\n1,"a\n2,b\n')
    faults = Faults()
    assert list(table(path, faults)) == [(1, ["id", "text"])]
    assert faults_of(faults)[0].startswith(f"{path}:2: no CSV")


def test_quotes_mean_nothing_in_tsv(tmp_path: Path) -> None:
    path = save(tmp_path / "x.tsv", '1\t"a\n2\tb, c"\n')
    assert list(table(path, Faults())) == [(1, ["1", '"a']), (2, ["2", 'b, c"'])]


def test_a_cell_of_a_megabyte_is_read(tmp_path: Path) -> None:
    path = save(tmp_path / "x.csv", "1," + "a" * 1_000_000)
    assert [len(cells[1]) for _, cells in table(path, Faults())] == [1_000_000]


def test_faults_beyond_the_listed_ones_are_counted_for_each_file() -> None:
    faults = Faults()
    for number in range(1, 61):
        faults.of("a").error(number, f"wrong {number}")
    faults.of("b").error(7, "wrong, too")
    told = faults_of(faults)
    assert len(told) == LISTED + 2
    assert told[LISTED:] == ("... and 10 more in a", "b:7: wrong, too")
    assert faults.count == 61


def test_a_warning_tells_its_count_and_three_places() -> None:
    faults = Faults()
    for number in range(1, 6):
        faults.of("a").warn("empty texts", number)
    faults.of("b").warn("odd things", 9, "'x'")
    assert faults.warnings() == ("empty texts: 5 (a:1, a:2, a:3, ...)", "odd things: 1 (b:9 'x')")


def test_nothing_is_raised_without_a_fault_and_a_secret_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from retrieval_bench.core import secrets

    with reporting("the data", "here") as faults:
        faults.of("a").warn("empty texts", 1)
    monkeypatch.setenv("SECRET_FOLDER", "hunter2-folder")
    secrets.expand("${SECRET_FOLDER}", "test")
    faults.of("hunter2-folder/x").error(1, "wrong")
    assert faults_of(faults) == ("${SECRET_FOLDER}/x:1: wrong",)
