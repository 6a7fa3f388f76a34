from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installation import how_to_add
from retrieval_bench.reports.pictures import Calls, StageTimes, ecdf, per_query, rounds, stages
from retrieval_bench.reports.pictures.canvas import Frame, Scale, scale_for
from retrieval_bench.reports.pictures.latency import _steps
from retrieval_bench.reports.pictures.palette import DARK, STYLES
from retrieval_bench.reports.pictures.queries import _by_median, _offsets, _visible
from retrieval_bench.reports.render.text import cells_of, clean, cut, number, tick
from retrieval_bench.stats.percentiles import Percentile

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 150_000

TEXTS = [
    "양자 컴퓨터는 어떻게 작동합니까?",
    "为什么天空是蓝色的？",
    "ما هي عاصمة فرنسا؟",
    "qu'est-ce que l'été ?",
    "👩‍👩‍👧‍👦 🎉",
    '<script>alert("x")</script>',
    "'\"&amp; $x^2$ %d \\alpha ~0~",
    "two\nlines\tand \x00 \ud800 \uffff",
]

TEXTS_IN_PICTURES = [
    text if at in (0, 5, 7) else pytest.param(text, marks=pytest.mark.slow)
    for at, text in enumerate(TEXTS)
]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [text.text or "" for text in parsed(svg).iter(f"{SVG}text")]


def described(svg: str) -> str:
    return parsed(svg).findtext(f"{SVG}desc") or ""


def sample(seed: int, n: int = 1_200) -> NDArray[np.float64]:
    return np.random.default_rng(seed).lognormal(1.0, 0.4, n)


def known(ms: NDArray[np.float64]) -> list[Percentile]:
    """p50, p95 and p99 with intervals that are easy to find again."""
    values = np.percentile(ms, [50, 95, 99]).tolist()
    return [
        Percentile(level, value, (0.9 * value, 1.1 * value))
        for level, value in zip((50.0, 95.0, 99.0), values, strict=True)
    ]


def system(name: str, ms: NDArray[np.float64]) -> Calls:
    each = np.arange(len(ms), dtype=np.int32)
    return Calls(name, ms, each % 400 == 7, each % 40, each // 40, known(ms) if len(ms) else ())


@cache
def fold(name: str, seed: int) -> list[str]:
    """All four pictures of the same calls."""
    ms = sample(seed)
    calls = system(name, ms)
    assert calls.query is not None
    return [
        ecdf([calls], about=name),
        rounds([calls], about=name),
        per_query(ms, calls.query, [name] * 40, failed=calls.failed, name=name, about=name),
        stages([StageTimes(name, {name: (1.0, 2.0)}, {name: (1.0, np.nan)}, (3.0, 4.0))]),
    ]


PICTURES = ["ecdf", "rounds", "per_query", "stages"]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_a_picture_says_in_words_what_it_shows(at: int) -> None:
    root = parsed(fold("bm25", 1)[at])
    named = (root.get("aria-labelledby") or "").split()
    found = [next(e for e in root.iter() if e.get("id") == name) for name in named]
    assert root.get("role") == "img"
    assert [e.tag for e in found] == [f"{SVG}title", f"{SVG}desc"]
    assert next(iter(root)) is found[0], "a title is read aloud only where it stands first"
    assert all(len(e.text or "") > 10 for e in found)


@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_axes_are_labelled_with_their_unit(at: int) -> None:
    unit = "Median of the round" if PICTURES[at] == "rounds" else "Milliseconds per call"
    assert any(text.startswith(unit) for text in words(fold("bm25", 1)[at]))


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS_IN_PICTURES)
@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_text_in_any_script_is_shown_and_never_interpreted(at: int, text: str) -> None:
    svg = fold(text, 1)[at]
    root = parsed(svg)
    start = clean(text)[:8]
    assert any(start in shown for shown in words(svg))
    assert start in described(svg) or start in (root.findtext(f"{SVG}title") or "")
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "g", "path", "use", "text", "pattern", "rect",
    }  # fmt: skip


@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_a_picture_refers_to_nothing_outside(at: int) -> None:
    svg = fold("bm25", 1)[at]
    root = parsed(svg)
    own = {e.get("id") for e in root.iter() if e.get("id")}
    references = re.findall(r"""(?:href="|url\()([^")]*)""", svg)
    assert references
    assert {name.removeprefix("#") for name in references} <= own
    assert not re.search(r"@import|<!|<\?", svg)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_pictures_in_one_page_do_not_disturb_each_other(at: int) -> None:
    one, other = (fold(name, seed)[at] for name, seed in (("a", 1), ("b", 2)))
    ids = [{e.get("id") for e in parsed(svg).iter()} - {None} for svg in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    style = parsed(one).findtext(f"{SVG}style") or ""
    inside = re.fullmatch(r"@media \(prefers-color-scheme:dark\)\{(.*)\}", style)
    assert inside
    own = parsed(one).get("id")
    assert all(rule.startswith(f"#{own} [") for rule in re.findall(r"[^{}]+(?=\{)", inside[1]))


@pytest.mark.parametrize("at", range(4), ids=PICTURES)
def test_every_colour_has_its_counterpart_in_the_dark(at: int) -> None:
    svg = fold("bm25", 1)[at]
    root = parsed(svg)
    style = root.findtext(f"{SVG}style") or ""
    used = {
        (paint, e.get(paint) or "") for e in root.iter() for paint in ("fill", "stroke")
    } - {("fill", ""), ("stroke", ""), ("fill", "none")}  # fmt: skip
    used = {(paint, color) for paint, color in used if not color.startswith("url(")}
    assert used
    for paint, color in used:
        assert f'[{paint}="{color}"]{{{paint}:{DARK[color]}}}' in style
    markers = {e.get("id") for defs in root.iter(f"{SVG}defs") for e in defs.findall(f"{SVG}path")}
    bare = [e for e in root.iter(f"{SVG}path") if e.get("id") in markers - {None}]
    assert not [e for e in bare if e.get("fill") or e.get("stroke")], "no rule reaches a marker"


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("style", STYLES, ids=lambda style: str(style.color))
def test_a_curve_stands_off_the_background_in_light_and_dark(style: object) -> None:
    color = getattr(style, "color")  # noqa: B009
    for curve, paper in ((color, "#ffffff"), (DARK[color], DARK["#ffffff"])):
        light, dark = sorted((luminance(curve), luminance(paper)))[::-1]
        assert (light + 0.05) / (dark + 0.05) >= 4.5, "contrast of WCAG 2.2, AA"


def test_no_two_systems_differ_by_colour_alone() -> None:
    assert len({style.dash for style in STYLES}) == len(STYLES)
    assert len({style.marker for style in STYLES}) == len(STYLES)


SCRIPT = """
import numpy as np
from retrieval_bench.stats.percentiles import Percentile
from retrieval_bench.reports.pictures import Calls, StageTimes, ecdf, per_query, rounds, stages
ms = np.random.default_rng(3).lognormal(1, .4, 600)
each = np.arange(600, dtype=np.int32)
calls = Calls("x", ms, None, each % 40, each // 40, [Percentile(50., 2.7, (2.6, 2.8))])
print(ecdf([calls]), rounds([calls]), per_query(ms, calls.query, ["q"] * 40),
      stages([StageTimes("x", {"a": (1., 2.)}, {"b": (2., 3.)})]))
"""


def drawn_elsewhere(seed: str, settings: Path) -> str:
    env = {**os.environ, "PYTHONHASHSEED": seed, "MATPLOTLIBRC": str(settings), "PYTHONUTF8": "1"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, env=env, cwd=ROOT
    ).stdout


@pytest.mark.slow
def test_equal_data_gives_equal_bytes_whatever_the_process_and_the_users_settings(
    tmp_path: Path,
) -> None:
    settings = tmp_path / "matplotlibrc"
    settings.write_text("xtick.major.size: 20\nfont.size: 30\nsvg.fonttype: path\n", "utf-8")
    first = drawn_elsewhere("1", tmp_path / "none")
    assert first.count("</svg>") == 4
    assert drawn_elsewhere("2", settings) == first


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 31}):
        ecdf([system("bm25", sample(1))])
        assert mpl.rcParams["font.size"] == 31
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError) as caught:
        ecdf([system("bm25", sample(1))])
    assert caught.value.fix == how_to_add("plots")
    assert "matplotlib is not installed" in str(caught.value)


@pytest.mark.slow
def test_importing_the_pictures_does_not_import_matplotlib() -> None:
    code = "import sys, retrieval_bench.reports.pictures; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"


# --- where things are drawn ------------------------------------------------------------------


def markers(svg: str, color: str) -> list[tuple[float, float]]:
    """Places of the markers of one system inside the axes, in px."""
    found = []

    def walk(element: ElementTree.Element, fill: str | None) -> None:
        fill = element.get("fill", fill)
        if element.tag == f"{SVG}use" and fill == color and element.get("stroke") != color:
            found.append((float(element.get("x") or 0), float(element.get("y") or 0)))
        for child in element:
            walk(child, fill)

    walk(parsed(svg), None)
    return [place for place in found if place[1] < 350]


def axis_places(svg: str, labels: Sequence[str]) -> list[float]:
    texts = {t.text: float(t.get("x") or 0) for t in parsed(svg).iter(f"{SVG}text")}
    return [texts[label] for label in labels]


@pytest.mark.parametrize("wide", [False, True], ids=["linear", "logarithmic"])
def test_percentiles_are_marked_at_their_value_and_height(wide: bool) -> None:
    ms = np.linspace(1.0, 1_000.0 if wide else 9.0, 2_000)
    svg = ecdf([system("bm25", ms)])
    places = sorted(markers(svg, STYLES[0].color))
    low, high = axis_places(svg, ["1", "100"] if wide else ["2", "8"])
    levels = np.array([0.5, 0.95, 0.99])
    values = np.percentile(ms, 100 * levels)
    share = np.log(values) / np.log(100) if wide else (values - 2) / 6
    expected = np.column_stack([low + share * (high - low), 58 + 290 * (1 - levels)])
    np.testing.assert_allclose(places, expected, atol=0.05)


def test_percentiles_are_written_with_their_interval() -> None:
    calls = Calls("bm25", sample(1), percentiles=[Percentile(95.0, 17.04, (16.9, 18.25))])
    assert "17.0 [16.9, 18.2]" in words(ecdf([calls]))
    assert "p95 17.0 ms [16.9, 18.2]" in described(ecdf([calls]))


def test_a_percentile_without_a_value_is_explained_and_not_marked() -> None:
    calls = Calls("bm25", sample(1), percentiles=[Percentile(99.0, None, None, "5 more")])
    svg = ecdf([calls])
    assert "5 more." in words(svg)
    assert "–" in words(svg)
    assert not markers(svg, STYLES[0].color)


def test_failed_calls_and_the_number_of_calls_stand_in_the_legend() -> None:
    failed = np.zeros(1_200, dtype=bool)
    failed[:3] = True
    assert "1,200 (3 failed)" in words(ecdf([Calls("a", sample(1), failed)]))
    assert "1,200" in words(ecdf([Calls("a", sample(1))]))


AXES = Frame(64, 58, 600, 290)


@pytest.mark.parametrize("n", [1, 2, 150, 151, 5_000])
@pytest.mark.parametrize("log", [False, True])
def test_a_thinned_curve_looks_like_the_whole_one(n: int, log: bool) -> None:
    rng = np.random.default_rng(n)
    # Two groups, ties, and a stall: flat parts and steep ones.
    ms = np.sort(np.where(rng.random(n) < 0.3, 2.0, rng.lognormal(3, 0.5, n)))
    ms[-1] *= 5
    scale = Scale(1.0, 2 * float(ms[-1]), log)
    x, y = _steps(ms, scale, AXES)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
    assert len(x) < 1_500
    assert (x[0], y[0], x[-1], y[-1]) == (ms[0], 0, ms[-1], 1)
    # Every point of the drawn line lies near the true function: at most 2 px to the side, or up.
    at = np.linspace(0, 1, 600)[1:-1]
    columns = scale.value(at)
    drawn = np.interp(columns, x, y)
    left, right = scale.value(at - 2 / 600), scale.value(at + 2 / 600)
    below = np.searchsorted(ms, left, side="right") / n - 2 / 290
    above = np.searchsorted(ms, right, side="right") / n + 2 / 290
    assert ((below <= drawn) & (drawn <= above)).all()


def test_a_step_that_can_be_seen_stays_a_step() -> None:
    ms = np.concatenate([np.linspace(1, 2, 5_000), np.linspace(8, 9, 5_000)])
    x, y = _steps(ms, Scale(0.0, 10.0, False), AXES)
    np.testing.assert_array_equal(np.interp([2.1, 5.0, 7.99], x, y), 0.5)


def test_the_axis_is_logarithmic_where_times_differ_by_much() -> None:
    assert not scale_for([np.array([1.0, 19.0])]).log
    assert scale_for([np.array([1.0]), np.array([20.0])]).log
    assert scale_for([np.array([0.0, 1.0, 20.0])]) == scale_for([np.array([1.0, 20.0])])
    assert "Milliseconds per call, logarithmic" in words(ecdf([system("a", np.geomspace(1, 99))]))


@pytest.mark.parametrize("scale", [Scale(0.5, 20.0, False), Scale(0.5, 20.0, True)])
def test_place_and_value_are_inverse(scale: Scale) -> None:
    values = np.array([0.5, 1.0, 7.0, 20.0])
    np.testing.assert_allclose(scale.value(scale.place(values)), values)


def test_a_note_says_where_calls_of_no_time_are_on_a_logarithmic_axis() -> None:
    ms = np.array([0.0, 0.0, 1.0, 50.0])
    assert "The left end of the axis also holds 2 calls of 0 ms." in words(ecdf([Calls("a", ms)]))
    each = np.arange(4, dtype=np.int32)
    shown = words(per_query(ms, each, ["q"] * 4))
    assert "The lower end of the axis also holds 2 calls of 0 ms." in shown


# --- queries ---------------------------------------------------------------------------------


def test_the_slowest_queries_are_named_with_their_median_the_slowest_first() -> None:
    query = np.repeat(np.arange(50, dtype=np.int32), 3)
    ms = 10.0 + (query * 7) % 50 + np.tile([-0.1, 0.0, 5.0], 50)
    shown = words(per_query(ms, query, [f"query {i}" for i in range(50)]))
    slowest = sorted(range(50), key=lambda i: -((i * 7) % 50))[:6]
    assert [text for text in shown if text.startswith("query ")] == [f"query {i}" for i in slowest]
    assert [f"{10.0 + (i * 7) % 50:.1f}" for i in slowest] == [
        text for text in shown if re.fullmatch(r"5\d\.\d", text)
    ]


def test_few_queries_are_numbered_as_on_the_axis() -> None:
    ms = np.array([3.0, 1.0, 2.0])
    shown = words(per_query(ms, np.arange(3, dtype=np.int32), ["slow", "fast", "middle"]))
    at = shown.index("No.")
    assert shown[at : at + 12] == [
        "No.", "Median", "Slowest queries",
        "3", "3.00", "slow", "2", "2.00", "middle", "1", "1.00", "fast",
    ]  # fmt: skip


def test_equal_labels_are_different_queries() -> None:
    svg = per_query(sample(1, 40), np.arange(40, dtype=np.int32) % 4, ["same"] * 4)
    assert words(svg).count("same") == 4
    assert "4 queries" in described(svg)


def test_medians_are_those_of_numpy() -> None:
    rng = np.random.default_rng(5)
    query = rng.integers(0, 30, 500).astype(np.int32)
    ms = rng.random(500)
    ours = _by_median(ms, query, None)
    seen = np.unique(query)
    expected = np.array([np.median(ms[query == q]) for q in seen])
    order = np.argsort(expected, kind="stable")
    np.testing.assert_array_equal(ours.queries, seen[order])
    np.testing.assert_allclose(ours.medians, expected[order])
    np.testing.assert_array_equal(ours.queries[ours.rank], query)


DOTS = Frame(64, 58, 420, 310)


def test_of_many_calls_those_that_stand_alone_are_drawn() -> None:
    n = 60_000
    ms = sample(2, n)
    ms[[100, 5_000]] = [400.0, 0.001]
    data = _by_median(ms, np.arange(n, dtype=np.int32) % 3_000, np.arange(n) == 77)
    drawn = _visible((data.rank + 1).astype(np.float64), data, scale_for([ms]), DOTS)
    assert len(drawn) <= 7_000
    assert {77, 100, 5_000} <= set(drawn.tolist())


def test_a_failed_call_is_not_hidden_by_another_of_the_same_time() -> None:
    query = np.repeat(np.arange(400, dtype=np.int32), 3)
    data = _by_median(np.full(1_200, 2.0), query, np.arange(1_200) == 601)
    drawn = _visible((data.rank + 1).astype(np.float64), data, scale_for([data.ms]), DOTS)
    assert 601 in drawn
    assert len(drawn) < 1_200


def test_every_call_is_a_dot_at_its_place_and_failed_ones_are_crosses() -> None:
    ms = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    query = np.array([0, 1, 0, 1, 1], dtype=np.int32)
    failed = np.array([False, False, False, True, False])
    svg = per_query(ms, query, ["a", "b"], failed=failed)
    [dots] = [e for e in parsed(svg).iter(f"{SVG}path") if e.get("stroke-linecap") == "round"]
    places = re.findall(r"M([\d.]+) ([\d.]+)h0", dots.get("d") or "")
    data = _by_median(ms, query, failed)
    x = data.rank + 1 + _offsets(data, 210.0)
    scale = scale_for([ms])
    expected = np.column_stack([64 + 420 * (x - 0.5) / 2, 58 + 310 * (1 - scale.place(ms))])
    np.testing.assert_allclose(np.array(places, float), expected[~failed], atol=0.011)
    assert "Dots are all 5 calls. The line is the median of each query." in words(svg)
    assert "Crosses are failed calls: 1." in words(svg)


def test_calls_of_a_query_stand_side_by_side_in_the_order_made() -> None:
    data = _by_median(np.array([5.0, 1.0, 4.0]), np.zeros(3, dtype=np.int32), None)
    assert all(a < b for a, b in pairwise(_offsets(data, 100.0)))
    assert not _offsets(data, 2.0).any()


# --- stages and rounds -----------------------------------------------------------------------


def test_bars_begin_at_zero_and_end_at_the_median() -> None:
    svg = stages([StageTimes("x", {"a": (2.0, 4.0), "b": (4.0, 8.0)})])
    bars = next(e for e in parsed(svg).iter(f"{SVG}path") if e.get("fill") == "#a9c4e4")
    zero, four = axis_places(svg, ["0", "4"])
    corners = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", bars.get("d") or ""), float)
    ends = corners.reshape(2, -1, 2)[:, :, 0]
    np.testing.assert_allclose(ends.min(axis=1), [zero, zero], atol=0.02)
    np.testing.assert_allclose(ends.max(axis=1), [(zero + four) / 2, four], atol=0.02)


def test_stages_of_unknown_time_have_no_bar_and_say_so() -> None:
    svg = stages([StageTimes("x", {"a": (np.nan, np.nan), "b": (1.0, np.nan)})])
    assert "a not known; b 1.00 ms" in described(svg)
    assert words(svg).count("–") == 3


def test_kinds_of_bars_differ_by_more_than_colour() -> None:
    svg = stages([StageTimes("x", {"a": (1.0, 2.0)}, {"leg": (1.0, 2.0)}, (2.0, 3.0))])
    assert len(list(parsed(svg).iter(f"{SVG}pattern"))) == 1, "legs are hatched"
    assert {"whole call", "a", "leg"} <= set(words(svg))


def test_a_slower_round_is_seen_whatever_it_asks() -> None:
    query = np.tile(np.arange(40, dtype=np.int32), 9)
    each = np.repeat(np.arange(9, dtype=np.int32), 40)
    ms = (1 + query).astype(np.float64)
    ms[each == 8] *= 1.1
    # The last round was stopped early: only fast queries, which is no change of the machine.
    keep = (each < 8) | (query < 20)
    calls = Calls("x", ms[keep], query=query[keep], round=each[keep])
    assert "9 rounds from 0.0 % to +10.0 %" in described(rounds([calls]))
    bare = Calls("x", ms[keep], round=each[keep])
    assert "9 rounds from −42.0 % to +3.0 %" in described(rounds([bare]))


# --- any data --------------------------------------------------------------------------------


NOTHING = np.array([])


@pytest.mark.slow
@pytest.mark.parametrize(
    "ms",
    [
        NOTHING,
        np.array([3.2]),
        np.array([0.0]),
        np.full(500, 2.0),
        np.zeros(500),
        np.array([np.nan, 1.0, np.inf, 2.0]),
        np.array([1e-6, 1e7]),
        np.array([5e-324, 1.0]),
        np.array([5e-324, 6e-324]),
        np.array([-1.0, 2.0, 3.0]),
    ],
    ids=[
        "none",
        "one",
        "one zero",
        "equal",
        "zeros",
        "not finite",
        "wide",
        "denormal",
        "all denormal",
        "clock jumped",
    ],
)
def test_any_times_can_be_drawn(ms: NDArray[np.float64]) -> None:
    each = np.arange(len(ms), dtype=np.int32)
    calls = Calls("x", ms, None, each, each, [])
    for svg in (
        ecdf([calls]),
        ecdf([calls] * 9),
        rounds([calls]),
        per_query(ms, each, ["q"] * 500),
    ):
        parsed(svg)
        assert "nan" not in svg.replace("nano", "")
        assert len(svg) < LARGEST


def test_nothing_can_be_drawn() -> None:
    for svg in (ecdf([]), rounds([]), stages([]), stages([StageTimes("x", {})])):
        parsed(svg)


@pytest.mark.slow
def test_fifty_systems_are_one_readable_row_each_from_fast_to_slow() -> None:
    systems = [system(f"system {i % 40}", (51 - i) * sample(i)) for i in range(50)]
    svg = ecdf(systems)
    names = [text for text in words(svg) if text.startswith("system ") and ", 1,200" in text]
    assert len(set(names)) == 50, "equal names are told apart"
    assert names[0] == "system 9#2, 1,200 (3 failed)"
    places = sorted(
        float(text.get("y") or 0)
        for text in parsed(svg).iter(f"{SVG}text")
        if (text.text or "") in names
    )
    assert min(b - a for a, b in pairwise(places)) >= 12, "a line of text is 12 px high"
    assert len(svg.encode()) < LARGEST
    assert "42 other systems" in " ".join(words(rounds(systems)))
    bars = {f"stage {i}": (1.0 + i, 2.0 + i) for i in range(7)}
    all_stages = stages([StageTimes(c.name, bars, {"leg": (1, 2)}, (3, 4)) for c in systems])
    assert len(all_stages.encode()) < LARGEST


@pytest.mark.slow
def test_a_hundred_thousand_calls_fit_into_a_small_file() -> None:
    n = 100_000
    rng = np.random.default_rng(9)
    query = rng.integers(0, 5_000, n).astype(np.int32)
    ms = rng.lognormal(1, 0.6, n) * np.exp(rng.normal(0, 0.5, 5_000))[query]
    calls = Calls("big", ms, rng.random(n) < 0.002, query, query // 50, known(ms))
    scatter = per_query(ms, query, TEXTS * 625, failed=calls.failed)
    assert re.search(r"Dots are [\d,]+ of 100,000 calls", " ".join(words(scatter)))
    for svg in (ecdf([calls] * 8), rounds([calls]), scatter):
        assert len(svg.encode()) < LARGEST


# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [4, 9, 20])
@pytest.mark.parametrize("text", [*TEXTS, "", "a", "e\u0301" * 30])
def test_a_cut_text_keeps_to_its_width(text: str, cells: int) -> None:
    short = cut(text, cells)
    assert cells_of(short) <= cells
    whole = clean(text)
    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))


def test_a_cut_goes_between_characters_as_people_see_them() -> None:
    assert cut("ab👩‍👩‍👧cd", 5) == "ab…"
    assert cut("abe\u0301def", 4) == "abe\u0301…"
    assert cut("한국어입니다", 7) == "한국어…"


def test_text_is_made_harmless() -> None:
    assert clean("a\x07b\ud800\ufffe") == "a\ufffdb\ufffd\ufffd"
    assert clean("evil\u202etxt.exe \n x") == "eviltxt.exe x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.03526, "0.0353"), (0.035, "0.0350"), (9.996, "10.0"), (17.0, "17.0"),
        (99.96, "100"), (1234.4, "1,234"), (2e-7, "0.000000200"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.1 + 0.2, "0.3"), (1e-6, "0.000001"), (20_000.0, "20,000"), (0.0, "0")]
)
def test_a_tick_is_written_in_full(value: float, text: str) -> None:
    assert tick(value) == text
