"""A folder that was changed after it was saved is told from one that another program made."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from retrieval_bench.core.errors import RecordError
from retrieval_bench.runs.checksums import SUMS, check_sums, write_sums
from retrieval_bench.runs.records import SUMMARY, read_run, write_run
from tests.builders.runs import sample_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(sample_run("a", 0), tmp_path / "run")
    return tmp_path / "run"


def test_tools_of_the_system_read_them(folder: Path) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS],
        check=False,
        cwd=folder,
        capture_output=True,
        timeout=60,
    )
    assert checked.returncode == 0
    assert len(checked.stdout.splitlines()) == len(list(folder.iterdir())) - 1


@pytest.mark.parametrize("name", ["summary.json", "manifest.json", "per_query.csv", "run.trec"])
def test_a_figure_that_was_edited_is_no_figure_of_this_run(folder: Path, name: str) -> None:
    text = (folder / name).read_text("utf-8")
    (folder / name).write_text(text.replace("1", "2", 1), "utf-8")
    with pytest.raises(RecordError, match=f"damaged or was edited: {re.escape(name)}") as caught:
        read_run(folder)
    assert "measure again" in str(caught.value)


@pytest.mark.parametrize("name", ["rankings.npz", "timings.npz"])
def test_a_single_bit_of_an_array_is_seen(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(RecordError, match=re.escape(name)):
        read_run(folder)


def test_a_file_that_came_later_is_free_and_one_that_was_not_copied_is_named(folder: Path) -> None:
    (folder / "summary.txt").write_text("a note of mine", "utf-8")
    assert read_run(folder).name == "a"
    (folder / "run.trec").unlink()
    with pytest.raises(RecordError, match=r"run\.trec cannot be read: No such file"):
        read_run(folder)


def test_records_of_versions_before_have_none_and_bytes_that_are_no_text_are_damage(
    folder: Path,
) -> None:
    (folder / SUMS).unlink()
    assert read_run(folder).name == "a"
    (folder / SUMS).write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match=f"{SUMS} cannot be read"):
        check_sums(folder)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("no checksum at all", "no checksum with the name of a file"),
        ("00  ../elsewhere", "no checksum with the name of a file"),
        ("00  nowhere", "nowhere cannot be read"),
        ("00  summary.json", "summary.json is not what was written"),
    ],
)
def test_odd_lines_are_damage(folder: Path, line: str, says: str) -> None:
    (folder / SUMS).write_text(line + "\n", "utf-8")
    with pytest.raises(RecordError, match=says):
        check_sums(folder)


def test_the_sums_do_not_name_themselves(folder: Path) -> None:
    write_sums(folder)
    assert SUMS not in (folder / SUMS).read_text("utf-8")
    assert SUMMARY in (folder / SUMS).read_text("utf-8")
