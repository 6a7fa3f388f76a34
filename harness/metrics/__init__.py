"""Ranking metrics: exact, on arrays, each a value that parses from its name and prints back."""

from harness.metrics.judged import JudgedRun, judge
from harness.metrics.names import Metric, default_metrics, parse_metric, parse_metrics
from harness.metrics.ranking import METRICS_VERSION

__all__ = [
    "METRICS_VERSION",
    "JudgedRun",
    "Metric",
    "default_metrics",
    "judge",
    "parse_metric",
    "parse_metrics",
]
