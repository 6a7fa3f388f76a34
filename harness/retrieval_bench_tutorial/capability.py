"""Tutorial adds ``bench --protocol tutorial``."""

from retrieval_bench.capabilities import Capability, Document

_PACKAGE = "retrieval_bench_tutorial"

CAPABILITY = Capability(
    rank=5,
    options={"bench": f"{_PACKAGE}.commands.tutorial:TUTORIAL"},
    documents={"tutorial": Document("bench --protocol tutorial", f"{_PACKAGE}.tutorial:Tutorial")},
)
