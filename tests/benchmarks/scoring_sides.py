"""One run and its judgements, scored by this project, by pytrec_eval and by ranx."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from retrieval_bench.core.types import Ranking
from retrieval_bench.metrics import Judgements, judge, parse_metrics
from retrieval_bench.runs.run import Rankings, pack_rankings
from retrieval_bench_score.scored import judge_scores

HITS = 100
N_DOCUMENTS = 100_000
_N_SCORES = 1 << 20
"""Scores are multiples of 1 / 2^20: no two of a query are equal, in single precision neither."""


class Names(NamedTuple):
    """What pytrec_eval is asked for and answers with, and what ranx does both with."""

    asked: str
    answered: str
    ranx: str


METRICS = {
    "nDCG@10": Names("ndcg_cut.10", "ndcg_cut_10", "ndcg@10"),
    "AP@100": Names("map_cut.100", "map_cut_100", "map@100"),
    "RR": Names("recip_rank", "recip_rank", "mrr"),
    "P@10": Names("P.10", "P_10", "precision@10"),
    "R@100": Names("recall.100", "recall_100", "recall@100"),
    "Success@1": Names("success.1", "success_1", "hit_rate@1"),
}
"""The same six metrics in the names of each side; all three define them alike."""


class Sides:
    """Each side's form of one run, and what each side does with it; values per query, always."""

    def __init__(self, n_queries: int, n_judged: int, seed: int = 5) -> None:
        rng = np.random.default_rng(seed)
        ids = [f"doc-{i:06d}" for i in range(N_DOCUMENTS)]
        self.query_ids = [f"q{i:05d}" for i in range(n_queries)]  # sorted, as ranx sorts them
        self.qrels: dict[str, dict[str, int]] = {}
        self.scores: dict[str, dict[str, float]] = {}
        rankings: list[Ranking] = []
        for query_id in self.query_ids:
            hits = rng.choice(N_DOCUMENTS, HITS, replace=False)
            found = rng.choice(hits, n_judged // 3, replace=False)
            missed = rng.integers(0, N_DOCUMENTS, n_judged - len(found))
            judged = [ids[i] for i in (*found, *missed)]
            grades = rng.integers(0, 4, n_judged).tolist()
            self.qrels[query_id] = dict(zip(judged, grades, strict=True))
            scores = np.sort(rng.choice(_N_SCORES, HITS, replace=False))[::-1] / _N_SCORES
            doc_ids = [ids[i] for i in hits]
            rankings.append(Ranking(doc_ids, scores))
            self.scores[query_id] = dict(zip(doc_ids, scores.tolist(), strict=True))
        self.run: Rankings = pack_rankings(self.query_ids, rankings, HITS)
        self.metrics = parse_metrics(list(METRICS))
        self._pytrec_eval, self._ranx = _libraries()
        start = time.perf_counter()
        self.ranx_from_dictionaries()
        self.ranx_first_call = time.perf_counter() - start
        self.judgements = Judgements(self.qrels)
        _ = self.judgements.pairs
        self.joined = self._join(self.judgements)
        self._evaluator = self.evaluator()
        self._ranx_run = self._ranx.Run(self.scores)
        self._ranx_qrels = self._ranx.Qrels(self.qrels)

    def metrics_only(self) -> list[Any]:
        """From what is joined already."""
        return [metric.compute(self.joined) for metric in self.metrics]

    def ours(self) -> list[Any]:
        """From the run's arrays and judgements made ready before."""
        joined = self._join(self.judgements)
        return [metric.compute(joined) for metric in self.metrics]

    def ours_and_judgements(self) -> list[Any]:
        """From the run's arrays and a dictionary of judgements."""
        joined = self._join(Judgements(self.qrels))
        return [metric.compute(joined) for metric in self.metrics]

    def ours_from_dictionaries(self) -> list[Any]:
        """From dictionaries of scores and judgements."""
        joined = judge_scores(self.scores, self.query_ids, Judgements(self.qrels))
        return [metric.compute(joined) for metric in self.metrics]

    def evaluator(self) -> Any:
        """pytrec_eval's object, which copies the judgements."""
        asked = {names.asked for names in METRICS.values()}
        return self._pytrec_eval.RelevanceEvaluator(self.qrels, asked)

    def pytrec(self) -> dict[str, dict[str, float]]:
        """With an evaluator made before."""
        values: dict[str, dict[str, float]] = self._evaluator.evaluate(self.scores)
        return values

    def pytrec_from_dictionaries(self) -> dict[str, dict[str, float]]:
        """With an evaluator of its own."""
        values: dict[str, dict[str, float]] = self.evaluator().evaluate(self.scores)
        return values

    def ranx(self) -> dict[str, Any]:
        """From objects made before."""
        return self._ranx_evaluate(self._ranx_qrels, self._ranx_run)

    def ranx_and_judgements(self) -> dict[str, Any]:
        """From a run made before."""
        return self._ranx_evaluate(self._ranx.Qrels(self.qrels), self._ranx_run)

    def ranx_from_dictionaries(self) -> dict[str, Any]:
        """From dictionaries of scores and judgements."""
        return self._ranx_evaluate(self._ranx.Qrels(self.qrels), self._ranx.Run(self.scores))

    def largest_difference(self) -> float:
        """Of any value of any query, from our two ways to the two libraries.

        Raises:
            RuntimeError: above 1e-9; a race between different answers would mean nothing.
        """
        pytrec, ranx = self.pytrec(), self.ranx()
        largest = 0.0
        for values in (self.ours(), self.ours_from_dictionaries()):
            for names, of_metric in zip(METRICS.values(), values, strict=True):
                by_pytrec = [pytrec[query_id][names.answered] for query_id in self.query_ids]
                for theirs in (np.array(by_pytrec), ranx[names.ranx]):
                    largest = max(largest, float(np.abs(of_metric - theirs).max()))
        if largest > 1e-9:
            raise RuntimeError(f"the sides differ by up to {largest} in the value of a query")
        return largest

    def _join(self, judgements: Judgements) -> Any:
        return judge(self.run.ranking, self.run.doc_ids, self.run.query_ids, judgements)

    def _ranx_evaluate(self, qrels: Any, run: Any) -> dict[str, Any]:
        names = [names.ranx for names in METRICS.values()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numba, while it compiles
            values: dict[str, Any] = self._ranx.evaluate(
                qrels, run, names, return_mean=False, save_results_in_run=False
            )
        return values


def _libraries() -> tuple[Any, Any]:
    """pytrec_eval and ranx, whose imports warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pytrec_eval
        import ranx
    return pytrec_eval, ranx
