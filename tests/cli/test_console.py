"""How loud a command is: the answer, all there is with ``-v``, the answer alone with ``-q``."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest

from retrieval_bench.cli.console import reporter, show
from retrieval_bench.core.progress import Phase, Silent, Step
from retrieval_bench.reports.render.table import Table, next_step, result, warning
from tests.cli import project as user
from tests.cli.project import Command, saved_runs

QUICK = ("--dataset", "data", *user.QUICK)

MIXED = """\
name: mixed
target: hybrid
params:
  legs: [{target: own.py:Overlap, name: words}, {target: bm25, name: bm25}]
"""

LONG = "a note that is longer than a line is broken between two words, and goes on " * 2
BRIEF = Table(
    "The answer.",
    ("", "x"),
    [("row", "1")],
    notes=["a method", next_step("more:  -v")],
    lead=[result("a part of it"), warning("mind this")],
)
FULL = [Table("All.", ("", "x"), [("row", "1"), ("other", "2")], notes=[LONG])]


def options(format_: str = "table", **loud: bool) -> argparse.Namespace:
    return argparse.Namespace(**{"format": format_, "verbose": False, "quiet": False} | loud)


def shown(capsys: pytest.CaptureFixture[str], given: argparse.Namespace) -> str:
    show(given, {"a": 1}, lambda: FULL, lambda: [BRIEF])
    out, err = capsys.readouterr()
    assert err == ""
    return out


class TestShow:
    def test_the_answer_is_what_is_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = shown(capsys, options())
        assert text == (
            "The answer.\n  a part of it\n  !  mind this\n\n        x\n  row   1\n\n"
            "  i  a method\n  more:  -v\n"
        )

    def test_quiet_shows_the_answer_and_what_changes_how_it_is_read(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = shown(capsys, options(quiet=True))
        assert text == "The answer.\n  a part of it\n  !  mind this\n"

    def test_markdown_is_the_short_output(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert shown(capsys, options("markdown")).startswith("**The answer.**\n")
        assert shown(capsys, options("markdown", verbose=True)).startswith("**All.**\n")

    @pytest.mark.parametrize("given", [options(verbose=True), options("csv"), options("latex")])
    def test_verbose_and_formats_for_programs_hold_all(
        self, capsys: pytest.CaptureFixture[str], given: argparse.Namespace
    ) -> None:
        text = shown(capsys, given)
        assert text.startswith("All.\n") or given.format != "table"
        assert "All." in text
        assert "other" in text
        assert "The answer." not in text

    @pytest.mark.parametrize("loud", [{}, {"verbose": True}, {"quiet": True}])
    def test_json_is_the_document_however_loud(
        self, capsys: pytest.CaptureFixture[str], loud: dict[str, bool]
    ) -> None:
        document = json.loads(shown(capsys, options("json", **loud)))
        assert document == {"schema_version": 1, "a": 1}

    def test_a_command_without_a_short_output_shows_all(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        show(options(), {}, lambda: FULL)
        assert capsys.readouterr().out.startswith("All.\n")

    @pytest.mark.parametrize(
        ("columns", "width"), [(None, 100), ("80", 80), ("120", 120), ("0", 100)]
    )
    def test_notes_are_wrapped_at_100_columns_or_where_the_user_says(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        columns: str | None,
        width: int,
    ) -> None:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        lines = shown(capsys, options(verbose=True)).splitlines()
        first = next(line for line in lines if line.startswith("  i  a note"))
        longest_word = max(map(len, LONG.split()))
        assert width - longest_word - 1 <= len(first) <= width
        assert lines[lines.index(first) + 1].startswith("     ")


class TestReporter:
    def test_where_there_is_no_terminal_a_phase_is_a_line_on_stderr(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with reporter(options()) as bars, bars.phase(Phase(Step.INDEXING, "bm25")):
            pass
        assert capsys.readouterr() == ("", "retrieval-bench: indexing bm25 ...\n")

    def test_quiet_silences_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        with reporter(options(quiet=True)) as bars:
            assert isinstance(bars, Silent)
        assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("project")
class TestCommands:
    def test_bench_is_short_quiet_or_whole(self, run: Command) -> None:
        assert run("bench own.yaml", *QUICK) == 0
        usual = run.out
        assert "Machine: " not in usual
        assert "saved: results/runs/" in usual.replace("\\", "/")
        assert run("bench own.yaml -q", *QUICK) == 0
        assert run.err == ""
        first, *rest = run.out.splitlines()
        assert first.startswith("own on data: nDCG@10 1.000")
        assert all(line.startswith(("  !  ", "     ")) for line in rest)
        assert run("bench own.yaml -v", *QUICK) == 0
        for told in ("own on data (test), k = 10", "Machine: ", "Convention: ", "p99 ms"):
            assert told in run.out
        assert len(run.out.splitlines()) > len(usual.splitlines())

    @pytest.mark.slow
    def test_compare_is_short_quiet_or_whole(self, run: Command) -> None:
        assert run("compare own.yaml,bm25", *QUICK) == 0
        usual = run.out
        assert re.search("against (own|bm25)", usual)
        assert "Time and cost" not in usual
        assert run("compare own.yaml bm25 -q", *QUICK) == 0
        assert run.err == ""
        assert run.out.startswith("data: 4 queries, 4 documents, top 10")
        # Both find the same; whether one is shown to be faster is the machine's.
        answer = r"interleaved, 1 client (own and bm25 return identical rankings|Use )"
        assert re.search(answer, run.unwrapped)
        assert "p50 ms" not in run.out
        assert run("compare own.yaml bm25 -v", *QUICK) == 0
        for told in ("Time and cost on data", "Paired differences in nDCG@10", "Machine: "):
            assert told in run.out

    def test_quiet_and_verbose_do_not_go_together(self, run: Command) -> None:
        assert "not allowed with" in run.refused("bench own.yaml -q -v", *QUICK)

    def test_summary_txt_holds_what_verbose_shows(self, project: Path, run: Command) -> None:
        """The tables of the run, whole and plain; where the run was saved is known there."""
        assert run("bench own.yaml -v", *QUICK) == 0
        (folder,) = saved_runs(project)
        text = (folder / "summary.txt").read_text(encoding="utf-8")
        assert text == run.out
        assert "\x1b" not in text

    @pytest.mark.parametrize(
        ("asked", "told"),
        [
            (("bm25", *QUICK), "retrieval-bench compare bm25 dense-light --dataset data\n"),
            (("own.yaml", *QUICK, "--k", "5"), "compare own.yaml bm25 --dataset data --k 5\n"),
            (("own.py:Overlap", *QUICK), "compare own.py:Overlap bm25 --dataset data\n"),
        ],
    )
    def test_what_has_no_parts_is_put_beside_another_one_next(
        self, run: Command, asked: tuple[str, ...], told: str
    ) -> None:
        assert run("bench", *asked) == 0
        after = run.out.partition("  next:")[2].partition("  more:")[0]
        assert " ".join(after.split()).endswith(told.strip())

    def test_nothing_is_next_where_the_same_cannot_be_asked_again(
        self, project: Path, run: Command
    ) -> None:
        (project / "own.run").write_text("q1 Q0 d1 1 2.5 x\n", encoding="utf-8")
        for asked in (("bm25", "--set", "k1=1.5"), ("own.run",)):
            assert run("bench", *asked, *QUICK) == 0
            assert "next:" not in run.out

    @pytest.mark.slow
    def test_a_hybrid_is_held_against_its_best_leg_everywhere(
        self, project: Path, run: Command
    ) -> None:
        """In the short output, with -v, in JSON, and in summary.txt."""
        (project / "mixed.yaml").write_text(MIXED, encoding="utf-8")
        assert run("bench mixed.yaml", *QUICK) == 0
        assert ", its best leg, alone" in run.unwrapped
        assert "next:  retrieval-bench explain @last" in run.out
        assert run("explain @last") == 0
        assert "mixed and its legs on data" in run.out
        assert run.json("bench mixed.yaml", *QUICK)["best_leg"]["a"] == "mixed"
        assert run("bench mixed.yaml -v --out here", *QUICK) == 0
        assert ", its best leg, alone" in run.unwrapped
        assert (project / "here" / "summary.txt").read_text(encoding="utf-8") == run.out

    def test_each_run_of_a_comparison_has_its_summary_txt(
        self, project: Path, run: Command
    ) -> None:
        assert run("compare own.yaml bm25", *QUICK) == 0
        texts = [(one / "summary.txt").read_text("utf-8") for one in saved_runs(project)]
        titles = [text.splitlines()[0] for text in texts]
        assert sorted(titles) == ["bm25 on data (test), k = 10", "own on data (test), k = 10"]

    def test_the_last_run_is_found_again(self, run: Command) -> None:
        assert run("bench bm25", *QUICK) == 0
        assert run("bench own.yaml", *QUICK) == 0
        systems = run.json("compare bm25@latest @last")["systems"]
        assert [system["name"] for system in systems] == ["bm25", "own"]
        assert "no saved run of 'splade'" in run.refused("compare @last splade@latest")

    def test_saved_runs_and_retrievers_do_not_mix(self, run: Command) -> None:
        assert run("bench own.yaml", *QUICK) == 0
        assert "saved runs beside a retriever: bm25" in run.refused("compare @last bm25")
