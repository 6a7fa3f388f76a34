"""What calls that failed do to the figures of a run: the time to an answer, and quality without the
queries that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import EMPTY
from retrieval_bench.measure.attempts import Attempts
from retrieval_bench.measure.calls import OK
from retrieval_bench.runs.evaluation import Evaluation, averaged
from retrieval_bench.runs.summary import Summary
from retrieval_bench.stats.percentiles import percentile

_COUNTS = ("recovered", "asked_again", "given_up")


def attempts_document(attempts: Attempts | None, levels: Sequence[float]) -> dict[str, Any]:
    """``attempts`` of a summary; nothing where no call failed."""
    if attempts is None:
        return {}
    ms = attempts.to_answer_ns / 1e6
    told: dict[str, Any] = {"n": len(ms), "mean": None, "max": None}
    if len(ms):
        told |= {"mean": float(ms.mean()), "max": float(ms.max())}
        for level in levels:
            told[f"p{np.format_float_positional(level, trim='-')}"] = percentile(ms, level).value
    counts = {name: getattr(attempts, name) for name in _COUNTS}
    return {"attempts": {"failed": dict(attempts.failed), **counts, "to_answer_ms": told}}


def joined_attempts(summaries: Sequence[Summary]) -> dict[str, Any]:
    """``attempts`` of several launches together: the counts; times to an answer are those of a
    launch, and are not there."""
    each = [summary.attempts for summary in summaries if summary.attempts is not None]
    if not each:
        return {}
    failed = sum((Counter(summary.failed) for summary in each), Counter[str]())
    counts = {name: sum(getattr(summary, name) for summary in each) for name in _COUNTS}
    return {"attempts": {"failed": dict(sorted(failed.items())), **counts, "to_answer_ms": None}}


def recovered(attempts: Attempts | None) -> list[str]:
    """Warn of failed calls that cost time and no quality."""
    if attempts is None or not attempts.recovered:
        return []
    calls = counted(sum(attempts.failed.values()), "call")
    kinds = ", ".join(f"{kind}: {n:,}" for kind, n in attempts.failed.items())
    again = counted(attempts.recovered, "query")
    mean = float(attempts.to_answer_ns.mean()) / 1e6 if len(attempts.to_answer_ns) else 0.0
    text = (
        f"{calls} failed ({kinds}); {again} had an answer when asked again. The mean time to an "
        f"answer, waiting between attempts, is {mean:,.3g} ms."
    )
    return [Notice(text, Code.FAILED_CALLS)]


def answered_means(
    evaluation: Evaluation,
    status: Mapping[str, str],
    *,
    intervals: bool,
    clusters: Mapping[str, str] = EMPTY,
) -> dict[str, Any]:
    """``answered`` of a summary: the means without the queries that failed; nothing where none
    did, or all.

    Args:
        status: of each query.
        clusters: query -> label of its cluster, where these are the unit.
    """
    rows = [at for at, query in enumerate(evaluation.query_ids) if status[query] == OK]
    if not 0 < len(rows) < len(evaluation.query_ids):
        return {}
    ids = [evaluation.query_ids[at] for at in rows]
    values = evaluation.per_query[rows]
    means = averaged(ids, evaluation.metrics, values, intervals=intervals, clusters=clusters)
    return {"answered": {"n": len(ids), "metrics": means.as_dict()}}
