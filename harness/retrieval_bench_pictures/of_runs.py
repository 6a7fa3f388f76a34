"""The pictures of runs: what is drawn of which timings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from retrieval_bench.capabilities import offered
from retrieval_bench.runs.records import PICTURES, add_files
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.percentiles import Percentile
from retrieval_bench_pictures.draw import svgs
from retrieval_bench_pictures.latency import Calls, ecdf
from retrieval_bench_pictures.queries import per_query
from retrieval_bench_pictures.rounds import rounds
from retrieval_bench_pictures.stages import stages
from retrieval_bench_pictures.vega import WIDTH, Spec

MS = 1e6


def run_pictures(run: Run) -> dict[str, Spec]:
    """File name -> picture: the distribution of call times, queries from fast to slow, drift over
    rounds, and the stages of a call. Nothing for a run without times."""
    if not _has_times(run):
        return {}
    drawn = {f"{name}.svg": make() for name, make in named_pictures(run).items()}
    return {name: spec for name, spec in drawn.items() if spec is not None}


def keep_pictures(runs: Sequence[Run]) -> None:
    """Put pictures into the folder of each run that has one, those of one dataset side by side.

    Raises:
        MissingDependencyError: vl-convert-python is not installed, or does not run here.
        RecordError: they cannot be written; the figures are there.
    """
    folders = pictures_of(runs)
    drawn = iter(svgs([spec for specs in folders.values() for spec in specs.values()]))
    for folder, specs in folders.items():
        if specs:
            add_files(folder, {f"{PICTURES}/{name}": next(drawn) for name in specs})


def pictures_of(runs: Sequence[Run]) -> dict[Path, dict[str, Spec]]:
    """Folder -> file name -> picture, of the runs that have a folder."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.summary.dataset.fingerprint, []).append(run)
    folders: dict[Path, dict[str, Spec]] = {}
    recall = offered("draw recall over tokens")
    for group in groups.values():
        names = [run.name for run in group]
        drawn = {
            "side-by-side.svg": side_by_side(names, group) if len(group) > 1 else None,
            "recall-over-tokens.svg": recall and recall(names, group),
        }
        shared = {file: spec for file, spec in drawn.items() if spec is not None}
        folders |= {run.folder: run_pictures(run) | shared for run in group if run.folder}
    return folders


def named_pictures(run: Run) -> Mapping[str, Callable[[], Spec | None]]:
    """Name, as Python users give it -> the function that makes the picture of a run."""
    named = ([run.name], [run])
    about = f"{run.summary.dataset.name}, k = {run.summary.k}"
    return {
        "latency": lambda: side_by_side(*named, about=about),
        "queries": lambda: slow_queries(run.name, run, about=about),
        "rounds": lambda: drift(*named, about=about),
        "stages": lambda: stage_bars(*named, about=about),
    }


def side_by_side(
    names: Sequence[str], runs: Sequence[Run], *, about: str = "", width: int = WIDTH
) -> Spec | None:
    """The distributions of call times of several runs; nothing where no run has times."""
    timed = _timed(names, runs)
    if not timed:
        return None
    return ecdf(timed, about=about or str(runs[0].summary.dataset.name), width=width)


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
