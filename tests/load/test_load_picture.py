"""Latency against load, drawn; the server is made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.levels import State
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.pictures.load import keep_curve, load_curve
from tests.builders.queued import Queued, sojourn_ms


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadResult:
    monkeypatch.chdir(tmp_path)
    Queued().instead(monkeypatch)
    limit = Limit(95.0, sojourn_ms(0.6, 95.0, constant=False))
    plan = Plan(rates=[100.0, 520.0], clients=[1], seconds=30.0, limit=limit)
    return load("bm25", "science-mini", plan)


def _layer(spec: dict[str, Any], kind: str, at: int = 0) -> list[dict[str, Any]]:
    kinds = [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]
    rows: list[dict[str, Any]] = kinds[at]["data"]["values"]
    return rows


@pytest.mark.slow
def test_percentiles_stand_at_the_rate_that_was_planned(found: LoadResult) -> None:
    spec = load_curve(found)
    at = {row["system"]: row for row in _layer(spec, "line") if row["load"] == 100.0}
    assert at.keys() == {"p50", "p95", "p99", "service p50"}
    (level,) = (one.result for one in found.levels if one.result.planned == 100.0)
    assert at["p95"]["ms"] == level.latency[1].ms
    assert at["p95"]["low"] < at["p95"]["ms"] < at["p95"]["high"]


@pytest.mark.slow
def test_the_bracket_its_limit_and_what_is_overloaded_are_marked(found: LoadResult) -> None:
    spec, capacity = load_curve(found), found.capacity
    assert capacity is not None
    assert _layer(spec, "rect") == [{"from": capacity.keeps, "to": capacity.breaks}]
    assert _layer(spec, "rule") == [{"ms": capacity.limit.ms}]
    assert {"load": 520.0} in _layer(spec, "point", 1)
    assert "520/s: overloaded" in spec["description"]


@pytest.mark.slow
def test_levels_that_were_not_measured_are_left_out_and_counted(found: LoadResult) -> None:
    lost = replace(
        found.levels[1], result=replace(found.levels[1].result, state=State.NOT_MEASURED)
    )
    spec = load_curve(replace(found, levels=(lost, found.levels[2]), capacity=None))
    assert {row["load"] for row in _layer(spec, "line")} == set()
    assert "1 level not measured" in str(spec["title"]["subtitle"])


@pytest.mark.slow
def test_clients_alone_are_drawn_by_their_number(found: LoadResult) -> None:
    spec = load_curve(replace(found, levels=found.levels[:1], capacity=None))
    assert {row["load"] for row in _layer(spec, "line")} == {1.0}
    assert spec["layer"][2]["encoding"]["x"]["title"] == "Clients in turn"


@pytest.mark.slow
def test_it_is_put_beside_the_stamps(found: LoadResult) -> None:
    keep_curve(found)
    assert found.folder is not None
    root = ElementTree.parse(found.folder / "pictures" / "load.svg").getroot()
    text = " ".join("".join(one.itertext()) for one in root.iter() if one.text)
    assert "Latency under load: bm25" in text
    assert "service p50" in text
