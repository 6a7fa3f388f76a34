"""Chunks adds truth by spans of documents, ``chunk`` in front of retrievers, metrics at a budget of
tokens, formats of spans, and ``explain --spans``."""

from retrieval_bench.capabilities import Capability, Document

_PACKAGE = "retrieval_bench_chunks"

CAPABILITY = Capability(
    rank=170,
    stands_on=("retrieval_bench_exchange", "retrieval_bench_pictures"),
    options={"explain": f"{_PACKAGE}.commands.spans:EXPLAIN"},
    documents={"spans": Document("explain --spans", f"{_PACKAGE}.fates:Fates")},
    keys={"run": f"{_PACKAGE}.judging:SpansOfRun"},
    services={
        "cut documents into chunks": f"{_PACKAGE}.chunked:in_front",
        "read spans": f"{_PACKAGE}.spans:read_spans",
        "know ranges of documents": f"{_PACKAGE}.ranges:KnownRanges",
        "decide by spans": f"{_PACKAGE}.judging:decide",
        "judge as kept by spans": f"{_PACKAGE}.judging:as_kept",
        "judge as decided in runs by spans": f"{_PACKAGE}.judging:with_decided",
        "look at spans": f"{_PACKAGE}.judging:look_at_spans",
        "draw recall over tokens": f"{_PACKAGE}.pictures.recall:recall_over_tokens",
        "metrics of spans": f"{_PACKAGE}.metrics:METRICS",
        "choose metrics of spans": f"{_PACKAGE}.metrics:usual",
    },
    formats={
        "spans": f"{_PACKAGE}.formats.written:FORMAT",
        "chroma": f"{_PACKAGE}.formats.chroma:FORMAT",
        "squad_spans": f"{_PACKAGE}.formats.squad:FORMAT",
        "legalbench": f"{_PACKAGE}.formats.legalbench:FORMAT",
    },
)
