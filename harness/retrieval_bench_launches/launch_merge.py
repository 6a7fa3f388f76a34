"""Launches of one measurement become one run for each retriever."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.usage import FIELDS
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice, with_text
from retrieval_bench.experiment.failing import joined_attempts
from retrieval_bench.measure.calls import NOT_RUN, OK, Timings
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Rankings, Run, equally_wide
from retrieval_bench.runs.summary import Summary

Resummarize = Callable[[Summary, Timings], Summary]
"""A summary with the timings of all launches -> the summary with its times computed anew."""


@dataclass(slots=True)
class Launch:
    """One process and what came of it: ``runs``, or why it was ``lost``."""

    number: int
    runs: Sequence[Run] = ()
    lost: str = ""
    seconds: float = 0.0


def hash_seed(number: int) -> int:
    """The PYTHONHASHSEED of launch ``number``: the same in every measurement."""
    return number + 1


def merge(
    launched: Sequence[Launch],
    protocol: Protocol,
    resummarize: Resummarize,
    *,
    interrupted: bool = False,
) -> list[Run]:
    """One run for each retriever: rankings, status and quality of the first complete launch, times
    of all, in the order of the launches.

    Args:
        launched: at least one with runs; all runs over the same retrievers and queries.
        protocol: of the whole measurement.
    """
    kept = [launch for launch in launched if launch.runs]
    base = next((launch for launch in kept if _complete(launch)), kept[0])
    partial = interrupted or not all(_complete(launch) for launch in kept)
    merged = []
    for at, run in enumerate(base.runs):
        runs = [launch.runs[at] for launch in kept]
        timings = _joined([launch.number for launch in kept], [each.timings for each in runs])
        messages: list[str] = [
            Notice(launch.lost, Code.LOST_LAUNCH) for launch in launched if launch.lost
        ]
        if interrupted:
            messages.append(f"interrupted in launch {len(launched)} of {max(1, protocol.launches)}")
        messages += _differences(run, [other for other in runs if other is not run])
        messages += _others_told(run, [(k.number, k.runs[at]) for k in kept if k is not base])
        again = resummarize(run.summary, timings)
        summary = again.replace(
            **joined_attempts([run.summary for run in runs]),
            latency_ms=again.latency_ms.replace(**_warming(runs)),
            status="partial" if partial else "complete",
            warnings=[*run.summary.warnings, *messages],
        )
        manifest = {
            **run.manifest,
            "protocol": protocol.as_dict(),
            "launches": [_entry(launch, at, protocol) for launch in launched],
        }
        merged.append(replace(run, summary=summary, manifest=manifest, timings=timings))
    return merged


def _complete(launch: Launch) -> bool:
    return all(run.summary.status == "complete" for run in launch.runs)


def _warming(runs: Sequence[Run]) -> dict[str, Any]:
    """The longest warm-up of all launches; steady only where each of them was."""
    each = [run.summary.latency_ms for run in runs]
    steady = [item.steady_after for item in each]
    return {
        "warm_up_calls": max(item.warm_up_calls for item in each),
        "steady_after": None if None in steady else max(n for n in steady if n is not None),
    }


def _joined(numbers: Sequence[int], parts: Sequence[Timings]) -> Timings:
    sizes = [len(part.wall_ns) for part in parts]
    stages = dict.fromkeys(name for part in parts for name in part.stages)
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Timings)
        if field.name not in ("stages", "usage", "launch", "first_ns")
    }
    return Timings(
        **arrays,
        stages={name: np.concatenate([_stage(part, name) for part in parts]) for name in stages},
        launch=np.repeat(np.array(numbers, dtype=np.int32), sizes),
        first_ns=np.vstack([part.first_ns for part in parts]),
        usage={
            name: np.concatenate([_used(part, name) for part in parts])
            for name in dict.fromkeys(name for part in parts for name in part.usage)
        },
    )


def _used(timings: Timings, stage: str) -> NDArray[np.float64]:
    missing = np.full((len(timings.wall_ns), len(FIELDS)), np.nan)
    return timings.usage.get(stage, missing)


def _stage(timings: Timings, name: str) -> NDArray[np.int64]:
    missing = np.full(len(timings.wall_ns), -1, dtype=np.int64)
    return timings.stages.get(name, missing)


def _differences(base: Run, others: Sequence[Run]) -> list[str]:
    """Say what was answered otherwise in another launch, of the queries that both reached."""
    ranked = np.zeros(len(base.status), dtype=bool)
    failed = np.zeros(len(base.status), dtype=bool)
    own, told = _fine(base), _reached(base)
    for other in others:
        fine = _fine(other)
        ranked |= own & fine & _other_rankings(base.rankings, other.rankings)
        failed |= told & _reached(other) & (own != fine)
    lines = []
    if ranked.any():
        lines.append(
            f"{counted(int(ranked.sum()), 'query')} got another ranking in another launch: what "
            "the retriever returns depends on its process; quality is that of one launch"
        )
    if failed.any():
        lines.append(
            f"{counted(int(failed.sum()), 'query')} failed in some launches and not in others; "
            "quality is that of one launch"
        )
    return lines


def _fine(run: Run) -> NDArray[np.bool_]:
    return np.array([status == OK for status in run.status], dtype=bool)


def _reached(run: Run) -> NDArray[np.bool_]:
    return np.array([status != NOT_RUN for status in run.status], dtype=bool)


def _other_rankings(base: Rankings, other: Rankings) -> NDArray[np.bool_]:
    """Return whether each query's documents or their order differ."""
    known = {doc_id: at for at, doc_id in enumerate(base.doc_ids)}
    foreign = len(known)  # a document that the base never returned is like none of its own
    to_base = np.array([*(known.get(doc_id, foreign) for doc_id in other.doc_ids), -1])
    own, others = equally_wide(base.ranking, to_base[other.ranking])
    return np.asarray((own != others).any(axis=1))


def _others_told(base: Run, others: Sequence[tuple[int, Run]]) -> list[str]:
    """Warnings that only other launches gave; one that differs in its figures is the same."""
    known = {_without_figures(text) for text in base.summary.warnings}
    lines = []
    for number, run in others:
        for text in run.summary.warnings:
            if _without_figures(text) not in known:
                known.add(_without_figures(text))
                lines.append(with_text(text, f"launch {number + 1}: {text}"))
    return lines


def _without_figures(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "#", text)


def _entry(launch: Launch, at: int, protocol: Protocol) -> dict[str, Any]:
    """Describe one launch for a manifest."""
    entry: dict[str, Any] = {
        "launch": launch.number,
        "seconds": launch.seconds,
        "hash_seed": hash_seed(launch.number),
        "seed": protocol.seed + launch.number,
    }
    if not launch.runs:
        return entry | {"status": "lost", "reason": launch.lost}
    run = launch.runs[at]
    return entry | {
        "status": run.summary.status,
        "calls": len(run.timings.wall_ns),
        "index": run.summary.index.as_dict(),
        "warm_up_calls": run.summary.latency_ms.warm_up_calls,
        "noise": run.manifest.get("noise"),
    }
