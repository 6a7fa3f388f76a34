"""Files of results: new, complete or not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import RecordError
from retrieval_bench_answers.jsonl import check_new_file, write_lines


def test_one_object_a_line_in_any_script(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    check_new_file(path)
    write_lines(path, [{"질문": "달"}, {"s": "\u2028 é"}])
    assert path.read_text(encoding="utf-8") == '{"질문": "달"}\n{"s": "\u2028 é"}\n'


def test_nothing_is_overwritten_and_a_folder_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(RecordError, match="is there already"):
        check_new_file(path)
    with pytest.raises(RecordError, match="is there already"):
        write_lines(path, [{}])
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(RecordError, match="no such folder"):
        check_new_file(tmp_path / "none" / "out.jsonl")


def test_what_breaks_in_the_middle_or_is_no_json_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield {"a": 1}
        raise OSError(28, "No space left on device")

    with pytest.raises(RecordError, match="No space left"):
        write_lines(tmp_path / "out.jsonl", broken())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="Out of range"):
        write_lines(tmp_path / "out.jsonl", [{"a": float("inf")}])
    assert list(tmp_path.iterdir()) == []
