"""Are the answers still good under load? Every call's hits are scored, beside the unloaded ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Dataset, Query, Ranking, by_rule
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import pack_rankings
from retrieval_bench.stats.intervals import mean_intervals
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.stamps import ANSWERED, NEVER, Calls

Answer = tuple[int, tuple[str, ...]]
"""The number of a query, and the hits."""


@dataclass(frozen=True, slots=True)
class LevelQuality(Documented):
    """The answers of a level, beside the unloaded ones.

    Attributes:
        metric: its name; None where nothing is judged.
        mean: over queries, each the mean of its calls; a call without an answer counts as 0. Under
            load of those queries only that were asked unloaded, too, if there are any.
        queries: that it is the mean of.
        unloaded: the unloaded mean of the same queries; None where none was asked.
        difference: from that.
        ci95: of it.
        compared: answered calls of queries that were answered unloaded, too.
        changed: of these, calls whose hits are none of those that the query had there.
        empty: of these, without any hit.
        fewer: of these, with fewer hits.
    """

    metric: str | None
    mean: float | None
    queries: int
    unloaded: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    compared: int
    changed: int
    empty: int
    fewer: int


class Scorer:
    """Scores answers, each distinct one once.

    Args:
        metric: None where nothing is judged.
    """

    def __init__(
        self, queries: Sequence[Query], dataset: Dataset, metric: Metric | None, k: int
    ) -> None:
        self.queries = queries
        self.qrels = dataset.qrels
        self.metric = None if by_rule(dataset.qrels) else metric  # texts of hits are not kept
        self.k = k
        self.counted = np.array([q.answerable and q.id in dataset.qrels for q in queries], bool)
        self._values: dict[Answer, float] = {}
        self._unloaded: dict[int, set[tuple[str, ...]]] = {}
        self._means: NDArray[np.float64] | None = None

    def scored(self, made: LevelCalls) -> tuple[LevelQuality, NDArray[np.float64]]:
        """The answers of the calls of a level, and the mean of each query, NaN where it has none;
        the first level is that of the system without load."""
        first = self._means is None
        if first:
            for query, ids in made.answers.values():
                self._unloaded.setdefault(query, set()).add(ids)
        calls = made.calls[made.inside]
        answers = _answers_of(calls, made)
        counts = self._changed(answers, calls)
        means = self._means_of(answers, calls)
        known = ~np.isnan(means)
        unloaded = np.full(len(means), np.nan) if self._means is None else self._means
        both = known & ~np.isnan(unloaded)
        used = both if both.any() else known
        mean = float(means[used].mean()) if used.any() else None
        before = float(unloaded[both].mean()) if both.any() else None
        difference, ci95 = paired((means - unloaded)[both], self.metric)
        name, n = None if self.metric is None else str(self.metric), int(used.sum())
        self._means = means if first else self._means
        return LevelQuality(name, mean, n, before, difference, ci95, *counts), means

    def _changed(self, answers: Mapping[int, Answer], calls: Calls) -> tuple[int, int, int, int]:
        compared = changed = empty = fewer = 0
        for at, n in zip(*np.unique(calls.answer, return_counts=True), strict=True):
            if at == NEVER:
                continue
            query, ids = answers[int(at)]
            before = self._unloaded.get(query)
            compared += int(n) if before is not None else 0
            if before is None or ids in before:
                continue
            most = max(map(len, before))
            changed += int(n)
            empty += int(n) * (not ids and most > 0)
            fewer += int(n) * (0 < len(ids) < most)
        return compared, changed, empty, fewer

    def _means_of(self, answers: Mapping[int, Answer], calls: Calls) -> NDArray[np.float64]:
        """Of each query the mean over its calls; NaN where it was not called, or is not judged."""
        n = len(self.queries)
        if self.metric is None:
            return np.full(n, np.nan)
        self._score(set(answers.values()))
        values = np.zeros(len(calls))
        ok = calls.status == ANSWERED
        known = {at: self._values.get(answer, 0.0) for at, answer in answers.items()}
        values[ok] = [known[at] for at in calls.answer[ok].tolist()]
        made = np.bincount(calls.query, minlength=n)
        sums = np.bincount(calls.query, weights=values, minlength=n)
        usable = (made > 0) & self.counted
        return np.where(usable, sums / np.maximum(made, 1), np.nan)

    def _score(self, answers: set[Answer]) -> None:
        metric = self.metric
        new = sorted(one for one in answers - self._values.keys() if self.counted[one[0]])
        if not new or metric is None:
            return
        ids = [self.queries[query].id for query, _ in new]
        packed = pack_rankings(ids, [Ranking(list(hits), None) for _, hits in new], self.k)
        found = evaluate(packed.ranking, packed.doc_ids, ids, self.qrels, [metric], intervals=False)
        self._values.update(zip(new, found.per_query[:, 0].tolist(), strict=True))


def paired(
    apart: NDArray[np.float64], metric: Metric | None
) -> tuple[float | None, tuple[float, float] | None]:
    """The mean of paired differences and its 95 % interval; None where there are too few."""
    if len(apart) < 2 or metric is None:
        return None, None
    if np.abs(apart).max() < 1e-12:
        return 0.0, (0.0, 0.0)
    scale = metric.scale
    low, high = mean_intervals(apart[:, None], [scale and scale.of_differences])[0]
    return float(apart.mean()), (float(low), float(high))


def _answers_of(calls: Calls, made: LevelCalls) -> dict[int, Answer]:
    """The answers of calls by one number for all processes, which ``calls.answer`` becomes."""
    process = calls.worker // made.level.slots
    numbers: dict[Answer, int] = {}
    found: dict[int, Answer] = {}
    renamed: dict[tuple[int, int], int] = {}
    for key, answer in made.answers.items():
        number = renamed[key] = numbers.setdefault(answer, len(numbers))
        found[number] = answer
    pairs = zip(process.tolist(), calls.answer.tolist(), strict=True)
    calls.answer[:] = [NEVER if at == NEVER else renamed[(p, at)] for p, at in pairs]
    return found
