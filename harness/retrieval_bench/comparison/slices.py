"""Queries in groups, and the means of systems on them: by tag, by source, by length, by number of
relevant documents, or by any metadata key.

Slices say where to look, and decide nothing: there are many of them, most are small, and no test
looks at them. A slice is never empty; a query may be in several, when it has several tags. Equal
lengths and equal numbers are never torn apart.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.comparability import not_comparable
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.core.document import document
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.scripts import BLANKLESS, main_script, script_profile
from retrieval_bench.core.types import Dataset, Qrels, Query
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.stats.intervals import interval, mean_intervals
from retrieval_bench.stats.power import ROUNDING
from retrieval_bench.stats.resampling import bootstrap_means

DIMENSIONS = ("tags", "source", "length", "relevant")
"""What queries of any dataset are grouped by."""

SOURCE_KEYS = ("source", "source_ds", "dataset", "domain")
"""Metadata keys that name where a query comes from; the first one there is counts."""

NONE = "(none)"

_FEW_NUMBERS = 6
"""A numeric key with more distinct values than this is grouped in thirds."""

Rows = list[int]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of queries.

    Attributes:
        by: name of the dimension, or the metadata key.
        what: the same in words.
        groups: label and places of the queries, rising; at least one query in each.
        notes: what to know before reading them, in plain words.
        one_by_one: hardly any two queries share a value: these are no groups.
    """

    by: str
    what: str
    groups: tuple[tuple[str, Rows], ...]
    notes: tuple[str, ...] = ()
    one_by_one: bool = False


def check_names(names: Iterable[str], dataset: Dataset) -> None:
    """Refuse what queries cannot be grouped by.

    Raises:
        ConfigError: a name that is neither of ``DIMENSIONS`` nor a metadata key of a query.
    """
    keys = {key for query in dataset.evaluated for key in query.metadata}
    for name in names:
        if name not in DIMENSIONS and name not in keys:
            known = [*DIMENSIONS, *sorted(keys - set(DIMENSIONS))]
            raise ConfigError(
                f"slices by {name!r}",
                where=f"queries of {dataset.name}",
                accepted=near_names(name, known),
                fix="name some of them, or none for all that there are",
            )


def grouped(by: str, queries: Sequence[Query], qrels: Qrels, *, most: int) -> Grouping:
    """``queries`` in groups; of more than ``most`` the smallest are one group together."""
    if by == "tags":
        return _by_value(by, "tag", [query.tags for query in queries], most)
    if by == "source":
        return _by_source(queries, most)
    if by == "length":
        return _by_length(queries)
    if by == "relevant":
        return _by_relevant([sum(g >= 1 for g in qrels[query.id].values()) for query in queries])
    return _by_key(by, queries, most)


def _by_source(queries: Sequence[Query], most: int) -> Grouping:
    present = {key for query in queries for key in query.metadata}
    key = next((key for key in SOURCE_KEYS if key in present), None)
    if key is None:
        return Grouping("source", "source", (), ("No query says where it comes from.",))
    values = [_labels(query.metadata.get(key)) for query in queries]
    return _by_value("source", f"source (metadata.{key})", values, most)


def _by_key(key: str, queries: Sequence[Query], most: int) -> Grouping:
    given = [query.metadata.get(key) for query in queries]
    what = f"metadata.{key}"
    told = [value for value in given if value is not None]
    numbers = [value for value in told if _is_number(value)]
    if len(numbers) < len(told) or len(set(numbers)) <= _FEW_NUMBERS:
        return _by_value(key, what, [_labels(value) for value in given], most)
    places = [at for at, value in enumerate(given) if value is not None]
    groups = [
        (label, [places[at] for at in rows])
        for label, rows in _thirds(numbers, lambda low, high: _bounds(low, high, " to "))
    ]
    without = [at for at, value in enumerate(given) if value is None]
    if without:
        groups.append((NONE, without))
    return Grouping(key, what, tuple(groups))


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _by_value(by: str, what: str, labels: Sequence[Sequence[str]], most: int) -> Grouping:
    """One group for each label, the largest first; queries without one last."""
    groups: dict[str, Rows] = {}
    for at, of_query in enumerate(labels):
        for label in dict.fromkeys(of_query):
            groups.setdefault(label, []).append(at)
    if not groups:
        return Grouping(by, what, (), (f"No query has a {what}.",))
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    without = [at for at, of_query in enumerate(labels) if not of_query]
    tail = [(NONE, without)] if without else []
    notes = []
    if sum(map(len, groups.values())) + len(without) > len(labels):
        notes.append("A query that has several counts in each of them.")
    one_by_one = 2 * len(groups) > len(labels) > 3
    if one_by_one:
        notes.append("Hardly any two queries share a value.")
    if len(order) + len(tail) > most:
        kept = most - 1 - len(tail)
        rest = sorted({at for _, rows in order[kept:] for at in rows})
        notes.append(
            f"The {len(order) - kept:,} smallest of {len(order):,} are one slice together."
        )
        order = [*order[:kept], (f"({len(order) - kept:,} others)", rest)]
    return Grouping(by, what, (*order, *tail), tuple(notes), one_by_one)


def _labels(value: Any) -> tuple[str, ...]:
    """Labels that a metadata value stands for: a list for several, an empty one for none."""
    if value is None or value == "":
        return ()
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        return tuple(label for one in value for label in _labels(one))
    if isinstance(value, Mapping):
        return tuple(f"{key}: {label}" for key, one in value.items() for label in _labels(one))
    return (str(value),)


def _by_length(queries: Sequence[Query]) -> Grouping:
    """Thirds by number of words, or of characters in scripts without blanks between words."""
    texts = [unicodedata.normalize("NFC", query.text) for query in queries]
    unit = "words"
    if main_script(script_profile(texts)) in BLANKLESS:
        unit = "characters"
        lengths = [len("".join(text.split())) for text in texts]
    else:
        lengths = [len(text.split()) for text in texts]

    def label(low: float, high: float) -> str:
        return f"1 {unit[:-1]}" if high == 1 else f"{_bounds(low, high)} {unit}"

    return Grouping("length", f"length in {unit}", tuple(_thirds(lengths, label)))


def _by_relevant(numbers: Sequence[int]) -> Grouping:
    """1, 2-3, 4 or more; thirds where most queries have 4 or more."""
    what = "number of relevant documents"
    if 2 * sum(number >= 4 for number in numbers) > len(numbers):
        groups = _thirds(numbers, lambda low, high: f"{_bounds(low, high)} relevant")
        return Grouping("relevant", what, tuple(groups))
    bins = {"none": (0, 0), "1": (1, 1), "2-3": (2, 3), "4 or more": (4, float("inf"))}
    found = (
        (f"{label} relevant", [at for at, n in enumerate(numbers) if low <= n <= high])
        for label, (low, high) in bins.items()
    )
    return Grouping("relevant", what, tuple((label, rows) for label, rows in found if rows))


def _thirds(
    values: Sequence[float], label: Callable[[float, float], str]
) -> list[tuple[str, Rows]]:
    """Up to three groups of about the same size, rising; equal values stay together.

    Each cut lies between two distinct values, where it comes closest to one or two thirds.
    """
    counts = sorted(Counter(values).items())
    seen = accumulate((n for _, n in counts), initial=0)
    below = {value: n for (value, _), n in zip(counts, seen, strict=False)}
    firsts = [value for value, _ in counts]
    starts = set(firsts[:1])
    for share in (1, 2):
        wanted = share * len(values) / 3
        starts |= set(sorted(firsts[1:], key=lambda value: abs(below[value] - wanted))[:1])
    groups = []
    for start, end in pairwise([*sorted(starts), math.inf]):
        rows = [at for at, value in enumerate(values) if start <= value < end]
        groups.append((label(start, max(values[at] for at in rows)), rows))
    return groups


def _bounds(low: float, high: float, between: str = "-") -> str:
    ends = [str(int(end)) if end == int(end) else f"{end:.6g}" for end in (low, high)]
    return between.join(dict.fromkeys(ends))


FEW = 30
"""Below so many queries an interval is a rough guess."""

FEWEST = 10
"""Below so many there is none."""

MOST_SLICES = 20
"""Of one dimension; the smallest beyond are one slice together."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The systems on some of the queries.

    Attributes:
        query_ids: in the order of the ids.
        means: system -> one for each metric. The interval is None below
            ``FEWEST`` queries.
        differences: system -> its mean minus that of the baseline, one for each metric, with the
            interval of the paired difference; of the systems that can be compared with it.
    """

    label: str
    query_ids: tuple[str, ...]
    means: Mapping[str, tuple[Mean, ...]]
    differences: Mapping[str, tuple[Mean, ...]]

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def as_dict(self, metrics: Sequence[Metric], baseline: str) -> dict[str, Any]:
        """One entry of ``slices`` in the document of :meth:`Slicing.as_dict`."""
        return {
            "label": self.label,
            "n": self.n,
            "systems": [
                {
                    "name": name,
                    "metrics": {
                        str(metric): {"mean": mean.mean, "ci95": _ends(mean)}
                        for metric, mean in zip(metrics, means, strict=True)
                    },
                }
                for name, means in self.means.items()
            ],
            "differences": [
                {
                    "a": baseline,
                    "b": name,
                    "metrics": {
                        str(metric): {"difference": mean.mean, "ci95": _ends(mean)}
                        for metric, mean in zip(metrics, means, strict=True)
                    },
                }
                for name, means in self.differences.items()
            ],
        }


@dataclass(frozen=True, slots=True)
class Slicing:
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

    dataset: str
    by: str
    what: str
    systems: tuple[str, ...]
    baseline: str
    metrics: tuple[Metric, ...]
    whole: Slice
    slices: tuple[Slice, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """One entry of ``slices`` in ``compare --slices --format json``."""
        return document(self, "dataset by what baseline") | {
            "whole": self.whole.as_dict(self.metrics, self.baseline),
            "slices": [one.as_dict(self.metrics, self.baseline) for one in self.slices],
            "warnings": list(self.warnings),
        }


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
        names: of ``DIMENSIONS``, or metadata keys of the queries; none = every one of
            ``DIMENSIONS`` that has at least two slices, see :func:`all_slicings`.
        baseline: the system that others are compared with; None, or one that is not here, = the
            first.

    Raises:
        ConfigError: a name that is neither a dimension nor a metadata key.
    """
    if not names:
        return all_slicings(group, dataset, baseline=baseline)
    check_names(names, dataset)
    systems = _Systems(group, dataset, baseline)
    return [systems.sliced(systems.grouping(by)) for by in dict.fromkeys(names)]


def all_slicings(
    group: DatasetComparison, dataset: Dataset, *, baseline: str | None = None
) -> list[Slicing]:
    """Every one of ``DIMENSIONS`` that has at least two slices, but not by values that hardly two
    queries share; arguments as of :func:`slicings`."""
    systems = _Systems(group, dataset, baseline)
    found = [systems.grouping(by) for by in DIMENSIONS]
    telling = [one for one in found if len(one.groups) > 1 and not one.one_by_one]
    return [systems.sliced(one) for one in telling]


class _Systems:
    """The values of all systems of a group on the queries that all of them finished."""

    def __init__(self, group: DatasetComparison, dataset: Dataset, baseline: str | None) -> None:
        self._group = group
        evaluations = [run.evaluation for run in group.runs]
        shared = set.intersection(*(set(one.query_ids) for one in evaluations))
        # In the order of the ids: the order in which queries were given changes no interval.
        found = sorted((q for q in dataset.evaluated if q.id in shared), key=lambda q: q.id)
        self._queries, self._qrels = found, dataset.qrels
        self._ids = tuple(query.id for query in found)
        columns = []
        for one in evaluations:
            place = {query_id: at for at, query_id in enumerate(one.query_ids)}
            rows = [place[query_id] for query_id in self._ids]
            columns.append([metric.additive(one.values(metric)[rows]) for metric in group.metrics])
        self._values = np.array(columns, dtype=np.float64).transpose(2, 0, 1)
        self._base = group.names.index(baseline) if baseline in group.names else 0
        reasons = [not_comparable(group.runs[self._base], run) for run in group.runs]
        self._others = [at for at, reason in enumerate(reasons) if at != self._base and not reason]
        self._warnings = [
            f"{name} has no differences from {group.names[self._base]}: {reason}."
            for name, reason in zip(group.names, reasons, strict=True)
            if reason
        ]
        most = max(len(one.query_ids) for one in evaluations)
        if len(found) < most:
            self._warnings.append(
                f"Only the {len(found):,} of {most:,} queries that all systems finished count."
            )

    def grouping(self, by: str) -> Grouping:
        """The queries in groups."""
        return grouped(by, self._queries, self._qrels, most=MOST_SLICES)

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
        return self._slice("all queries", range(len(self._ids)))

    def _slice(self, label: str, rows: Sequence[int]) -> Slice:
        names = self._group.names
        values = self._values[list(rows)]
        n = len(values)
        means = self._in_means(values.mean(axis=0)) if n else np.full(values.shape[1:], np.nan)

        def row(at: int, minus: int | None = None) -> tuple[Mean, ...]:
            mean = means[at] if minus is None else means[at] - means[minus]
            if minus is not None:
                mean = np.where(np.abs(mean) <= ROUNDING, 0.0, mean)
            if n < FEWEST:
                return tuple(Mean(float(value), None, n) for value in mean)
            ends = self._ends(values[:, at], None if minus is None else values[:, minus])
            return tuple(
                Mean(float(value), (float(low), float(high)), n)
                for value, (low, high) in zip(mean, ends, strict=True)
            )

        return Slice(
            label,
            tuple(self._ids[at] for at in rows),
            {name: row(at) for at, name in enumerate(names)},
            {names[at]: row(at, self._base) for at in self._others},
        )

    def _ends(
        self, values: NDArray[np.float64], minus: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Intervals (metrics, 2) of the means of ``values``, or of what they are above those of
        ``minus``; both (queries, metrics)."""
        metrics = self._group.metrics
        scales = [metric.scale for metric in metrics]
        if minus is None:
            ends = mean_intervals(values, scales)
            return np.stack([m.from_additive(e) for m, e in zip(metrics, ends, strict=True)])
        ends = mean_intervals(values - minus, [one and one.of_differences for one in scales])
        for at, metric in enumerate(metrics):
            if metric.geometric:  # the difference of two such means is no mean of differences
                drawn = metric.from_additive(bootstrap_means(np.c_[values[:, at], minus[:, at]]))
                ends[at] = interval(drawn[:, :1] - drawn[:, 1:])[0]
        return ends

    def _in_means(self, additive: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., systems, metrics) of averaged additive values, on the scale that is shown."""
        metrics = self._group.metrics
        return np.stack([m.from_additive(additive[..., i]) for i, m in enumerate(metrics)], axis=-1)


def _ends(mean: Mean) -> list[float] | None:
    return None if mean.ci95 is None else list(mean.ci95)
