"""Saved runs and duets as a history needs them: what they say, without their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval (of a duet's ratio: 98 %); None where there is none."""

    value: float
    interval: tuple[float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """In full precision."""
        return {
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
        }


@dataclass(frozen=True, slots=True)
class SavedRun:
    """One run, without its arrays.

    Attributes:
        source: how the retriever can be named again on the command line.
        data: the same of the dataset.
        overrides: of its parameters, as ``--set`` takes them; None where the command line cannot
            say what was measured, or it was not kept.
        dirty: files differed from the commit; None outside a repository.
        config: hash of the target and its parameters; None for an object.
        params: of the retriever, by dotted path.
        metrics: means by metric.
        latency: milliseconds by percentile; those that were not supported are missing.
        same_quality, same_latency: what must be equal for two runs to stand on one line.
        machine: in words.
        timed: whether it was to measure times, and not the rankings only.
        session: runs of one session were measured call beside call.
    """

    id: str
    folder: Path
    created: datetime
    retriever: str
    source: str
    overrides: tuple[str, ...] | None
    dataset: str
    data: str
    status: str
    failed: int
    commit: str | None
    dirty: bool | None
    config: str | None
    params: Mapping[str, str]
    metrics: Mapping[str, Figure]
    latency: Mapping[str, Figure]
    same_quality: Mapping[str, Any]
    same_latency: Mapping[str, Any]
    machine: str
    timed: bool
    session: str | None

    @property
    def revision(self) -> str:
        """Of the code, short: "3f2a1c9", with a plus when files differed from it."""
        return short(self.commit, self.dirty)

    @property
    def code(self) -> tuple[str, str | None] | None:
        """What equal runs share; None when the files of the run are in no commit."""
        return None if self.commit is None or self.dirty else (self.commit, self.config)

    @property
    def counts(self) -> bool:
        """Whether it stands on a line: a run that was cut short has other queries in its means."""
        return self.status == COMPLETE


@dataclass(frozen=True, slots=True)
class SavedDuet:
    """One duet, without its times.

    Attributes:
        retriever: of side b, whose course is followed.
        verdict: what the duet said.
        pinned: commit of side a; None when its files are in none.
        commit, place: of side b.
        ratios: time of b over time of a, by gate.
        same: what must be equal for two duets to stand on one line, side a among it.
    """

    id: str
    folder: Path
    created: datetime
    retriever: str
    dataset: str
    verdict: str
    against: str
    pinned: str | None
    commit: str | None
    place: str
    ratios: Mapping[str, Figure]
    same: Mapping[str, Any]

    @property
    def revision(self) -> str:
        """Of side b: its commit, or what its place is called."""
        return short(self.commit) if self.commit else self.place or "-"


def short(commit: str | None, dirty: bool | None = False) -> str:
    """A commit as people name it."""
    return "-" if commit is None else commit[:7] + ("+" if dirty else "")
