"""Two or more runs over the same queries become paired differences with verdicts.

Decides in data; reads no file and prints nothing. A difference is b minus a, and the verdict says
what b is beside a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import ConfigError, distinct_names
from harness.metrics import Metric
from harness.run import Run
from harness.stats import (
    RESAMPLES,
    bootstrap_mean_ci,
    bootstrap_means,
    holm,
    interval,
    randomization_p,
)
from harness.types import Verdict

ALPHA = 0.05
POWER = 0.8

MOST_RESAMPLES = 200_000
"""However many rows a comparison has; enough for 10,000 of them."""

ROUNDING = 1e-12
"""Differences up to this are none."""

JUDGED_GAP = 0.05
"""Systems whose share of judged hits differs by this much are not seen equally well."""

_COLUMNS = 256
"""Differences that are resampled at once; bounds the memory of a large comparison."""


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric of two systems, paired by query.

    Attributes:
        difference: mean of b minus mean of a; None when the two cannot be compared.
        ci95: percentile-bootstrap interval of the difference.
        p: paired randomisation test, two-sided.
        p_adjusted: after Holm over all rows of the same comparison.
        queries_needed: further queries, at least 1, with which a difference of this size and
            spread would be found with 80 % power; only for an undecided one.
        reason: why there is no difference: not comparable, or nothing to compare.
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
    """Runs side by side.

    Attributes:
        names: one for each run, equal retriever names told apart.
        deltas: every pair on every metric.
        resamples: how many sign patterns were drawn for each p.
        warnings: what makes the differences less than they seem, in plain words.
    """

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    metrics: tuple[Metric, ...]
    deltas: tuple[Delta, ...]
    resamples: int = RESAMPLES
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The document of ``compare --format json``."""
        return {
            "systems": [
                {"name": name, **run.summary}
                for name, run in zip(self.names, self.runs, strict=True)
            ],
            "resamples": self.resamples,
            "warnings": list(self.warnings),
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
    names = distinct_names([run.name for run in runs])
    deltas: list[Delta] = []
    tests: list[_Test] = []
    for i, j in combinations(range(len(runs)), 2):
        verdict, reason = _untested(runs[i], runs[j])
        for metric in common:
            if not reason:
                tests.append(_Test(len(deltas), metric, runs[i], runs[j]))
            deltas.append(Delta(str(metric), names[i], names[j], verdict, reason=reason))
    resamples = resamples_for(len(tests))
    for test, delta in zip(tests, _tested(tests, deltas, resamples), strict=True):
        deltas[test.place] = delta
    return Comparison(
        tuple(runs), tuple(names), tuple(common), tuple(deltas), resamples, _judged_gap(names, runs)
    )


def _judged_gap(names: Sequence[str], runs: Sequence[Run]) -> tuple[str, ...]:
    """A warning where one system's hits are judged far less than another's."""
    if len({run.summary["dataset"].get("fingerprint") for run in runs}) > 1:
        return ()
    shares = [dict(run.evaluation.judged) for run in runs]
    warnings = []
    for metric in dict.fromkeys(name for share in shares for name in share):
        known = sorted((share[metric], name) for share, name in zip(shares, names, strict=True)
                       if metric in share)  # fmt: skip
        (least, fewest), (most, known_best) = known[0], known[-1]
        if most - least >= JUDGED_GAP:
            warnings.append(
                f"{metric} is {least:.2f} for {fewest} and {most:.2f} for {known_best}: hits "
                "without a judgement count as not relevant, so the difference may be the judges'"
            )
    return tuple(warnings)


def resamples_for(rows: int) -> int:
    """So many that the smallest p there can be, times Holm's factor, is well below 5 %."""
    return min(MOST_RESAMPLES, max(RESAMPLES, math.ceil(20 * rows / ALPHA)))


@dataclass(frozen=True, slots=True)
class _Test:
    """One row that can be tested, and its ``place`` among all rows."""

    place: int
    metric: Metric
    a: Run
    b: Run

    def values(self) -> NDArray[np.float64]:
        """Those of a and b, (queries, 2), in the order of the ids, on the scale whose mean counts:
        the order in which queries were given changes no p and no interval."""
        columns = []
        for evaluation in (self.a.evaluation, self.b.evaluation):
            by_id = sorted(range(len(evaluation.query_ids)), key=evaluation.query_ids.__getitem__)
            columns.append(evaluation.values(self.metric)[by_id])
        return self.metric.additive(np.column_stack(columns))

    def differences(self) -> NDArray[np.float64]:
        """b minus a, (queries,), on that scale."""
        values = self.values()
        return np.asarray(values[:, 1] - values[:, 0])

    def in_means(self) -> tuple[float, NDArray[np.float64]]:
        """Mean of b minus mean of a, and its interval, for a metric whose mean is geometric: the
        difference of two such means is not the mean of differences."""
        values = self.values()
        means = self.metric.from_additive(values.mean(axis=0))
        ends = np.full(2, np.nan)
        if len(values) > 1:
            resampled = self.metric.from_additive(bootstrap_means(values))
            ends = interval(resampled[:, 1:] - resampled[:, :1])[0]
        return float(means[1] - means[0]), ends


def _untested(a: Run, b: Run) -> tuple[Verdict, str]:
    """The verdict and the reason of a pair without a test; no reason when it can be tested."""
    reason = _not_comparable(a, b)
    if reason:
        return Verdict.NOT_COMPARABLE, reason
    if not a.evaluation.query_ids:
        return Verdict.MISSING, "no evaluated query"
    return Verdict.UNDECIDED, ""


def _tested(tests: Sequence[_Test], deltas: Sequence[Delta], resamples: int) -> list[Delta]:
    """The rows of ``tests``, judged together."""
    columns = [test.differences() for test in tests]
    p, intervals = _resampled(columns, resamples)
    adjusted = holm(p)
    rank = np.empty(len(p), dtype=np.int64)
    rank[np.argsort(p, kind="stable")] = np.arange(len(p))
    differences = [float(column.mean()) for column in columns]
    for i, test in enumerate(tests):
        if test.metric.geometric:
            differences[i], intervals[i] = test.in_means()
    # Values lie in [0, 1]: a mean this small is the rounding of a sum that is 0.
    differences = [0.0 if abs(d) <= ROUNDING else d for d in differences]
    return [
        _judged(
            replace(
                deltas[test.place],
                difference=differences[i],
                ci95=None if np.isnan(low) else (float(low), float(high)),
                p=float(p[i]),
                p_adjusted=float(adjusted[i]),
            ),
            # What Holm compares this row's p with.
            queries_needed(column, ALPHA / (len(tests) - int(rank[i]))),
        )
        for i, (test, column, (low, high)) in enumerate(zip(tests, columns, intervals, strict=True))
    ]


def _resampled(
    columns: Sequence[NDArray[np.float64]], resamples: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p (columns,) and intervals (columns, 2); columns of one length share their resamples."""
    p, intervals = np.empty(len(columns)), np.empty((len(columns), 2))
    lengths = np.array([len(column) for column in columns])
    for length in sorted(set(lengths.tolist())):
        (places,) = np.nonzero(lengths == length)
        for start in range(0, len(places), _COLUMNS):
            chunk = places[start : start + _COLUMNS]
            differences = np.column_stack([columns[i] for i in chunk])
            p[chunk] = randomization_p(differences, resamples=resamples)
            intervals[chunk] = bootstrap_mean_ci(differences)
    return p, intervals


def _judged(delta: Delta, needed: int | None) -> Delta:
    if delta.difference and delta.p_adjusted is not None and delta.p_adjusted < ALPHA:
        return replace(delta, verdict=Verdict.BETTER if delta.difference > 0 else Verdict.WORSE)
    return replace(delta, verdict=Verdict.UNDECIDED, queries_needed=needed)


def _not_comparable(a: Run, b: Run) -> str:
    for what in ("fingerprint", "split"):
        if a.summary["dataset"].get(what) != b.summary["dataset"].get(what):
            return f"different dataset {what}"
    for what in ("k", "convention", "metrics_version"):
        if a.summary.get(what) != b.summary.get(what):
            return f"{what} {a.summary.get(what)} and {b.summary.get(what)}"
    if set(a.evaluation.query_ids) != set(b.evaluation.query_ids):
        return "different queries were finished"
    return ""


def queries_needed(differences: NDArray[np.float64], alpha: float) -> int | None:
    """Further queries, at least 1, until a two-sided test at ``alpha`` has 80 % power for the mean
    and spread of ``differences``; None when no number of queries helps.

    Normal approximation: n = ((z(1 - alpha / 2) + z(power)) * sd / mean)^2.
    """
    if len(differences) < 2:
        return None
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    if abs(mean) <= ROUNDING or sd == 0:
        return None
    z = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
    return max(1, math.ceil((z * sd / mean) ** 2) - len(differences))
