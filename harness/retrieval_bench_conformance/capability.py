"""Conformance adds the suite for authors of retrievers to ``retrieval_bench.testing``."""

from retrieval_bench.capabilities import Capability

_PACKAGE = "retrieval_bench_conformance"

CAPABILITY = Capability(
    names={
        "testing.CHECKS": f"{_PACKAGE}.suite:CHECKS",
        "testing.CheckResult": f"{_PACKAGE}.suite:CheckResult",
        "testing.RetrieverConformance": f"{_PACKAGE}.suite:RetrieverConformance",
        "testing.run_checks": f"{_PACKAGE}.suite:run_checks",
        "testing.sample_documents": f"{_PACKAGE}.samples:sample_documents",
        "testing.sample_filters": f"{_PACKAGE}.samples:sample_filters",
        "testing.sample_queries": f"{_PACKAGE}.samples:sample_queries",
    }
)
