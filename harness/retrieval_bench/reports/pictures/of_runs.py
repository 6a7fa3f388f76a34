"""The pictures of runs: what is drawn of which timings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrieval_bench.comparison.explain.ledger import Ledger, Worth
from retrieval_bench.reports import pictures
from retrieval_bench.reports.pictures import WIDTH, Calls, PartBar, Spec, StageTimes
from retrieval_bench.reports.render.words import metric_label, worth_label
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.stages import StageReport
from retrieval_bench.runs.timing_facts import TimesFacts
from retrieval_bench.stats.percentiles import Percentile

MS = 1e6


def run_pictures(run: Run) -> dict[str, str]:
    """File name -> SVG text: the distribution of call times, queries from fast to slow, drift over
    rounds, and the stages of a call. Nothing for a run without times.

    Raises:
        MissingDependencyError: vl-convert-python is not installed.
    """
    if not _has_times(run):
        return {}
    about = f"{run.summary.dataset.name}, k = {run.summary.k}"
    drawn = {
        "latency.svg": pictures.ecdf([_calls(run, run.name)], about=about),
        "queries.svg": slow_queries(run.name, run, about=about),
        "rounds.svg": drift([run.name], [run], about=about),
        "stages.svg": stage_bars([run.name], [run], about=about),
    }
    return {name: pictures.svg(spec) for name, spec in drawn.items() if spec is not None}


def side_by_side(names: Sequence[str], runs: Sequence[Run], *, width: int = WIDTH) -> Spec | None:
    """The distributions of call times of several runs; nothing where no run has times."""
    timed = _timed(names, runs)
    if not timed:
        return None
    return pictures.ecdf(timed, about=str(runs[0].summary.dataset.name), width=width)


def drift(
    names: Sequence[str], runs: Sequence[Run], *, about: str = "", width: int = WIDTH
) -> Spec | None:
    """Several runs from round to round; nothing where none has two rounds."""
    timed = [
        calls
        for calls in _timed(names, runs)
        if calls.round is not None and calls.round.max(initial=0) > 0
    ]
    return pictures.rounds(timed, about=about, width=width) if timed else None


def stage_bars(
    names: Sequence[str], runs: Sequence[Run], *, about: str = "", width: int = WIDTH
) -> Spec | None:
    """The stages of those runs that report any; nothing where none does."""
    reports = [(name, run.stages) for name, run in zip(names, runs, strict=True) if _has_times(run)]
    stage_times = [_stage_times(name, report) for name, report in reports if report.stages]
    return pictures.stages(stage_times, about=about, width=width) if stage_times else None


def part_bars(ledger: Ledger, *, about: str = "", width: int = WIDTH) -> Spec:
    """Draw the gain and the cost of the parts of a retriever."""
    good = {Worth.HELPS: True, Worth.HARMFUL: False, Worth.DEAD: False}
    bars = [
        PartBar(r.name, worth_label(r.worth), good.get(r.worth), r.gain, r.ci95, r.cost.p50_ms)
        for r in ledger.rows
    ]
    name, metric = ledger.run.name, metric_label(ledger.metric)
    return pictures.parts(bars, name=name, metric=metric, about=about, width=width)


def slow_queries(name: str, run: Run, *, about: str = "", width: int = WIDTH) -> Spec | None:
    """The calls of one run per query; nothing for a run without times."""
    timings = run.timings
    if not _has_times(run):
        return None
    return pictures.per_query(
        timings.wall_ns / MS,
        timings.query,
        run.rankings.query_ids,
        failed=timings.failed,
        name=name,
        about=about,
        width=width,
    )


def _has_times(run: Run) -> bool:
    """Return whether there are calls, and they are no replay."""
    return len(run.timings.wall_ns) > 0 and run.summary.latency_ms.mean is not None


def _timed(names: Sequence[str], runs: Sequence[Run]) -> list[Calls]:
    return [_calls(run, name) for name, run in zip(names, runs, strict=True) if _has_times(run)]


def _calls(run: Run, name: str) -> Calls:
    timings = run.timings
    # Rounds of all launches, one behind the other.
    each = timings.launch * (timings.round.max(initial=0) + 1) + timings.round
    percentiles = [
        Percentile(float(level[1:]), entry.value, entry.ci95, entry.reason or None)
        for level, entry in run.summary.latency_ms.levels.items()
    ]
    ms = timings.wall_ns / MS
    return Calls(name, ms, timings.failed, timings.query, each.astype(np.int32), percentiles)


def _stage_times(name: str, report: StageReport) -> StageTimes:
    direct = {at: _drawn(stage) for at, stage in report.stages.items() if stage.direct}
    both = report.legs
    legs = (
        {}
        if both is None
        else {
            "legs in a row": _drawn(both.serial),
            "legs side by side": _drawn(both.parallel),
        }
    )
    return StageTimes(name, direct, legs, None if report.call is None else _drawn(report.call))


def _drawn(times: TimesFacts) -> tuple[float, float]:
    return times.p50, float("nan") if times.p95 is None else times.p95
