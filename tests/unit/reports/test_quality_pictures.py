"""Pictures of quality: against time, metric by metric, and the differences of a pair."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.reports.pictures import Spot, gains, pareto, quality
from retrieval_bench.reports.pictures.canvas import WIDTH
from retrieval_bench.reports.pictures.gains import _thinned
from retrieval_bench.reports.pictures.labels import Box, Label, placed
from retrieval_bench.reports.pictures.palette import DARK, STYLES
from retrieval_bench.reports.pictures.pareto import front
from retrieval_bench.reports.pictures.quality import Estimate
from retrieval_bench.reports.render.text import clean
from tests.unit.reports.test_pictures import (
    LARGEST,
    SVG,
    TEXTS_IN_PICTURES,
    axis_places,
    described,
    parsed,
    words,
)

NAN = float("nan")


def spot(name: str, value: float, ms: float | None) -> Spot:
    ends = None if ms is None else (0.9 * ms, 1.2 * ms)
    return Spot(name, value, ms, (value - 0.02, value + 0.02), ends)


def estimates(*values: float) -> list[Estimate]:
    return [(value, (value - 0.02, value + 0.02)) for value in values]


@cache
def fold(name: str) -> list[str]:
    """All three pictures of the same data."""
    spots = [spot(name, 0.7, 10.0), spot("fast", 0.6, 0.5), spot("bad", 0.5, 11.0)]
    values = {name: estimates(0.7, 0.6, 0.5), "RR": estimates(0.1, 0.2, 0.3)}
    differences = np.array([0.5, -0.2, 0.0, 0.1])
    return [
        pareto(spots, metric="nDCG@10", about=name),
        quality([name, "fast", "bad"], values, about=name),
        gains(differences, [name] * 4, a=name, b="fast", metric="nDCG@10", about=name),
    ]


PICTURES = ["pareto", "quality", "gains"]
EACH = pytest.mark.parametrize("at", range(3), ids=PICTURES)


@EACH
def test_a_picture_says_in_words_what_it_shows(at: int) -> None:
    root = parsed(fold("bm25")[at])
    assert root.get("role") == "img"
    assert len(root.findtext(f"{SVG}title") or "") > 10
    assert "bm25" in described(fold("bm25")[at])
    assert int(root.get("width") or 0) == WIDTH


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("text", TEXTS_IN_PICTURES)
def test_text_in_any_script_is_shown_and_never_interpreted(at: int, text: str) -> None:
    svg = fold(text)[at]
    assert any(clean(text)[:8] in shown for shown in words(svg))
    assert {e.tag.removeprefix(SVG) for e in parsed(svg).iter()} <= {
        "svg", "title", "desc", "style", "defs", "g", "path", "use", "text", "pattern", "rect",
        "clipPath",
    }  # fmt: skip


@EACH
def test_every_colour_has_its_counterpart_in_the_dark(at: int) -> None:
    svg = fold("bm25")[at]
    style = parsed(svg).findtext(f"{SVG}style") or ""
    used = set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', svg.replace(style, "")))
    assert used
    for paint, color in used:
        assert f'[{paint}="{color}"]{{{paint}:{DARK[color]}}}' in style


@pytest.mark.slow
@EACH
def test_equal_data_gives_equal_bytes(at: int) -> None:
    first = fold("bm25")[at]
    fold.cache_clear()
    assert fold("bm25")[at] == first


# -- the front -----------------------------------------------------------------------------------


def test_the_front_is_what_no_other_system_beats_in_both() -> None:
    value, ms = [0.7, 0.6, 0.5, 0.7, 0.6], [10.0, 0.5, 11.0, 12.0, 0.5]
    assert front(value, ms) == [True, True, False, False, True], "equal ones stand side by side"
    assert front([], []) == []
    rng = np.random.default_rng(1)
    q, t = rng.random(40).round(1), rng.random(40).round(1)
    for at, best in enumerate(front(q.tolist(), t.tolist())):
        beaten = any(
            q[i] >= q[at] and t[i] <= t[at] and (q[i] > q[at] or t[i] < t[at]) for i in range(40)
        )
        assert best is not beaten


def dots(svg: str) -> list[tuple[float, float]]:
    """Places of the markers of the first systems, in the order of their styles."""
    found = {}
    for group in parsed(svg).iter():
        for use in group.findall(f"{SVG}use"):
            fill = use.get("fill") or group.get("fill")
            found[fill] = (float(use.get("x") or 0), float(use.get("y") or 0))
    return [found[style.color] for style in STYLES if style.color in found]


def test_systems_stand_at_their_time_and_quality() -> None:
    svg = fold("bm25")[0]
    (x1, y1), (x2, y2), (x3, y3) = dots(svg)
    one, ten = axis_places(svg, ["1", "10"])
    assert x1 == pytest.approx(ten, abs=0.1)
    assert x2 == pytest.approx(one + np.log10(0.5) * (ten - one), abs=0.1)
    assert x3 > x1
    assert (y2 - y1) == pytest.approx(y3 - y2, abs=0.1)
    assert y1 < y2, "up is better"


def test_the_box_of_a_system_spans_both_intervals() -> None:
    svg = pareto([spot("a", 0.7, 10.0), spot("b", 0.5, 1.0)], metric="m")
    one, ten = axis_places(svg, ["1", "10"])
    [path] = [
        e.get("d") or "" for e in parsed(svg).iter(f"{SVG}path")
        if e.get("fill") == STYLES[0].color and (e.get("opacity") or e.get("fill-opacity"))
    ]  # fmt: skip
    x = [float(pair[0]) for pair in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
    for end, value in ((min(x), 9.0), (max(x), 12.0)):
        assert end == pytest.approx(one + np.log10(value) * (ten - one), abs=0.1)


def test_those_on_the_front_are_bold_and_said_to_be() -> None:
    svg = fold("bm25")[0]
    weights = {t.text: t.get("font-weight") for t in parsed(svg).iter(f"{SVG}text")}
    assert weights["bm25"] == weights["fast"] == "700"
    assert weights["bad"] != "700"
    assert "2 systems on the front." in described(svg)
    assert "bad: quality 0.5000" in described(svg)


def test_systems_without_a_time_or_a_mean_are_named_below() -> None:
    svg = pareto([spot("a", 0.7, 1.0), spot("b", 0.7, None), spot("c", NAN, 1.0)], metric="m")
    assert "Systems without a mean or a p95 are not shown: b, c." in words(svg)
    assert len(dots(svg)) == 1
    assert "No system has both a mean and a p95." in words(pareto([], metric="m"))


@pytest.mark.slow
def test_few_systems_have_names_and_of_many_the_others_have_numbers() -> None:
    rng = np.random.default_rng(4)
    spots = [
        spot(f"system {i % 40}", float(rng.uniform(0.3, 0.8)), float(rng.lognormal(1, 1)))
        for i in range(50)
    ]
    shown = words(pareto(spots[:12], metric="m"))
    assert all(f"system {i}" in shown for i in range(12))
    svg = pareto(spots, metric="m")
    shown = words(svg)
    for i in range(50):
        assert (f"system {i}" if i < 40 else f"system {i - 40}#2") in shown
    assert len(svg.encode()) < LARGEST


def test_labels_leave_dots_and_each_other_free_where_there_is_room() -> None:
    area = Box(0, 0, 600, 300)
    rng = np.random.default_rng(2)
    spots = rng.uniform(20, 280, (9, 2)).tolist()
    labels = [Label(2 * x, y, ("system name",)) for x, y in spots]
    boxes = placed(labels, area)
    assert not any(one.covers(other) for one, other in combinations(boxes, 2))
    assert not any(box.covers(label.dot) for box in boxes for label in labels)
    assert all(area.covers(box) == pytest.approx(12 * (box.right - box.left)) for box in boxes)


def test_labels_of_one_place_stand_apart() -> None:
    labels = [Label(100.0, 100.0, ("one", "more"), bold=True)] * 20
    boxes = placed(labels, Box(0, 0, 300, 300))
    assert not any(one.covers(other) for one, other in combinations(boxes, 2))
    assert not any(box.covers(labels[0].dot) for box in boxes)


def test_a_label_at_the_edge_stays_inside() -> None:
    [box] = placed([Label(595.0, 3.0, ("long name of a system",))], Box(0, 0, 600, 300))
    assert box.right <= 600
    assert box.top >= 0


def test_a_label_goes_round_lines_and_stays_nearer_to_its_dot_than_to_another() -> None:
    area, name = Box(0, 0, 400, 300), ("name",)
    line = Box(100, 97, 400, 103)
    [box] = placed([Label(200.0, 100.0, name)], area, [line])
    assert box.covers(line) == 0
    [left, _] = placed([Label(200.0, 100.0, name), Label(212.0, 112.0, name)], area)
    assert left.right < 200, "on the right it would be read as the name of the other dot"


# -- metric by metric ----------------------------------------------------------------------------


def test_each_metric_has_its_own_order_the_best_first() -> None:
    svg = quality(["a", "b", "c"], {"P": estimates(0.1, 0.3, 0.2), "R": estimates(0.9, 0.7, NAN)})
    shown = words(svg)
    names = [text for text in shown if text in "abc"]
    assert names == ["b", "c", "a", "a", "b", "c"]
    assert shown.count("–") == 1
    assert "P: b 0.3000 [0.2800, 0.3200], c 0.2000" in described(svg)


@pytest.mark.slow
def test_fifty_systems_have_a_row_each_in_every_panel() -> None:
    values = np.linspace(0.2, 0.9, 50).tolist()
    svg = quality([f"s{i % 30}" for i in range(50)], {m: estimates(*values) for m in "PQR"})
    names = [t for t in parsed(svg).iter(f"{SVG}text") if re.fullmatch(r"s\d+(#2)?", t.text or "")]
    assert len(names) == 150
    assert len({t.text for t in names}) == 50
    left = sorted(float(t.get("y") or 0) for t in names if float(t.get("x") or 0) < 300)[:50]
    assert min(np.diff(left)) >= 12, "a line of text is 12 px high"
    assert len(svg.encode()) < LARGEST


@pytest.mark.slow
@pytest.mark.parametrize("values", [[], [NAN], [0.0], [0.5, 0.5], [1.0, 0.0]])
def test_any_means_can_be_drawn(values: list[float]) -> None:
    names = [f"s{i}" for i in range(len(values))]
    for svg in (
        quality(names, {"P": [(value, None) for value in values]}),
        quality(names, {}),
        pareto([Spot(name, value, 1.0) for name, value in zip(names, values, strict=True)],
               metric="P"),
    ):  # fmt: skip
        ElementTree.fromstring(svg)
        assert "nan" not in svg.lower()


# -- differences ---------------------------------------------------------------------------------


def test_differences_are_counted_and_both_ends_named() -> None:
    differences = np.array([0.5, -0.2, 0.0, 0.1, -0.4])
    svg = gains(differences, list("vwxyz"), a="old", b="new", metric="RR")
    shown = words(svg)
    assert "new is above old on 2 queries, below it on 2 and equal to it on 1." in shown
    assert "Dashed line: the mean difference is 0.0000." in shown
    assert [text for text in shown if "(" in text] == [
        "z (-0.400)", "w (-0.200)", "v (+0.500)", "y (+0.100)",
    ]  # fmt: skip
    assert "Largest losses: z -0.400, w -0.200" in described(svg)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 640, 641, 20_000])
def test_any_number_of_queries_can_be_drawn(n: int) -> None:
    values = np.sort(np.random.default_rng(n).normal(0, 0.1, n))
    edges, heights = _thinned(values, 640)
    assert len(edges) == len(heights) + 1
    assert len(heights) <= 640
    if n:
        assert (edges[0], edges[-1]) == (0, n)
        assert (heights[0], heights[-1]) == (values[0], values[-1])
        at = np.searchsorted(edges, np.arange(n), side="right") - 1
        assert np.abs(_places(heights[at], values) - np.arange(n)).max() <= max(1, n / 640 + 1)
    svg = gains(values, ["q"] * n, a="a", b="b", metric="m")
    ElementTree.fromstring(svg)
    assert len(svg.encode()) < LARGEST


def _places(found: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(values, found)


def test_equal_systems_have_no_bars() -> None:
    svg = gains(np.zeros(5), list("abcde"), a="a", b="b", metric="m")
    assert "b is above a on 0 queries, below it on 0 and equal to it on 5." in words(svg)
    assert not [text for text in words(svg) if "(" in text]
