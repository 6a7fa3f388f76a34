"""Doctor adds ``doctor`` and ``bench --probe``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_doctor"

CAPABILITY = Capability(
    rank=70,
    commands={
        "doctor": Command(
            f"{_PACKAGE}.commands.doctor:run_doctor",
            "check data, judgements, retriever and machine first",
            ("", "hybrid --dataset my/folder"),
            heading="understand",
        )
    },
    options={"bench": f"{_PACKAGE}.commands.probe:PROBE"},
    documents={
        "probe": Document("bench --probe", f"{_PACKAGE}.probing:Probe"),
        "doctor": Document("doctor", f"{_PACKAGE}.doctor:Diagnosis"),
    },
    services={
        "tell languages": f"{_PACKAGE}.languages:languages_told",
        "warn of time outside a server": f"{_PACKAGE}.server_time:outside",
    },
)
