"""Saved runs and duets as a history needs them: what their small JSON files say, without arrays.

A folder that is damaged, of a later version, or no record at all is named and left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import chunker_in, load_retriever_config
from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.installed.installation import config_folders
from retrieval_bench.data import found_at
from retrieval_bench.measure.protocol import RANKINGS_ONLY
from retrieval_bench.runs.records import DEFAULT_ROOT, MANIFEST, SCHEMA_VERSION, SUMMARY, read_json
from retrieval_bench.runs.run import settings_of
from retrieval_bench.runs.summary import Summary
from retrieval_bench_duet.result import DOCUMENT, read_duet
from retrieval_bench_duet.result import ROOT as DUETS

COMPLETE = "complete"


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
        created: UTC.
        retriever: its name.
        source: how the retriever can be named again on the command line.
        overrides: of its parameters, as ``--set`` takes them; None where the command line cannot
            say what was measured, or it was not kept.
        dataset: its name.
        data: how the dataset can be named again.
        status: "complete" or "partial".
        failed: queries that failed.
        commit: None outside a repository.
        dirty: files differed from the commit; None outside a repository.
        config: hash of the target and its parameters; None for an object.
        params: of the retriever, by dotted path; of its chunker, too.
        metrics: means by metric.
        latency: milliseconds by percentile; those that were not supported are missing.
        same_quality, same_latency: what must be equal for two runs to stand on one line.
        machine: in words.
        timed: whether it was to measure times, and not the rankings only.
        quality_line, latency_line: labels of the lines that it stands on; None = on none.
    """

    KEYS = (
        "run_id=id folder created=when status n_failed=failed commit dirty config "
        "machine=fingerprint metrics latency_ms=latency quality_line latency_line"
    )

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
    quality_line: str | None = None
    latency_line: str | None = None

    @property
    def when(self) -> str:
        """The time when it was measured, UTC."""
        return self.created.isoformat(timespec="seconds")

    @property
    def fingerprint(self) -> str | None:
        """A fingerprint of what changes times."""
        machine: str | None = self.same_latency.get("machine")
        return machine

    @property
    def revision(self) -> str:
        """The revision of the code, short: "3f2a1c9", with a plus when files differed from it."""
        return short(self.commit, self.dirty)

    @property
    def code(self) -> tuple[str, str | None] | None:
        """The commit and config that equal runs share; None for files that are in no commit."""
        return None if self.commit is None or self.dirty else (self.commit, self.config)

    @property
    def counts(self) -> bool:
        """True if it stands on a line: a run that was cut short has other queries in its means."""
        return self.status == COMPLETE


@dataclass(frozen=True, slots=True)
class SavedDuet(Documented):
    """A duet in a history, without its times.

    Attributes:
        id: name of the duet.
        folder: where it lies.
        created: UTC.
        retriever: of side b, whose course is followed.
        dataset: its name.
        verdict: what the duet said.
        against: side a, in words.
        pinned: commit of side a; None when its files are in none.
        commit, place: of side b.
        ratios: time of b over time of a, by gate.
        same: what must be equal for two duets to stand on one line, side a among it.
        trend: label of the line that its ratios stand on; None without a pinned revision.
    """

    KEYS = "duet_id=id folder created=when verdict against pinned commit place ratios trend"

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
    trend: str | None = None

    @property
    def when(self) -> str:
        """The time when it was measured, UTC."""
        return self.created.isoformat(timespec="seconds")

    @property
    def revision(self) -> str:
        """The revision of side b: its commit, or the name of its place."""
        return short(self.commit) if self.commit else self.place or "-"


def short(commit: str | None, dirty: bool | None = False) -> str:
    """A commit as people name it."""
    return "-" if commit is None else commit[:7] + ("+" if dirty else "")


ROOTS = (DEFAULT_ROOT, DUETS)
"""Where runs and duets lie when nobody says otherwise."""

_REPORTED = ("profile", "levels")
"""Of a protocol: how its parameters are called, and which percentiles are printed. All others
belong to how a time was measured."""


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
class Found:
    """Runs and duets in some folders.

    Attributes:
        runs: the oldest first.
        duets: the oldest first.
        left_out: folders that could not be read, with the reason.
        copies: records that were found twice and are counted once.
    """

    runs: tuple[SavedRun, ...]
    duets: tuple[SavedDuet, ...]
    left_out: tuple[LeftOut, ...]
    copies: int = 0


def read_history(folders: Sequence[Path] = ()) -> Found:
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
    copies = 0
    for folder in _records(folders or [root for root in ROOTS if root.is_dir()]):
        try:
            if (folder / DOCUMENT).is_file():
                duet = _duet(folder)
                copies += duet.id in duets
                duets.setdefault(duet.id, duet)
            elif (folder / SUMMARY).is_file():
                run = _run(folder)
                copies += run.id in runs
                runs.setdefault(run.id, run)
            else:
                left_out.append(LeftOut(folder, f"neither {SUMMARY} nor {DOCUMENT} in it"))
        except RecordError as problem:
            left_out.append(LeftOut(folder, problem.given))
        except (
            *(LookupError, TypeError, ValueError, AttributeError, OSError),
            ArithmeticError,  # an infinite k
        ) as problem:
            left_out.append(LeftOut(folder, f"damaged: {type(problem).__name__}: {problem}"))
    return Found(tuple(runs.values()), tuple(duets.values()), tuple(left_out), copies)


def _records(folders: Sequence[Path]) -> Iterator[Path]:
    """The folders in ``folders`` that may be records; one that is being written begins with a
    dot."""
    for folder in folders:
        if (folder / SUMMARY).is_file() or (folder / DOCUMENT).is_file():
            yield folder
            continue
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
        yield from (path for path in inside if not path.name.startswith("."))


def _run(folder: Path) -> SavedRun:
    document = read_json(folder / SUMMARY)
    version = document.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RecordError(f"schema_version {version}, which is not known here")
    summary, manifest = Summary.model_validate(document), read_json(folder / MANIFEST)
    data, retriever = summary.dataset, manifest["retriever"]
    environment = manifest["environment"]
    machine, git = environment["machine"], environment.get("git") or {}
    same_quality = {
        "fingerprint": data.fingerprint,
        "split": data.split,
        "k": summary.k,
        "convention": summary.convention,
        "metrics_version": summary.metrics_version,
    }
    protocol = manifest["protocol"]
    timed = protocol.get("profile") != RANKINGS_ONLY
    name = summary.retriever
    return SavedRun(
        id=summary.run_id,
        folder=folder,
        created=_time(manifest["created"]),
        retriever=name,
        source=_named(name, retriever),
        overrides=None if (given := retriever.get("overrides")) is None else tuple(given),
        dataset=data.name,
        data=_data_named(data.name, (manifest.get("dataset") or {}).get("source")),
        status=summary.status,
        failed=summary.n_failed,
        commit=_text(git.get("commit")),
        dirty=None if git.get("dirty") is None else bool(git["dirty"]),
        config=_text(retriever.get("hash")),
        params=settings_of(retriever),
        metrics={
            metric: Figure(_finite(figure.mean), figure.ci95)
            for metric, figure in summary.metrics.items()
            if figure.mean is not None
        },
        latency={
            level: Figure(_finite(figure.value), figure.ci95)
            for level, figure in (summary.latency_ms.levels if timed else {}).items()
            if figure.value is not None
        },
        same_quality=same_quality,
        same_latency={
            "beside": sorted(manifest.get("beside", ())),
            **{what: same_quality[what] for what in ("fingerprint", "split", "k")},
            "machine": str(machine["fingerprint"]),
            "threads": int(environment["threads"]),
            "protocol": {key: value for key, value in protocol.items() if key not in _REPORTED},
        },
        machine=_machine(machine),
        timed=timed,
    )


def _duet(folder: Path) -> SavedDuet:
    document = read_duet(folder)
    a, b, data = document["a"], document["b"], document["dataset"]
    environment = document["environment"]
    return SavedDuet(
        id=str(document["duet_id"]),
        folder=folder,
        created=_time(document["created"]),
        retriever=str(b["retriever"]),
        dataset=str(data["name"]),
        verdict=str(document["verdict"]),
        against=str(a["name"]),
        pinned=_text(a["commit"]),
        commit=_text(b["commit"]),
        place=str(b["place"]),
        ratios={
            str(gate["gate"]): Figure(_finite(gate["ratio"]), _ends(gate["interval"]))
            for gate in document["gates"]
            if gate["ratio"] is not None
        },
        same={
            "retriever": str(a["retriever"]),
            "commit": a["commit"],
            "overrides": list(a["overrides"]),
            **{what: data[what] for what in ("fingerprint", "split", "k")},
            "machine": str(environment["machine"]["fingerprint"]),
            "threads": int(environment["threads"]),
        },
    )


def _named(name: str, retriever: Mapping[str, Any]) -> str:
    """Return how it is called on the command line: by name where its config lies among the others,
    otherwise by its file."""
    source, cut = retriever.get("source"), chunker_in(name, retriever.get("chunk"))
    if not source:
        target = str(retriever.get("target") or name)
        return target + cut if ":" in target else name
    path = Path(str(source))
    if path.stem == name.removesuffix(cut) and _among_configs(path):
        return name
    return _from_here(path) + cut


def _among_configs(path: Path) -> bool:
    """Return whether the name of the file means this file. Of one that is not here, such as a
    config of another machine, all that is known is where it lay."""
    if not os.access(path, os.F_OK):
        return path.parent.parts[-2:] in (("configs", "retrievers"), ("_configs", "retrievers"))
    named = (folder / f"{path.stem}.yaml" for folder in config_folders("retrievers"))
    first = next((file for file in named if file.is_file()), None)
    return first is not None and os.path.realpath(first) == str(path)


def called(given: str) -> tuple[str, str]:
    """Name and :attr:`SavedRun.source` of what was measured with ``--retriever given``; of a file
    that is gone or has faults, the name that it has without any in it."""
    try:
        config = load_retriever_config(given)
    except ConfigError:
        if not given.endswith((".yaml", ".yml")):
            return given, given
        path = Path(os.path.realpath(given))
        return path.stem, _named(path.stem, {"source": path})
    facts = {"source": config.source, "target": config.target, "chunk": config.chunk}
    return config.name, _named(config.name, facts)


def called_data(given: str) -> str:
    """:attr:`SavedRun.data` of what was measured with ``--dataset given``."""
    return _data_named(given, found_at(given))


def _data_named(name: str, source: Any) -> str:
    """Return the name of the data as it was given: a path may hold a dataset of any name."""
    path = Path(str(source or name))
    if not path.is_absolute():
        return str(source or name)
    here = _from_here(Path(os.path.realpath(path)))
    return here if os.sep in here else os.path.join(".", here)  # noqa: PTH118 (a Path drops it)


def _from_here(path: Path) -> str:
    """Write it from the current folder where it lies in it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _machine(facts: Mapping[str, Any]) -> str:
    return f"{facts.get('processor', 'unknown')}, {facts.get('usable_cores', '?')} cores"


def _time(text: Any) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} where a figure should be")
    return number


def _ends(ends: Any) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = ends
    return _finite(low), _finite(high)
