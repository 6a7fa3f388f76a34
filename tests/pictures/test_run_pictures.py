from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from retrieval_bench.core.errors import RecordError
from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.records import PICTURES, add_files
from retrieval_bench.runs.run import Run
from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.of_runs import run_pictures, side_by_side
from tests.builders.runs import sample_run as make_run


def text_of(svg: str) -> str:
    return " ".join("".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.text)


def of_launches(run: Run, launches: int) -> Run:
    n = len(run.timings.wall_ns)
    launch = np.repeat(np.arange(launches, dtype=np.int32), n // launches)
    timings = replace(run.timings, launch=launch, round=run.timings.round % (25 // launches))
    return replace(run, timings=timings)


@pytest.mark.slow
def test_a_run_has_a_picture_for_each_question() -> None:
    pictures = run_pictures(make_run("sample", 0))
    assert list(pictures) == ["latency.svg", "queries.svg", "rounds.svg", "stages.svg"]
    for spec in pictures.values():
        assert "tiny, k = 10" in text_of(svg(spec))
    assert "1,000" in text_of(svg(pictures["latency.svg"]))
    assert "q32" in text_of(svg(pictures["queries.svg"]))


@pytest.mark.slow
def test_rounds_of_all_launches_stand_behind_each_other() -> None:
    one = run_pictures(make_run("sample", 0))["rounds.svg"]
    five = run_pictures(of_launches(make_run("sample", 0), 5))["rounds.svg"]
    assert "25" in text_of(svg(one))
    assert five == one


@pytest.mark.slow
def test_what_there_is_nothing_of_is_not_drawn() -> None:
    run = make_run("sample", 0)
    summary = run.summary.replace(latency_ms=run.summary.latency_ms.replace(mean=None))
    assert run_pictures(replace(run, summary=summary)) == {}
    whole = run.timings
    bare = Timings(
        whole.wall_ns[:40],
        whole.round[:40],
        whole.position[:40],
        whole.query[:40],
        whole.failed[:40],
        {},
    )
    assert list(run_pictures(replace(run, timings=bare))) == ["latency.svg", "queries.svg"]


def test_runs_side_by_side_are_told_apart() -> None:
    spec = side_by_side(["a", "a"], [make_run("a", 0), make_run("a", 1)])
    assert spec is not None
    assert "a: 1,000 calls" in spec["description"]
    assert "a#2: 1,000 calls" in spec["description"]
    assert spec["title"]["subtitle"] == ["tiny"]


def test_pictures_are_written_beside_the_figures(tmp_path: Path) -> None:
    add_files(tmp_path, {f"{PICTURES}/latency.svg": "<svg>지연</svg>"})
    assert (tmp_path / PICTURES / "latency.svg").read_text("utf-8") == "<svg>지연</svg>"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / PICTURES).write_text("in the way", "utf-8")
    with pytest.raises(RecordError, match="the run itself is saved"):
        add_files(tmp_path / "other", {f"{PICTURES}/latency.svg": ""})
