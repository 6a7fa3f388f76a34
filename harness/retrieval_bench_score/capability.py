"""Score adds ``score run`` and ``score audit``, and the same from Python."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_score"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=120,
    groups={"score": ("judge", "what other programs made: {names}")},
    commands={
        "score run": Command(
            f"{_PACKAGE}.commands.score:run_run",
            "score a run that was made elsewhere",
            (
                "my.run --qrels qrels.txt",
                "my.run --dataset my/folder --per-query",
                "my.json --qrels qrels.json --metrics nDCG@10 R@100",
            ),
        ),
        "score audit": Command(
            f"{_PACKAGE}.commands.score:run_audit",
            "the same runs under each convention, and what turns the order",
            (
                "a.run b.run --qrels qrels.txt",
                "--scorer mine.py:mrr",
                "--table paper.csv --sd nDCG@10=0.3",
            ),
        ),
    },
    claims={"score run": f"{_CLAIMS}:QUALITY", "score audit": f"{_CLAIMS}:ORDER"},
    documents={
        "evaluate": Document("score run", f"{_PACKAGE}.scorecard:ScoreDetails"),
        "audit": Document("score audit", f"{_PACKAGE}.audit:Audit"),
        "scorer": Document("score audit --scorer", f"{_PACKAGE}.cheats:ScorerAudit"),
        "table": Document("score audit --table", f"{_PACKAGE}.published_table:TableAudit"),
    },
    services={"name conventions": f"{_PACKAGE}.conventions:CONVENTIONS"},
    names={"audit": f"{_PACKAGE}.api:audit", "evaluate": f"{_PACKAGE}.api:evaluate"},
)
