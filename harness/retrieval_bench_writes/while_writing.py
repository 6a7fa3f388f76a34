"""The record of searches while documents are written, beside quiet ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Query, Verdict
from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.stats.percentiles import percentile
from retrieval_bench_duet.decision import overall
from retrieval_bench_duet.result import GateResult
from retrieval_bench_writes.blocks import Block, Qrels, judged, scores
from retrieval_bench_writes.delays import LEVELS


@dataclass(frozen=True, slots=True)
class Searches(Documented):
    """Searches of all blocks of one kind.

    Attributes:
        calls: that were answered.
        failed: that were not.
        p50_ms, p95_ms, p99_ms: of those that were answered; null where they are too few.
    """

    calls: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None

    @property
    def share(self) -> float:
        """Share of calls that failed."""
        return self.failed / max(1, self.calls + self.failed)

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Self:
        """Sum up blocks."""
        calls = [call for b in blocks for call in zip(b.ns, b.answers, strict=True)]
        times = np.array([ns / 1e6 for ns, answer in calls if answer is not None], dtype=float)
        levels = [percentile(times, level).value for level in LEVELS]
        return cls(len(times), len(calls) - len(times), *levels)


@dataclass(frozen=True, slots=True)
class Answers(Documented):
    """Answers by one metric: truth is what was there, and what was acknowledged when the query was
    due.

    Attributes:
        metric: its name.
        queries: that were asked in both blocks of a pair, on average.
        quiet: mean over pairs of blocks, of the answers of the quiet block with each copy that was
            acknowledged behind its source.
        writing: mean of the answers while writing.
        difference: while writing, from quiet: mean over pairs, of the same queries.
        ci95: its interval, Student's t over pairs; null with fewer than two.
    """

    metric: str
    queries: float
    quiet: float
    writing: float
    difference: float
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class WhileWriting(Documented):
    """Searches while documents are written, beside quiet ones.

    Attributes:
        pairs: of blocks.
        seconds: of a block.
        writes: acknowledged ones.
        verdict: whether searches take longer: WORSE, EQUIVALENT, UNDECIDED, or MISSING; not
            EQUIVALENT where more of them failed than in quiet blocks.
        gates: by the rule of a duet, for which a pair of blocks is a launch.
        quiet, writing: all searches of a kind.
        answers: by nDCG and recall; empty where nothing is judged.
        settled_s: median time from the last write of a block until nothing deleted was found; null
            where it is over the limit.
        settled_most_s: the longest; null likewise.
        unsettled: blocks that did not settle within the limit.
    """

    pairs: int
    seconds: float
    writes: int
    verdict: Verdict
    gates: tuple[GateResult, ...]
    quiet: Searches
    writing: Searches
    answers: tuple[Answers, ...]
    settled_s: float | None
    settled_most_s: float | None
    unsettled: int

    @classmethod
    def of(
        cls,
        pairs: Sequence[tuple[Block, Block]],
        seconds: float,
        queries: Sequence[Query],
        qrels: Qrels | None,
        k: int,
    ) -> Self:
        """Sum up pairs of (quiet, writing) blocks, by nDCG and recall where there are ``qrels``."""
        metrics = [parse_metric(name) for name in (f"nDCG@{min(k, 10)}", f"R@{k}")]
        gates = judged(pairs)
        quiet, writing = (Searches.of([pair[at] for pair in pairs]) for at in (0, 1))
        verdict = overall(gates)
        if verdict in (Verdict.EQUIVALENT, Verdict.BETTER) and writing.share > quiet.share:
            verdict = Verdict.UNDECIDED
        settled = [w.settled_s for _, w in pairs if w.settled_s is not None]
        unsettled = sum(map(math.isinf, settled))
        median = float(np.median(settled)) if settled else math.inf
        return cls(
            len(pairs),
            seconds,
            sum(block.writes for _, block in pairs),
            verdict,
            gates,
            quiet,
            writing,
            () if qrels is None else _answers(pairs, queries, qrels, metrics, k),
            median if math.isfinite(median) else None,
            None if unsettled else max(settled, default=None),
            unsettled,
        )


def _answers(
    pairs: Sequence[tuple[Block, Block]],
    queries: Sequence[Query],
    qrels: Qrels,
    metrics: Sequence[Metric],
    k: int,
) -> tuple[Answers, ...]:
    rows, counts = [], []
    for pair in pairs:
        means = scores(pair, queries, qrels, metrics, k)
        both = ~np.isnan(means[:, :, 0]).any(axis=0)
        if both.any():
            rows.append(means[:, both].mean(axis=1))
            counts.append(int(both.sum()))
    if not rows:
        return ()
    by_metric = np.array(rows).transpose(2, 1, 0)  # metrics, (quiet, writing), pairs
    return tuple(
        Answers(
            str(metric),
            float(np.mean(counts)),
            float(quiet.mean()),
            float(writing.mean()),
            float((writing - quiet).mean()),
            _interval(writing - quiet),
        )
        for metric, (quiet, writing) in zip(metrics, by_metric, strict=True)
    )


def _interval(values: Any) -> tuple[float, float] | None:
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return None
    half = float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / math.sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half
