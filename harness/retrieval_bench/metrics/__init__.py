"""Ranking metrics: exact, on arrays, each a value that parses from its name and prints back."""

from retrieval_bench.metrics.definitions import Definition
from retrieval_bench.metrics.judged import JudgedRun, Judgements, judge, judge_lists
from retrieval_bench.metrics.measures import METRICS_VERSION
from retrieval_bench.metrics.names import (
    Metric,
    default_metrics,
    one_metric,
    parse_metric,
    parse_metrics,
)

__all__ = [
    "METRICS_VERSION",
    "Definition",
    "JudgedRun",
    "Judgements",
    "Metric",
    "default_metrics",
    "judge",
    "judge_lists",
    "one_metric",
    "parse_metric",
    "parse_metrics",
]
