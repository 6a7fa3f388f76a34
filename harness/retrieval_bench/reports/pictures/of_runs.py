"""The pictures of runs: what is drawn of which timings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrieval_bench.reports.pictures.latency import Calls, ecdf
from retrieval_bench.reports.pictures.queries import per_query
from retrieval_bench.reports.pictures.rounds import rounds
from retrieval_bench.reports.pictures.stages import stages
from retrieval_bench.reports.pictures.vega import WIDTH, Spec
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.percentiles import Percentile

MS = 1e6


def run_pictures(run: Run) -> dict[str, Spec]:
    """File name -> picture: the distribution of call times, queries from fast to slow, drift over
    rounds, and the stages of a call. Nothing for a run without times."""
    if not _has_times(run):
        return {}
    about = f"{run.summary.dataset.name}, k = {run.summary.k}"
    drawn = {
        "latency.svg": ecdf([_calls(run, run.name)], about=about),
        "queries.svg": slow_queries(run.name, run, about=about),
        "rounds.svg": drift([run.name], [run], about=about),
        "stages.svg": stage_bars([run.name], [run], about=about),
    }
    return {name: spec for name, spec in drawn.items() if spec is not None}


def side_by_side(names: Sequence[str], runs: Sequence[Run], *, width: int = WIDTH) -> Spec | None:
    """The distributions of call times of several runs; nothing where no run has times."""
    timed = _timed(names, runs)
    if not timed:
        return None
    return ecdf(timed, about=str(runs[0].summary.dataset.name), width=width)


def drift(
    names: Sequence[str], runs: Sequence[Run], *, about: str = "", width: int = WIDTH
) -> Spec | None:
    """Several runs from round to round; nothing where none has two rounds."""
    timed = [
        calls
        for calls in _timed(names, runs)
        if calls.round is not None and calls.round.max(initial=0) > 0
    ]
    return rounds(timed, about=about, width=width) if timed else None


def stage_bars(
    names: Sequence[str], runs: Sequence[Run], *, about: str = "", width: int = WIDTH
) -> Spec | None:
    """The stages of those runs that report any; nothing where none does."""
    reports = [(name, run.stages) for name, run in zip(names, runs, strict=True) if _has_times(run)]
    shown = [(name, report) for name, report in reports if report.stages]
    return stages(shown, about=about, width=width) if shown else None


def slow_queries(name: str, run: Run, *, about: str = "", width: int = WIDTH) -> Spec | None:
    """The calls of one run per query; nothing for a run without times."""
    timings = run.timings
    if not _has_times(run):
        return None
    return per_query(
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
