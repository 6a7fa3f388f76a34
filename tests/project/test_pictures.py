"""The pictures: what their specifications hold, and what is drawn of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.reports.render.text import clean
from retrieval_bench.runs.stages import StageReport
from retrieval_bench.runs.timing_facts import LegsFacts, StageFacts, TimesFacts
from retrieval_bench.stats.percentiles import Percentile
from retrieval_bench_explain.parts import Cost, Row, Worth
from retrieval_bench_explain.pictures.gains import gains
from retrieval_bench_explain.pictures.ledger import parts
from retrieval_bench_pages.pictures.pareto import Spot, front, pareto
from retrieval_bench_pages.pictures.quality import quality
from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.latency import Calls, ecdf
from retrieval_bench_pictures.lettering import fitted
from retrieval_bench_pictures.queries import per_query
from retrieval_bench_pictures.rounds import rounds
from retrieval_bench_pictures.stages import stages
from retrieval_bench_pictures.vega import (
    DARK,
    NARROW,
    STYLES,
    WIDTH,
    Spec,
    log_ticks,
    scale_for,
    whole,
)
from retrieval_bench_regress.pictures.history import history_picture
from tests.builders.history_sample import many
from tests.builders.pictures import (
    LARGEST,
    SVG,
    TEXTS,
    data,
    described,
    layers,
    notes,
    parsed,
    words,
)

ROOT = Path(__file__).parents[2]
NAN = float("nan")
NOTHING: NDArray[np.float64] = np.array([])


def known(ms: NDArray[np.float64]) -> list[Percentile]:
    values = np.percentile(ms, [50, 95, 99]).tolist()
    return [
        Percentile(level, value, (0.9 * value, 1.1 * value))
        for level, value in zip((50.0, 95.0, 99.0), values, strict=True)
    ]


def calls(name: str, seed: int = 1, n: int = 1_200) -> Calls:
    ms = np.random.default_rng(seed).lognormal(1.0 + seed / 5, 0.4, n)
    each = np.arange(n, dtype=np.int32)
    return Calls(name, ms, each % 400 == 7, each % 40, each // 40, known(ms))


def spot(name: str, value: float, ms: float | None) -> Spot:
    ends = None if ms is None else (0.9 * ms, 1.2 * ms)
    return Spot(name, value, ms, (value - 0.02, value + 0.02), ends)


def reported(*names: str) -> StageReport:
    """Stages by name, the legs that they are, and the whole call."""
    stages = {
        name: StageFacts(mean=1.0 + at, p50=1.0 + at, p95=2.0 + at, n=9)
        for at, name in enumerate(names)
    }
    row, beside = TimesFacts(mean=3.0, p50=3.0), TimesFacts(mean=2.0, p50=2.0)
    legs = LegsFacts(
        n=9, tail=1, overlapping=0, decisive=None, measured="serial", serial=row, parallel=beside,
        of={},
    )  # fmt: skip
    return StageReport(TimesFacts(mean=5.0, p50=5.0, p95=8.0), stages, legs, 0)


def part(name: str) -> Row:
    cost = Cost(p50_ms=3.0)
    return Row(name, "leg", "", Worth.HELPS, gain=0.1, ci=(0.0, 0.2), cost=cost)


def drawn_calls(name: str, width: int) -> Spec:
    one = calls(name, n=120)
    assert one.query is not None
    return per_query(one.ms, one.query, [name] * 40, failed=one.failed, name=name, width=width)


EACH: dict[str, Callable[[str, int], Spec]] = {
    "pareto": lambda name, width: pareto(
        [spot(name, 0.7, 10.0), spot("fast", 0.6, 0.5)], metric="m", about=name, width=width
    ),
    "quality": lambda name, width: quality(
        [name, "b"], {name: [(0.7, (0.6, 0.8)), (0.6, None)], "RR": [(NAN, None), (0.2, None)]},
        width=width,
    ),
    "gains": lambda name, width: gains(
        np.array([0.5, -0.2, 0.0]), [name] * 3, a=name, b="b", metric="m", width=width
    ),
    "latency": lambda name, width: ecdf([calls(name), calls("b")], about=name, width=width),
    "rows": lambda name, width: ecdf([calls(name)] * 9, about=name, width=width),
    "stages": lambda name, width: stages(
        [(name, reported(name))], width=width
    ),
    "rounds": lambda name, width: rounds([calls(name)], about=name, width=width),
    "queries": drawn_calls,
    "parts": lambda name, width: parts(
        [part(name), Row("b", "leg", "", Worth.UNKNOWN)], name=name, metric="m", width=width
    ),
    "history": lambda name, width: history_picture(many(name=name)),
}  # fmt: skip
ALL = pytest.mark.parametrize("kind", EACH)


@cache
def drawn(kind: str, name: str = "bm25", width: int = WIDTH) -> str:
    return svg(EACH[kind](name, width))


# -- every picture -------------------------------------------------------------------------------


@ALL
def test_a_picture_says_in_words_what_it_shows(kind: str) -> None:
    root = parsed(drawn(kind))
    named = (root.get("aria-labelledby") or "").split()
    found = [next(e for e in root.iter() if e.get("id") == name) for name in named]
    assert root.get("role") == "img"
    assert [e.tag for e in found] == [f"{SVG}title", f"{SVG}desc"]
    assert next(iter(root)) is found[0], "a title is read aloud only where it stands first"
    assert "bm25" in (found[1].text or "") or kind in ("history", "queries")


@ALL
def test_a_picture_refers_to_nothing_outside_and_runs_nothing(kind: str) -> None:
    text = drawn(kind)
    root = parsed(text)
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "g", "path", "line", "text", "tspan", "rect",
        "clipPath",
    }  # fmt: skip
    own = {e.get("id") for e in root.iter() if e.get("id")}
    references = re.findall(r"""(?:href="|url\()([^")]*)""", text)
    assert {name.removeprefix("#") for name in references} <= own
    assert not re.search(r"@import|<!|<\?| on\w+=", text)


@ALL
def test_every_colour_has_its_counterpart_in_the_dark(kind: str) -> None:
    text = drawn(kind)
    style = parsed(text).findtext(f"{SVG}style") or ""
    used = set(re.findall(r'(fill|stroke)="(?!none|transparent)([^"]*)"', text.replace(style, "")))
    assert used
    for paint, color in used:
        assert f'[{paint}="{color}"]{{{paint}:{DARK[color]}}}' in style


@ALL
def test_pictures_in_one_page_do_not_disturb_each_other(kind: str) -> None:
    one, other = drawn(kind), drawn(kind, "other")
    ids = [{e.get("id") for e in parsed(text).iter()} - {None} for text in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    inside = re.search(r"<style>@media \(prefers-color-scheme:dark\)\{(.*)\}</style>", one)
    assert inside
    own = parsed(one).get("id")
    assert all(rule.startswith(f"#{own} [") for rule in re.findall(r"[^{}]+(?=\{)", inside[1]))


@pytest.mark.parametrize("width", [NARROW, WIDTH])
@pytest.mark.parametrize(
    "name", ["bm25", "양자컴퓨터는어떻게작동합니까검색시스템한국어형태소분석기"]
)
@pytest.mark.parametrize("kind", [kind for kind in EACH if kind != "history"])
def test_a_picture_is_as_wide_as_asked_and_shows_names_in_its_room(
    kind: str, name: str, width: int
) -> None:
    text = drawn(kind, name, width)
    assert width - 60 <= float(parsed(text).get("width") or 0) <= width + 12
    assert any(fitted(name, 60)[:-1] in shown for shown in words(text))
    assert described(EACH[kind](name, width)) == described(EACH[kind](name, WIDTH))


@ALL
@pytest.mark.parametrize(
    "text", [text if at in (0, 5, 7) else pytest.param(text, marks=pytest.mark.slow)
             for at, text in enumerate(TEXTS)],
)  # fmt: skip
def test_text_in_any_script_is_shown_and_never_interpreted(kind: str, text: str) -> None:
    picture = drawn(kind, text)
    assert any(clean(text)[:8] in shown for shown in words(picture))
    assert "script" not in {e.tag.removeprefix(SVG) for e in parsed(picture).iter()}


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("color", [style.color for style in STYLES])
def test_a_curve_stands_off_the_background_in_light_and_dark(color: str) -> None:
    for curve, paper in ((color, "#ffffff"), (DARK[color], DARK["#ffffff"])):
        light, dark = sorted((luminance(curve), luminance(paper)))[::-1]
        assert (light + 0.05) / (dark + 0.05) >= 4.5, "contrast of WCAG 2.2, AA"


def test_no_two_systems_differ_by_colour_alone() -> None:
    assert len({style.dash for style in STYLES}) == len(STYLES)
    assert len({style.shape for style in STYLES}) == len(STYLES)


@pytest.mark.slow
def test_equal_data_gives_equal_bytes_in_every_process() -> None:
    code = (
        "from tests.project.test_pictures import *\n"
        "print(*(svg(draw('x', WIDTH)) for draw in EACH.values()))"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8",
            check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
        ).stdout
        for seed in ("1", "2")
    )  # fmt: skip
    assert first.count("</svg>") == len(EACH)
    assert first == second


def test_without_vl_convert_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = ecdf([calls("bm25")])
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError) as caught:
        svg(spec)
    assert caught.value.fix == how_to_add("plots")
    assert "vl-convert-python is not installed" in str(caught.value)


def test_a_logarithmic_axis_has_plain_ticks() -> None:
    assert scale_for([np.array([1.0, 19.0])])["type"] == "linear"
    assert scale_for([np.array([1.0]), np.array([20.0])])["type"] == "log"
    assert scale_for([np.array([0.0, 1.0, 20.0])]) == scale_for([np.array([1.0, 20.0])])
    assert log_ticks(0.9, 25) == [1, 2, 5, 10, 20]
    assert log_ticks(1, 1e6) == [10.0**at for at in range(7)]
    assert len(log_ticks(1e-9, 1e9)) <= 10
    shown = words(svg(ecdf([Calls("a", np.geomspace(1, 90, 50))])))
    assert {"1", "2", "5", "10", "20", "50"} <= set(shown)


def test_what_is_counted_has_whole_ticks() -> None:
    assert whole(1, 3) == [1, 2, 3]
    assert whole(1, 1) == [1]
    assert whole(1, 0) == []
    assert whole(0, 25) == [0, 5, 10, 15, 20, 25]
    assert whole(1, 5_928) == [1_000, 2_000, 3_000, 4_000, 5_000]
    few = rounds([Calls("x", np.ones(6), round=np.arange(6, dtype=np.int32) // 2)])
    assert {"1", "2", "3"} <= set(words(svg(few)))
    assert "2.5" not in words(svg(few))


# -- the front -----------------------------------------------------------------------------------


def test_the_front_is_what_no_other_system_beats_and_systems_without_a_figure_are_named() -> None:
    value, ms = [0.7, 0.6, 0.5, 0.7, 0.6], [10.0, 0.5, 11.0, 12.0, 0.5]
    assert front(value, ms) == [True, True, False, False, True], "equal ones stand side by side"
    assert front([], []) == []
    spec = pareto([spot("a", 0.7, 1.0), spot("b", 0.7, None), spot("c", NAN, 1.0)], metric="m")
    assert "Systems without a mean or a p95 are not shown: b, c." in notes(spec)
    assert [row["system"] for row in data(spec, "rect")] == ["a"]
    assert notes(pareto([], metric="m")) == "No system has both a mean and a p95."


def test_systems_stand_at_their_time_and_quality_in_the_box_of_their_intervals() -> None:
    spec = pareto([spot("a", 0.7, 10.0), spot("b", 0.5, 11.0)], metric="nDCG@10", recommended=["a"])
    a, b = data(spec, "rect")
    assert (a["system"], a["ms"], a["quality"]) == ("a", 10.0, 0.7)
    assert (a["left"], a["right"], a["low"], a["high"]) == (9.0, 12.0, 0.7 - 0.02, 0.7 + 0.02)
    assert (a["front"], a["recommended"], b["front"], b["recommended"]) == (
        True,
        True,
        False,
        False,
    )
    encoding = spec["encoding"]
    assert encoding["x"]["title"] == "p95 of all calls in ms (faster: left)"
    assert encoding["y"]["title"] == "Mean nDCG@10"
    assert {"a", "recommended", "b"} <= set(words(svg(spec)))
    assert described(spec).startswith("1 system on the front. a, recommended, on the front:")
    money = pareto([spot("a", 0.7, 1.0), spot("b", 0.6, 9.0)], metric="m", level="money", unit="€")
    assert money["encoding"]["x"]["title"] == "€, logarithmic (less: left)"
    assert " ms" not in described(money)


def test_a_pipeline_is_followed_step_by_step() -> None:
    path = (("first", 0.5, 1.0), ("lost", 0.6, None))
    spec = pareto([Spot("p", 0.7, 10.0, path=path)], metric="m")
    steps = data(spec, "line", "after")
    assert [(s["after"], s["ms"], s["quality"]) for s in steps] == [
        ("first", 1, 0.5),
        ("", 10, 0.7),
    ]
    assert "p: first" in words(svg(spec))
    assert "p after first: quality 0.5000, 1.00 ms" in described(spec)


@pytest.mark.parametrize("width", [NARROW, WIDTH])
def test_few_systems_have_names_and_many_have_numbers_with_a_legend(width: int) -> None:
    rng = np.random.default_rng(4)
    spots = [
        spot(f"system {i % 40}", float(rng.uniform(0.3, 0.8)), float(rng.lognormal(1, 1)))
        for i in range(50)
    ]
    shown = words(svg(pareto(spots[:7], metric="m", width=width)))
    assert all(f"system {i}" in shown for i in range(7))
    picture = svg(pareto(spots, metric="m", width=width))
    names = [f"system {i}" if i < 40 else f"system {i - 40}#2" for i in range(50)]
    assert {f"{at} {name}" for at, name in enumerate(names, start=1)} <= set(words(picture))
    assert {str(at) for at in range(1, 51)} <= set(words(picture))
    assert len(picture.encode()) < LARGEST


@pytest.mark.parametrize("width", [NARROW, WIDTH])
def test_names_leave_dots_and_each_other_free_where_there_is_room(width: int) -> None:
    spots = [spot(f"name {at}", 0.5 + at / 20, 10.0 + at) for at in range(7)]
    placed = data(pareto(spots, metric="m", width=width), "text", "align")
    assert len(placed) == 7
    beside = pareto([spot("one", 0.5, 10.0), spot("other", 0.5, 10.0)], metric="m", width=width)
    one, other = data(beside, "text", "align")
    assert (one["align"], one["dy"]) != (other["align"], other["dy"]), "not over each other"


# -- quality -------------------------------------------------------------------------------------


def test_each_metric_has_its_own_order_the_best_first() -> None:
    ends = (0.2, 0.4)
    spec = quality(
        ["a", "b", "c"],
        {
            "P": [(0.1, None), (0.3, ends), (0.2, None)],
            "R": [(0.9, None), (NAN, None), (0.7, None)],
        },
    )
    first, second = spec["concat"]
    assert first["title"]["text"] == "P"
    order = [(row["system"], row["mean"], row["low"], row["high"]) for row in data(first, "point")]
    assert order == [("b", 0.3, 0.2, 0.4), ("c", 0.2, 0.2, 0.2), ("a", 0.1, 0.1, 0.1)]
    assert [row["system"] for row in data(second, "point")] == ["a", "c"]
    assert [row["text"] for row in data(second, "text", "row")] == ["0.9000", "0.7000", "–"]
    assert "P: b 0.3000 [0.2000, 0.4000], c 0.2000, a 0.1000." in described(spec)
    assert spec["columns"] == 2


# -- differences ---------------------------------------------------------------------------------


def test_differences_are_counted_and_both_ends_named() -> None:
    differences = np.array([0.5, -0.2, 0.0, 0.1, -0.4])
    spec = gains(differences, list("vwxyz"), a="old", b="new", metric="RR")
    said = notes(spec)
    assert "new is above old on 2 queries, below it on 2 and equal to it on 1." in said
    assert "the mean difference is 0.0000." in said
    assert "Largest losses: z (-0.400), w (-0.200). Largest gains: v (+0.500), y (+0.100)." in said
    up, down = (layer["data"]["values"] for layer in spec["layer"][:2])
    heights = [a["difference"] + b["difference"] for a, b in zip(up, down, strict=True)]
    assert heights == [-0.4, -0.2, 0.0, 0.1, 0.5, 0.5]
    assert spec["encoding"]["y"]["title"] == "new − old"


@pytest.mark.parametrize("n", [0, 1, 300, 301, 20_000])
def test_any_number_of_differences_can_be_drawn(n: int) -> None:
    values = np.sort(np.random.default_rng(n).normal(0, 0.1, n))
    spec = gains(values, ["q"] * n, a="a", b="b", metric="m")
    rows = data(spec, "area", "difference")
    assert len(rows) <= 301
    if n:
        assert (rows[0]["query"], rows[-1]["query"]) == (0, n)
        assert rows[-1]["difference"] == max(values[-1], 0)
    assert len(svg(spec)) < LARGEST


# -- latency -------------------------------------------------------------------------------------


def test_a_percentile_is_marked_with_its_interval_and_one_without_a_value_explained() -> None:
    one = Calls("bm25", calls("x").ms, percentiles=[Percentile(95.0, 17.04, (16.9, 18.25))])
    spec = ecdf([one])
    [mark] = data(spec, "errorbar")
    assert (mark["ms"], mark["low"], mark["high"], mark["share"]) == (17.04, 16.9, 18.25, 0.95)
    assert "bm25: 1,200 calls, p95 17.0 ms [16.9, 18.2]" in words(svg(spec))
    assert "p95 17.0 ms [16.9, 18.2]" in described(spec)
    spec = ecdf(
        [Calls("bm25", calls("x").ms, percentiles=[Percentile(99.0, None, None, "5 more")])]
    )
    assert "5 more." in notes(spec)
    assert data(spec, "errorbar") == []


def test_failed_calls_are_counted() -> None:
    failed = np.arange(1_200) < 3
    assert "1,200 calls (3 failed)" in described(ecdf([Calls("a", calls("a").ms, failed)]))
    assert "failed" not in described(ecdf([Calls("a", calls("a").ms)]))


@pytest.mark.parametrize("n", [1, 2, 240, 241, 5_000])
@pytest.mark.parametrize("stretch", [1, 1_000])
def test_a_thinned_curve_looks_like_the_whole_one(n: int, stretch: int) -> None:
    rng = np.random.default_rng(n)
    # Two groups, ties, and a stall: flat parts and steep ones.
    ms = np.sort(np.where(rng.random(n) < 0.3, 2.0, rng.lognormal(3, 0.5, n)))
    ms[-1] *= stretch
    curve = data(ecdf([Calls("a", ms)]), "line", "share")
    x, y = (np.array([row[key] for row in curve]) for key in ("ms", "share"))
    assert (np.diff(x) >= 0).all()
    assert len(x) <= 242
    assert (x[0], y[0], x[-1], y[-1]) == (ms[0], 0, ms[-1], 1)
    before, true = (np.searchsorted(ms, x[1:], side=side) / n for side in ("left", "right"))
    assert ((before < y[1:]) & (y[1:] <= true)).all(), "each point lies on its step"
    # No step is left out that would be seen: neither up nor, but for the two groups, across.
    assert np.diff(y).max() <= max(0.3 + 0.05, 1 / n)


def test_many_systems_are_one_row_each_from_fast_to_slow() -> None:
    systems = [calls(f"s{i % 6}", 12 - i) for i in range(12)]
    spec = ecdf(systems)
    labels = spec["encoding"]["y"]["axis"]["labelExpr"]
    assert re.findall(r"s\d(?:#2)?", labels)[:3] == ["s5#2", "s4#2", "s3#2"]
    medians = [row["ms"] for row in data(spec, "point") if row["system"] == "p50"]
    assert medians == sorted(medians)
    assert spec["title"]["text"] == ["Latency of 12 systems, by median"]


def test_a_note_says_where_calls_of_no_time_are_on_a_logarithmic_axis() -> None:
    ms = np.array([0.0, 0.0, 1.0, 50.0])
    holds = "end of the axis also holds 2 calls of 0 ms."
    assert f"The left {holds}" in notes(ecdf([Calls("a", ms)]))
    each = np.arange(4, dtype=np.int32)
    assert f"The lower {holds}" in notes(per_query(ms, each, ["q"] * 4))


# -- queries -------------------------------------------------------------------------------------


def test_the_slowest_queries_are_named_with_their_median_the_slowest_first() -> None:
    query = np.repeat(np.arange(50, dtype=np.int32), 3)
    ms = 10.0 + (query * 7) % 50 + np.tile([-0.1, 0.0, 5.0], 50)
    spec = per_query(ms, query, [f"query {i}" for i in range(50)])
    slowest = sorted(range(50), key=lambda i: -((i * 7) % 50))[:6]
    named = ", ".join(f"query {i} ({10.0 + (i * 7) % 50:.1f} ms)" for i in slowest)
    assert f"Slowest: {named}." in notes(spec)
    medians = [row["ms"] for row in list(layers(spec))[-1]["data"]["values"]]
    assert medians == [*sorted(10.0 + (i * 7) % 50 for i in range(50)), 59.0]
    assert "Medians of 50 queries lie between 10.0 and 59.0 ms." in described(spec)


def test_every_call_is_a_dot_over_its_query_and_failed_ones_are_crosses() -> None:
    ms = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    query = np.array([0, 1, 0, 1, 1], dtype=np.int32)
    failed = np.array([False, False, False, True, False])
    spec = per_query(ms, query, ["a", "b"], failed=failed)
    dots = [row for row in data(spec, "line") if row["ms"] is not None]
    assert {row["ms"]: round(row["query"]) for row in dots} == {1: 1, 3: 1, 2: 2, 5: 2}
    assert dots[0]["query"] < dots[2]["query"] or dots[0]["ms"] > dots[2]["ms"]
    assert [row["ms"] for row in data(spec, "point")] == [4]
    assert "Dots are all 5 calls. The line is the median of each query." in notes(spec)
    assert "Crosses are failed calls: 1." in notes(spec)


@pytest.mark.slow
def test_of_many_calls_those_that_stand_alone_are_drawn() -> None:
    n = 60_000
    ms = np.random.default_rng(2).lognormal(1, 0.4, n)
    ms[[100, 5_000]] = [400.0, 0.001]
    spec = per_query(
        ms, np.arange(n, dtype=np.int32) % 3_000, ["q"] * 3_000, failed=np.arange(n) == 77
    )
    dots = [row["ms"] for row in data(spec, "line") if row["ms"] is not None]
    assert len(dots) <= 3_000
    assert {400.0, 0.001} <= set(dots)
    assert [row["ms"] for row in data(spec, "point")] == [ms[77]]
    assert len(svg(spec)) < LARGEST


# -- stages, rounds, parts -----------------------------------------------------------------------


def test_bars_begin_at_zero_and_end_at_the_median() -> None:
    report = reported("a")
    inner = StageFacts(mean=1.0, p50=1.0, direct=False)
    spec = stages([("x", replace(report, stages={**report.stages, "inner": inner}))])
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0
    bars = [(row["stage"], row["system"], row["median"]) for row in data(spec, "bar")]
    legs = [("legs in a row", 3.0), ("legs side by side", 2.0)]
    assert [bar[0::2] for bar in bars] == [("whole call", 5.0), ("a", 1.0), *legs]
    assert len({kind for _, kind, _ in bars}) == 3
    assert [row["p95"] for row in data(spec, "tick")] == [8.0, 2.0]
    assert "x: whole call 5.00, p95 8.00 ms; a 1.00, p95 2.00 ms; legs in" in described(spec)
    assert words(svg(spec)).count("–") == 2


def test_a_slower_round_is_seen_whatever_it_asks() -> None:
    query = np.tile(np.arange(40, dtype=np.int32), 9)
    each = np.repeat(np.arange(9, dtype=np.int32), 40)
    ms = (1 + query).astype(np.float64)
    ms[each == 8] *= 1.1
    # The last round was stopped early: only fast queries, which is no change of the machine.
    keep = (each < 8) | (query < 20)
    spec = rounds([Calls("x", ms[keep], query=query[keep], round=each[keep])])
    assert "9 rounds, 0.0 % to +10.0 %" in described(spec)
    changes = [(row["round"], round(row["change"], 6)) for row in data(spec, "line", "change")]
    assert changes == [*((at, 0) for at in range(1, 9)), (9, 10)]
    bare = rounds([Calls("x", ms[keep], round=each[keep])])
    assert "9 rounds, −42.0 % to +3.0 %" in described(bare)


def test_of_many_systems_those_that_moved_most_are_told_apart() -> None:
    spec = rounds([calls(f"s{at}", at) for at in range(11)])
    assert "Thin lines are 3 other systems, which moved less." in notes(spec)
    assert len({row["system"] for row in data(spec, "line")}) == 3
    assert len({row["system"] for row in data(spec, "point")}) == 8


def test_parts_show_what_they_buy_and_take() -> None:
    rows = [part("leg"), Row("rest", "leg", "", Worth.UNKNOWN)]
    spec = parts(rows, name="hybrid", metric="RR")
    gained, times = spec["hconcat"]
    assert data(gained, "point") == [
        {"row": 0, "system": "helps", "gain": 0.1, "low": 0.0, "high": 0.2}
    ]
    assert data(times, "bar") == [{"row": 0, "ms": 3.0}]
    assert [row["text"] for row in data(times, "text", "row")] == ["3.00", "not known"]
    assert "leg: +0.100 RR, helps, 3.00 ms. rest: gain not known, not asked." in described(spec)
    assert "vconcat" in parts([], name="hybrid", metric="RR", width=NARROW)
    spec = parts([replace(part("leg"), level=0.98333)], name="hybrid", metric="RR")
    assert "its line the 98.33 % interval, each by itself." in notes(spec)


# -- any data ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "ms",
    [
        NOTHING, np.array([3.2]), np.array([0.0]), np.full(500, 2.0), np.zeros(500),
        np.array([NAN, 1.0, np.inf, 2.0]), np.array([1e-6, 1e7]), np.array([5e-324, 1.0]),
        np.array([5e-324, 6e-324]), np.array([-1.0, 2.0, 3.0]),
    ],
    ids=["none", "one", "one zero", "equal", "zeros", "not finite", "wide", "denormal",
         "all denormal", "clock jumped"],
)  # fmt: skip
def test_any_times_can_be_drawn(ms: NDArray[np.float64]) -> None:
    each = np.arange(len(ms), dtype=np.int32)
    one = Calls("x", ms, None, each, each, [])
    for spec in (ecdf([one]), ecdf([one] * 9), rounds([one]), per_query(ms, each, ["q"] * 500)):
        picture = svg(spec)
        parsed(picture)
        assert "NaN" not in picture
        assert len(picture) < LARGEST


@pytest.mark.slow
def test_nothing_can_be_drawn() -> None:
    for spec in (
        ecdf([]), rounds([]), stages([]), stages([("x", StageReport(None, {}, None, 0))]),
        quality([], {}),
        quality(["a"], {"P": [(NAN, None)]}), pareto([], metric="m"),
        history_picture(many(0)), parts([], name="x", metric="m"),
        pareto([spot("a", 0.5, 1.0)] * 2, metric="m"),
    ):  # fmt: skip
        parsed(svg(spec))


@pytest.mark.slow
def test_a_hundred_thousand_calls_and_fifty_systems_fit_into_small_files() -> None:
    n = 100_000
    rng = np.random.default_rng(9)
    query = rng.integers(0, 5_000, n).astype(np.int32)
    ms = rng.lognormal(1, 0.6, n) * np.exp(rng.normal(0, 0.5, 5_000))[query]
    big = Calls("big", ms, rng.random(n) < 0.002, query, query // 50, known(ms))
    scatter = per_query(ms, query, TEXTS * 625, failed=big.failed)
    assert re.search(r"Dots are [\d,]+ of 100,000 calls", notes(scatter))
    systems = [calls(f"system {i % 40}", i) for i in range(50)]
    report = reported(*(f"stage {i}" for i in range(7)))
    values = [(value, None) for value in np.linspace(0.2, 0.9, 50).tolist()]
    for spec in (
        ecdf([big] * 8), rounds([big]), scatter, ecdf(systems), rounds(systems),
        stages([(c.name, report) for c in systems[:20]]),
        quality([c.name for c in systems], dict.fromkeys("PQR", values)),
    ):  # fmt: skip
        assert len(svg(spec).encode()) < LARGEST
