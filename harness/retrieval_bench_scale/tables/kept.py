"""Tables of what was saved to be used again: indexes, and how much of the cache is used."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import Table, next_step, result
from retrieval_bench_scale.folders import Kept
from retrieval_bench_scale.index_once import KeptIndex

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
    if kept.folder is None:
        return [Table("", (), (), lead=[result("No home folder is known: nothing is kept.")])]
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
