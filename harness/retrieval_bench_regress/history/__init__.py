"""History of saved runs and duets: their small files, and which stand on one line."""

from retrieval_bench_regress.history.trends import Subject, subjects

__all__ = ["Subject", "subjects"]
