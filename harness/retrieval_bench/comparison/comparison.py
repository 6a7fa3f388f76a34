"""Two or more runs side by side: on each dataset every pair with its verdict, in quality and in
time, and over several datasets the means of every system.

Decides in data; reads no file and prints nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import keys_added_to, service
from retrieval_bench.comparison.fixed import compare_fixed
from retrieval_bench.comparison.group import DatasetComparison, Recommendation, Systems
from retrieval_bench.comparison.pairs.comparability import (
    by_dataset,
    common_metrics,
    nothing_judged,
)
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, Pair
from retrieval_bench.comparison.pairs.judged_gap import judged_gap
from retrieval_bench.comparison.pairs.speed import LatencyDelta
from retrieval_bench.comparison.pairs.verdicts import Rules
from retrieval_bench.core.as_json.document import Documented, OnDataset
from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import Summary
from retrieval_bench.stats.defaults import EQUIVALENCE, EXTRA, MARGIN
from retrieval_bench.stats.power import check_margin

Judge = Callable[[Systems, Sequence[Pair], Rules, Sequence[str]], DatasetComparison]
"""Judgement of systems on one dataset: of those pairs, by those rules, behind those warnings."""


@dataclass(frozen=True, slots=True)
class System(Documented):
    """One system on one dataset.

    Attributes:
        name: here; its own where no other one has the same.
        summary: of its run.
    """

    KEYS = "name *summary"

    name: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Comparison(Documented):
    """Runs side by side, dataset by dataset.

    Attributes:
        groups: one for each dataset, in the order of the runs.
        margin: up to this absolute difference two systems are as good as equal.
        baseline: the system that all others are compared with; None = every pair.
        equivalence: the test of it, of :data:`.EQUIVALENCE`.
        whole: whether documents have every pair: else, of more than two systems, only those with
            the leader or the baseline, by the deciding metric.
        alpha: level of the tests.
        family: which pairs Holm looks at together.
    """

    KEYS = (
        "systems alpha margin baseline equivalence family resamples warnings "
        "comparisons=shown_deltas latency + boards?"
    )

    alpha: ClassVar[float] = QUALITY_ALPHA
    family: ClassVar[str] = "the pairs of one metric on one dataset"
    groups: tuple[DatasetComparison, ...]
    margin: float = MARGIN
    baseline: str | None = None
    equivalence: str = EQUIVALENCE[0]
    whole: bool = True

    @staticmethod
    def added() -> Sequence[Any]:
        """Records of packages, made of a comparison, whose keys stand in its documents."""
        return keys_added_to("comparison")

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
        """The metrics of all datasets, each once."""
        return tuple(dict.fromkeys(metric for group in self.groups for metric in group.metrics))

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """Every pair on every metric and dataset."""
        return tuple(delta for group in self.groups for delta in group.deltas)

    @property
    def shown_deltas(self) -> list[Delta]:
        """Pairs that documents have."""
        return [
            delta for group in self.groups for delta in group.deltas if self._is_shown(group, delta)
        ]

    def _is_shown(self, group: DatasetComparison, pair: Delta | LatencyDelta) -> bool:
        if self.whole or len(group.names) < 3:
            return True
        leader = self.baseline or group.ranked(group.metrics[0])[0][0]
        deciding = str(group.metrics[0])
        return getattr(pair, "metric", deciding) == deciding and leader in (pair.a, pair.b)

    @property
    def judged(self) -> tuple[DatasetComparison, ...]:
        """The groups of datasets where something is judged."""
        return tuple(group for group in self.groups if group.judged)

    @property
    def unjudged(self) -> tuple[DatasetComparison, ...]:
        """The groups of datasets where nothing is."""
        return tuple(group for group in self.groups if not group.judged)

    @property
    def why_nothing(self) -> str | None:
        """The reason why no run can be compared with another; None where one can."""
        unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
        if any(delta.verdict not in unjudged for delta in self.deltas):
            return None
        if self.unjudged:
            return None
        return "; ".join(dict.fromkeys(delta.reason for delta in self.deltas if delta.reason))

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """The system to take on each dataset, by the first metric there, and why."""
        return tuple(group.recommended(self.margin, self.baseline) for group in self.groups)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all datasets; where there are several, each says which, and what is one
        system by its name alone is told."""
        if len(self.groups) == 1:
            return self.groups[0].warnings
        own = [f"{group.dataset}: {text}" for group in self.groups for text in group.warnings]
        return (*own, *self.mixed)

    @property
    def mixed(self) -> tuple[str, ...]:
        """A warning of systems that have other parameters on some datasets."""
        hashes = defaultdict[str, set[str]](set)
        for group in self.groups:
            for name, run in zip(group.names, group.runs, strict=True):
                hashes[name].add(run.manifest.get("retriever", {}).get("hash") or "")
        changed = [name for name, known in hashes.items() if len(known - {""}) > 1]
        text = f"These systems have other parameters on some datasets: {', '.join(changed)}."
        return (text,) if changed else ()

    def board(self, metric: Metric) -> Board:
        """Systems x datasets where something is judged, by single metric."""
        groups = self.judged
        means = np.full((len(self.names), len(groups)), np.nan)
        for column, group in enumerate(groups):
            if metric in group.metrics:
                for name in group.names:
                    means[self.names.index(name), column] = group.mean(name, metric)
        return Board(metric, self.names, tuple(group.dataset for group in groups), means)

    @property
    def systems(self) -> list[System]:
        """The summaries of all runs, dataset by dataset."""
        return [
            System(name, run.summary)
            for group in self.groups
            for name, run in zip(group.names, group.runs, strict=True)
        ]

    @property
    def resamples(self) -> int:
        """Sign patterns drawn for each p."""
        return max(group.resamples for group in self.groups)

    @property
    def latency(self) -> list[OnDataset[LatencyDelta]]:
        """Times of the pairs that documents have, call by call."""
        return [
            OnDataset(group.dataset, delta)
            for group in self.groups
            for delta in group.latency
            if self._is_shown(group, delta)
        ]

    @property
    def boards(self) -> list[Board]:
        """Systems x datasets by each metric, where something is judged on several."""
        return [self.board(metric) for metric in self.metrics] if len(self.judged) > 1 else []


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A system on several datasets.

    Attributes:
        name: of the system.
        means: in the order of the datasets; null where it was not measured.
        average: over datasets, each counting once; null where it was not measured on all.
    """

    name: str
    means: list[float | None]
    average: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Board(Documented):
    """One metric of systems on several datasets.

    Attributes:
        metric, systems, datasets: by what, and the rows and columns of ``means``.
        means: (systems, datasets), NaN where a system was not measured.
    """

    KEYS = "metric datasets systems=rows"

    metric: Metric
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    means: NDArray[np.float64]

    @property
    def averages(self) -> NDArray[np.float64]:
        """(systems,): the mean over datasets, each counting once; NaN for a system that was not
        measured on all of them, which would be compared on other data."""
        return np.asarray(self.means.mean(axis=1))

    @property
    def rows(self) -> list[BoardRow]:
        """Mean by system and dataset, and the average."""
        return [
            BoardRow(name, row.tolist(), float(average))
            for name, row, average in zip(self.systems, self.means, self.averages, strict=True)
        ]


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
    groups = by_dataset(runs)
    names = {name for _, systems, _ in groups for name in systems}
    check_asked(names, margin=margin, baseline=baseline, tests=tests, equivalence=equivalence)
    rules = Rules(margin, tuple(tests), 0, equivalence=equivalence)
    compared = (_group(data, systems, of, baseline, rules) for data, systems, of in groups)
    return Comparison(tuple(compared), margin, baseline, equivalence)


def check_asked(
    names: Collection[str],
    *,
    margin: float,
    baseline: str | None,
    tests: Sequence[str],
    equivalence: str = EQUIVALENCE[0],
    judged: bool = True,
) -> None:
    """Refuse what :func:`compare_runs` would refuse of systems with these ``names``; to be asked
    before they are measured.

    Args:
        judged: whether anything is, where they are to be measured.

    Raises:
        ConfigError: an unknown baseline or test, a margin that is none, or the package that
            compares them is not here.
    """
    if not judged:
        service("compare runs without judgements")
    check_margin(margin)
    what, fix = f"test of equivalence {equivalence!r}", "name one of them"
    check_known(equivalence, EQUIVALENCE, what, where="--equivalence", fix=fix)
    for name in tests:
        more = f"{fix}; the randomisation test is always there"
        check_known(name, EXTRA, f"test {name!r}", fix=more)
    if baseline is not None:
        what = f"baseline {baseline!r} is none of the systems"
        check_known(baseline, names, what, fix="name one of the systems that are compared")


def _group(
    dataset: str, names: list[str], runs: list[Run], baseline: str | None, rules: Rules
) -> DatasetComparison:
    common = common_metrics(runs)
    if not common:
        raise ConfigError(
            "the runs have no metric in common",
            where=", ".join(str(run.folder or run.name) for run in runs),
            fix="measure them again with the same --metrics and k",
        )
    pairs = pairs_of(names, baseline)
    alone = f"{' and '.join(names)} alone, nothing to compare with there"
    warnings = [] if pairs else [alone]
    systems = Systems(dataset, tuple(runs), tuple(names), common)
    if nothing_judged(runs):
        judge: Judge = service("compare runs without judgements")
        return judge(systems, pairs, rules, warnings)
    known = dict.fromkeys(m for run in runs for m in run.evaluation.metrics)
    if lost := [str(metric) for metric in known if metric not in common]:
        warnings.insert(0, f"left out, since not all runs have them: {', '.join(lost)}")
    warnings = [*judged_gap(names, runs, pairs, common[0]), *warnings]
    judge = compare_fixed
    if any(run.asked is not None for run in runs):
        judge = service("compare runs measured until decided")
    return judge(systems, pairs, rules, warnings)


def pairs_of(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    """Places of the systems that are put side by side: those with ``baseline``, or all."""
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    if baseline not in names:
        return []
    at = names.index(baseline)
    return [(at, other) for other in range(len(names)) if other != at]
