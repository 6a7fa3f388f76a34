"""Scoring a run, beside pytrec_eval on the same run in the same process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.metrics import judge, parse_metrics
from harness.run import Rankings, pack_rankings
from harness.types import Ranking
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle, race

HITS = 100
JUDGED = 20
POOLED = 200
N_DOCUMENTS = 100_000
METRICS = {
    "nDCG@10": ("ndcg_cut.10", "ndcg_cut_10"),
    "AP@100": ("map_cut.100", "map_cut_100"),
    "RR": ("recip_rank", "recip_rank"),
    "P@10": ("P.10", "P_10"),
    "R@100": ("recall.100", "recall_100"),
    "Success@1": ("success.1", "success_1"),
}
"""Ours -> what pytrec_eval is asked for, and what it answers with."""

Scores = dict[str, dict[str, float]]


def measure(options: Options) -> Group:
    """Rows with and without bringing the run into each side's form."""
    n_queries, turns = (200, 3) if options.quick else (5_000, 9)
    sides, pooled = _Sides(n_queries, JUDGED), _Sides(n_queries, POOLED)
    difference = max(sides.largest_difference(), pooled.largest_difference())
    walls = race(
        {
            "ours": lambda _: sides.ours(sides.packed),
            "theirs": lambda _: sides.theirs(sides.run),
            "ours from rankings": lambda _: sides.ours(sides.pack()),
            "theirs from rankings": lambda _: sides.theirs_from_rankings(),
            "evaluator": lambda _: sides.evaluator(),
            "ours, pooled": lambda _: pooled.ours(pooled.packed),
            "theirs, pooled": lambda _: pooled.theirs(pooled.run),
            "evaluator, pooled": lambda _: pooled.evaluator(),
        },
        turns,
    )
    time = {name: middle(values) for name, values in walls.items()}
    return Group(
        f"Scoring {n_queries:,} queries x {HITS} hits, {len(METRICS)} metrics",
        [
            Row(
                f"join + metrics, {JUDGED} judgements a query",
                time["ours"],
                "s",
                time["theirs"],
                "pytrec_eval",
                at_most=1,
            ),
            Row(
                f"join + metrics, {POOLED} judgements a query",
                time["ours, pooled"],
                "s",
                time["theirs, pooled"],
                "pytrec_eval",
                at_most=1,
            ),
            Row(
                f"from a list of rankings, {JUDGED} judgements",
                time["ours from rankings"],
                "s",
                time["theirs from rankings"],
                "pytrec_eval, evaluator too",
            ),
            Row(f"pytrec_eval's evaluator, {JUDGED} judgements", time["evaluator"], "s"),
            Row(f"pytrec_eval's evaluator, {POOLED} judgements", time["evaluator, pooled"], "s"),
        ],
        [
            (
                f"medians of {turns} turns in one process; a third of the judgements are of hits; "
                f"{N_DOCUMENTS:,} documents; metrics {', '.join(METRICS)}"
            ),
            (
                "join + metrics: ours from a run's arrays, theirs (evaluate()) from its "
                "dictionaries and with the evaluator, all made before"
            ),
            f"largest difference of any value of any query: {difference:.1e}",
        ],
    )


class _Sides:
    """One run in the forms that each side takes."""

    def __init__(self, n_queries: int, n_judged: int, seed: int = 5) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pytrec_eval
        self._library: Any = pytrec_eval
        rng = np.random.default_rng(seed)
        ids = [f"doc-{i:06d}" for i in range(N_DOCUMENTS)]
        self.query_ids = [f"q{i}" for i in range(n_queries)]
        self.qrels: dict[str, dict[str, int]] = {}
        self.rankings: list[Ranking] = []
        for query_id in self.query_ids:
            hits = rng.choice(N_DOCUMENTS, HITS, replace=False)
            found = rng.choice(hits, n_judged // 3, replace=False)
            missed = rng.integers(0, N_DOCUMENTS, n_judged - len(found))
            judged = [ids[i] for i in (*found, *missed)]
            grades = rng.integers(0, 4, n_judged).tolist()
            self.qrels[query_id] = dict(zip(judged, grades, strict=True))
            self.rankings.append(Ranking([ids[i] for i in hits], np.sort(rng.random(HITS))[::-1]))
        self.metrics = parse_metrics(list(METRICS))
        self.packed = self.pack()
        self.run = self._dictionaries()
        self._evaluator = self.evaluator()

    def pack(self) -> Rankings:
        """The rankings as the arrays of a run."""
        return pack_rankings(self.query_ids, self.rankings, HITS)

    def ours(self, run: Rankings) -> list[Any]:
        """Values of all queries, one array for each metric."""
        judged = judge(run.ranking, run.doc_ids, run.query_ids, self.qrels)
        return [metric.compute(judged) for metric in self.metrics]

    def evaluator(self) -> Any:
        """The library's object, which copies the judgements."""
        asked = {measure for measure, _ in METRICS.values()}
        return self._library.RelevanceEvaluator(self.qrels, asked)

    def theirs(self, run: Mapping[str, Mapping[str, float]]) -> Scores:
        """Values of all queries, one dictionary for each."""
        scores: Scores = self._evaluator.evaluate(run)
        return scores

    def theirs_from_rankings(self) -> Scores:
        """All that a user of the library does."""
        scores: Scores = self.evaluator().evaluate(self._dictionaries())
        return scores

    def largest_difference(self) -> float:
        """Between the two sides: a race between different answers would mean nothing."""
        theirs = self.theirs(self.run)
        largest = 0.0
        for (_, name), values in zip(METRICS.values(), self.ours(self.packed), strict=True):
            expected = [theirs[query_id][name] for query_id in self.query_ids]
            largest = max(largest, float(np.abs(values - expected).max()))
        return largest

    def _dictionaries(self) -> dict[str, dict[str, float]]:
        return {
            query_id: {hit.doc_id: hit.score for hit in ranking}
            for query_id, ranking in zip(self.query_ids, self.rankings, strict=True)
        }
