"""Progress where there is no terminal: a line for each phase, and more where it takes long."""

from __future__ import annotations

import io
import sys
from types import ModuleType

import pytest

from retrieval_bench.core.progress import TEXTS, Phase, Silent, Step
from retrieval_bench.reports.progress_bar import Bars, Lines, in_notebook


def test_a_phase_is_one_line_however_many_calls_it_has() -> None:
    lines: list[str] = []
    with Lines(lines.append).phase(Phase(Step.INDEXING, "bm25")) as task:
        assert lines == ["retrieval-bench: indexing bm25 ..."]
        for done in range(1000):
            task(done, 1000)
    assert lines == ["retrieval-bench: indexing bm25 ..."]


def test_a_phase_that_takes_long_says_each_half_minute_how_far_it_is() -> None:
    lines: list[str] = []
    times = iter([0.0, 3.0, 30.0, 45.0, 80.0, 300.0])
    with Lines(lines.append, clock=lambda: next(times)).phase(Phase(Step.INDEXING, "x")) as task:
        for done in (10, 100, 150, 500, 1000):
            task(done, 1000)
    assert lines[1:] == [
        "retrieval-bench: indexing x: 100 of 1,000, 4 min left",
        "retrieval-bench: indexing x: 500 of 1,000, 79 s left",
    ]


def test_how_long_it_takes_is_not_told_from_the_first_call() -> None:
    lines: list[str] = []
    times = iter([0.0, 31.0, 32.0, 41.0])
    with Lines(lines.append, clock=lambda: next(times)).phase(Phase(Step.SEARCHING, "x")) as task:
        for done in (1, 2, 11):
            task(done, 1000)
    assert lines[1:] == ["retrieval-bench: searching with x: 2 of 1,000, 17 min left"]


def test_progress_never_goes_back() -> None:
    """A total that grows, and a second pass that counts anew, take nothing back."""
    lines: list[str] = []
    times = iter([0.0, 30.0, 60.0, 90.0, 120.0, 150.0])
    told = [(900, 1000), (950, 2000), (1990, 2000), (10, 2000), (0, 0)]
    with Lines(lines.append, clock=lambda: next(times)).phase(Phase(Step.INDEXING, "x")) as task:
        for done, total in told:
            task(done, total)
    shown = [line.split(": ")[2].split(", ")[0] for line in lines[1:]]
    counts = ["900 of 1,000", "1,800 of 2,000", "1,990 of 2,000", "1,990 of 2,000"]
    assert shown == counts


def test_phases_follow_each_other_and_say_in_which_launch_they_are() -> None:
    lines: list[str] = []
    times = iter([0.0, 29.0, 31.0])
    reporter = Lines(lines.append, clock=lambda: next(times))
    soon = Phase(Step.SEARCHING, "bm25")
    for phase in (Phase(Step.INDEXING, "bm25", "launch 2 of 5"), soon, Phase(Step.ASKING_LEGS)):
        with reporter.phase(phase):
            pass
    assert lines == [
        "retrieval-bench: launch 2 of 5: indexing bm25 ...",
        "retrieval-bench: asking the legs ...",
    ]


class _Screen(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_name_with_markup_or_control_characters_is_shown_as_text() -> None:
    screen = _Screen()
    phase = Phase(Step.INDEXING, "[/b] [red]\x1b[2J\u202e")
    with Bars(screen) as bars, bars.phase(phase) as task:
        task(1, 1)
    for shown in (screen.getvalue(), f"{phase.text}\n"):
        assert r"indexing [/b] [red]\x1b[2J\u202e" in shown


def test_every_step_has_words_in_which_no_brace_is_left() -> None:
    assert set(TEXTS) == set(Step)
    for step in Step:
        assert not set("{}") & set(Phase(step, "x").text)


def test_what_fails_in_a_phase_is_not_swallowed() -> None:
    failed = False
    try:
        with Lines(lambda _: None).phase(Phase(Step.SEARCHING, "bm25")):
            raise RuntimeError("x")
    except RuntimeError:
        failed = True
    assert failed


def test_a_notebook_gets_a_line_a_phase_and_a_script_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert in_notebook(None) is None
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    own = Silent()
    assert in_notebook(own) is own
    found = in_notebook(None)
    assert found is not None
    with found.phase(Phase(Step.INDEXING, "bm25")):
        pass
    assert capsys.readouterr().err == "retrieval-bench: indexing bm25 ...\n"
