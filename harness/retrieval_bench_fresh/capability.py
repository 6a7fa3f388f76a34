"""Fresh adds ``bench --cold``."""

from retrieval_bench.capabilities import Capability, Document

_PACKAGE = "retrieval_bench_fresh"

CAPABILITY = Capability(
    rank=50,
    stands_on=("retrieval_bench_launches",),
    options={"bench": f"{_PACKAGE}.commands.cold:COLD"},
    documents={
        "cold": Document(
            "bench --cold",
            f"{_PACKAGE}.started:StartedCold",
            "retrieval_bench.runs.records:SCHEMA_VERSION",
        )
    },
)
