"""Scale adds ``bench --sweep``, ``data index``, ``data encode`` and ``data cache``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_scale"
_CLAIMS = "retrieval_bench.comparison.claims"

CAPABILITY = Capability(
    rank=180,
    stands_on=("retrieval_bench_pictures", "retrieval_bench_launches"),
    commands={
        "data index": Command(
            f"{_PACKAGE}.commands.index:run_index",
            "build the index of a retriever once, for every later run",
            ("bm25", "hybrid-light --dataset my/folder", "bm25 --dataset my/folder --set k1=1.2"),
            after="load",
        ),
        "data encode": Command(
            f"{_PACKAGE}.commands.encode:run_encode",
            "make the vectors of a corpus on several processes or machines",
            (
                "dense-light --dataset my/folder",
                "dense-light --dataset my/folder --shard 3/16 --out shared",
                "dense-light --dataset my/folder --on tcp://host:8786 --out shared",
            ),
            after="index",
        ),
        "data cache": Command(
            f"{_PACKAGE}.commands.index:run_cache",
            "saved indexes and vectors: how much, and what is unused",
            ("", "--prune 30", "--format json"),
            after="encode",
        ),
    },
    options={"bench": f"{_PACKAGE}.commands.sweep:SWEEP"},
    claims={"bench --sweep": f"{_CLAIMS}:CHEAPEST"},
    documents={
        "index": Document("data index", f"{_PACKAGE}.index_once:KeptIndex"),
        "cache": Document("data cache", f"{_PACKAGE}.folders:Kept"),
        "sweep": Document("bench --sweep", f"{_PACKAGE}.approximate.swept:Sweep"),
        "encoded": Document("data encode", f"{_PACKAGE}.shards.encode:EncodedCorpus"),
    },
)
