"""Regress adds ``baseline``, ``regress`` and ``data history``, also from Python."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_regress"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=80,
    stands_on=("retrieval_bench_duet", "retrieval_bench_pictures"),
    commands={
        "baseline": Command(
            f"{_PACKAGE}.commands.regress:run_baseline",
            "measure one retriever and keep the figures, for regress",
            ("hybrid", "bm25 --dataset my/folder", "hybrid --force"),
            heading="guard",
        ),
        "regress": Command(
            f"{_PACKAGE}.commands.regress:run_regress",
            "did it get worse or slower than its baseline?",
            ("hybrid", "hybrid --duet always"),
            heading="guard",
        ),
        "data history": Command(
            f"{_PACKAGE}.commands.history:run_history",
            "saved runs and duets over time and revisions",
            ("", "hybrid --dataset my/folder", "bm25 --last all --out bm25.svg"),
        ),
    },
    claims={"regress": f"{_CLAIMS}:NOT_BELOW"},
    documents={
        "baseline": Document("baseline", f"{_PACKAGE}.regress:BaselineResult"),
        "regress": Document("regress", f"{_PACKAGE}.gate:Regression"),
        "history": Document("data history", f"{_PACKAGE}.history.history:History"),
    },
    names={
        "baseline": f"{_PACKAGE}.api:baseline",
        "history": f"{_PACKAGE}.api:history",
        "regress": f"{_PACKAGE}.api:regress",
    },
    files={"policy": (f"{_PACKAGE}.policy_schema:policy", "policy.yaml, the limits of regress")},
)
