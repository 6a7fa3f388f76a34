"""Comparing systems over many queries, beside ranx's compare of the same runs.

``python -m tests.benchmarks.compare SYSTEMS QUERIES RANX``: one process, so that memory is its own.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.metrics import Judgements, judge, parse_metrics
from retrieval_bench.runs.evaluation import averaged
from retrieval_bench.runs.run import Run
from tests.benchmarks import children, memory
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import timed
from tests.builders.runs import run

HITS = 10
N_DOCUMENTS = 100_000

METRICS = {
    "nDCG@10": "ndcg@10",
    "nDCG@5": "ndcg@5",
    "AP@10": "map@10",
    "RR@10": "mrr@10",
    "P@10": "precision@10",
    "P@5": "precision@5",
    "R@10": "recall@10",
    "R@5": "recall@5",
    "Success@1": "hit_rate@1",
    "Success@5": "hit_rate@5",
}
"""The same ten metrics in ranx's names."""


def measure(options: Options) -> Group:
    """Rows for the differences of scored runs, their memory, and scoring too."""
    systems, queries = (3, 200) if options.quick else (10, 10_000)
    ours = children.answer("compare", str(systems), str(queries), "no")
    theirs = children.answer("compare", str(systems), str(queries), "yes")
    columns = systems * (systems - 1) // 2 * len(METRICS)
    ordered = 2 * columns
    rows = [
        Row("scored runs: time", ours["compare"], "s", at_most=20, absolute=True),
        Row(
            "scored runs: time",
            ours["compare"],
            "s",
            theirs["fisher"] * ordered,
            "ranx, 1,000 permutations (reckoned)",
        ),
        Row(
            "scoring and comparing",
            ours["score"] + ours["compare"],
            "s",
            theirs["student"],
            "ranx, t tests",
        ),
    ]
    if "peak" in ours:
        rows.append(Row("scored runs: memory", ours["peak"], "bytes", at_most=1e9, absolute=True))
    return Group(
        f"Comparing {systems} systems x {queries:,} queries x {len(METRICS)} metrics",
        rows,
        [
            (
                f"ours: compare_runs, {columns} differences, each with {ours['resamples']:,.0f} "
                "sign patterns, 10,000 resamples, equivalence, Holm and queries needed"
            ),
            "memory: the most that it added to the runs; a fresh process for each side",
            (
                f"ranx reckoned: one of its randomisation tests ({theirs['fisher']:.2g} s) times "
                f"{ordered}, for its compare tests each pair both ways; a tenth of our patterns, "
                "no interval, no correction; all cores"
            ),
            (
                "ranx, t tests: compare(stat_test='student'), which scores, tests and counts wins; "
                "from Qrels and Run objects made before, as ours from arrays and Judgements. Ours "
                "does all of the above, and 10,000 resamples for the intervals of each run's means"
            ),
            f"largest difference of any mean: {theirs['difference']:.1e}",
        ],
    )


class _Systems:
    """Rankings of the same candidates, by systems that see the grades through noise."""

    def __init__(self, n_systems: int, n_queries: int) -> None:
        rng = np.random.default_rng(6)
        self.query_ids = tuple(f"q{i:05d}" for i in range(n_queries))
        self.doc_ids = tuple(f"doc-{i:06d}" for i in range(N_DOCUMENTS))
        starts = rng.integers(0, N_DOCUMENTS, (n_queries, 1))
        candidates = (starts + 997 * np.arange(30)) % N_DOCUMENTS
        grades = rng.integers(0, 4, (n_queries, 30)) * (np.arange(30) < 12)
        self.rankings: list[NDArray[np.int32]] = []
        for system in range(n_systems):
            seen = grades + rng.normal(0, 1.5 + system / 20, grades.shape)
            best = np.argsort(-seen, axis=1)[:, :HITS]
            self.rankings.append(np.take_along_axis(candidates, best, axis=1).astype(np.int32))
        self.qrels = {
            query_id: {self.doc_ids[at]: int(grade) for at, grade in zip(row, of, strict=True)}
            for query_id, row, of in zip(
                self.query_ids, candidates[:, :12].tolist(), grades[:, :12].tolist(), strict=True
            )
        }
        self.judgements = Judgements(self.qrels)
        _ = self.judgements.pairs
        self.metrics = parse_metrics(list(METRICS))

    def scored(self) -> list[Run]:
        """Each as a run, with its values and means."""
        return [self._run(str(number), ranking) for number, ranking in enumerate(self.rankings)]

    def _run(self, name: str, ranking: NDArray[np.int32]) -> Run:
        joined = judge(ranking, self.doc_ids, self.query_ids, self.judgements)
        values = np.column_stack([metric.compute(joined) for metric in self.metrics])
        made = run(f"system-{name}", values, self.query_ids, metrics=list(METRICS))
        return replace(made, evaluation=averaged(self.query_ids, self.metrics, values))


def _ours(systems: _Systems) -> dict[str, float]:
    score, runs = timed(systems.scored)
    (compare, comparison), grown = memory.grown(lambda: timed(lambda: compare_runs(runs)))
    resamples = max(group.resamples for group in comparison.groups)
    found = {"score": score, "compare": compare, "resamples": float(resamples)}
    return found if grown is None else found | {"peak": float(grown)}


def _theirs(systems: _Systems) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imports, and of numba while it compiles
        import ranx
        from ranx.statistical_tests import fisher_randomization_test

        scores = np.arange(HITS, 0, -1, dtype=np.float64).tolist()
        runs = [
            ranx.Run(
                {
                    query_id: dict(zip([systems.doc_ids[i] for i in row], scores, strict=True))
                    for query_id, row in zip(systems.query_ids, ranking.tolist(), strict=True)
                },
                name=str(number),
            )
            for number, ranking in enumerate(systems.rankings)
        ]
        qrels = ranx.Qrels(systems.qrels)
        names = list(METRICS.values())
        few = list(systems.qrels)[:2]
        ranx.compare(  # compiles
            ranx.Qrels({q: systems.qrels[q] for q in few}),
            [ranx.Run({q: {"doc-000001": 1.0} for q in few}, name=name) for name in "ab"],
            names,
        )
        student, report = timed(lambda: ranx.compare(qrels, runs, names))
        ours = systems.scored()
        a, b = (np.ascontiguousarray(run.evaluation.per_query[:, 0]) for run in ours[:2])
        fisher_randomization_test(a[:10], b[:10], 10)
        fisher, _ = timed(lambda: fisher_randomization_test(a, b, 1_000))
    difference = max(
        abs(mean.mean - report.results[str(number)][name])
        for number, run in enumerate(ours)
        for name, mean in zip(names, run.evaluation.means, strict=True)
    )
    if difference > 1e-9:
        raise RuntimeError(f"the sides differ by up to {difference} in a mean")
    return {"student": student, "fisher": fisher, "difference": difference}


if __name__ == "__main__":
    made = _Systems(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(_theirs(made) if sys.argv[3] == "yes" else _ours(made)))
