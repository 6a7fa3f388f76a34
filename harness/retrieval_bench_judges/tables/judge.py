"""Table of a judge that was asked: how far it is, and what it cost."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench_judges.asking import Asked


def asked_tables(made: Asked) -> list[Table]:
    """How many calls were made and labels read, what is left, and why."""
    title = f"{made.judge} judged {counted(made.labels, 'document')}; {made.left:,} are left"
    lead: list[AnyNote] = []
    if made.stopped:
        lead.append(warning(f"It stopped: {made.stopped}."))
    if made.unread:
        answers = counted(made.unread, "answer")
        lead.append(warning(f"{answers} without a grade: kept, and not asked for again."))
    if made.cut_off:
        lead.append(
            result(
                f"{counted(made.cut_off, 'call')} failed or cut off without an answer: made again, "
                "and counted like the dearest one."
            )
        )
    spent = f"{counted(made.calls, 'call')} in all"
    spent += "" if made.tokens is None else f", {made.tokens:,.0f} tokens"
    notes: list[AnyNote] = [f"{spent}{'' if made.cost is None else f', cost {made.cost:.4g}'}."]
    if made.unchanging:
        notes.append(
            f"Not asked for: {counted(made.unchanging, 'document')} of queries for which all "
            "systems return the same."
        )
    step = f"next:  retrieval-bench compare A B --judged-by {made.file}"
    notes += [next_step(step), next_step(f"labels: {made.file}")]
    return [Table(title, (), (), (), notes, (0,), lead)]
