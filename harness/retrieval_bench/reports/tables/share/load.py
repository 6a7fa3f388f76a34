"""What was loaded into a store, and how to search it."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.data.stores import Loaded
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result


def load_tables(loaded: Loaded, dataset: str) -> list[Table]:
    """Show how many documents are there now, and how many of them this call sent."""
    documents = counted(loaded.n_documents, "document")
    lead = [result(f"{documents} of {dataset} are in table {loaded.table} of {loaded.into}.")]
    notes: list[AnyNote] = []
    if loaded.n_there:
        sent = counted(loaded.n_loaded, "document")
        notes.append(f"{sent} sent now, {loaded.n_there:,} were there before.")
    vectors = "no vectors" if loaded.encoder is None else f"vectors of {loaded.encoder}"
    notes.append(f"{loaded.store}; words: {loaded.language}; {vectors}; {loaded.index} index.")
    notes.append(next_step(f"next:  retrieval-bench bench {_searched(loaded)}"))
    return [Table("", (), (), lead=lead, notes=notes)]


def _searched(loaded: Loaded) -> str:
    """The retriever that searches it, with what it has to be told."""
    scheme = loaded.into.partition("://")[0].partition("+")[0]
    if "postgres" in scheme or scheme == loaded.into:
        return "postgres-text --set 'dsn=${DSN}'"
    retriever = {"mysql": "seekdb"}.get(scheme, scheme)
    mode = " --set mode=bm25" if loaded.encoder is None else ""
    table = "" if loaded.table == "documents" else f" --set table={loaded.table}"
    return f"{retriever} --set 'uri={loaded.into}'{mode}{table}"
