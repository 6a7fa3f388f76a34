"""Duet adds ``duet``, ``lab selftest`` and ``doctor --selftest``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_duet"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=90,
    stands_on=("retrieval_bench_launches",),
    commands={
        "duet": Command(
            f"{_PACKAGE}.commands.duet:run_duet",
            "is b slower than a? two retrievers or two revisions",
            ("bm25 bm25s", "hybrid --rev-a main", "bm25 --set-b k1=1.2 --limit p50=5%"),
            heading="guard",
        ),
        "lab selftest": Command(
            f"{_PACKAGE}.commands.selftest:run_selftest",
            "check that the harness itself finds what it must find",
            ("", "--time 300", "bm25 --dataset my/folder"),
        ),
    },
    options={"doctor": f"{_PACKAGE}.commands.selftest:SELFTEST"},
    claims={"duet": f"{_CLAIMS}:SPEED"},
    documents={
        "selftest": Document("doctor --selftest", f"{_PACKAGE}.selftest:SelfTest"),
        "duet": Document(
            "duet", f"{_PACKAGE}.result:PrintedDuet", f"{_PACKAGE}.result:SCHEMA_VERSION"
        ),
    },
    names={"duet": f"{_PACKAGE}.api:duet"},
)
