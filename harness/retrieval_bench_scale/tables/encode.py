"""Tables of vectors that were made in blocks."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result
from retrieval_bench_scale.shards.encode import EncodedCorpus

_MB = 1e6


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
        were = "was" if made.damaged == 1 else "were"
        notes.append(f"{counted(made.damaged, 'block')} {were} damaged, and made anew.")
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
