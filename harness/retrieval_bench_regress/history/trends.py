"""History of saved runs and duets: which belong on one line, and where a line moved.

A line holds only what may be held against each other: for quality the same dataset, split, k,
convention and metrics version; for latency also the same machine, protocol and company of other
retrievers. Saved times of the same code lie apart by more than what is looked for, so that a step
is shown with the command that decides about it and never judged. Nothing is read or printed here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench_duet.decision import GATES
from retrieval_bench_regress.history.facts import Figure, SavedDuet, SavedRun

SCHEMA_VERSION = 1

P50, P95 = "p50", "p95"

_COMMIT = 12
"""Characters of a commit in a command: fewer may stand for several one day."""

STEP_FROM = GATES[P50].delta
"""A step of a time that is smaller is not mentioned: a duet calls it no difference either."""


@dataclass(frozen=True, slots=True)
class Line(Documented):
    """Runs or duets that may be held against each other.

    Attributes:
        label: "A", "B" for quality, "1", "2" for latency, "a", "b" for duets.
        same: what they have in common.
    """

    KEYS = "line=label id same"

    label: str
    same: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The same for equal lines, in every process and on every machine."""
        return _digest(self.same)


@dataclass(frozen=True, slots=True)
class RunOfStep:
    """A run beside a step.

    Attributes:
        run_id: of the run.
        revision: of its code.
    """

    run_id: str
    revision: str


@dataclass(frozen=True, slots=True)
class Step(Documented):
    """The largest move of a figure from one revision or config to the next. No verdict.

    Attributes:
        figure: "p50", or a metric.
        line: label of the line that it is on.
        before, after: the runs on both sides of it that lie next to each other.
        values: median over the runs of each side.
        change: relative for a time, absolute for a metric.
        equal_code: how far runs of the same code lie apart on this line, in the unit of
            ``change``; None where no code was run twice.
        decides: the command that decides about it; empty where none can.
    """

    KEYS = "figure line before=run_before after=run_after values change equal_code decides"

    figure: str
    line: str
    before: SavedRun
    after: SavedRun
    values: tuple[float, float]
    change: float
    equal_code: float | None
    decides: tuple[str, ...] = ()

    @property
    def run_before(self) -> RunOfStep:
        """The run before it."""
        return RunOfStep(self.before.id, self.before.revision)

    @property
    def run_after(self) -> RunOfStep:
        """The run after it."""
        return RunOfStep(self.after.id, self.after.revision)


@dataclass(frozen=True)
class Subject(Documented):
    """One retriever on one dataset: its runs and duets, the oldest first.

    Attributes:
        retriever: its name.
        dataset: its name.
        runs: the newest, oldest first, each with the lines that it stands on.
        duets: the newest, oldest first, each with its trend.
        metrics: those to show.
        n_runs, n_duets: how many there are; the older ones may be left out.
        quality_lines: in the order of their first run; one that was cut short is on none.
        latency_lines: of whole runs that have times.
        trends: of the duets against a pinned revision.
    """

    KEYS = "retriever dataset n_runs n_duets runs quality_lines latency_lines steps duets trends"

    retriever: str
    dataset: str
    runs: tuple[SavedRun, ...]
    duets: tuple[SavedDuet, ...]
    metrics: tuple[str, ...]
    n_runs: int
    n_duets: int
    quality_lines: list[Line]
    latency_lines: list[Line]
    trends: list[Line]

    @property
    def last(self) -> datetime:
        """The time when it was measured last."""
        saved: list[SavedRun | SavedDuet] = [*self.runs, *self.duets]
        return max(run.created for run in saved)

    @property
    def latency_course(self) -> str | None:
        """Whose course is shown: the newest line with two runs or more, else the newest."""
        return _course([run.latency_line for run in self.runs])

    @property
    def quality_course(self) -> str | None:
        """The quality line whose course is shown, chosen as for :attr:`latency_course`."""
        return _course([run.quality_line for run in self.runs])

    @cached_property
    def configs(self) -> list[str | None]:
        """Hashes in the order in which they came."""
        return list(dict.fromkeys(run.config for run in self.runs))

    @cached_property
    def steps(self) -> list[Step]:
        """The largest one of the p50, and of each metric that moved, on the lines shown."""
        steps = [_largest_time(self)]
        steps += [_largest_mean(self, metric) for metric in self.metrics]
        return [step for step in steps if step is not None]


def subjects(
    runs: Iterable[SavedRun],
    duets: Iterable[SavedDuet],
    *,
    metrics: Sequence[str] = (),
    last: int | None = None,
) -> list[Subject]:
    """Every retriever on every dataset, the one that was measured last first.

    Args:
        metrics: to show; none = the first of the newest run.
        last: keep only the newest runs, and duets, of each.
    """
    by_runs = _by_subject(runs)
    by_duets = _by_subject(duets)
    subjects = []
    for name in dict.fromkeys([*by_runs, *by_duets]):
        own, pairs = by_runs.get(name, []), by_duets.get(name, [])
        kept, played = (items if last is None else items[-last:] for items in (own, pairs))
        shown = tuple(metrics) or tuple(own[-1].metrics if own else ())[:1]
        quality = _Lines(_letter, (run.same_quality for run in kept if run.counts))
        timed = filter(_is_timed, kept)
        latency = _Lines(lambda at: str(at + 1), (run.same_latency for run in timed))
        pinned = (duet.same for duet in played if duet.pinned)
        trends = _Lines(lambda at: _letter(at).lower(), pinned)
        placed = [
            replace(
                run,
                quality_line=quality.label(run.same_quality) if run.counts else None,
                latency_line=latency.label(run.same_latency) if _is_timed(run) else None,
            )
            for run in kept
        ]
        compared = [
            replace(duet, trend=trends.label(duet.same) if duet.pinned else None) for duet in played
        ]
        subjects.append(
            Subject(
                *name,
                tuple(placed),
                tuple(compared),
                shown,
                len(own),
                len(pairs),
                quality.lines,
                latency.lines,
                trends.lines,
            )
        )
    return sorted(subjects, key=lambda subject: subject.last, reverse=True)


def _is_timed(run: SavedRun) -> bool:
    return run.counts and bool(run.latency)


def _by_subject(saved: Iterable[Any]) -> dict[tuple[str, str], list[Any]]:
    """Group by retriever and dataset, the oldest first."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for run in sorted(saved, key=lambda run: (run.created, run.id)):
        groups.setdefault((run.retriever, run.dataset), []).append(run)
    return groups


class _Lines:
    """Values that are shared, each once, with a label for its place."""

    def __init__(self, name: Callable[[int], str], shared: Iterable[Mapping[str, Any]]) -> None:
        distinct = {_digest(same): same for same in shared}
        self.lines = [Line(name(at), same) for at, same in enumerate(distinct.values())]

    def label(self, same: Mapping[str, Any]) -> str:
        return next(line.label for line in self.lines if line.same == same)


def _course(labels: Sequence[str | None]) -> str | None:
    known = [label for label in reversed(labels) if label is not None]
    return next((label for label in known if known.count(label) > 1), known[0] if known else None)


def _letter(at: int) -> str:
    """ "A" to "Z", then "A2" ..."""
    again, place = divmod(at, 26)
    return chr(ord("A") + place) + (str(again + 1) if again else "")


def _digest(same: Mapping[str, Any]) -> str:
    text = json.dumps(same, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]


# -- steps ---------------------------------------------------------------------------------------


def _largest_time(subject: Subject) -> Step | None:
    line = subject.latency_course
    runs = [run for run in subject.runs if run.latency_line == line]
    committed = [run for run in runs if run.code is not None]
    revisions = {run.commit for run in committed}
    steps = _steps(
        P50,
        line,
        committed if len(revisions) > 1 else runs,
        lambda run: run.latency.get(P50),
        lambda before, after: after / before - 1 if before > 0 else 0.0,
    )
    told = [replace(step, decides=_duet_command(step)) for step in steps]
    # What can be decided comes first: files that are in no commit cannot be measured again.
    at_hand = [step for step in told if step.decides] or told
    largest = max(at_hand, key=lambda step: abs(math.log1p(step.change)), default=None)
    return None if largest is None or abs(largest.change) <= STEP_FROM else largest


def _largest_mean(subject: Subject, metric: str) -> Step | None:
    line = subject.quality_course
    steps = _steps(
        metric,
        line,
        [run for run in subject.runs if run.quality_line == line],
        lambda run: run.metrics.get(metric),
        lambda before, after: after - before,
    )
    largest = max(steps, key=lambda step: abs(step.change), default=None)
    if largest is None or not largest.change:
        return None
    folders = (str(largest.before.folder), str(largest.after.folder))
    return replace(largest, decides=("retrieval-bench", "compare", *folders))


def _steps(
    figure: str,
    line: str | None,
    runs: Sequence[SavedRun],
    of: Callable[[SavedRun], Figure | None],
    change: Callable[[float, float], float],
) -> list[Step]:
    """Find steps between neighbours on a line whose code is not known to be the same."""
    if line is None:
        return []
    known = [(run, entry.value) for run in runs if (entry := of(run)) is not None]
    blocks = [
        list(block) for _, block in groupby(known, key=lambda pair: pair[0].code or pair[0].id)
    ]
    by_code: dict[Any, list[float]] = {}
    for run, value in known:
        if run.code is not None:
            by_code.setdefault(run.code, []).append(value)
    repeated = [
        abs(change(min(values), max(values))) for values in by_code.values() if len(values) > 1
    ]
    steps = []
    for left, right in pairwise(blocks):
        values = (median(v for _, v in left), median(v for _, v in right))
        before, after = left[-1][0], right[0][0]
        noise = max(repeated, default=None)
        steps.append(Step(figure, line, before, after, values, change(*values), noise))
    return steps


def _duet_command(step: Step) -> tuple[str, ...]:
    """Write the command that measures both revisions side by side; empty where one of them is in no
    commit, both are the same, or the command line cannot say what was measured."""
    before, after = step.before, step.after
    if before.code is None or after.code is None or before.commit == after.commit:
        return ()
    if before.overrides is None or after.overrides is None:
        return ()
    outside = any(Path(run.source).is_absolute() for run in (before, after))
    if before.config != after.config and outside:
        return ()  # it is in no revision, and may have been another one then
    words = ["retrieval-bench", "duet"]
    if before.source == after.source:
        words.append(after.source)
    else:
        words += [before.source, after.source]
    words += ["--dataset", after.data]
    words += ["--rev-a", str(before.commit)[:_COMMIT], "--rev-b", str(after.commit)[:_COMMIT]]
    if before.overrides == after.overrides:
        words += ["--set", *after.overrides] if after.overrides else []
    else:
        for side, run in (("a", before), ("b", after)):
            words += [f"--set-{side}", *run.overrides] if run.overrides else []
    for option, usual in (("split", "test"), ("k", 10), ("threads", 1)):
        value = after.same_latency.get(option)
        words += [] if value == usual else [f"--{option}", str(value)]
    return tuple(words)
