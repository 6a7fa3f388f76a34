"""Tables of documents in a store."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.stores import Loaded
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result


def load_tables(loaded: Loaded, dataset: Dataset, opening: str) -> list[Table]:
    """Show how many documents are there now, and how many of them this call sent.

    Args:
        opening: a command that searches them.
    """
    documents = counted(loaded.n_documents, "document")
    lead = [result(f"{documents} of {dataset.name} are in table {loaded.table} of {loaded.into}.")]
    notes: list[AnyNote] = []
    if loaded.n_there:
        sent = counted(loaded.n_loaded, "document")
        notes.append(f"{sent} sent now, {loaded.n_there:,} were there before.")
    vectors = "no vectors" if loaded.encoder is None else f"vectors of {loaded.encoder}"
    words = loaded.language
    if dataset.language is None:
        words += ", since the dataset names no language (--language)"
    notes.append(f"{loaded.store}; words: {words}; {vectors}; {loaded.index} index.")
    notes.append(next_step(f"next:  {opening}"))
    return [Table("", (), (), lead=lead, notes=notes)]
