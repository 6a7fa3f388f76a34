"""Lines, JSON values and table rows: tolerated forms, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.data.faults import LISTED, Faults, reporting
from retrieval_bench.data.files.lines import (
    existing,
    json_file,
    json_lines,
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


def test_a_packed_file_is_found_by_its_name_without_the_ending(tmp_path: Path) -> None:
    save(tmp_path / "x.jsonl.gz", "")
    assert existing(tmp_path, "x.jsonl") == "x.jsonl.gz"


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


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{\n"a": 1,\n"b" 2}', ":3: no JSON"),
        (b'{\n"a": "\xc3"}', ":2: byte 0xc3 after 6 bytes is no UTF-8"),
    ],
)
def test_a_broken_json_file_names_the_line(tmp_path: Path, content: bytes, told: str) -> None:
    path, faults = save(tmp_path / "x.json", content), Faults()
    assert json_file(path, faults) is None
    assert faults_of(faults)[0].startswith(f"{path}{told}")


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        # commas, quotes and line breaks
        ("x.csv", 'id,text\r\n1,"a, ""b""\r\n\r\nc"\r\n\r\n2,d\r\n',
         [(1, ["id", "text"]), (2, ["1", 'a, "b"\n\nc']), (6, ["2", "d"])]),
        # quotes mean nothing between tabs
        ("x.tsv", '1\t"a\n2\tb, c"\n', [(1, ["1", '"a']), (2, ["2", 'b, c"'])]),
        ("x.csv", "1," + "a" * 1_000_000, [(1, ["1", "a" * 1_000_000])]),
    ],
    ids=["csv", "tsv", "a cell of a megabyte"],
)  # fmt: skip
def test_cells_hold_what_their_format_lets_them(
    tmp_path: Path, name: str, content: str, rows: list[tuple[int, list[str]]]
) -> None:
    assert list(table(save(tmp_path / name, content), Faults())) == rows


def test_an_open_quote_in_csv_is_a_fault(tmp_path: Path) -> None:
    path = save(tmp_path / "x.csv", 'id,text\n1,"a\n2,b\n')
    faults = Faults()
    assert list(table(path, faults)) == [(1, ["id", "text"])]
    assert faults_of(faults)[0].startswith(f"{path}:2: no CSV")


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
