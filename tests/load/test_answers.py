"""Caches are told, and avoided; recorded times."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench_load.engine import levels
from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.load import Plan, load
from retrieval_bench_load.engine.schedule import read_recorded
from retrieval_bench_load.tables.load import load_tables
from tests.builders.load_service import GOOD, LENIENT, loadable
from tests.builders.service import Reply
from tests.builders.service import Request as Asked


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in LENIENT.items():
        monkeypatch.setattr(levels, name, value)


_TRACE = tuple(np.arange(400) / 100.0)


@pytest.mark.slow
def test_a_cache_is_told_by_load_as_by_bench() -> None:
    """L9: new queries take .1 s, and again 1 ms: the cache was read as capacity."""
    seen = set()

    def answer(_number: int, request: Asked) -> Reply:
        import time

        text = request.body["text"]
        time.sleep(0.001 if text in seen else 0.1)
        seen.add(text)
        return GOOD

    with loadable(Path(), answer) as (_, config):
        made = load(config, "science-mini", Plan(clients=[4], seconds=5.0, warm_up_s=0.5))
    assert Code.REMEMBERED in {text.code for text in made.warnings if isinstance(text, Notice)}
    assert made.repeated > 0.5
    assert f"{made.repeated:.0%} of the calls repeat a query" in str(load_tables(made))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [{"clients": [2, 3]}, {"rates": [80.0]}, {"recorded": _TRACE}])
def test_no_query_is_asked_twice_where_that_is_wanted(plan: dict[str, Any]) -> None:
    """L9: distinct queries alone tell what a service that remembers takes for a new one."""
    given = Plan(**plan, seconds=4.0, warm_up_s=0.2, timeout_s=3.0, once=True)
    with loadable(Path(), lambda *_: GOOD) as (service, config):
        made = load(config, "science-mini", given)
        asked = Counter(request.body["text"] for request in service.requests)
    levels_made = 1 + len(made.levels)
    assert sum(n > 1 for n in asked.values()) <= levels_made, "warm-ups ask one each"
    for level in (made.unloaded, *made.levels):
        assert level.result.calls == pytest.approx(166 / levels_made, abs=1.5)
        assert level.result.seconds < 4.0, "it ends where none is left"
    assert made.repeated == 0.0
    text = " ".join(str(load_tables(made)).split())
    assert "No query was asked twice" in text
    short = any(tail.reason for level in made.levels for tail in level.result.latency)
    assert ("Only more queries give more calls" in text) is short, "a level may be not measured"
    assert "A longer --duration" not in text
    if "rates" in plan:
        assert made.levels[0].result.rate == pytest.approx(80.0, rel=0.4)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"limit": Limit(95.0, 60.0)}, "with --slo"),
        ({"rates": [float(n) for n in range(1, 100)]}, "166 queries in 100 levels"),
        ({"clients": [4, 30]}, "166 queries in 3 levels"),
    ],
)
def test_too_few_queries_to_ask_each_once_are_refused(plan: dict[str, Any], words: str) -> None:
    """L9."""
    with pytest.raises(ConfigError, match=words):
        Plan(**plan, once=True).shares(166)
    assert Plan(**plan).shares(166) == []


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        (["0", "0.05", "0.1"], 0.1),
        (["1709164800000", "1709164800050", "1709164800100"], 0.1),
        (["time", "1709164800.0", "1709164800.05", "1709164800.1"], 0.1),
        (["2024-02-29T00:00:00.000", "2024-02-29T00:00:00.050", "2024-02-29T00:00:00.100"], 0.1),
        (["at", "2024-02-29 00:00:01+00:00", "2024-02-29 00:00:00+00:00"], 1.0),
        (["1709164800000000", "1709164800100000"], 0.1),
        (["5"], 0.0),
    ],
)
def test_recorded_times_are_read_by_their_form(lines: list[str], last: float) -> None:
    """L6: of times in epoch milliseconds one call of 200 was made, without a word."""
    Path("trace").write_text("\n".join(lines), encoding="utf-8")
    assert read_recorded(Path("trace"))[-1] == pytest.approx(last, abs=1e-4)


@pytest.mark.parametrize("lines", [["1", "two", "3"], ["first", "second", "3"], ["at"], [""]])
def test_what_is_no_time_is_refused(lines: list[str]) -> None:
    Path("trace").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="recorded times"):
        read_recorded(Path("trace"))


@pytest.mark.slow
@pytest.mark.parametrize("cut", [None, 1.0, 9.0])
def test_a_trace_is_made_at_its_own_rate_and_whole(cut: float | None) -> None:
    """L6: 20 a second for 6 s were shown as 12.1 a second: divided by ``--duration``."""
    trace = tuple(np.arange(40) / 20)
    plan = Plan(recorded=trace, seconds=0.5, warm_up_s=0.2, timeout_s=2.0, cut_s=cut)
    with loadable(Path(), lambda *_: GOOD) as (_, config):
        made = load(config, "science-mini", plan)
    (level,) = [one.result for one in made.levels]
    assert level.calls == (20 if cut == 1.0 else 40)
    assert level.rate == pytest.approx(20.0)
    assert ("cuts the recorded times: 20 of 40" in " ".join(made.warnings)) is (cut == 1.0)
