"""The conformance suite for authors of retrievers.

Nothing in the core imports this package, and it needs pytest only to be run by pytest.
"""

from __future__ import annotations

from retrieval_bench.testing.samples import sample_documents, sample_filters, sample_queries
from retrieval_bench.testing.suite import CHECKS, CheckResult, RetrieverConformance, run_checks

__all__ = [
    "CHECKS",
    "CheckResult",
    "RetrieverConformance",
    "run_checks",
    "sample_documents",
    "sample_filters",
    "sample_queries",
]
