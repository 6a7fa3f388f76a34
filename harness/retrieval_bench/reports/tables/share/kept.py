"""Tables of what was saved to be used again: indexes, vectors of a corpus, documents in a store."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.data.saved.folders import Kept
from retrieval_bench.data.stores import Loaded
from retrieval_bench.experiment.index_once import KeptIndex
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result
from retrieval_bench.shards.encode import EncodedCorpus

_MB = 1e6


def index_tables(made: KeptIndex, opening: str) -> list[Table]:
    """One index: whether it was built, how large it is, and who uses it.

    Args:
        opening: a command that opens it.
    """
    what = "Built and saved" if made.built else "There already and sound: opened"
    lead = [
        result(
            f"{what} in {made.seconds:.3g} s: {made.retriever} on {made.dataset}, "
            f"{counted(made.documents, 'document')}, {made.bytes / _MB:,.3g} MB."
        )
    ]
    notes = [] if made.damage is None else [f"The one that was there was damaged: {made.damage}."]
    opens = "Every run of this retriever over these documents opens it; other documents, "
    notes += [f"folder: {made.folder}", f"{opens}parameters or versions build their own."]
    return [Table("", (), (), lead=lead, notes=[*notes, next_step(f"next:  {opening}")])]


def cache_tables(kept: Kept) -> list[Table]:
    """All that is kept, the largest first."""
    size = sum(folder.bytes for folder in kept.folders if not folder.removed)
    removed = [folder for folder in kept.folders if folder.removed]
    lead = [result(f"{size / _MB:,.3g} MB are kept in {kept.folder}.")]
    if removed:
        freed = sum(item.bytes for item in removed) / _MB
        lead.append(result(f"{counted(len(removed), 'folder')} removed, {freed:,.3g} MB."))
    rows = [
        (folder.kind, folder.name, f"{folder.bytes / _MB:,.3g}", f"{folder.days:.0f}")
        for folder in kept.folders
        if not folder.removed
    ]
    notes = [next_step("next:  retrieval-bench data cache --prune 30")] if rows else []
    return [Table("", ("kind", "name", "MB", "days unused"), rows, lead=lead, notes=notes)]


def encode_tables(made: EncodedCorpus, opening: str) -> list[Table]:
    """Return how many blocks are there, and who opens them.

    Args:
        opening: a command that does.
    """
    there = made.blocks - made.missing
    lead = [
        result(
            f"Blocks of vectors: {there:,} of {made.blocks:,} are there, {made.made:,} made now in "
            f"{made.seconds:.3g} s on {made.on}; {made.retriever} on {made.dataset}, "
            f"{counted(made.documents, 'document')}."
        )
    ]
    notes: list[AnyNote] = []
    if made.damaged:
        notes.append(f"{counted(made.damaged, 'block')} that was damaged is made anew.")
    notes.append(f"folder: {made.folder} ({made.bytes / _MB:,.3g} MB)")
    if made.exact_run is not None:
        notes.append(
            f"exactly nearest to each query: {made.exact_run}, and as judgements in .qrels"
        )
    if made.merged:
        notes.append("Every run of this retriever over these texts finds their vectors.")
        step = opening
    else:
        step = "when all shards are made, the same command with --merge in place of --shard"
    return [Table("", (), (), lead=lead, notes=[*notes, next_step(f"next:  {step}")])]


def load_tables(loaded: Loaded, dataset: str, opening: str) -> list[Table]:
    """Show how many documents are there now, and how many of them this call sent.

    Args:
        opening: a command that searches them.
    """
    documents = counted(loaded.n_documents, "document")
    lead = [result(f"{documents} of {dataset} are in table {loaded.table} of {loaded.into}.")]
    notes: list[AnyNote] = []
    if loaded.n_there:
        sent = counted(loaded.n_loaded, "document")
        notes.append(f"{sent} sent now, {loaded.n_there:,} were there before.")
    vectors = "no vectors" if loaded.encoder is None else f"vectors of {loaded.encoder}"
    notes.append(f"{loaded.store}; words: {loaded.language}; {vectors}; {loaded.index} index.")
    notes.append(next_step(f"next:  {opening}"))
    return [Table("", (), (), lead=lead, notes=notes)]
