"""The picture of a history: all of it shown, in order, readable."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.vega import STYLES, WIDTH, Spec
from retrieval_bench_regress.history import subjects
from retrieval_bench_regress.history.facts import read_history
from retrieval_bench_regress.pictures.history import history, history_picture
from tests.builders.history_sample import save_duet, save_run, timeline
from tests.builders.pictures import LARGEST, data, described, layers, words


def drawn(root: Path, **asked: Any) -> Spec:
    found = read_history([root])
    (only,) = subjects(found.runs, found.duets, **asked)
    return history_picture(only)


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
    spec = drawn(saved)
    shown = words(svg(spec))
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


def test_runs_stand_in_their_order_with_their_intervals(saved: Path) -> None:
    quality, times, *_ = drawn(saved)["vconcat"]
    assert [(row["at"], row["value"]) for row in data(quality, "point")] == [
        (at, 0.5) for at in range(6)
    ]
    points = {row["at"]: row for row in data(times, "point")}
    assert sorted(points) == list(range(6))
    assert (points[1]["value"], points[1]["low"], points[1]["high"]) == (
        2.1, pytest.approx(0.9 * 2.1), pytest.approx(1.2 * 2.1)
    )  # fmt: skip
    assert points[4]["system"] != points[3]["system"], "another machine is another line"
    changes = [(row["at"], row["config"]) for row in data(times, "rule", "config")]
    assert changes == [(1.5, False), (3.5, False), (4.5, True)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_any_number_of_runs_fits(n: int) -> None:
    picture = svg(history("title", [timeline(n)]))
    assert len(picture) < LARGEST
    assert float(re.findall(r'width="([\d.]+)"', picture)[0]) <= WIDTH


def test_names_of_revisions_do_not_lie_on_each_other() -> None:
    shown = words(svg(history("title", [timeline(200)])))
    assert 5 < len([text for text in shown if re.fullmatch("[0-9a-f]{7}", text)]) < 15


def test_of_more_lines_than_styles_all_are_drawn_and_the_first_explained() -> None:
    spec = history("title", [timeline(4, courses=len(STYLES) + 2)])
    assert sum("a machine" in text for text in words(svg(spec))) == len(STYLES)
    lines = [row["system"] for layer in layers(spec) if layer["mark"]["type"] == "line"
             for row in layer["data"]["values"]]  # fmt: skip
    assert len(set(lines)) == len(STYLES) + 2


def test_noise_looks_like_noise() -> None:
    """One percent is not stretched over the whole panel."""

    def domain(kind: str, *values: float) -> list[float]:
        points = [
            {"system": "line 1", "at": at, "value": value, "low": value, "high": value}
            for at, value in enumerate(values)
        ]
        [view] = history("t", [replace(timeline(), panels=[(kind, "p", points)])])["vconcat"]
        low, high = view["encoding"]["y"]["scale"]["domain"]
        return [low, high]

    low, high = domain("time", 2.00, 2.02)
    assert high - low >= 0.2
    assert domain("ratio", 0.3) == pytest.approx([-5.5, 5.5])
