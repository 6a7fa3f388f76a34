"""Tuning without self-deception: parameters chosen on some queries, reported on others."""

from retrieval_bench.tuning.result import Tuning
from retrieval_bench.tuning.tune import tune

__all__ = ["Tuning", "tune"]
