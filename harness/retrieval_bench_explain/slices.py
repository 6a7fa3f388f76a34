"""The means of systems on groups of queries, as :mod:`.groupings` makes them.

Slices say where to look, and decide nothing: there are many of them, most are small, and no test
looks at them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.compared import Compared
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.comparability import not_comparable
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.runs.run import clusters_of
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import ALPHA, interval, mean_intervals
from retrieval_bench.stats.randomization import ROUNDING
from retrieval_bench.stats.resampling import bootstrap_means
from retrieval_bench_explain.groupings import Grouping, check_names, dimensions, grouped

FEW = 30
"""Below so many queries, or clusters, an interval is a rough guess."""

FEWEST = 10
"""Below so many there is none."""

MOST_SLICES = 20
"""Of one dimension; the smallest beyond are one slice together."""


@dataclass(frozen=True, slots=True)
class SliceMean:
    """A mean, null of no query, with its interval where there are enough queries."""

    mean: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class SliceDifference(Documented):
    """A mean difference, null of no query, with its interval where there are enough queries, and
    the level of that: 95 %, of all queries that of their table."""

    KEYS = "difference=known ci level"

    mean: float
    ci: tuple[float, float] | None
    level: float | None

    @property
    def known(self) -> float | None:
        """The difference; None of no query."""
        return None if math.isnan(self.mean) else self.mean


@dataclass(frozen=True, slots=True)
class SystemMeans:
    """The means of a system by metric."""

    name: str
    metrics: dict[str, SliceMean]


@dataclass(frozen=True, slots=True)
class SystemDifferences:
    """The mean of ``b`` minus that of ``a``, the baseline, by metric."""

    a: str
    b: str
    metrics: dict[str, SliceDifference]


@dataclass(frozen=True, slots=True)
class ShownSlice(Documented):
    """A group of queries.

    Attributes:
        label: its name.
        n: number of its queries.
        clusters: that these are, where clusters are the unit.
        systems: the means of each.
        differences: of the systems that can be compared with the baseline.
    """

    KEYS = "label n clusters? systems differences"

    label: str
    n: int
    clusters: int | None
    systems: list[SystemMeans]
    differences: list[SystemDifferences]


@dataclass(frozen=True, slots=True)
class Slice:
    """The systems on some of the queries.

    Attributes:
        query_ids: in the order of the ids.
        units: what is independent: clusters, else queries.
        means: system -> one for each metric. The interval is None below
            ``FEWEST`` queries.
        differences: system -> its mean minus that of the baseline, one for each metric, with the
            interval of the paired difference; of the systems that can be compared with it. Of all
            queries it is that of the comparison.
    """

    label: str
    query_ids: tuple[str, ...]
    units: int
    means: Mapping[str, tuple[Mean, ...]]
    differences: Mapping[str, tuple[SliceDifference, ...]]

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def shown(self, metrics: Sequence[Metric], baseline: str) -> ShownSlice:
        """One entry of ``slices`` in the document of a :class:`Slicing`."""
        names = [*map(str, metrics)]
        means = {
            name: [SliceMean(mean.known, mean.ci95) for mean in of]
            for name, of in self.means.items()
        }
        return ShownSlice(
            self.label,
            self.n,
            self.units if self.units < self.n else None,
            [SystemMeans(name, dict(zip(names, of, strict=True))) for name, of in means.items()],
            [
                SystemDifferences(baseline, name, dict(zip(names, of, strict=True)))
                for name, of in self.differences.items()
            ],
        )


@dataclass(frozen=True, slots=True)
class Slicing(Documented):
    """The evaluated queries of one dataset in groups.

    Attributes:
        dataset: its name.
        by: "tags", "source", "length", "relevant" or a metadata key.
        what: the same in words, such as "length in words".
        systems: their names.
        baseline: the one that the others are compared with.
        metrics: those of the comparison.
        whole: all queries together.
        slices: the groups, none of them empty; none at all where the data say nothing.
        warnings: what to know before reading them, in plain words.
    """

    KEYS = "dataset by what baseline whole=shown_whole slices=shown warnings"

    dataset: str
    by: str
    what: str
    systems: tuple[str, ...]
    baseline: str
    metrics: tuple[Metric, ...]
    whole: Slice
    slices: tuple[Slice, ...]
    warnings: tuple[str, ...]

    @property
    def shown_whole(self) -> ShownSlice:
        """:attr:`whole` as JSON has it."""
        return self.whole.shown(self.metrics, self.baseline)

    @property
    def shown(self) -> list[ShownSlice]:
        """:attr:`slices` as JSON has them."""
        return [of.shown(self.metrics, self.baseline) for of in self.slices]


@dataclass(frozen=True, slots=True)
class Sliced(Documented):
    """Systems on groups of queries.

    Attributes:
        slices: queries in groups, for each dataset and name that ``--slices`` gives.
    """

    slices: Sequence[Slicing] = ()


@dataclass(frozen=True, slots=True)
class SlicesOfCompared(Documented):
    """Keys beside those of what was compared.

    Attributes:
        compared: figures and answers.
    """

    KEYS = "slices?=sliced.slices"

    compared: Compared

    @property
    def sliced(self) -> Sliced:
        """Slices of the systems; none where nobody asked for them."""
        own = (of for of in self.compared.records if isinstance(of, Sliced))
        return next(own, Sliced())


def slicings_of(
    comparison: Comparison, sources: Sequence[Dataset | str], names: Sequence[str] = ()
) -> list[Slicing]:
    """Those of every dataset of ``comparison``.

    Args:
        sources: one for each dataset, or in a sentence why it is not there.
        names: as of :func:`slicings`.

    Raises:
        ConfigError: a dataset is not there, or a name that is no slicing of it.
    """
    found: list[Slicing] = []
    for group, source in zip(comparison.groups, sources, strict=True):
        if isinstance(source, str):
            raise ConfigError(
                source.rstrip("."),
                where="--slices",
                accepted="the dataset of the runs: tags and texts are not kept in a run",
                fix="say where it is with --dataset",
            )
        found += slicings(group, source, names, baseline=comparison.baseline)
    return found


def slicings(
    group: DatasetComparison,
    dataset: Dataset,
    names: Sequence[str] = (),
    *,
    baseline: str | None = None,
) -> list[Slicing]:
    """The systems of ``group`` on slices of its queries, one slicing for each of ``names``.

    Args:
        dataset: what the runs were measured on.
        names: of ``DIMENSIONS`` and ``BY_FILTER``, or metadata keys of the queries; none = every
            dimension that has at least two slices, but not by values that hardly two queries share.
        baseline: the system that others are compared with; None, or one that is not here, = the
            first.

    Raises:
        ConfigError: a name that is neither a dimension nor a metadata key.
    """
    check_names(names, dataset)
    systems = _Systems(group, dataset, baseline)
    if names:
        return [systems.sliced(systems.grouping(by)) for by in dict.fromkeys(names)]
    found = [systems.grouping(by) for by in dimensions(dataset)]
    telling = [one for one in found if len(one.groups) > 1 and not one.one_by_one]
    return [systems.sliced(one) for one in telling]


class _Systems:
    """The values of all systems of a group on the queries that all of them finished."""

    def __init__(self, group: DatasetComparison, dataset: Dataset, baseline: str | None) -> None:
        self._group = group
        evaluations = [run.evaluation for run in group.runs]
        shared = set.intersection(*(set(of.query_ids) for of in evaluations))
        # In the order of the ids: the order in which queries were given changes no interval.
        found = sorted((q for q in dataset.evaluated if q.id in shared), key=lambda q: q.id)
        self._queries, self._qrels = found, dataset.qrels
        self._filtering = dataset.filtering
        self._ids = tuple(query.id for query in found)
        columns = [
            [metric.additive(one.values(metric, self._ids)) for metric in group.metrics]
            for one in evaluations
        ]
        self._values = np.array(columns, dtype=np.float64).transpose(2, 0, 1)
        self._base = group.names.index(baseline) if baseline in group.names else 0
        reasons = [not_comparable(group.runs[self._base], run) for run in group.runs]
        self._others = [at for at, reason in enumerate(reasons) if at != self._base and not reason]
        self._warnings = [
            f"{name} has no differences from {group.names[self._base]}: {reason}."
            for name, reason in zip(group.names, reasons, strict=True)
            if reason
        ]
        self._clusters = clusters_of(group.runs)
        most = max(len(one.query_ids) for one in evaluations)
        if len(found) < most:
            self._warnings.append(
                f"Only the {len(found):,} of {most:,} queries that all systems finished count."
            )

    def grouping(self, by: str) -> Grouping:
        """The queries in groups."""
        return grouped(by, self._queries, self._qrels, most=MOST_SLICES, filtering=self._filtering)

    def sliced(self, grouping: Grouping) -> Slicing:
        """The systems on every group."""
        slices = [self._slice(label, rows) for label, rows in grouping.groups]
        return Slicing(
            self._group.dataset,
            grouping.by,
            grouping.what,
            self._group.names,
            self._group.names[self._base],
            self._group.metrics,
            self._whole,
            tuple(slices),
            (*grouping.notes, *self._warnings),
        )

    @cached_property
    def _whole(self) -> Slice:
        own, base = self._slice("all queries", range(len(self._ids))), self._group.names[self._base]
        return replace(
            own,
            differences={
                name: tuple(
                    self._of_table(name, base, str(metric)) or gap
                    for metric, gap in zip(self._group.metrics, gaps, strict=True)
                )
                for name, gaps in own.differences.items()
            },
        )

    def _of_table(self, name: str, base: str, metric: str) -> SliceDifference | None:
        """The difference that the comparison has on the same queries."""
        for delta in self._group.of(metric):
            if delta.n == len(self._ids) and delta.ci is not None and delta.difference is not None:
                if (delta.a, delta.b) == (base, name):
                    return SliceDifference(delta.difference, delta.ci, delta.level)
                if (delta.a, delta.b) == (name, base):
                    return SliceDifference(
                        -delta.difference, (-delta.ci[1], -delta.ci[0]), delta.level
                    )
        return None

    def _slice(self, label: str, rows: Sequence[int]) -> Slice:
        names = self._group.names
        values = self._values[list(rows)]
        n, query_ids = len(values), tuple(self._ids[at] for at in rows)
        clusters = Clusters.of_queries(self._clusters, query_ids)
        units = n if clusters is None else clusters.n
        means = self._in_means(values.mean(axis=0)) if n else np.full(values.shape[1:], np.nan)

        def ends(at: int, minus: int | None = None) -> list[tuple[float, float] | None]:
            if units < FEWEST:
                return [None] * values.shape[2]
            less = None if minus is None else values[:, minus]
            found = self._ends(values[:, at], less, clusters)
            return [(float(low), float(high)) for low, high in found]

        def row(at: int) -> tuple[Mean, ...]:
            of_metrics = zip(means[at].tolist(), ends(at), strict=True)
            return tuple(Mean(mean, ci95, n) for mean, ci95 in of_metrics)

        def gaps(at: int) -> tuple[SliceDifference, ...]:
            gap = means[at] - means[self._base]
            gap[np.abs(gap) <= ROUNDING] = 0.0
            of_metrics = zip(gap.tolist(), ends(at, self._base), strict=True)
            return tuple(
                SliceDifference(mean, ci, None if ci is None else 1 - ALPHA)
                for mean, ci in of_metrics
            )

        return Slice(
            label,
            query_ids,
            units,
            {name: row(at) for at, name in enumerate(names)},
            {names[at]: gaps(at) for at in self._others},
        )

    def _ends(
        self,
        values: NDArray[np.float64],
        minus: NDArray[np.float64] | None,
        clusters: Clusters | None,
    ) -> NDArray[np.float64]:
        """Intervals (metrics, 2) of the means of ``values``, or of what they are above those of
        ``minus``; both (queries, metrics)."""
        metrics = self._group.metrics
        scales = [metric.scale for metric in metrics]
        if minus is None:
            ends = mean_intervals(values, scales, clusters=clusters)
            return np.stack([m.from_additive(e) for m, e in zip(metrics, ends, strict=True)])
        scales = [one and one.of_differences for one in scales]
        ends = mean_intervals(values - minus, scales, clusters=clusters)
        for at, metric in enumerate(metrics):
            if metric.geometric:  # the difference of two such means is no mean of differences
                both = np.c_[values[:, at], minus[:, at]]
                drawn = metric.from_additive(bootstrap_means(both, clusters=clusters))
                ends[at] = interval(drawn[:, :1] - drawn[:, 1:])[0]
        return ends

    def _in_means(self, additive: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., systems, metrics) of averaged additive values, on the scale that is shown."""
        metrics = self._group.metrics
        return np.stack([m.from_additive(additive[..., i]) for i, m in enumerate(metrics)], axis=-1)
