"""Saved runs and duets as a history needs them: what their small JSON files say, without arrays.

A folder that is damaged, of a later version, or no record at all is named and left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import AsText, Documented
from retrieval_bench.core.config import chunker_in, load_retriever_config
from retrieval_bench.core.errors import ConfigError, RecordError, counted
from retrieval_bench.data import dataset_name, found_at
from retrieval_bench.measure.protocol import RANKINGS_ONLY
from retrieval_bench.runs.records import DEFAULT_ROOT, MANIFEST, SCHEMA_VERSION, SUMMARY, read_json
from retrieval_bench.runs.run import settings_of
from retrieval_bench.runs.summary import Summary
from retrieval_bench_duet.result import DOCUMENT, read_duet
from retrieval_bench_duet.result import ROOT as DUETS

_LEFT_OUT = 5  # are named; JSON names all


@dataclass(frozen=True, slots=True)
class Same(AsText):
    """Key of runs, or duets, that may be held against each other. Its text is a short hash of what
    they have in common, the same in every process and on every machine.

    Attributes:
        facts: by name.
        words: what people read in place of some.
    """

    facts: Mapping[str, Any]
    words: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        text = json.dumps(self.facts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Figure(Documented):
    """A value of one run or duet.

    Attributes:
        value: in the unit of its figure.
        interval: 95 %, of a duet's ratio 98 %; None where there is none.
    """

    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SavedRun(Documented):
    """A run in a history, without its arrays.

    Attributes:
        id: name of the run.
        folder: where it lies.
        created: the time when it was measured, UTC.
        retriever, dataset: names.
        source: the file of the retriever, with its chunker; its name where there is none.
        data: where the dataset was found.
        status: "complete" or "partial".
        failed: queries that failed.
        commit, dirty: of the code, and whether files differed from it; None outside a repository.
        revision: the commit in short, with a plus when files differed from it.
        config: hash of the target and its parameters; None for an object.
        params: of the retriever, by dotted path; of its chunker, too.
        machine: a fingerprint of what changes times.
        metrics: means by metric.
        latency: milliseconds by percentile; those that were not supported are missing.
        same_quality: the key of runs whose metrics may be held against each other; None for a run
            that was cut short, whose means are over other queries.
        same_times: the key of runs whose times may be held against each other; None for one that
            was cut short, or was to give its rankings alone.
    """

    KEYS = (
        "run_id=id folder created status n_failed=failed commit dirty config machine metrics "
        "latency_ms=latency same_quality same_times"
    )

    id: str
    folder: Path
    created: str
    retriever: str
    source: str
    dataset: str
    data: str
    status: str
    failed: int
    commit: str | None
    dirty: bool | None
    revision: str
    config: str | None
    params: Mapping[str, str]
    machine: str
    metrics: Mapping[str, Figure]
    latency: Mapping[str, Figure]
    same_quality: Same | None
    same_times: Same | None


@dataclass(frozen=True, slots=True)
class SavedDuet(Documented):
    """A duet in a history, without its times.

    Attributes:
        id: name of the duet.
        folder: where it lies.
        created: the time when it was measured, UTC.
        retriever, dataset: names; the retriever is that of side b, whose course is followed.
        verdict: what the duet said.
        against: side a, in words.
        commit: of side b; None when its files are in none.
        revision: the commit in short, or the place of side b.
        ratios: time of b over time of a, by gate.
        same_times: the key of duets whose ratios may be held against each other: they have the same
            side a; None where that is no revision.
    """

    KEYS = "duet_id=id folder created verdict against commit revision ratios same_times"

    id: str
    folder: Path
    created: str
    retriever: str
    dataset: str
    verdict: str
    against: str
    commit: str | None
    revision: str
    ratios: Mapping[str, Figure]
    same_times: Same | None


@dataclass(frozen=True, slots=True)
class LeftOut(Documented):
    """A folder that is in no history, and why.

    Attributes:
        folder: where it lies.
        reason: in one sentence.
    """

    folder: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Records:
    """Runs and duets in some folders.

    Attributes:
        runs, duets: in the order found.
        left_out: folders that could not be read, with the reason.
        copies: records that were found twice and are counted once.
    """

    runs: tuple[SavedRun, ...]
    duets: tuple[SavedDuet, ...]
    left_out: tuple[LeftOut, ...]
    copies: int = 0

    @property
    def notes(self) -> list[str]:
        """Folders that are left out, the first of them by name, and how many records are copies."""
        notes = [f"Left out: {left.folder}: {left.reason}." for left in self.left_out[:_LEFT_OUT]]
        if (more := len(self.left_out) - _LEFT_OUT) > 0:
            notes.append(f"Left out: {more:,} more folders that are not runs; see --format json.")
        if self.copies:
            notes.append(f"Found twice, and counted once: {counted(self.copies, 'record')}.")
        return notes


def read_history(folders: Sequence[Path] = ()) -> Records:
    """All runs and duets below ``folders``, or in them.

    Args:
        folders: none = ``results/runs`` and ``results/duets``, which need not be there.

    Raises:
        RecordError: a folder that was named is none.
    """
    for folder in folders:
        if not folder.is_dir():
            raise RecordError(
                "no such folder",
                kind="no-file",
                where=str(folder),
                accepted="a folder with run folders in it, such as results/runs",
                fix="correct --runs",
            )
    runs: dict[str, SavedRun] = {}
    duets: dict[str, SavedDuet] = {}
    left_out: list[LeftOut] = []
    n_read = 0
    roots = folders or [root for root in (DEFAULT_ROOT, DUETS) if root.is_dir()]
    for folder in (record for root in roots for record in _records(root)):
        try:
            if (folder / DOCUMENT).is_file():
                duet = _duet(folder)
                duets.setdefault(duet.id, duet)
            else:
                run = _run(folder)
                runs.setdefault(run.id, run)
            n_read += 1
        except RecordError as problem:
            left_out.append(LeftOut(folder, problem.given))
        except (LookupError, TypeError, ValueError, AttributeError, OSError, ArithmeticError) as e:
            left_out.append(LeftOut(folder, f"damaged: {type(e).__name__}: {e}"))
    copies = n_read - len(runs) - len(duets)
    return Records(tuple(runs.values()), tuple(duets.values()), tuple(left_out), copies)


def _records(root: Path) -> list[Path]:
    """The folders that may be records; one that is being written begins with a dot."""
    if (root / SUMMARY).is_file() or (root / DOCUMENT).is_file():
        return [root]
    return sorted(path for path in root.glob("[!.]*") if path.is_dir())


_REPORTED = ("profile", "levels")
"""Of a protocol: how its parameters are called, and which percentiles are printed. All others
belong to how a time was measured."""


def _run(folder: Path) -> SavedRun:
    document = read_json(folder / SUMMARY)
    version = document.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RecordError(f"schema_version {version}, which is not known here")
    summary, manifest = Summary.model_validate(document), read_json(folder / MANIFEST)
    data, retriever, protocol = summary.dataset, manifest["retriever"], manifest["protocol"]
    machine = manifest["environment"]["machine"]
    git = manifest["environment"].get("git") or {}
    asked = {"fingerprint": data.fingerprint, "split": data.split, "k": summary.k}
    scored = {"convention": summary.convention, "metrics_version": summary.metrics_version}
    times = {
        "beside": sorted(manifest.get("beside", ())),
        "machine": str(machine["fingerprint"]),
        "threads": int(manifest["environment"]["threads"]),
        "protocol": {key: value for key, value in protocol.items() if key not in _REPORTED},
    }
    timed, whole = protocol.get("profile") != RANKINGS_ONLY, summary.status == "complete"
    kind = f"{machine.get('processor', '?')}, {machine.get('usable_cores', '?')} cores"
    words = {"machine": f"{machine['fingerprint']} ({kind})"}
    levels = summary.latency_ms.levels if timed else {}
    commit, dirty = git.get("commit"), git.get("dirty")
    source = (manifest.get("dataset") or {}).get("source")
    return SavedRun(
        id=summary.run_id,
        folder=folder,
        created=_utc(manifest["created"]),
        retriever=summary.retriever,
        source=_source(summary.retriever, retriever.get("source"), retriever.get("chunk")),
        dataset=data.name,
        data=_resolved(str(source or data.name)),
        status=summary.status,
        failed=summary.n_failed,
        commit=commit,
        dirty=dirty,
        revision=commit[:7] + ("+" if dirty else "") if commit else "-",
        config=retriever.get("hash"),
        params=settings_of(retriever),
        machine=str(machine["fingerprint"]),
        metrics=_figures((name, mean.mean, mean.ci95) for name, mean in summary.metrics.items()),
        latency=_figures((name, level.value, level.ci95) for name, level in levels.items()),
        same_quality=Same(asked | scored) if whole else None,
        same_times=Same(asked | times, words) if whole and timed else None,
    )


def _duet(folder: Path) -> SavedDuet:
    document = read_duet(folder)
    a, b, data = document["a"], document["b"], document["dataset"]
    environment = document["environment"]
    same = {
        "retriever": str(a["retriever"]),
        "commit": a["commit"],
        "overrides": list(a["overrides"]),
        **{what: data[what] for what in ("fingerprint", "split", "k")},
        "machine": str(environment["machine"]["fingerprint"]),
        "threads": int(environment["threads"]),
    }
    return SavedDuet(
        id=str(document["duet_id"]),
        folder=folder,
        created=_utc(document["created"]),
        retriever=str(b["retriever"]),
        dataset=str(data["name"]),
        verdict=str(document["verdict"]),
        against=str(a["name"]),
        commit=b["commit"],
        revision=b["commit"][:7] if b["commit"] else str(b["place"]) or "-",
        ratios=_figures((g["gate"], g["ratio"], g["interval"]) for g in document["gates"]),
        same_times=Same(same, {"commit": a["commit"][:7]}) if a["commit"] else None,
    )


def chosen(
    records: Records, retriever: str | None, dataset: str | None
) -> tuple[Sequence[SavedRun], Sequence[SavedDuet]]:
    """Runs by name or file; None = all. Duets by name: their files lay in the checkout of a
    revision."""
    runs, duets = records.runs, records.duets
    if dataset is not None:
        data = _resolved(found_at(dataset))
        runs = tuple(run for run in runs if dataset == run.dataset or data == run.data)
        names = {dataset, dataset_name(dataset), *(run.dataset for run in runs)}
        duets = tuple(duet for duet in duets if duet.dataset in names)
    if retriever is not None:
        name, source = _called(retriever)
        runs = tuple(run for run in runs if retriever == run.retriever or source == run.source)
        duets = tuple(duet for duet in duets if duet.retriever in (retriever, name))
    return runs, duets


def _called(given: str) -> tuple[str, str]:
    """Name and :attr:`SavedRun.source` of what was measured with ``--retriever given``; of a file
    that is gone or has faults, the name that it has without any in it."""
    try:
        config = load_retriever_config(given)
    except ConfigError:
        name = Path(given).stem if given.endswith((".yaml", ".yml")) else given
        return name, os.path.realpath(given)
    return config.name, _source(config.name, config.source, config.chunk)


def _source(name: str, file: Any, chunk: Mapping[str, Any] | None) -> str:
    return os.path.realpath(file) + chunker_in(name, chunk) if file else name


def _resolved(name: str) -> str:
    return os.path.realpath(name) if Path(name).is_absolute() else name


def _utc(time: str) -> str:
    given = datetime.fromisoformat(time)
    zoned = given if given.tzinfo else given.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).isoformat(timespec="seconds")


def _figures(given: Iterable[tuple[str, Any, Any]]) -> dict[str, Figure]:
    """Figures of names, values and ends of intervals; what has no value is none."""
    figures = {}
    for name, value, ends in given:
        if value is not None:
            if not math.isfinite(value):
                raise ValueError(f"{value} where a figure should be")
            low, high = map(float, ends or (math.nan, math.nan))
            known = math.isfinite(low) and math.isfinite(high)
            figures[name] = Figure(float(value), (low, high) if known else None)
    return figures
