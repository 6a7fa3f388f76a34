"""Two or more runs side by side: on each dataset every pair with its verdict, in quality and in
time, and over several datasets the means of every system.

Decides in data; reads no file and prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.likeness import likeness
from retrieval_bench.comparison.pairs.anytime import anytime_deltas, watch_for, what_was_asked
from retrieval_bench.comparison.pairs.comparability import (
    by_dataset,
    common_metrics,
    nothing_judged,
)
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.comparison.pairs.judged_gap import judged_gap
from retrieval_bench.comparison.pairs.speed import corrected, latency_deltas
from retrieval_bench.comparison.pairs.verdicts import Delta, PairJudge, Rules
from retrieval_bench.comparison.recommendation import Recommendation, recommended
from retrieval_bench.core.errors import ConfigError, distinct_names, near_names
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats import intervals
from retrieval_bench.stats.defaults import EQUIVALENCE, EXTRA, MARGIN
from retrieval_bench.stats.power import check_margin
from retrieval_bench.stats.sequential import Watch

MOST_RESAMPLES = 200_000
"""However many pairs a table has; enough for p of 10,000 of them, and for the ends of 250."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side, dataset by dataset.

    Attributes:
        groups: one for each dataset, in the order of the runs.
        margin: up to this absolute difference two systems are as good as equal.
        baseline: the system that all others are compared with; None = every pair.
        equivalence: the test of it, of :data:`.EQUIVALENCE`.
    """

    groups: tuple[DatasetComparison, ...]
    margin: float = MARGIN
    baseline: str | None = None
    equivalence: str = EQUIVALENCE[0]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All of them, dataset by dataset."""
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, each once."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.names))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those of all datasets, each once."""
        return tuple(dict.fromkeys(metric for group in self.groups for metric in group.metrics))

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """Every pair on every metric and dataset."""
        return tuple(delta for group in self.groups for delta in group.deltas)

    @property
    def judged(self) -> tuple[DatasetComparison, ...]:
        """Those on datasets where something is judged."""
        return tuple(group for group in self.groups if group.likeness is None)

    @property
    def why_nothing(self) -> str | None:
        """Why no run can be compared with another; None where one can."""
        unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
        if any(delta.verdict not in unjudged for delta in self.deltas):
            return None
        if any(group.likeness is not None for group in self.groups):
            return None
        return "; ".join(dict.fromkeys(delta.reason for delta in self.deltas if delta.reason))

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """Which system to take on each dataset, by the first metric there, and why."""
        return tuple(recommended(group, self.margin) for group in self.groups)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of all datasets; where there are several, each says which."""
        one = len(self.groups) == 1
        return tuple(
            text if one else f"{group.dataset}: {text}"
            for group in self.groups
            for text in group.warnings
        )

    def board(self, metric: Metric) -> Board:
        """Systems x datasets where something is judged, by one metric."""
        groups = self.judged
        means = np.full((len(self.names), len(groups)), np.nan)
        for column, group in enumerate(groups):
            if metric in group.metrics:
                for name in group.names:
                    means[self.names.index(name), column] = group.mean(name, metric)
        return Board(metric, self.names, tuple(group.dataset for group in groups), means)

    def as_dict(self) -> dict[str, Any]:
        """The document of ``compare --format json``."""
        several = len(self.judged) > 1
        document: dict[str, Any] = {
            "systems": [
                {"name": name, **run.summary.document()}
                for group in self.groups
                for name, run in zip(group.names, group.runs, strict=True)
            ],
            "alpha": QUALITY_ALPHA,
            "margin": self.margin,
            "baseline": self.baseline,
            "equivalence": self.equivalence,
            "family": "the pairs of one metric on one dataset",
            "resamples": max(group.resamples for group in self.groups),
            "warnings": list(self.warnings),
            "comparisons": [delta.as_dict() for delta in self.deltas],
            "latency": [
                {"dataset": group.dataset, **delta.as_dict()}
                for group in self.groups
                for delta in group.latency
            ],
        }
        if asked := [
            {"dataset": group.dataset, **group.asked.as_dict()}
            for group in self.groups
            if group.asked is not None
        ]:
            document["until_decided"] = asked
        if alike := [
            {"dataset": group.dataset, **group.likeness.as_dict()}
            for group in self.groups
            if group.likeness is not None
        ]:
            document["likeness"] = alike
        if several:
            document["boards"] = [self.board(metric).as_dict() for metric in self.metrics]
        return document


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """One metric of systems on several datasets.

    Attributes:
        means: (systems, datasets), NaN where a system was not measured.
    """

    metric: Metric
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    means: NDArray[np.float64]

    @property
    def averages(self) -> NDArray[np.float64]:
        """(systems,): the mean over datasets, each counting once; NaN for a system that was not
        measured on all of them, which would be compared on other data."""
        return np.asarray(self.means.mean(axis=1))

    def as_dict(self) -> dict[str, Any]:
        """Mean by system and dataset, and the average."""
        return {
            "metric": str(self.metric),
            "datasets": list(self.datasets),
            "systems": [
                {"name": name, "means": row.tolist(), "average": float(average)}
                for name, row, average in zip(self.systems, self.means, self.averages, strict=True)
            ],
        }


def compare_runs(
    runs: Sequence[Run],
    *,
    margin: float = MARGIN,
    baseline: str | None = None,
    tests: Sequence[str] = (),
    equivalence: str = EQUIVALENCE[0],
) -> Comparison:
    """Pairs of ``runs`` on every metric that all runs on the same dataset have.

    Args:
        margin: up to this absolute difference two systems are as good as equal.
        baseline: compare all others with this system only; None = every pair.
        tests: further tests beside the randomisation test, of :data:`.EXTRA`.
        equivalence: the test of it, of :data:`.EQUIVALENCE`.

    Raises:
        ConfigError: fewer than two runs, no metric in common, an unknown baseline or test, or a
            margin that is none.
    """
    if len(runs) < 2:
        raise ConfigError(
            f"{len(runs)} run to compare",
            accepted="two runs or more",
            fix="measure several together: compare A B",
        )
    places = by_dataset(runs)
    if len(places) > 1:  # systems stand in the same order on every dataset
        first = {name: at for at, name in reversed(list(enumerate(run.name for run in runs)))}
        places = [(name, sorted(at, key=lambda i: first[runs[i].name])) for name, at in places]
    names = {n for _, at in places for n in distinct_names([runs[i].name for i in at])}
    check_asked(names, margin=margin, baseline=baseline, tests=tests, equivalence=equivalence)
    rules = Rules(margin, tuple(tests), 0, equivalence=equivalence)
    groups = [_group(label, [runs[i] for i in at], baseline, rules) for label, at in places]
    return Comparison(tuple(groups), margin, baseline, equivalence)


def check_asked(
    names: Collection[str],
    *,
    margin: float,
    baseline: str | None,
    tests: Sequence[str],
    equivalence: str = EQUIVALENCE[0],
) -> None:
    """Refuse what :func:`compare_runs` would refuse of systems with these ``names``; to be asked
    before they are measured.

    Raises:
        ConfigError: an unknown baseline or test, or a margin that is none.
    """
    check_margin(margin)
    if equivalence not in EQUIVALENCE:
        raise ConfigError(
            f"test of equivalence {equivalence!r}",
            where="--equivalence",
            accepted=near_names(equivalence, EQUIVALENCE),
            fix="name one of them",
        )
    unknown = [name for name in tests if name not in EXTRA]
    if unknown:
        raise ConfigError(
            f"test {unknown[0]!r}",
            accepted=near_names(unknown[0], EXTRA),
            fix="name one of them; the randomisation test is always there",
        )
    if baseline is not None and baseline not in names:
        raise ConfigError(
            f"baseline {baseline!r} is none of the systems",
            accepted=near_names(baseline, names),
            fix="name one of the systems that are compared",
        )


def watch(
    names: Sequence[str],
    metric: Metric,
    total: int | None,
    *,
    margin: float = MARGIN,
    baseline: str | None = None,
) -> Watch:
    """What looks at every query of systems that are measured until their pairs are decided, and
    says when that is; :func:`compare_runs` comes to the same of the runs.

    Args:
        names: of the systems, told apart.
        metric: the first, which decides.
        total: queries of the split whose mean is meant; None = the mean of queries like these.

    Raises:
        ConfigError: nothing can be bet on ``metric``.
    """
    pairs = watch_for(_pairs(names, baseline), metric, margin, total)
    return lambda _, values, answered: pairs.add(values[:, 0], answered)


def _group(
    dataset: str,
    runs: list[Run],
    baseline: str | None,
    rules: Rules,
) -> DatasetComparison:
    names = distinct_names([run.name for run in runs])
    common = common_metrics(runs)
    if not common:
        raise ConfigError(
            "the runs have no metric in common",
            where=", ".join(str(run.folder or run.name) for run in runs),
            fix="measure them again with the same --metrics and k",
        )
    pairs = _pairs(names, baseline)
    if nothing_judged(runs):
        return _unjudged(dataset, runs, names, common, pairs)
    warnings = list(judged_gap(names, runs, pairs, common[0]))
    known = dict.fromkeys(m for run in runs for m in run.evaluation.metrics)
    if lost := [str(metric) for metric in known if metric not in common]:
        warnings.append(f"left out, since not all runs have them: {', '.join(lost)}")
    if not pairs:
        warnings.append(f"{' and '.join(names)} alone, nothing to compare with there")
    if any(run.asked is not None for run in runs):
        deltas = anytime_deltas(dataset, runs, names, common, pairs, margin=rules.margin)
        asked = what_was_asked(runs, deltas, common[0])
        return DatasetComparison(
            dataset,
            tuple(runs),
            tuple(names),
            common,
            tuple(deltas),
            warnings=tuple(warnings),
            asked=asked,
        )
    resamples = resamples_for(len(pairs))
    if len(pairs) / (resamples + 1) >= QUALITY_ALPHA:
        warnings.append(
            f"{len(pairs):,} pairs: {resamples:,} resamples can show no difference between any of "
            "them; name a baseline, to compare fewer"
        )
    rules = replace(rules, resamples=resamples)
    deltas = PairJudge.of_runs(dataset, runs, names, common).judged(pairs, rules)
    times = [d for i, j in pairs for d in latency_deltas(runs[i], runs[j], names[i], names[j])]
    return DatasetComparison(
        dataset,
        tuple(runs),
        tuple(names),
        common,
        tuple(deltas),
        tuple(corrected(times)),
        resamples,
        tuple(warnings),
    )


def _unjudged(
    dataset: str,
    runs: Sequence[Run],
    names: Sequence[str],
    metrics: tuple[Metric, ...],
    pairs: Sequence[tuple[int, int]],
) -> DatasetComparison:
    """Runs that no quality is known of: how alike they answer, and their times."""
    alone = f"{' and '.join(names)} alone, nothing to compare with there"
    times = [d for i, j in pairs for d in latency_deltas(runs[i], runs[j], names[i], names[j])]
    return DatasetComparison(
        dataset,
        tuple(runs),
        tuple(names),
        metrics,
        (),
        tuple(corrected(times)),
        warnings=() if pairs else (alone,),
        likeness=likeness(names, runs, pairs),
    )


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    if baseline not in names:
        return []
    at = names.index(baseline)
    return [(at, other) for other in range(len(names)) if other != at]


def resamples_for(rows: int) -> int:
    """So many that forty of them are beyond the smallest level that Holm sets."""
    return min(MOST_RESAMPLES, intervals.resamples_for(QUALITY_ALPHA / max(1, rows)))
