"""Exchange adds formats of other tools, ``ir_datasets:``, and data that is fetched or given out."""

from retrieval_bench.capabilities import Capability, Command, Document

_PACKAGE = "retrieval_bench_exchange"
_SETTINGS = "index=articles 'fields=[body]'"

CAPABILITY = Capability(
    rank=150,
    commands={
        "data fetch": Command(
            f"{_PACKAGE}.commands.fetch:run_fetch",
            "get a dataset of ir_datasets: size and licence first",
            (
                "ir_datasets:beir/scifact/test",
                "ir_datasets:beir/scifact/test --download",
                "ir_datasets:beir/nfcorpus/test --format json",
            ),
            after="list",
        ),
        "data export": Command(
            f"{_PACKAGE}.commands.export:run_export",
            "write a dataset for another tool, or send a run to one",
            (
                "my/folder --to quepid --out for-quepid",
                f"my/folder --to rank_eval --out for-elasticsearch --set {_SETTINGS}",
                "@last --to mlflow --into sqlite:///mlflow.db",
            ),
            after="fetch",
        ),
        "data load": Command(
            f"{_PACKAGE}.commands.load:run_load",
            "fill a table of a database with the documents of a dataset",
            (
                "my/folder --into '${DSN}'",
                "my/folder --into '${DSN}' --encoder all-MiniLM-L6-v2 --index hnsw",
                "my/folder --into postgresql://me@host/db --table articles",
            ),
            after="export",
        ),
    },
    documents={
        "fetch": Document("data fetch", f"{_PACKAGE}.formats.irds:Fetched"),
        "export": Document(
            "data export",
            f"{_PACKAGE}.export:Exported {_PACKAGE}.export:ExportedRun "
            f"{_PACKAGE}.trackers.sent:SentRun",
        ),
        "loaded": Document("data load", f"{_PACKAGE}.stores:LoadedDataset"),
    },
    names={
        "export_dataset": f"{_PACKAGE}.export:export_dataset",
        "export_run": f"{_PACKAGE}.trackers.sent:export_run",
    },
    services={
        "say which metric is meant": f"{_PACKAGE}.meant:meant",
        "read contexts": f"{_PACKAGE}.contexts:contexts_of",
        "fetch a well-known dataset": f"{_PACKAGE}.formats.irds:fetch_command",
        "suggest a dataset.yaml": f"{_PACKAGE}.suggested:suggestion",
    },
    formats={
        "squad": f"{_PACKAGE}.formats.squad:FORMAT",
        "ragas": f"{_PACKAGE}.questions.question_tables:RAGAS_FORMAT",
        "quepid": f"{_PACKAGE}.formats.quepid:FORMAT",
        "rank_eval": f"{_PACKAGE}.formats.rank_eval:FORMAT",
        "quotes": f"{_PACKAGE}.questions.question_tables:QUOTES_FORMAT",
        "langsmith": f"{_PACKAGE}.questions.question_tables:LANGSMITH_FORMAT",
        "marco": f"{_PACKAGE}.formats.marco:FORMAT",
    },
    datasets={"ir_datasets:": f"{_PACKAGE}.formats.irds:load_irds"},
)
