"""What changes when a baseline is replaced: figure by figure, old and new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrieval_bench.regression.baseline import LatencyBaseline, QualityBaseline


@dataclass(frozen=True, slots=True)
class Change:
    """One figure; None where one of the two does not have it.

    Attributes:
        figure: metric, or percentile.
        unit: "" for a metric, "ms" for a percentile.
    """

    figure: str
    unit: str
    before: float | None
    now: float | None

    def as_dict(self) -> dict[str, Any]:
        """The row of the document."""
        return {"figure": self.figure, "unit": self.unit, "before": self.before, "now": self.now}


def quality_changes(before: QualityBaseline | None, now: QualityBaseline) -> list[Change]:
    """Metric by metric."""
    old = {} if before is None else before.metrics
    names = sorted({*old, *now.metrics})
    return [Change(name, "", old.get(name), now.metrics.get(name)) for name in names]


def latency_changes(before: LatencyBaseline | None, now: LatencyBaseline) -> list[Change]:
    """Percentile by percentile over all calls, where either can be said."""
    old = {} if before is None else before.call
    rows = [
        Change(name, "ms", *(calls.get(name, {}).get("value") for calls in (old, now.call)))
        for name in sorted({*old, *now.call})
    ]
    return [row for row in rows if row.before is not None or row.now is not None]
