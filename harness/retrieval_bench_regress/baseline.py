"""Content of a baseline: of quality what holds on any machine, of latency what holds on one.

Both are small records of one run. :mod:`retrieval_bench_regress.files` writes and reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from retrieval_bench.core import secrets
from retrieval_bench.core.figures import visible
from retrieval_bench.measure.calls import OK
from retrieval_bench.measure.protocol import Protocol, parameters
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.percentiles import medians

SCHEMA_VERSION = 1
"""Of both files; 1: first version."""

FAILED = "failed"
"""In place of the hash of a ranking."""

_DIGITS = 12
_LARGEST = 1 << 63
_LONGEST_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class Given:
    """Facts on a run beyond what it says itself.

    Attributes:
        retriever: as it was given: a name, a YAML file, ``module:Class``.
        overrides: ``dotted.path=value`` into its parameters.
        revision: commit that the user stands on and whether files differ from it; None outside of
            a repository.
    """

    retriever: str
    overrides: Sequence[str] = ()
    revision: Mapping[str, Any] | None = None


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RetrieverFacts(_Record):
    """``hash`` is that of target and parameters; ``given`` and ``overrides`` build it again;
    ``params`` are by dotted path, those of a chunker with them."""

    name: str
    hash: str | None
    given: str
    overrides: list[str]
    params: dict[str, str]


class DatasetFacts(_Record):
    """Dataset that was searched and judged."""

    name: str
    split: str
    fingerprint: str
    n_documents: int
    n_queries: int


class Revision(_Record):
    """Revision of the code; a dirty one has files that no commit has."""

    commit: str
    dirty: bool


class _Baseline(_Record):
    """Fields of every baseline.

    Attributes:
        retriever, dataset, k: what was measured, on what, and how many hits were asked for.
        revision: of the code; None where git knows no commit.
    """

    schema_version: int = SCHEMA_VERSION
    retriever: RetrieverFacts
    dataset: DatasetFacts
    k: int
    revision: Revision | None

    @property
    def commit(self) -> str | None:
        """The commit from which the code can be got back; None when nothing holds it."""
        return None if self.revision is None or self.revision.dirty else self.revision.commit


class QualityBaseline(_Baseline):
    """Rankings by their hash and values by query.

    Attributes:
        metrics: name -> mean over the evaluated queries.
        queries: id -> hash of its ranking, then its value of each metric, in the order of
            ``metrics``; of a query that no document answers only the hash.
        clusters: id -> label of the cluster that it counts in; empty where each counts by itself.
    """

    convention: str
    metrics_version: int
    metrics: dict[str, float]
    queries: dict[str, list[Any]]
    clusters: dict[str, str] = {}

    @model_validator(mode="after")
    def _rows(self) -> QualityBaseline:
        """Each query has the hash of its ranking, and a value of each metric or none at all."""
        for query, row in self.queries.items():
            ranking, values = (row or [None])[0], row[1:]
            if not isinstance(ranking, str) or len(values) not in (0, len(self.metrics)):
                raise ValueError(
                    f"queries.{visible(query)} has no hash and {len(self.metrics)} values"
                )
            if not all(map(_is_number, values)):
                raise ValueError(f"queries.{visible(query)} has a value that is no number")
        return self

    def ranking(self, query_id: str) -> str:
        """The hash of one ranking."""
        return str(self.queries[query_id][0])

    def values(self, metric: str, query_ids: Sequence[str]) -> np.ndarray[Any, Any]:
        """float64 (queries,)."""
        column = 1 + list(self.metrics).index(metric)
        return np.array([self.queries[query][column] for query in query_ids], dtype=np.float64)

    @property
    def evaluated(self) -> list[str]:
        """Ids of the queries that have values, in order."""
        return sorted(query for query, row in self.queries.items() if len(row) > 1)


class LatencyBaseline(_Baseline):
    """Times of one machine.

    Attributes:
        date: when they were measured, UTC.
        machine: its facts with their fingerprint.
        protocol: how it was measured; the same one is used again.
        packages: versions.
        call: percentile over all calls -> value and 95 % interval in ms, None with a reason where
            it cannot be said.
        mean: of all answered calls in ms.
        queries: id -> median nanoseconds of its calls; one that failed is not in it.
        warnings: what made the times less than they should be.
    """

    date: str
    machine: dict[str, Any]
    protocol: dict[str, Any]
    packages: dict[str, str]
    call: dict[str, dict[str, Any]]
    mean: float
    queries: dict[str, int]
    warnings: list[str]

    @field_validator("machine")
    @classmethod
    def _known_machine(cls, machine: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(machine.get("fingerprint"), str):
            raise ValueError("no fingerprint of the machine")
        return machine

    @field_validator("queries")
    @classmethod
    def _medians(cls, queries: dict[str, int]) -> dict[str, int]:
        for query, wall in queries.items():
            if not 0 <= wall < _LONGEST_NS:
                raise ValueError(f"queries.{visible(query)} is no time in nanoseconds")
        return queries

    @field_validator("call")
    @classmethod
    def _percentiles(cls, call: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, entry in call.items():
            ends = entry.get("ci95")
            numbers = [entry.get("value"), *(ends if isinstance(ends, list) else [])]
            if not isinstance(ends, list | None) or any(
                value is not None and not _is_number(value) for value in numbers
            ):
                raise ValueError(f"call.{visible(name)} has a value that is no number")
        return call

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the machine."""
        return str(self.machine["fingerprint"])


def quality_of(run: Run, given: Given) -> QualityBaseline:
    """Make the baseline of the quality of ``run``."""
    summary, rankings, evaluation = run.summary, run.rankings, run.evaluation
    at = {query: row for row, query in enumerate(evaluation.query_ids)}
    names = [str(metric) for metric in evaluation.metrics]
    by_name = sorted(range(len(names)), key=names.__getitem__)
    queries: dict[str, list[Any]] = {}
    for row, query in enumerate(rankings.query_ids):
        ranked = rankings.row(row).doc_ids if run.status[row] == OK else None
        values = evaluation.per_query[at[query]].tolist() if query in at else []
        slots = run.manifest.get("slots", {}).get(query)
        queries[query] = [_hash(ranked, slots), *(values[i] for i in by_name if values)]
    return QualityBaseline(
        **_common(run, given),
        convention=summary.convention,
        metrics_version=summary.metrics_version,
        metrics={names[i]: evaluation.means[i].mean for i in by_name},
        queries=dict(sorted(queries.items())),
        clusters=dict(sorted(run.clusters.items())),
    )


def latency_of(run: Run, given: Given) -> LatencyBaseline | None:
    """Make the baseline of the latency of ``run``; None where it has none: its rankings were read
    from a file, or no call was answered.

    A call that failed took longer than any other: a query of which half of the calls failed has no
    median, and is left out.
    """
    timings, report = run.timings, run.summary.latency_ms
    walls = np.where(timings.failed, np.inf, timings.wall_ns)
    typical = medians(walls, timings.query)
    fine = np.isfinite(typical)
    if report.mean is None or not fine.any():
        return None
    typical = typical[fine]
    ids = [run.rankings.query_ids[number] for number in np.unique(timings.query)[fine].tolist()]
    surroundings = run.manifest["environment"]
    return LatencyBaseline(
        **_common(run, given),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=_finite(surroundings["machine"]),
        protocol=_finite(run.manifest["protocol"]),
        packages=dict(surroundings["packages"]),
        call={
            name: {key: value for key, value in entry.as_dict().items() if key != "gates"}
            for name, entry in sorted(report.levels.items())
        },
        mean=float(timings.wall_ns[~timings.failed].mean()) / 1e6,
        queries=dict(sorted(zip(ids, typical.round().astype(int).tolist(), strict=True))),
        warnings=[str(warning) for warning in run.summary.warnings],
    )


def protocol_of(baseline: LatencyBaseline) -> Protocol:
    """The protocol that ``baseline`` was measured by.

    Raises:
        ConfigError: it is none that this version knows.
    """
    given = dict(baseline.protocol)
    given.pop("warm_up_calls", None)  # of this version, no parameter
    profile = str(given.pop("profile", "default"))
    return Protocol(profile=profile, **parameters(given, "the protocol of the baseline"))


def _common(run: Run, given: Given) -> dict[str, Any]:
    data = run.summary.dataset
    revision = given.revision
    return {
        "retriever": RetrieverFacts(
            name=run.name,
            hash=run.manifest["retriever"]["hash"],
            given=given.retriever,
            overrides=[str(secrets.redact(override)) for override in given.overrides],
            params=run.settings,
        ),
        "dataset": DatasetFacts(
            **{name: getattr(data, name) for name in DatasetFacts.model_fields}
        ),
        "k": run.summary.k,
        "revision": None if revision is None else Revision(**revision),
    }


def _hash(doc_ids: Sequence[str] | None, slots: Any = None) -> str:
    """Return the hash of the ids in their order, whatever they hold; where truth is by rule, and of
    the slots that they fill, since a hit may keep its id and change its text."""
    if doc_ids is None:
        return FAILED
    what = list(doc_ids) if slots is None else [list(doc_ids), slots]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:_DIGITS]


def _is_number(value: Any) -> bool:
    """Return whether numpy can hold it; one measured now may still be no finite number."""
    return type(value) is float or (type(value) is int and abs(value) < _LARGEST)


def _finite(value: Any) -> Any:
    """``value`` as JSON can hold it: a number that is none becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
