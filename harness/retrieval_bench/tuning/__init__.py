"""Tuning without self-deception: parameters chosen on some queries, reported on others."""

from retrieval_bench.tuning.tune import tune
from retrieval_bench.tuning.tuned import Tuning

__all__ = ["Tuning", "tune"]
