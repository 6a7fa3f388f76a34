"""History of saved runs and duets: their small files, and which may be held against each other."""

from retrieval_bench_regress.history.history import Subject, subjects

__all__ = ["Subject", "subjects"]
