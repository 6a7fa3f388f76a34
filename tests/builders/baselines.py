"""Baselines and duets whose every figure can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Query, Verdict
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import default_metrics, parse_metric
from retrieval_bench_duet.decision import GATES
from retrieval_bench_duet.result import DuetDataset, DuetResult, GateResult, SideFacts
from retrieval_bench_regress.baseline import Given, LatencyBaseline, QualityBaseline
from retrieval_bench_regress.files import Places
from retrieval_bench_regress.policy import Policy
from retrieval_bench_regress.session import Session
from retrieval_bench_retrievers.functions.callable import CallableRetriever

RETRIEVER = {
    "name": "mine",
    "hash": "c0ffee",
    "given": "mine.yaml",
    "overrides": ["b=1"],
    "params": {"b": "1"},
}
DATASET = {
    "name": "tiny",
    "split": "test",
    "fingerprint": "f" * 32,
    "n_documents": 9,
    "n_queries": 4,
}
MACHINE = "abcdef012345"
COMMIT = "3f2a1c9" + "0" * 33
SIDE = SideFacts("mine", "mine", "here", None, [], None, {})
NDCG = parse_metric("nDCG@10")
POLICY = Policy({NDCG: 0.01}, {"p50": 0.05})


def _of(commit: str | None, *, dirty: bool) -> dict[str, Any]:
    revision = None if commit is None else {"commit": commit, "dirty": dirty}
    return {"retriever": RETRIEVER, "dataset": DATASET, "k": 10, "revision": revision}


def quality(
    values: Mapping[str, Sequence[float]],
    rankings: Sequence[str] = (),
    *,
    commit: str | None = COMMIT,
    dirty: bool = False,
    **changed: Any,
) -> QualityBaseline:
    """``values`` of each metric, query by query; ``rankings`` are the hashes, by default equal."""
    names = sorted(values)
    n = len(values[names[0]])
    hashes = list(rankings) or ["same"] * n
    facts = _of(commit, dirty=dirty) | {
        "convention": "trec",
        "metrics_version": 1,
        "metrics": {name: sum(values[name]) / n for name in names},
        "queries": {
            f"q{at:04d}": [hashes[at], *(float(values[name][at]) for name in names)]
            for at in range(n)
        },
    }
    return QualityBaseline.model_validate(facts | changed)


def latency(
    medians: Sequence[int],
    *,
    commit: str | None = COMMIT,
    dirty: bool = False,
    fingerprint: str = MACHINE,
    **changed: Any,
) -> LatencyBaseline:
    """``medians`` of the queries in nanoseconds."""
    facts = _of(commit, dirty=dirty) | {
        "date": "2026-11-20T10:00:00+00:00",
        "machine": {"fingerprint": fingerprint, "processor": "abacus"},
        "protocol": Protocol(profile="baseline", min_calls=800, warm_up_s=3.0).as_dict(),
        "packages": {"numpy": "2.0"},
        "call": {"p50": {"value": 1.5, "ci95": [1.4, 1.6]}, "p99": {"value": None, "ci95": None}},
        "mean": sum(medians) / max(len(medians), 1) / 1e6,
        "queries": {f"q{at:04d}": ns for at, ns in enumerate(medians)},
        "warnings": [],
    }
    return LatencyBaseline.model_validate(facts | changed)


def duet_result(verdict: Verdict, ratio: float = 1.0, **changed: Any) -> DuetResult:
    """A duet whose gates p50 and slowest-fifth found ``ratio``."""
    gates = tuple(
        GateResult(
            name,
            verdict,
            0.05,
            GATES[name].delta,
            ratio,
            (ratio - 0.01, ratio + 0.01),
            visible=0.02,
            launches=5,
        )
        for name in ("p50", "slowest-fifth")
    )
    facts: dict[str, Any] = {
        "a": replace(SIDE, name="mine at 3f2a1c9", commit=COMMIT),
        "b": replace(SIDE, name="mine at WORKTREE"),
        "dataset": DuetDataset("tiny", "f" * 32, "test", 10),
        "verdict": verdict,
        "gates": gates,
        "launches": 5,
        "calls": 1000,
        "queries": 60,
        "other_rankings": 0,
    }
    return DuetResult(**facts | changed)


def today(folder: Path, policy: Policy = POLICY, **given: Any) -> Session:
    """The code of now beside the baselines in ``folder``."""
    data = Dataset(
        "tiny", None, (Query("q0000", "text"),), {"q0000": {"d": 1}}, "test", None, "f" * 32
    )
    candidate = Candidate("mine", CallableRetriever(lambda text, k: ["d"]), {})
    experiment = Experiment(
        [candidate], data, data.queries, 10, default_metrics(10), Protocol(), None
    )
    revision = given.pop("revision", {"commit": COMMIT, "dirty": False})
    places = Places(folder, "mine", "tiny", MACHINE)
    return Session(experiment, places, policy, Given("mine.yaml", [], revision), "MAKE")
