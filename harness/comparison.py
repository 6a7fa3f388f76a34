"""Two or more runs over the same queries become paired differences with verdicts.

Decides in data; reads no file and prints nothing. A difference is b minus a, and the verdict says
what b is beside a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import ConfigError
from harness.metrics import Metric
from harness.run import Run
from harness.stats import bootstrap_mean_ci, holm, randomization_p
from harness.types import Verdict

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric of two systems, paired by query.

    Attributes:
        difference: mean of b minus mean of a; None when the two cannot be compared.
        ci95: percentile-bootstrap interval of the difference.
        p: paired randomisation test, two-sided.
        p_adjusted: after Holm over all rows of the same comparison.
        queries_needed: queries in all at which a difference of this size would be found with 80 %
            power; only for an undecided one.
        reason: why the two are not comparable.
    """

    metric: str
    a: str
    b: str
    verdict: Verdict
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    p_adjusted: float | None = None
    queries_needed: int | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The row of ``compare --format json``."""
        row: dict[str, Any] = {
            "metric": self.metric,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "verdict": self.verdict.value,
            "queries_needed": self.queries_needed,
        }
        return row | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side; ``names`` tells equal retriever names apart."""

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    metrics: tuple[Metric, ...]
    deltas: tuple[Delta, ...]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``compare --format json``."""
        return {
            "systems": [
                {"name": name, **run.summary}
                for name, run in zip(self.names, self.runs, strict=True)
            ],
            "comparisons": [delta.as_dict() for delta in self.deltas],
        }


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Every pair of ``runs`` on every metric that all of them have.

    Raises:
        ConfigError: fewer than two runs, or no metric in common.
    """
    if len(runs) < 2:
        raise ConfigError(f"{len(runs)} run to compare", accepted="two runs or more")
    common = [m for m in runs[0].evaluation.metrics if all(m in r.evaluation.metrics for r in runs)]
    if not common:
        raise ConfigError(
            "the runs have no metric in common",
            where=", ".join(str(run.folder or run.name) for run in runs),
            fix="measure them again with the same --metrics and k",
        )
    names = _distinct([run.name for run in runs])
    rows = [
        _pair(runs[i], runs[j], names[i], names[j], common)
        for i, j in combinations(range(len(runs)), 2)
    ]
    return Comparison(tuple(runs), names, tuple(common), _decided([d for row in rows for d in row]))


def _pair(a: Run, b: Run, name_a: str, name_b: str, metrics: Sequence[Metric]) -> list[Delta]:
    reason = _not_comparable(a, b)
    if reason:
        return [
            Delta(str(m), name_a, name_b, Verdict.NOT_COMPARABLE, reason=reason) for m in metrics
        ]
    row_of = {query_id: i for i, query_id in enumerate(b.evaluation.query_ids)}
    rows = [row_of[query_id] for query_id in a.evaluation.query_ids]
    differences = np.column_stack(
        [b.evaluation.values(m)[rows] - a.evaluation.values(m) for m in metrics]
    )
    intervals = bootstrap_mean_ci(differences)
    p = randomization_p(differences)
    return [
        Delta(
            metric=str(metric),
            a=name_a,
            b=name_b,
            verdict=Verdict.UNDECIDED,
            difference=float(column.mean()),
            ci95=None if np.isnan(interval[0]) else (float(interval[0]), float(interval[1])),
            p=float(p_value),
            queries_needed=_queries_needed(column),
        )
        for metric, column, interval, p_value in zip(
            metrics, differences.T, intervals, p, strict=True
        )
    ]


def _decided(deltas: Sequence[Delta]) -> tuple[Delta, ...]:
    tested = [delta for delta in deltas if delta.p is not None]
    adjusted = iter(holm(np.array([delta.p for delta in tested], dtype=np.float64)).tolist())
    return tuple(delta if delta.p is None else _judged(delta, next(adjusted)) for delta in deltas)


def _judged(delta: Delta, p_adjusted: float) -> Delta:
    verdict = Verdict.UNDECIDED
    if p_adjusted < ALPHA and delta.difference:
        verdict = Verdict.BETTER if delta.difference > 0 else Verdict.WORSE
    return Delta(
        delta.metric,
        delta.a,
        delta.b,
        verdict,
        delta.difference,
        delta.ci95,
        delta.p,
        p_adjusted,
        delta.queries_needed if verdict is Verdict.UNDECIDED else None,
    )


def _not_comparable(a: Run, b: Run) -> str:
    for what in ("fingerprint", "split"):
        if a.summary["dataset"][what] != b.summary["dataset"][what]:
            return f"different dataset {what}"
    for what in ("k", "convention", "metrics_version"):
        if a.summary[what] != b.summary[what]:
            return f"{what} {a.summary[what]} and {b.summary[what]}"
    if set(a.evaluation.query_ids) != set(b.evaluation.query_ids):
        return "different queries were finished"
    return ""


def _queries_needed(differences: NDArray[np.float64]) -> int | None:
    """Normal approximation for a two-sided 5 % test with 80 % power at the observed effect."""
    if len(differences) < 2:
        return None
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    if mean == 0 or sd == 0:
        return None
    return max(len(differences) + 1, int(np.ceil(((1.959964 + 0.841621) * sd / mean) ** 2)))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(result)
