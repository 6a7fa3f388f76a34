"""Runs on one dataset side by side: their means, and every pair with its verdict.

Each way to judge them is a class: by the labels of queries that were fixed beforehand
(:mod:`.fixed`), or one of a package. What all of them can be asked is here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from retrieval_bench.comparison.pairs.comparability import nothing_judged
from retrieval_bench.comparison.pairs.delta import Delta, how_bracketed
from retrieval_bench.comparison.pairs.speed import LatencyDelta
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import EMPTY, Dataset, Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.resampling import RESAMPLES


class SpeedUp(NamedTuple):
    """Ratio of the times of two systems: how many times as fast one is as another, with the 98 %
    interval; above 1 = faster."""

    times: float
    ci98: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Recommendation(Documented):
    """The answer for one dataset.

    Attributes:
        dataset: its name.
        system: which one to take; None when nothing can be said.
        sentence: the answer in one sentence.
        reasons: what it rests on, and what speaks against it.
        leaders: all that may be the best, ``system`` first; empty where nothing can be said.
    """

    dataset: str
    system: str | None
    sentence: str
    reasons: tuple[str, ...] = ()
    leaders: tuple[str, ...] = ()


class Systems(NamedTuple):
    """Systems that are held against each other: the first fields of a
    :class:`DatasetComparison`."""

    dataset: str
    runs: tuple[Run, ...]
    names: tuple[str, ...]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class DatasetComparison(ABC):
    """Runs on one dataset, side by side.

    Attributes:
        dataset: its name; told apart where two datasets have the same.
        runs: one for each system.
        names: one for each run, equal retriever names told apart.
        metrics: that all of them have, the deciding one first.
        deltas: every pair on every metric.
        latency: every pair whose times can be held against each other, or why not.
        resamples: how many sign patterns were drawn for each p.
        warnings: what makes the differences less than they seem, in plain words.
        by_question: the deciding metric's differences with queries that are nearly the same
            question as one cluster, where nothing says that they are and a verdict is another.
    """

    dataset: str
    runs: tuple[Run, ...]
    names: tuple[str, ...]
    metrics: tuple[Metric, ...]
    deltas: tuple[Delta, ...]
    latency: tuple[LatencyDelta, ...] = ()
    resamples: int = RESAMPLES
    warnings: tuple[str, ...] = ()
    by_question: tuple[Delta, ...] = ()

    @abstractmethod
    def recommended(self, margin: float, baseline: str | None = None) -> Recommendation:
        """Return which system to take, by the first metric, and why; differences from ``baseline``
        have its side. See :mod:`.recommendation`."""

    means_have_intervals: ClassVar[bool] = True
    without_failures: ClassVar[str] = "without the queries that failed on either side"
    """What pairs are judged by a second time, to see whether a verdict rests on failures."""

    @property
    def judged(self) -> bool:
        """Whether anything is judged, so that quality can be told."""
        return not nothing_judged(self.runs)

    @property
    def sentence(self) -> str:
        """The extent of the measurement, where that was not settled beforehand; else empty."""
        return ""

    @property
    def estimand(self) -> str:
        """The mean that is estimated, where the extent was not settled beforehand; else empty."""
        return ""

    @property
    def meaning(self) -> str:
        """The meaning of verdicts and intervals, where they are not those of tests; else empty."""
        return ""

    @property
    def extent(self) -> str:
        """The number of queries that the means are over, from the fewest to the most."""
        counts = sorted({run.evaluation.means[0].n for run in self.runs})
        if len(counts) == 1:
            of = {run.summary.dataset.n_clusters for run in self.runs if run.clusters} - {None}
            inside = "".join(f" in {counted(n, 'cluster')}" for n in of if n is not None)
            return counted(counts[0], "query") + inside
        return f"{counts[0]:,} to {counts[-1]:,} queries"

    @property
    def method(self) -> Mapping[str, str]:
        """What pairs are compared by -> how, where it is no test on fixed queries."""
        return EMPTY

    def rows(self) -> Iterator[dict[str, Any]]:
        """Pairs as rows of CSV, beside those of the differences."""
        yield from ()

    def with_texts(self, source: Dataset | str) -> Self:
        """The same with the texts that it shows, from ``source``, or with why there are none."""
        del source
        return self

    def rewritten(self, sentence: Callable[[str], str], *, with_texts: bool) -> Self:
        """The same with its sentences changed by ``sentence``, and without any text of a query or a
        document unless ``with_texts``."""
        del sentence, with_texts
        return self

    def of(self, metric: Metric | str) -> list[Delta]:
        """The pairs of one metric: those that Holm corrects together."""
        return [delta for delta in self.deltas if delta.metric == str(metric)]

    def brackets(self, metric: Metric | str) -> str:
        """Kind of the intervals of the differences in ``metric``."""
        return how_bracketed(self.of(metric))

    def beaten(self, metric: Metric | str) -> dict[str, list[int]]:
        """System -> places of the systems that it was shown to be better than."""
        beaten_by: dict[str, list[int]] = {name: [] for name in self.names}
        for delta in self.of(metric):
            if delta.verdict is Verdict.BETTER:
                beaten_by[delta.b].append(self.names.index(delta.a))
            elif delta.verdict is Verdict.WORSE:
                beaten_by[delta.a].append(self.names.index(delta.b))
        return {name: sorted(places) for name, places in beaten_by.items()}

    def mean(self, name: str, metric: Metric) -> float:
        """Return the mean of one system."""
        return self.runs[self.names.index(name)].evaluation.mean(metric).mean

    def speed_up(self, name: str, than: str) -> SpeedUp | None:
        """Return how many times as fast ``name`` is, over its typical calls; None = not known."""
        delta = self._typical(name, than)
        if delta is None or not delta.ratio:
            return None
        ends = delta.ci98
        if delta.a == name:
            return SpeedUp(delta.ratio, ends)
        return SpeedUp(1 / delta.ratio, None if ends is None else (1 / ends[1], 1 / ends[0]))

    def is_faster(self, name: str, than: str) -> bool:
        """Return whether ``name`` was shown to be faster."""
        delta = self._typical(name, than)
        if delta is None:
            return False
        return delta.verdict is (Verdict.BETTER if delta.b == name else Verdict.WORSE)

    def saved_ms(self, name: str, than: str) -> float | None:
        """Return how far the p50 of ``name`` is below that of ``than``; None = not known."""
        own, other = (
            self.runs[self.names.index(system)].summary.latency_ms.at("p50").value
            for system in (name, than)
        )
        return None if own is None or other is None else float(other - own)

    def _typical(self, name: str, other: str) -> LatencyDelta | None:
        for delta in self.latency:
            if {delta.a, delta.b} == {name, other} and delta.what == "typical":
                return delta if delta.ratio is not None else None
        return None

    def highest(self, metric: Metric) -> str | None:
        """Name the system that is highest of those that can be compared; None without one."""
        compared = {x for d in self.of(metric) if d.difference is not None for x in (d.a, d.b)}
        return next((name for name, _ in self.ranked(metric) if name in compared), None)

    def ranked(self, metric: Metric) -> list[tuple[str, Run]]:
        """The systems, the best by ``metric`` first; those without a mean last."""

        def key(pair: tuple[str, Run]) -> float:
            mean = pair[1].evaluation.mean(metric).mean
            return math.inf if math.isnan(mean) else -mean

        return sorted(zip(self.names, self.runs, strict=True), key=key)
