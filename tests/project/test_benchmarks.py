"""The benchmarks still run, and their rows say what they should; no figure is expected."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import GROUPS, main
from tests.benchmarks.regressions import CHANGES, ROOT, Change
from tests.benchmarks.report import Group, Row, figure
from tests.benchmarks.trials import judge
from tests.benchmarks.trials.toys import TOYS, TRAP, make
from tests.builders.processes import completed


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (Row("a", 0.001, "s", 0.4, "x", at_most=1 / 300), ("400 x less", "300 x less", "met")),
        (Row("a", 0.001, "s", 0.2, "x", at_most=1 / 300), ("200 x less", "300 x less", "MISSED")),
        (Row("a", 3e6, "bytes", 2e6, "x", at_most=2), ("1.5 x more", "at most 2 x", "met")),
        (Row("a", 5e6, "bytes", 2e6, "x", at_most=2), ("2.5 x more", "at most 2 x", "MISSED")),
        (Row("a", 1.0, "s", 1.5, "x", at_most=1), ("1.5 x less", "less", "met")),
        (Row("a", 0.2, "s", 0.1, "x", 0.25, absolute=True), ("2 x more", "under 250 ms", "met")),
        (Row("a", 60e-6, "s", at_most=50e-6, absolute=True), ("", "under 50 us", "MISSED")),
        (Row("a", 1, "count", at_most=0, absolute=True), ("", "none", "MISSED")),
        (Row("a", 0, "count", 40, "x"), ("nothing", "", "")),
    ],
)
def test_a_row_is_judged_by_its_ratio_or_by_itself(row: Row, cells: tuple[str, ...]) -> None:
    assert row.cells()[3:] == cells


def test_figures_have_the_unit_that_suits_them() -> None:
    assert [figure(value, "s") for value in (12.345, 0.0123, 4.5e-05, 9e-08)] == [
        "12.3 s",
        "12.3 ms",
        "45 us",
        "90 ns",
    ]
    assert figure(2_500_000, "bytes") == "2.5 MB"
    assert figure(1234, "count") == "1,234"


def test_a_quick_run_judges_nothing() -> None:
    group = Group("t", [Row("a", 2.0, "s", 1.0, "x", at_most=1)]).without_targets()
    assert group.rows[0].met is None
    assert group.rows[0].cells() == ("a", "2 s", "1 s x", "2 x more", "", "")


def run_quickly(folder: Path, *names: str) -> dict[str, list[dict[str, object]]]:
    """Rows of each group, from the JSON of a quick run in a process of its own."""
    file = folder / "perf.json"
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", "--json", str(file)]
    done = completed(*command, "--only", *names, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stderr
    groups = json.loads(file.read_text(encoding="utf-8"))["groups"]
    assert all(f"\n{name}: " in done.stdout for name in names)
    return {name: group["rows"] for name, group in groups.items()}


@pytest.mark.slow
@pytest.mark.long
def test_all_but_encoding_can_be_measured(tmp_path: Path) -> None:
    names = [name for name in GROUPS if name != "dense"]
    rows = run_quickly(tmp_path, *names)
    assert list(rows) == names
    assert [row["ours"] for row in rows["startup"] if row["unit"] == "count"] == [0]
    measured = [row for name in names for row in rows[name] if row["unit"] != "count"]
    more = [row["ours"] for row in measured if "more with" in str(row["what"])]
    assert len(more) == 2
    assert None not in more  # a difference, which may be nothing
    assert all(row["ours"] for row in measured if "more with" not in str(row["what"]))
    assert len(rows["search"]) == 8
    assert len(rows["compare"]) >= 3


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.dense
def test_a_second_dense_run_can_be_measured(tmp_path: Path) -> None:
    (first, *_) = run_quickly(tmp_path, "dense")["dense"]
    assert first["what"] == "texts encoded"
    assert first["ours"] == 0


def test_a_group_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    said = capsys.readouterr().err
    assert all(name in said for name in GROUPS)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_is_planted_into_the_code_still_fits_it(change: Change) -> None:
    assert (ROOT / change.file).read_text(encoding="utf-8").count(change.old) == 1


@pytest.mark.parametrize("name", TOYS)
def test_what_a_judge_of_trials_changes_still_fits_the_toys(tmp_path: Path, name: str) -> None:
    for change, edit in TOYS[name].edits.items():
        make(name, tmp_path / change)
        edit.apply(tmp_path / change)
    questions = (tmp_path / "worse" / "trap.md").read_text(encoding="utf-8").splitlines()[2:]
    assert len(questions) == len(TRAP) == 12
    assert {path.name.partition("-")[0] for path in judge.MADE.iterdir()} == set(TOYS)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
@pytest.mark.parametrize("trial", ["command-ids", "mcp-phrases", "langchain-files", "http-ids"])
def test_a_trial_of_each_toy_is_right(trial: str) -> None:
    codes = judge.judged(judge.MADE / trial)
    assert {check: code for check, (code, _) in codes.items()} == {
        check: right for check, (_, right) in codes.items()
    }
