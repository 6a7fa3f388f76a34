"""The pictures of runs, by file name: what is drawn of which timings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.percentiles import Percentile
from harness.report.pictures import Calls, StageTimes, ecdf, per_query, rounds, stages
from harness.run import Run
from harness.stages import StageReport, Times, stage_report

MS = 1e6


def run_pictures(run: Run) -> dict[str, str]:
    """File name -> SVG text: the distribution of call times, queries from fast to slow, drift over
    rounds, and the stages of a call. Nothing for a run without times.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    timings = run.timings
    if not len(timings.wall_ns) or run.summary["latency_ms"].get("mean") is None:
        return {}
    data = run.summary["dataset"]["name"]
    about = f"{data}, k = {run.summary['k']}"
    calls = _calls(run, run.name)
    pictures = {
        "latency.svg": ecdf([calls], about=about),
        "queries.svg": per_query(
            calls.ms,
            timings.query,
            run.rankings.query_ids,
            failed=timings.failed,
            name=run.name,
            about=about,
        ),
    }
    if int(timings.round.max(initial=0)) > 0:
        pictures["rounds.svg"] = rounds([calls], about=about)
    report = stage_report(run.timings.wall_ns, run.timings.stages, parallel=run.parallel)
    if report.stages:
        pictures["stages.svg"] = stages([_stage_times(run.name, report)], about=about)
    return pictures


def side_by_side(names: Sequence[str], runs: Sequence[Run]) -> str:
    """The distributions of call times of several runs in one picture, as SVG text."""
    timed = [
        _calls(run, name)
        for name, run in zip(names, runs, strict=True)
        if run.summary["latency_ms"].get("mean") is not None
    ]
    return ecdf(timed, about=str(runs[0].summary["dataset"]["name"])) if timed else ""


def _calls(run: Run, name: str) -> Calls:
    timings = run.timings
    return Calls(
        name,
        timings.wall_ns / MS,
        failed=timings.failed,
        query=timings.query,
        # Rounds of all launches, one behind the other.
        round=(timings.launch * (timings.round.max(initial=0) + 1) + timings.round).astype(
            np.int32
        ),
        percentiles=_percentiles(run.summary["latency_ms"]),
    )


def _percentiles(latency: Mapping[str, Any]) -> list[Percentile]:
    return [
        Percentile(
            float(name[1:]),
            entry["value"],
            None if entry["ci95"] is None else (entry["ci95"][0], entry["ci95"][1]),
            entry.get("reason"),
        )
        for name, entry in latency.items()
        if isinstance(entry, dict) and "ci95" in entry
    ]


def _stage_times(name: str, report: StageReport) -> StageTimes:
    direct = {stage.name: _drawn(stage.times) for stage in report.stages if stage.direct}
    legs = {}
    if report.legs is not None:
        legs = {
            "legs in a row": _drawn(report.legs.serial),
            "legs side by side": _drawn(report.legs.parallel),
        }
    return StageTimes(name, direct, legs, None if report.call is None else _drawn(report.call))


def _drawn(times: Times) -> tuple[float, float]:
    return times.p50, float("nan") if times.p95 is None else times.p95
