"""The picture of a history: all of it shown, readable, in any script, light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.regression.history import subjects
from retrieval_bench.regression.history.facts import read_history
from retrieval_bench.reports.pictures.canvas import WIDTH
from retrieval_bench.reports.pictures.history import (
    Change,
    Course,
    Panel,
    Point,
    Timeline,
    _scale,
    history,
)
from retrieval_bench.reports.pictures.of_history import history_picture
from retrieval_bench.reports.pictures.palette import DARK, STYLES
from retrieval_bench.reports.render.text import clean
from tests.builders.history_sample import save_duet, save_run
from tests.unit.reports.test_pictures import LARGEST, SVG, TEXTS, described, parsed, words


def drawn(root: Path, **asked: Any) -> str:
    found = read_history([root])
    (only,) = subjects(found.runs, found.duets, **asked)
    return history_picture(only)


def timeline(n: int, *, courses: int = 1, name: str = "line 1") -> Timeline:
    names = [f"{name}{at or ''}" for at in range(courses)]
    points = [Point(at, 2.0 + at / n, (1.9, 3.1)) for at in range(n)]
    return Timeline(
        f"{n} runs",
        [f"2026-01-{1 + at % 28:02}" for at in range(n)],
        [Change(at, f"{at:07x}") for at in range(n)],
        [Panel("p50, milliseconds", "time", [Course(one, points) for one in names])],
        [(one, "a machine") for one in names],
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    for day in range(6):
        machine = {"fingerprint": "bbbb", "processor": "다른 기계"} if day == 4 else {}
        save_run(tmp_path, day, commit=day // 2, p50=2.0 + day / 10, machine=machine,
                 config=f"c{day // 5}")  # fmt: skip
    for day in range(3):
        save_duet(tmp_path, day, commit=day + 1, ratio=1.0 + day / 100)
    return tmp_path


def test_runs_and_duets_are_drawn_with_what_changed_between_them(saved: Path) -> None:
    svg = drawn(saved)
    shown = words(svg)
    for text in (
        "bm25 on tiny",
        "mean nDCG@10",
        "p50, milliseconds",
        "duet p50, % slower than the pinned revision",
        "1111111",
        "cfg 2",
        "line 2: 다른 기계, 2 cores (bbbb), 1 thread",
        "6 runs",
        "3 duets",
        "2026-01-01",
    ):
        assert text in shown, text
    assert not any("p95" in text for text in shown), "a figure that no run has is no panel"
    assert any("no verdict" in text for text in shown)


def test_it_is_read_aloud_with_first_and_last_value(saved: Path) -> None:
    assert "p50, milliseconds, line 1: 2.00 at first, 2.50 at last, 5 points." in described(
        drawn(saved)
    )


@pytest.mark.slow
def test_equal_data_gives_equal_bytes(saved: Path) -> None:
    assert drawn(saved) == drawn(saved)


def test_every_colour_has_its_counterpart_in_the_dark(saved: Path) -> None:
    svg = drawn(saved)
    style = parsed(svg).findtext(f"{SVG}style") or ""
    used = set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', svg.replace(style, "")))
    assert used
    for paint, color in used:
        assert f'[{paint}="{color}"]{{{paint}:{DARK[color]}}}' in style


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_text_in_any_script_is_shown_and_never_interpreted(text: str) -> None:
    svg = history(text, [timeline(3, name=text)], about=text, notes=[text])
    assert sum(clean(text)[:8] in shown for shown in words(svg)) >= 3
    assert {e.tag.removeprefix(SVG) for e in parsed(svg).iter()} <= {
        "svg", "title", "desc", "style", "defs", "g", "path", "use", "text", "clipPath", "rect",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_any_number_of_runs_fits(n: int) -> None:
    svg = history("title", [timeline(n)])
    assert len(svg) < LARGEST
    assert "nan" not in svg.lower().replace("finance", "")
    places = [float(x) for x in re.findall(r'<text[^>]* x="([\d.]+)"', svg)]
    assert places
    assert max(places) < WIDTH


def test_names_of_revisions_do_not_lie_on_each_other() -> None:
    shown = [text for text in words(history("title", [timeline(200)])) if len(text) == 7]
    assert 5 < len([text for text in shown if re.fullmatch("[0-9a-f]{7}", text)]) < 15


def test_of_more_lines_than_styles_all_are_drawn_and_the_first_explained() -> None:
    svg = history("title", [timeline(4, courses=len(STYLES) + 2)])
    assert sum("a machine" in text for text in words(svg)) == len(STYLES)


def test_nothing_to_draw_is_a_picture_too() -> None:
    assert "title" in words(history("title", [Timeline("0 runs", [], [], [], [])]))


def test_noise_looks_like_noise() -> None:
    """One percent is not stretched over the whole panel."""
    quiet = Panel("p50", "time", [Course("1", [Point(0, 2.00), Point(1, 2.02)])])
    scale = _scale(quiet)
    assert scale.high - scale.low >= 0.2
    ratios = _scale(Panel("duet", "ratio", [Course("a", [Point(0, 0.3)])]))
    assert (ratios.low, ratios.high) == pytest.approx((-5.5, 5.5))
