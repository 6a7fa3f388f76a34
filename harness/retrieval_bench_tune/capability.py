"""Tune adds ``tune`` and the fusions of ``compare --fuse``, also from Python."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_tune"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=30,
    commands={
        "tune": Command(
            f"{_PACKAGE}.commands.tune:run_tune",
            "choose parameters; what they are worth on other queries",
            ("bm25", "hybrid --dataset my/folder --sample 50", "bm25 --grid 'k1=[0.9,1.2]'"),
            heading="understand",
        )
    },
    options={"compare": f"{_PACKAGE}.commands.fuse:FUSE"},
    claims={"tune": f"{_CLAIMS}:BY_ITSELF"},
    documents={"tune": Document("tune", f"{_PACKAGE}.tuned:Tuning")},
    names={"tune": f"{_PACKAGE}.api:tune"},
    services={
        "check fusions": f"{_PACKAGE}.fusing:checked",
        "fuse": f"{_PACKAGE}.fusing:with_fusions",
    },
)
