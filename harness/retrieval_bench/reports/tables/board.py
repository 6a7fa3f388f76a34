"""Systems over several datasets, as tables."""

from __future__ import annotations

import numpy as np

from retrieval_bench.comparison.comparison import Board, Comparison
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import quality_text
from retrieval_bench.reports.render.table import Marked, Table
from retrieval_bench.reports.tables.letters import letter, marks

DATASETS_PER_TABLE = 4


def board_tables(comparison: Comparison) -> list[Table]:
    """Systems over datasets, by the first metric that all datasets have."""
    shared = [m for m in comparison.metrics if all(m in g.metrics for g in comparison.groups)]
    if not shared:
        return []
    board = comparison.board(shared[0])
    last = len(board.datasets)
    return [
        _board_table(comparison, board, range(start, min(start + DATASETS_PER_TABLE, last)))
        for start in range(0, last, DATASETS_PER_TABLE)
    ]


def _board_table(comparison: Comparison, board: Board, columns: range) -> Table:
    n = len(board.systems)
    beaten = [group.beaten(board.metric) for group in comparison.groups]
    rows = []
    for at, name in enumerate(board.systems):
        row = [f"{name} ({letter(at, n)})"]
        for column in columns:
            mean, group = board.means[at, column], comparison.groups[column]
            if np.isnan(mean):
                row.append("-")
                continue
            places = [board.systems.index(group.names[i]) for i in beaten[column][name]]
            row.append(Marked(quality_text(mean), marks(sorted(places), n)))
        average = board.averages[at]
        rows.append([*row, "-" if np.isnan(average) else quality_text(average)])
    notes = ["average: over datasets, each counting once; no test looks at it"]
    changed = [name for name in board.systems if len(_hashes(comparison, name)) > 1]
    if changed:
        notes.append(f"warning: other parameters on some datasets: {', '.join(changed)}")
    if np.isnan(board.averages).any():
        notes.append("-: not measured there, so there is no average to compare with the others")
    return Table(
        f"{board.metric} on {counted(len(board.datasets), 'dataset')}",
        ["", *(board.datasets[column] for column in columns), "average"],
        rows,
        notes=notes,
    )


def _hashes(comparison: Comparison, name: str) -> set[str]:
    """Of the parameters of what is called ``name`` on the datasets."""
    return {
        str(run.manifest["retriever"]["hash"])
        for group in comparison.groups
        for other, run in zip(group.names, group.runs, strict=True)
        if other == name and run.manifest.get("retriever", {}).get("hash")
    }
