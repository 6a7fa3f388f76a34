from retrieval_bench_conformance.samples import (
    sample_documents as sample_documents,
    sample_filters as sample_filters,
    sample_queries as sample_queries,
)
from retrieval_bench_conformance.suite import (
    CHECKS as CHECKS,
    CheckResult as CheckResult,
    RetrieverConformance as RetrieverConformance,
    run_checks as run_checks,
)
