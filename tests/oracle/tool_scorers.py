"""The eleven tools of the guide's ``tools.md``, and ours, as scorers for ``score audit --scorer``.

``python -m tests.oracle.tool_scorers`` prints the rows of the guide's table for the tools that are
installed; ``score audit --scorer tests/oracle/tool_scorers.py:ranx_ndcg`` shows one of them.

A tool that takes a run and judgements gets them as they are. One that takes lists gets, for each
query of the run that is judged, the documents sorted by score; what ties and missing queries
mean was then decided here, not by the tool, and these trials say nothing of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Run = Mapping[str, Any]
Qrels = Mapping[str, Mapping[str, int]]

K = 10


def ours_ndcg(run: Run, qrels: Qrels) -> float:
    import retrieval_bench

    return float(retrieval_bench.evaluate(run, qrels, metrics=["nDCG@10"]).means["nDCG@10"])


def trec_eval_ndcg(run: Run, qrels: Qrels) -> dict[str, float]:
    import pytrec_eval

    found = pytrec_eval.RelevanceEvaluator(qrels, ["ndcg_cut_10"]).evaluate(run)
    return {query_id: values["ndcg_cut_10"] for query_id, values in found.items()}


def ir_measures_ndcg(run: Run, qrels: Qrels) -> float:
    import ir_measures

    return float(
        ir_measures.calc_aggregate([ir_measures.nDCG @ K], qrels, run)[ir_measures.nDCG @ K]
    )


def ir_measures_rr(run: Run, qrels: Qrels) -> float:
    import ir_measures

    return float(ir_measures.calc_aggregate([ir_measures.RR @ K], qrels, run)[ir_measures.RR @ K])


def ranx_ndcg(run: Run, qrels: Qrels) -> float:
    import ranx

    return float(ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), f"ndcg@{K}"))


def beir_ndcg(run: Run, qrels: Qrels) -> float:
    beir = import_module("beir.retrieval.evaluation")
    return float(beir.EvaluateRetrieval.evaluate(qrels, run, [K])[0][f"NDCG@{K}"])


def beir_mrr(run: Run, qrels: Qrels) -> float:
    beir = import_module("beir.retrieval.evaluation")
    return float(beir.EvaluateRetrieval.evaluate_custom(qrels, run, [K], "mrr")[f"MRR@{K}"])


def sklearn_ndcg(run: Run, qrels: Qrels) -> dict[str, float]:
    ndcg_score = import_module("sklearn.metrics").ndcg_score
    return {
        q: float(ndcg_score([[qrels[q].get(d, 0) for d in scores]], [list(scores.values())], k=K))
        for q, scores in run.items()
        if q in qrels
    }


def llamaindex_ndcg(run: Run, qrels: Qrels) -> dict[str, float]:
    from llama_index.core.evaluation.retrieval.metrics import NDCG

    return {
        q: float(NDCG().compute(expected_ids=_relevant(qrels[q]), retrieved_ids=docs).score)
        for q, docs in _lists(run, qrels)
    }


def haystack_ndcg(run: Run, qrels: Qrels) -> float:
    from haystack import Document
    from haystack.components.evaluators import DocumentNDCGEvaluator

    lists = dict(_lists(run, qrels))
    truths = [[Document(content=d, score=float(g)) for d, g in qrels[q].items()] for q in lists]
    hits = [[Document(content=d) for d in docs] for docs in lists.values()]
    return float(DocumentNDCGEvaluator().run(truths, hits)["score"])


def autorag_ndcg(run: Run, qrels: Qrels) -> dict[str, float]:
    retrieval_ndcg = import_module("autorag.evaluation.metric.retrieval").retrieval_ndcg
    metric_input = import_module("autorag.schema.metricinput").MetricInput
    found = {}
    for q, docs in _lists(run, qrels):
        given = metric_input(retrieval_gt=[_relevant(qrels[q])], retrieved_ids=docs)
        (value,) = retrieval_ndcg([given])
        if value is not None:
            found[q] = float(value)
    return found


def sentence_transformers_ndcg(run: Run, qrels: Qrels) -> float:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    evaluator = InformationRetrievalEvaluator(
        queries=dict.fromkeys(run, "text"),
        corpus={"d": "text"},
        relevant_docs={q: set(_relevant(qrels.get(q, {}))) for q in run},
        ndcg_at_k=[K],
    )
    lists = dict(_lists(run, {q: {} for q in run}))
    hits = [
        [{"corpus_id": d, "score": -float(at)} for at, d in enumerate(lists[q])]
        for q in evaluator.queries_ids
    ]
    return float(evaluator.compute_metrics(hits)["ndcg@k"][K])


def torchmetrics_ndcg(run: Run, qrels: Qrels) -> float:
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    rows = [
        (at, float(score), qrels[q].get(d, 0))
        for at, q in enumerate(run)
        if q in qrels
        for d, score in run[q].items()
    ]
    at, scores, grades = (torch.tensor(column) for column in zip(*rows, strict=True))
    return float(RetrievalNormalizedDCG(top_k=K)(scores, grades, indexes=at))


def torchmetrics_map(run: Run, qrels: Qrels) -> float:
    import torch
    from torchmetrics.retrieval import RetrievalMAP

    rows = [
        (at, float(score), qrels[q].get(d, 0) > 0)
        for at, q in enumerate(run)
        if q in qrels
        for d, score in run[q].items()
    ]
    at, scores, hits = (torch.tensor(column) for column in zip(*rows, strict=True))
    return float(RetrievalMAP()(scores, hits, indexes=at))


def ragas_context_precision(run: Run, qrels: Qrels) -> dict[str, float]:
    ragas = import_module("ragas")
    metric = import_module("ragas.metrics").NonLLMContextPrecisionWithReference()
    return {
        q: float(
            asyncio.run(
                metric.single_turn_ascore(
                    ragas.SingleTurnSample(
                        reference_contexts=[_spelled(d) for d in _relevant(qrels[q])],
                        retrieved_contexts=[_spelled(d) for d in docs],
                    )
                )
            )
        )
        for q, docs in _lists(run, qrels)
    }


def _spelled(doc_id: str) -> str:
    """A text that is like no other one, for a metric that asks for likeness."""
    digest = hashlib.sha256(doc_id.encode()).digest()
    return "".join(chr(0x4E00 + 64 * byte + at) for at, byte in enumerate(digest))


def _relevant(grades: Mapping[str, int]) -> list[str]:
    return [doc_id for doc_id, grade in grades.items() if grade > 0]


def _lists(run: Run, qrels: Qrels) -> Iterator[tuple[str, list[str]]]:
    for q, hits in run.items():
        if q in qrels:
            ranked = (
                sorted(hits, key=lambda d: hits[d], reverse=True)
                if isinstance(hits, dict)
                else hits
            )
            yield q, list(ranked)


LISTS = ("constant score", "missing queries", "unknown queries", "NaN scores", "constant shift")
"""What is decided here where a tool takes lists."""

ARRAYS = ("missing queries", "unknown queries")
"""The same where it takes arrays."""

SCORERS: Mapping[str, tuple[Callable[[Run, Qrels], Any], str, tuple[str, ...]]] = {
    "ours, `nDCG@10`": (ours_ndcg, "retrieval_bench", ()),
    "T1 trec_eval, `ndcg_cut_10`": (trec_eval_ndcg, "pytrec_eval", ()),
    "T2 ir-measures, `nDCG@10`": (ir_measures_ndcg, "ir_measures", ()),
    "T2 ir-measures, `RR@10`": (ir_measures_rr, "ir_measures", ()),
    "T3 ranx, `ndcg@10`": (ranx_ndcg, "ranx", ()),
    "T4 BEIR, `NDCG@10`": (beir_ndcg, "beir", ()),
    "T4 BEIR, `MRR@10`": (beir_mrr, "beir", ()),
    "T5 scikit-learn, `ndcg_score`": (sklearn_ndcg, "sklearn", ARRAYS),
    "T6 LlamaIndex, `NDCG`": (llamaindex_ndcg, "llama_index", LISTS),
    "T7 Haystack, `DocumentNDCGEvaluator`": (haystack_ndcg, "haystack", LISTS),
    "T8 AutoRAG, `retrieval_ndcg`": (autorag_ndcg, "autorag", LISTS),
    "T9 sentence-transformers, `ndcg@10`": (
        sentence_transformers_ndcg,
        "sentence_transformers",
        LISTS,
    ),
    "T10 TorchMetrics, `RetrievalNormalizedDCG`": (torchmetrics_ndcg, "torchmetrics", ARRAYS),
    "T10 TorchMetrics, `RetrievalMAP`": (torchmetrics_map, "torchmetrics", ARRAYS),
    "T11 Ragas, `NonLLMContextPrecisionWithReference`": (ragas_context_precision, "ragas", LISTS),
}
"""Row of the guide -> scorer, the module that it needs, and what says nothing of the tool."""


def row(name: str) -> str:
    """The row of a scorer in the guide's table."""
    from retrieval_bench_score.cheats import try_scorer

    scorer, _, not_theirs = SCORERS[name]
    by_verdict: dict[str, list[str]] = {"wrong": [], "by id": [], "refuses": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in try_scorer(scorer, name).outcomes:
            if one.verdict in by_verdict and one.cheat not in not_theirs:
                by_verdict[one.verdict].append(one.cheat)
    cells = ["; ".join(cheats) or "–" for cheats in by_verdict.values()]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for name, (_, module, _theirs) in SCORERS.items():
        if find_spec(module) is None:
            sys.stderr.write(f"{name}: {module} is not installed\n")
        else:
            sys.stdout.write(f"{row(name)}\n")
