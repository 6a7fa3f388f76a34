"""Load adds ``load``, saved loads in ``compare``, ``duet --rate`` and ``regress --load``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_load"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=20,
    stands_on=(
        "retrieval_bench_duet",
        "retrieval_bench_regress",
        "retrieval_bench_scale",
        "retrieval_bench_pictures",
        "retrieval_bench_launches",
    ),
    commands={
        "load": Command(
            f"{_PACKAGE}.commands.load:run_load",
            "one under the load of many clients: how much can it take?",
            (
                "hybrid --clients 1 4 16",
                "my.yaml --rate 50 100 200 --dataset my/folder",
                "my.yaml --slo 'p99<200ms' --dataset my/folder",
            ),
            heading="measure",
        )
    },
    options={
        "duet": f"{_PACKAGE}.commands.load:RATE",
        "report": f"{_PACKAGE}.commands.load:SECTIONS",
        "regress": f"{_PACKAGE}.commands.load:LOAD",
    },
    claims={"compare LOAD LOAD": f"{_CLAIMS}:SPEED", "load": f"{_CLAIMS}:SPEED"},
    documents={
        "load": Document("load", f"{_PACKAGE}.engine.load:LoadResult"),
        "loads": Document("compare LOAD LOAD", f"{_PACKAGE}.loads:ComparedLoads"),
    },
    services={
        "compare loads": f"{_PACKAGE}.commands.load:compare_saved",
        "show a load in a report": f"{_PACKAGE}.section:section_of",
    },
)
