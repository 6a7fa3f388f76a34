"""Writes add ``bench --writes``."""

from retrieval_bench.capabilities import Capability, Document

_PACKAGE = "retrieval_bench_writes"

CAPABILITY = Capability(
    rank=60,
    stands_on=("retrieval_bench_duet", "retrieval_bench_pictures", "retrieval_bench_regress"),
    options={
        "bench": f"{_PACKAGE}.commands.writes:WRITES",
        "regress": f"{_PACKAGE}.commands.writes:REGRESS",
    },
    documents={"writes": Document("bench --writes", f"{_PACKAGE}.freshness:Freshness")},
)
