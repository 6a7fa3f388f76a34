"""Explain adds ``explain``, ``compare --slices``, ``diff`` in Python, and to a measured run what
its parts buy."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_explain"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=10,
    stands_on=("retrieval_bench_pictures",),
    commands={
        "explain": Command(
            f"{_PACKAGE}.commands.explain:run_explain",
            "where two runs differ, or a hybrid and its legs",
            ("@last", "bm25@latest hybrid@latest", "@last --query q17"),
            heading="understand",
        )
    },
    options={"compare": f"{_PACKAGE}.commands.slices:SLICES"},
    claims={
        "explain": f"{_CLAIMS}:BY_ITSELF",
        "explain --by stage": f"{_CLAIMS}:BY_ITSELF",
        "explain --by loss": f"{_CLAIMS}:BY_ITSELF",
    },
    documents={
        "diff": Document("explain", f"{_PACKAGE}.differences:Differences"),
        "parts": Document("explain --by stage", f"{_PACKAGE}.parts:Ledger"),
        "losses": Document("explain --by loss", f"{_PACKAGE}.losses:Losses"),
    },
    keys={"run": f"{_PACKAGE}.parts:PartsOfRun", "compared": f"{_PACKAGE}.slices:SlicesOfCompared"},
    names={"diff": f"{_PACKAGE}.api:diff"},
    services={
        "leave out parts": f"{_PACKAGE}.ablation:without_parts",
        "explain a run": f"{_PACKAGE}.of_run:findings_on",
    },
)
