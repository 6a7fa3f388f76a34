"""The pictures of the page as they are drawn for a phone: all of it can be read without a scroll
to the side."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest

from retrieval_bench.reports.pictures import (
    Calls,
    Spot,
    StageTimes,
    ecdf,
    gains,
    pareto,
    per_query,
    quality,
    rounds,
    stages,
)
from retrieval_bench.reports.pictures.canvas import NARROW, WIDTH
from retrieval_bench.reports.pictures.of_runs import (
    drift,
    side_by_side,
    slow_queries,
    stage_bars,
)
from retrieval_bench.reports.pictures.palette import SOFT
from retrieval_bench.reports.render.text import fitted, width_of, wrapped
from retrieval_bench.stats.percentiles import Percentile
from tests.builders.runs import sample_run
from tests.unit.reports.svg_layout import dots, faults, texts
from tests.unit.reports.test_pictures import described, parsed, words

ABOUT = "한국어위키백과검색평가모음 with a long name, k = 10 / 100"
LONG = {
    "latin": "hybrid-convex-tuned-on-validation-{:06}",
    "korean": "양자컴퓨터는어떻게작동합니까검색시스템한국어형태소분석기사용자사전{:06}",
}
SIZES = pytest.mark.parametrize("width", [NARROW, WIDTH])
KINDS = pytest.mark.parametrize("kind", LONG)


def names(kind: str, n: int) -> list[str]:
    return [LONG[kind].format(at) for at in range(n)]


def percentiles(ms: np.ndarray) -> list[Percentile]:
    values = [(level, float(np.percentile(ms, level))) for level in (50.0, 95.0, 99.0)]
    return [Percentile(level, value, (0.93 * value, 1.1 * value)) for level, value in values]


def calls(name: str, seed: int) -> Calls:
    ms = np.random.default_rng(seed).lognormal(seed % 5, 0.4, 60)
    each = np.arange(60, dtype=np.int32)
    return Calls(name, ms, each % 25 == 7, each % 10, each // 10, percentiles(ms))


def spots(known: list[str], *, spread: float = 1.0) -> list[Spot]:
    rng = np.random.default_rng(len(known))
    values = 0.6 + spread * rng.uniform(-0.2, 0.2, len(known))
    times = 10 * np.exp(spread * rng.normal(0, 1, len(known)))
    return [
        Spot(name, q, ms, (q - 0.03, q + 0.03), (0.9 * ms, 1.1 * ms))
        for name, q, ms in zip(known, values.tolist(), times.tolist(), strict=True)
    ]


def front_of(known: list[str], width: int) -> str:
    chosen = known[:1]
    return pareto(spots(known), metric="nDCG@10", about=ABOUT, recommended=chosen, width=width)


def quality_of(known: list[str], width: int) -> str:
    values = [(s.quality, s.quality_ci) for s in spots(known)]
    return quality(known, {"nDCG@10": values, "my.py:" + "M" * 40: values}, width=width)


def latency_of(known: list[str], width: int) -> str:
    return ecdf([calls(name, at) for at, name in enumerate(known)], about=ABOUT, width=width)


def stages_of(known: list[str], width: int) -> str:
    times = {known[0]: (0.021, 0.034), "encode query": (120.0, 180.0), "search": (np.nan, np.nan)}
    legs = {"legs in a row": (150.0, 210.0)}
    shown = [StageTimes(name, times, legs, (160.0, 230.0)) for name in known]
    return stages(shown, about=ABOUT, width=width)


def rounds_of(known: list[str], width: int) -> str:
    return rounds([calls(name, at) for at, name in enumerate(known)], about=ABOUT, width=width)


SEVERAL: dict[str, Callable[[list[str], int], str]] = {
    "pareto": front_of,
    "quality": quality_of,
    "latency": latency_of,
    "stages": stages_of,
    "rounds": rounds_of,
}


FEW = [("latin", 1), ("korean", 2), ("latin", 4), ("korean", 10)]
MANY = [("latin", 30)]


@pytest.mark.parametrize(
    ("kind", "n"), [*FEW, *(pytest.param(*many, marks=pytest.mark.slow) for many in MANY)]
)
@pytest.mark.parametrize("picture", SEVERAL)
def test_nothing_lies_outside_a_narrow_sheet_or_over_another_text(
    picture: str, kind: str, n: int
) -> None:
    svg = SEVERAL[picture](names(kind, n), NARROW)
    assert (parsed(svg).get("width"), faults(svg)) == (str(NARROW), [])


@KINDS
@pytest.mark.parametrize("n", [1, 20, 200])
def test_slow_queries_have_room_on_a_narrow_sheet(kind: str, n: int) -> None:
    rng, each = np.random.default_rng(n), np.arange(3 * n, dtype=np.int32)
    ms = rng.lognormal(3, 1, 3 * n)
    labels, failed = names(kind, n), each % 19 == 0
    svg = per_query(ms, each % n, labels, failed=failed, name=labels[0], about=ABOUT, width=NARROW)
    assert faults(svg) == []
    at = words(svg).index("No.")
    ranks = [text for text in words(svg)[at + 3 :: 3] if text.isdigit()]
    assert ranks == [str(rank) for rank in range(n, max(n - 6, 0), -1)]


@KINDS
@pytest.mark.parametrize("n", [0, 1, 300])
def test_differences_have_room_on_a_narrow_sheet(kind: str, n: int) -> None:
    a, b = names(kind, 2)
    values = np.random.default_rng(n).normal(0, 0.3, n)
    svg = gains(values, names(kind, n), a=a, b=b, metric="nDCG@10", about=ABOUT, width=NARROW)
    assert faults(svg) == []
    assert ("Largest gains" in words(svg)) is bool((values > 0).any())


def test_what_is_measured_is_found_at_all() -> None:
    """The tests above can fail: texts and shapes that lie wrong are seen."""
    svg = quality_of(names("latin", 2), NARROW)
    assert "outside" in faults(svg.replace('x="132"', 'x="90"'))[0]
    assert "outside" in faults(svg.replace('width="358"', 'width="300"'))[0]
    assert "small" in faults(svg.replace('font-size="11px"', 'font-size="9px"'))[0]
    assert "overlap" in faults(svg.replace('x="348"', 'x="140"'))[0]


@pytest.mark.parametrize("picture", SEVERAL)
def test_both_drawings_name_and_describe_the_same(picture: str) -> None:
    known = ["bm25", "dense", "hybrid"]
    narrow, wide = (SEVERAL[picture](known, width) for width in (NARROW, WIDTH))
    assert [parsed(svg).get("width") for svg in (narrow, wide)] == [str(NARROW), str(WIDTH)]
    assert described(narrow) == described(wide)
    assert set(known) <= set(words(narrow)) & set(words(wide))


@pytest.mark.slow
def test_pictures_of_runs_take_a_width() -> None:
    runs = [sample_run("a", 0)]
    for svg in (
        side_by_side(["a"], runs, width=NARROW),
        drift(["a"], runs, width=NARROW),
        stage_bars(["a"], runs, width=NARROW),
        slow_queries("a", runs[0], width=NARROW),
    ):
        assert (parsed(svg).get("width"), faults(svg)) == (str(NARROW), [])


PHRASES = ("the first named", "by query", "call beside call", "not given", "told")


@pytest.mark.slow
@SIZES
def test_notes_are_whole_sentences(width: int) -> None:
    bare = Calls("a", np.array([0.0, 1.0, 50.0, np.nan]), None, None, None, percentiles(np.ones(2)))
    each = np.arange(4, dtype=np.int32)
    drawn = [
        pareto([Spot("a", 0.5, 1.0), Spot("b", 0.5, None)], metric="m", width=width),
        pareto([], metric="m", width=width),
        quality(["a"], {"m": [(0.5, None)]}, width=width),
        gains(np.array([0.1, -0.1]), ["q", "r"], a="a", b="b", metric="m", width=width),
        ecdf([bare], width=width),
        ecdf([bare] * 9, width=width),
        ecdf([], width=width),
        rounds([bare], width=width),
        rounds([bare] * 9, width=width),
        per_query(bare.ms, each, list("qrst"), failed=each == 1, name="a", width=width),
        per_query(np.array([]), each[:0], [], width=width),
    ]
    notes = [text for svg in drawn for text in notes_of(svg)]
    assert len(notes) >= 20
    assert [note for note in notes if not re.fullmatch(r"[A-Za-z].*[.]", note)] == []
    said = " ".join(chain(notes, *(map(described, drawn)), *(map(words, drawn))))
    assert [phrase for phrase in PHRASES if phrase in said] == []


def notes_of(svg: str) -> list[str]:
    """The sentences in grey that begin at the margin below the heading, their lines joined."""
    grey = [t for t in texts(svg) if t.box.left in (8, 16) and t.color == SOFT]
    lines = " ".join(t.text for t in grey if t.box.top > 70)
    return re.split(r"(?<=[.]) (?=[A-Z])", lines) if lines else []


# -- quality against time ------------------------------------------------------------------------


@cache
def crowded(n: int, width: int, spread: float) -> str:
    known = [f"system {at}" for at in range(n)]
    return pareto(spots(known, spread=spread), metric="m", recommended=known[:1], width=width)


@SIZES
@pytest.mark.parametrize(("n", "spread"), [(1, 1.0), (4, 1.0), (8, 0.1), (10, 1.0), (30, 0.1)])
def test_no_label_lies_on_a_marker_or_on_another_label(n: int, width: int, spread: float) -> None:
    svg = crowded(n, width, spread)
    markers = dots(svg)
    assert len(markers) == n + 1, "each system's, and the ring of the recommended one"
    inside = [t for t in texts(svg) if t.box.bottom < 400]
    assert [t.text for t in inside if any(t.box.covers(dot) > 0.5 for dot in markers)] == []
    assert not [
        (one.text, other.text)
        for one, other in combinations(inside, 2)
        if one.box.covers(other.box) > 0.5
    ]


@SIZES
@pytest.mark.parametrize("n", [2, 10])
def test_the_recommended_system_is_marked_and_described(width: int, n: int) -> None:
    known = [f"system {at}" for at in range(n)]
    svg = pareto(spots(known), metric="m", recommended=["system 1"], width=width)
    assert "system 1, recommended" in described(svg)
    assert described(svg).count("recommended") == 1
    assert words(svg).count("recommended") == 1
    weights = {t.text: t for t in texts(svg)}
    name, word = weights["system 1"].box, weights["recommended"].box
    assert word.top - name.top == pytest.approx(13), "the word stands below the name"
    [ring] = [box for box in dots(svg) if box.right - box.left > 12]
    assert not name.covers(ring)
    inner = [box for box in dots(svg) if ring.covers(box) > 15 and box != ring]
    assert inner, "the ring is around a dot"
    bare = pareto(spots(known), metric="m", width=width)
    assert "recommended" not in bare
    assert not [box for box in dots(bare) if box.right - box.left > 12]


@SIZES
def test_the_front_is_drawn_behind_boxes_and_dots(width: int) -> None:
    svg = crowded(4, width, 1.0)
    dashed, box, dot = (
        re.search(pattern, svg)
        for pattern in ("stroke-dasharray", 'opacity="0.7"', '<use fill="#0b57')
    )
    assert dashed
    assert box
    assert dot
    assert dashed.start() < box.start() < dot.start()


def test_of_many_systems_a_narrow_sheet_lists_all_names_but_the_recommended() -> None:
    known = [f"system {at}" for at in range(10)]
    svg = pareto(spots(known), metric="m", recommended=["system 3"], width=NARROW)
    assert set(known) <= set(words(svg))
    numbers = [text for text in words(svg) if re.fullmatch("[1-9]|10", text)]
    assert [numbers.count(str(at)) >= 2 for at in range(1, 11)] == [at != 4 for at in range(1, 11)]


# -- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [LONG["latin"], LONG["korean"], "a b c " * 40, "W" * 99, "e\u0301" * 50, ""]
)
@pytest.mark.parametrize("px", [20.0, 130.0, 342.0])
def test_a_text_is_broken_and_cut_to_its_room(text: str, px: float) -> None:
    assert width_of(fitted(text, px)) <= px
    lines = wrapped(text, px)
    assert len(lines) <= 6
    assert all(width_of(line) <= px for line in lines)
    whole = "".join(text.split())
    shown = "".join("".join(lines).split())
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def test_lines_break_between_words() -> None:
    assert wrapped("No system has both a mean and a p95.", 110) == [
        "No system has both",
        "a mean and a p95.",
    ]
    assert wrapped("one two", 500) == ["one two"]
    assert wrapped("  ", 500) == []
