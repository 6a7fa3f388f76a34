"""Scale adds ``bench --sweep`` and ``data encode``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_scale"

CAPABILITY = Capability(
    commands={
        "data encode": Command(
            f"{_PACKAGE}.commands.encode:run_encode",
            "make the vectors of a corpus on several processes or machines",
            (
                "dense-light --dataset my/folder",
                "dense-light --dataset my/folder --shard 3/16 --out shared",
                "dense-light --dataset my/folder --on tcp://host:8786 --out shared",
            ),
            after="index",
        )
    },
    options={"bench": f"{_PACKAGE}.commands.sweep:SWEEP"},
    documents={
        "sweep": Document("bench --sweep", f"{_PACKAGE}.approximate.swept:Sweep"),
        "encoded": Document("data encode", f"{_PACKAGE}.shards.encode:EncodedCorpus"),
    },
)
