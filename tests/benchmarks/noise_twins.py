"""Systems that differ by nothing but noise: how often one is called better than its twin.

A twin is bm25 whose scores are multiplied by seeded noise. Two twins are pooled on some of the
questions of science-mini, which are judged one after the other, with a look after each; and their
runs, scored by the same judgements, are compared.

``python -m tests.benchmarks.noise_twins`` prints how often either calls one of them better.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.types import Qrels, Ranking, Verdict
from retrieval_bench.data import load_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.experiment.until import Target
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench_labels.decide.population import of_population
from retrieval_bench_labels.label import Pair, Pool
from tests.builders import some
from tests.builders.pools import graded, pool_of
from tests.builders.runs import run

TRIES, MOST = 200, 17
"""Of so many pools at most so many may have a wrong word: of 12 expected at most (6 %)."""

SIZES = (30, 100)
DEPTH, DEEPER = 10, 40
NOISE = 0.3
"""Standard deviation of the logarithm of what a score is multiplied by."""


@dataclass(frozen=True, slots=True)
class Try:
    """What was said of two twins.

    Attributes:
        early: before all was judged, at any look.
        complete: by ``label status``, once all was.
        compared: by ``compare``, of the same judgements.
    """

    early: Delta
    complete: Delta
    compared: Delta

    @property
    def status_says_better(self) -> bool:
        """Whether ``label status`` ever called one of them better."""
        return _better(self.early) or _better(self.complete)

    @property
    def compare_says_better(self) -> bool:
        """Whether ``compare`` did."""
        return _better(self.compared)

    @property
    def differ(self) -> bool:
        """Whether the two say something else of the same complete judgements, in any figure."""
        return replace(self.complete, dataset="") != replace(self.compared, dataset="")


def _better(delta: Delta) -> bool:
    return delta.verdict in (Verdict.BETTER, Verdict.WORSE)


@dataclass(frozen=True, slots=True)
class Scored:
    """What bm25 finds for the questions of science-mini, and their judgements."""

    rankings: Mapping[str, Ranking]
    qrels: Qrels

    @classmethod
    def read(cls) -> Scored:
        """Ask bm25."""
        data = load_dataset("science-mini")
        once = Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0)
        experiment = prepare(["bm25"], data, k=DEEPER, protocol=once, save=False)
        answers = experiment.search()
        judged = {query.id for query in data.evaluated}
        found = zip(experiment.queries, answers.rankings, strict=True)
        return cls({q.id: some(ranking) for q, ranking in found if q.id in judged}, data.qrels)

    def twins(self, n: int, seed: int) -> Try:
        """Two of them on ``n`` questions, judged one after the other."""
        rng = np.random.default_rng([n, seed])
        ids = sorted(rng.choice(sorted(self.rankings), n, replace=False))
        lists = {name: {q: self._noisy(q, rng) for q in ids} for name in ("n1", "n4")}
        pool = pool_of(lists, seed, f"nDCG@{DEPTH}", Target.POPULATION)
        truth = {pair: self.qrels[pair.query_id].get(pair.doc_id, 0) for pair in pool.pairs}
        last = pool.in_turn[np.count_nonzero([query.weight for query in pool.queries]) - 1]
        # What is ruled out stays so: the last look before the end has seen all looks before it.
        before = {pair: grade for pair, grade in truth.items() if pair.query_id != last.id}
        return Try(_said(pool, before), _said(pool, truth), _compared(lists, truth))

    def _noisy(self, query_id: str, rng: np.random.Generator) -> list[str]:
        ranking = self.rankings[query_id]
        scores = np.asarray(ranking.scores) * rng.lognormal(0.0, NOISE, len(ranking.doc_ids))
        return [ranking.doc_ids[place] for place in np.argsort(-scores, kind="stable")[:DEPTH]]


def _said(pool: Pool, grades: Mapping[Pair, int]) -> Delta:
    return some(of_population(pool, graded(grades))).pairs[0].delta


def _compared(lists: Mapping[str, Mapping[str, list[str]]], grades: Mapping[Pair, int]) -> Delta:
    qrels: dict[str, dict[str, int]] = {}
    for pair, grade in grades.items():
        qrels.setdefault(pair.query_id, {})[pair.doc_id] = grade
    (delta,) = compare_runs([_scored(name, of, qrels) for name, of in lists.items()]).deltas
    return delta


def _scored(name: str, lists: Mapping[str, list[str]], qrels: Qrels) -> Run:
    ids = list(lists)
    rankings = [Ranking(docs, [float(-at) for at in range(len(docs))]) for docs in lists.values()]
    packed = pack_rankings(ids, rankings, DEPTH)
    metrics = parse_metrics([f"nDCG@{DEPTH}"])
    evaluation = evaluate(packed.ranking, packed.doc_ids, ids, qrels, metrics)
    return replace(run(name, evaluation.values(metrics[0]), ids), evaluation=evaluation)


def main() -> int:
    """Print the table; exit code 1 where one is called better too often, or the two differ."""
    scored, faults = Scored.read(), 0
    print(
        "| questions | tries | label status, any look | before all is judged | compare | differ |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for n in SIZES:
        tries = [scored.twins(n, seed) for seed in range(TRIES)]
        status = sum(one.status_says_better for one in tries)
        early = sum(_better(one.early) for one in tries)
        compare = sum(one.compare_says_better for one in tries)
        differ = sum(one.differ for one in tries)
        faults += (status > MOST) + (compare > MOST) + (differ > 0)
        print(f"| {n} | {TRIES} | {status} | {early} | {compare} | {differ} |", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
