"""Tuning without self-deception: parameters chosen on some queries, reported on others."""

from harness.tuning.result import Tuning
from harness.tuning.tune import tune

__all__ = ["Tuning", "tune"]
