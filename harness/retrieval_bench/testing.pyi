from retrieval_bench_conformance.samples import (
    sample_documents as sample_documents,
)
from retrieval_bench_conformance.samples import (
    sample_filters as sample_filters,
)
from retrieval_bench_conformance.samples import (
    sample_queries as sample_queries,
)
from retrieval_bench_conformance.suite import (
    CHECKS as CHECKS,
)
from retrieval_bench_conformance.suite import (
    CheckResult as CheckResult,
)
from retrieval_bench_conformance.suite import (
    RetrieverConformance as RetrieverConformance,
)
from retrieval_bench_conformance.suite import (
    run_checks as run_checks,
)
