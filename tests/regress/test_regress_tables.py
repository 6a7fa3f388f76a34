"""The exact text of ``baseline`` and ``regress``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import parse_metric
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench.reports.render.words import BOUND
from retrieval_bench_regress.baseline import FAILED
from retrieval_bench_regress.gate import Regression
from retrieval_bench_regress.latency_gates import LatencyResult, When, judge_latency, not_measured
from retrieval_bench_regress.policy import Policy
from retrieval_bench_regress.quality_gates import (
    ChangedQuery,
    QualityGate,
    QualityResult,
    judge_quality,
)
from retrieval_bench_regress.session import WANTED
from retrieval_bench_regress.tables.regress import baseline_tables, regress_tables
from tests.builders.baselines import COMMIT, DATASET, MACHINE, duet_result, latency, quality
from tests.builders.golden import golden

NDCG, RECALL = parse_metric("nDCG@10"), parse_metric("R@10")
POLICY = Policy({NDCG: 0.01, RECALL: 0.02}, {"p50": 0.05, "p95": 0.1, "slowest-fifth": 0.1})
SUBJECT: Any = {
    "retriever": "하이브리드",
    "dataset": DATASET,
    "k": 10,
    "machine": MACHINE,
    "revision": {"commit": "b" * 40, "dirty": True},
}
MADE_OF: Any = {"revision": {"commit": COMMIT, "dirty": False}, "config": "c0ffee"}
BASELINES: Any = {
    "quality": {"path": "results/baselines/하이브리드-tiny.json", **MADE_OF},
    "latency": {
        "path": f"results/baselines/{MACHINE}/하이브리드-tiny.json",
        "date": "2026-11-20T10:00:00+00:00",
        **MADE_OF,
    },
}


def of_quality(drop: float, changed: int) -> QualityResult:
    """``drop`` in nDCG on so many of 120 queries; recall stays."""
    before = np.linspace(0.4, 1.0, 120)
    now = before.copy()
    now[:changed] -= drop
    hashes = ["new" if i < changed else "old" for i in range(120)]
    values = {"nDCG@10": before.tolist(), "R@10": [1.0] * 120}
    return judge_quality(
        quality(values, ["old"] * 120),
        quality({**values, "nDCG@10": now.tolist()}, hashes),
        POLICY.quality,
    )


def of_latency(ratio: float, verdict: Verdict | None = None) -> LatencyResult:
    medians = np.linspace(1e6, 3e6, 120)
    before, now = (latency([round(ns) for ns in m]) for m in (medians, medians * ratio))
    result = duet_result(verdict or Verdict.MISSING, 1.08)
    return judge_latency(before, now, POLICY.latency, duet=lambda: result, when=When.SUSPICION)


def found(
    of_quality: QualityResult, of_latency: LatencyResult, *advice: str, **more: Any
) -> Regression:
    return Regression(SUBJECT, POLICY, BASELINES, of_quality, of_latency, advice, **more)


def test_a_pass() -> None:
    text = terminal.plain(regress_tables(found(of_quality(0, 0), of_latency(1.004))))
    golden("regress_pass.txt", text)


def test_a_failure_of_both() -> None:
    failed = found(
        of_quality(0.3, 14),
        of_latency(1.09, Verdict.WORSE),
        WANTED,
        "Make it faster, or take it as the price with --accept.",
    )
    assert failed.code == 1
    golden("regress_fail.txt", terminal.plain(regress_tables(failed)))


def test_open_and_unmeasured() -> None:
    unmeasured = not_measured(
        POLICY.latency,
        "no baseline of this machine (abcdef012345), only of 000000000000: times of another "
        "machine say nothing here",
    )
    both = found(
        of_quality(0.3, 2),
        unmeasured,
        "make one here: retrieval-bench baseline 하이브리드",
        warnings=("2 queries failed: TimeoutError",),
        texts={
            "q0000": "휴가는 며칠입니까, 그리고 언제까지 신청해야 합니까?",
            "q0001": "paid leave",
        },
    )
    assert both.code == 4
    golden("regress_open.txt", terminal.plain(regress_tables(both)))
    golden("regress_open.md", markdown.render(regress_tables(both)))
    without = terminal.plain(regress_tables(both, texts=False))
    assert "q0001" in without
    assert "paid leave" not in without


def test_queries_that_fail_are_named_though_their_figures_stay() -> None:
    before = quality({"nDCG@10": [0.0, 1.0, 0.5]})
    now = quality({"nDCG@10": [0.0, 1.0, 0.5]}, [FAILED, "other", "same"])
    failing = judge_quality(before, now, {NDCG: 0.01})
    text = terminal.plain(regress_tables(found(failing, of_latency(1.0))))
    assert "q0000   0.0000 -> 0.0000 (failed)" in text
    assert "1 query with another ranking and the same figures." in text


def test_a_note_on_an_interval_stands_below_one_that_is_printed() -> None:
    gate = QualityGate("nDCG@10", Verdict.BETTER, 0.01, ci=(0.0, 0.1), bound=(0.0, 0.2), p=0.01)
    change = (ChangedQuery("q", {"nDCG@10": (0.0, 1.0)}),)
    for lower, noted in ((0, False), (1, True)):
        result = QualityResult((replace(gate, lower=lower),), 9, change)
        text = terminal.plain(regress_tables(found(result, of_latency(1.0))))
        assert (BOUND[:30] in text) is noted


def test_a_new_baseline() -> None:
    document = {
        **SUBJECT,
        "written": [BASELINES["latency"]["path"]],
        "kept": [BASELINES["quality"]["path"]],
        "changes": [
            {"figure": "nDCG@10", "unit": "", "before": 0.5976, "now": 0.6012},
            {"figure": "p50", "unit": "ms", "before": None, "now": 13.94},
        ],
        "run": "results/runs/20261122T064851Z-하이브리드-tiny-0a6b31b7",
        "next": "retrieval-bench regress 하이브리드",
        "notes": ["files differ from the last commit"],
        "warnings": [],
    }
    golden("baseline.txt", terminal.plain(baseline_tables(document)))
