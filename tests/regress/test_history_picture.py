"""The picture of a history: all of it shown, in order, readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.vega import WIDTH, Spec
from retrieval_bench_regress.history import subjects
from retrieval_bench_regress.history.facts import read_history
from retrieval_bench_regress.pictures.history import history_picture
from tests.builders.history_sample import many, save_duet, save_run
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


def keys(root: Path) -> tuple[str, str]:
    """The keys for times of the first machine and of the other one, as they are shown."""
    (only,) = subjects(read_history([root]).runs, ())
    return str(only.runs[0].same_times)[:6], str(only.runs[4].same_times)[:6]


def test_runs_and_duets_are_drawn_a_panel_for_each_figure(saved: Path) -> None:
    spec = drawn(saved)
    shown = words(svg(spec))
    for text in (
        "bm25 on tiny",
        "mean nDCG@10",
        "p50, milliseconds",
        "duet p50, ratio to side a",
        "2026-01-01",
        "1111111",
        *keys(saved),
    ):
        assert text in shown, text
    assert not any("p95" in text for text in shown), "a figure that no run has is no panel"
    assert any("decided by a duet" in text for text in shown)


def test_it_is_read_aloud_with_first_and_last_value(saved: Path) -> None:
    one, other = keys(saved)
    said = described(drawn(saved))
    assert f"p50, milliseconds, {one}: 2.00 at first, 2.50 at last, 5 points." in said
    assert f"p50, milliseconds, {other}: 2.40 at first, 2.40 at last, 1 points." in said
    assert "mean nDCG@10: 0.500 at first, 0.500 at last, 6 points." in said


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


@pytest.mark.parametrize(
    "other",
    [
        {"machine": {"fingerprint": "bbbb"}},
        {"k": 100},
        {"convention": "piaf"},
        {"fingerprint": "e" * 32},
        {"metrics_version": 2},
    ],
)
def test_no_line_joins_what_has_different_keys(tmp_path: Path, other: dict[str, Any]) -> None:
    for day in range(4):
        save_run(tmp_path, day, **(other if day % 2 else {}))
    found = read_history([tmp_path])
    (only,) = subjects(found.runs, ())
    quality, times = history_picture(only)["vconcat"]
    for panel, keys in (
        (quality, [str(run.same_quality) for run in only.runs]),
        (times, [str(run.same_times) for run in only.runs]),
    ):
        (line,) = (layer for layer in layers(panel) if layer["mark"]["type"] == "line")
        assert line["encoding"] == {"detail": {"field": "key"}}
        rows = line["data"]["values"]
        assert {row["at"]: row["key"] for row in rows} == dict(enumerate(keys))
        assert [row["key"] for row in rows] == sorted(keys, key=keys.index), "line by line"


def test_what_was_cut_short_is_on_no_line(tmp_path: Path) -> None:
    save_run(tmp_path, 0)
    save_run(tmp_path, 1, status="partial")
    for panel in drawn(tmp_path)["vconcat"]:
        assert [row["at"] for row in data(panel, "point")] == [0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_any_number_of_runs_fits(n: int) -> None:
    picture = svg(history_picture(many(n)))
    assert len(picture) < LARGEST
    assert float(re.findall(r'width="([\d.]+)"', picture)[0]) <= WIDTH


def test_a_run_that_no_line_joins_has_a_mark_among_any_number_of_others() -> None:
    (panel,) = history_picture(many(100, alone=1))["vconcat"]
    assert [row["at"] for row in data(panel, "point")] == [99]


def test_names_below_a_panel_do_not_lie_on_each_other() -> None:
    shown = words(svg(history_picture(many(200))))
    assert 3 < len([text for text in shown if re.fullmatch("[0-9a-f]{7}", text)]) < 8


def test_noise_looks_like_noise(tmp_path: Path) -> None:
    """One percent is not stretched over the whole panel."""
    for day in range(2):
        save_run(tmp_path, day, p50=2.0 + day / 50)
        save_duet(tmp_path, day, ratio=1.0 + day / 100)
    _, times, ratios = drawn(tmp_path)["vconcat"]
    for panel, least in ((times, 0.2), (ratios, 0.1)):
        low, high = panel["encoding"]["y"]["scale"]["domain"]
        assert high - low >= least
