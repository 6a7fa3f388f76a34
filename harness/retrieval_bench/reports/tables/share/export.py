"""What was written of a dataset for another tool, and what that has no place for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrieval_bench.core.errors import counted
from retrieval_bench.data.export import Exported
from retrieval_bench.reports.render.cells import Content
from retrieval_bench.reports.render.table import Table, result, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.runs.run import Run


def export_tables(made: Exported) -> list[Table]:
    """One row for each file; below it, what is lost."""
    judgements = counted(made.n_judgements, "judgement")
    title = f"{made.dataset} ({made.split}) as {made.format}: {judgements} of "
    title += counted(made.n_queries, "query")
    rows: list[Sequence[Content]] = [(f"{made.folder}/{name}",) for name in made.files]
    notes = [result(f"It can be read back: --dataset {made.folder} --split {made.split}.")]
    if made.lost:
        left = "; ".join(made.lost)
        notes.append(warning(f"Not written, since {made.format} has no place for it: {left}."))
    return [Table(title, ("",), rows, notes=notes)]


def run_table(run: Run, path: Path) -> Table:
    """Return which run was written where."""
    message = f"{run.name} {on_dataset(run.summary.dataset.name)}, with its metadata: {path}"
    return Table("", (), (), lead=[result(message)])
