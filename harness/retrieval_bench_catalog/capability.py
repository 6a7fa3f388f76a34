"""Catalog adds ``data list`` and ``data schema``."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_catalog"

CAPABILITY = Capability(
    rank=0,
    commands={
        "data list": Command(
            f"{_PACKAGE}.commands.list:run_list",
            "retrievers, readers, datasets and metrics that can be named",
            ("", "pipeline", "--format json"),
        ),
        "data schema": Command(
            f"{_PACKAGE}.commands.schema:run_schema",
            "the JSON Schema of what --format json prints",
            ("", "bench", "--format json"),
        ),
    },
    documents={
        "list": Document("data list", f"{_PACKAGE}.tables.catalog:Catalog"),
        "target": Document("data list TARGET", f"{_PACKAGE}.tables.parameters:TargetDetails"),
        "schemas": Document("data schema", f"{_PACKAGE}.documents:Listing"),
    },
    files={
        "retriever": (f"{_PACKAGE}.written:retriever", "a retriever's config"),
        "dataset": (f"{_PACKAGE}.written:dataset", "dataset.yaml of a folder"),
    },
)
