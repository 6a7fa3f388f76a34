"""Systems over several datasets, as a table."""

from __future__ import annotations

import numpy as np

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import QUALITY, Content
from retrieval_bench.reports.render.table import AnyNote, Table, warning
from retrieval_bench.reports.render.words import metric_label


def board_tables(comparison: Comparison) -> list[Table]:
    """Systems over datasets, by the first metric that all datasets have; none without one."""
    shared = [m for m in comparison.metrics if all(m in g.metrics for g in comparison.judged)]
    if not shared:
        return []
    board = comparison.board(shared[0])
    rows: list[list[Content]] = [
        [name, *map(QUALITY, means), QUALITY(average)]
        for name, means, average in zip(
            board.systems, board.means.tolist(), board.averages.tolist(), strict=True
        )
    ]
    notes: list[AnyNote] = ["average: over datasets, each counting once; no test looks at it."]
    changed = [name for name in board.systems if len(_hashes(comparison, name)) > 1]
    if changed:
        text = f"These systems have other parameters on some datasets: {', '.join(changed)}."
        notes.append(warning(text))
    if np.isnan(board.averages).any():
        notes.append("-: not measured there, so there is no average to compare with the others.")
    return [
        Table(
            f"{metric_label(board.metric)} on {counted(len(board.datasets), 'dataset')}",
            ["", *board.datasets, "average"],
            rows,
            notes=notes,
        )
    ]


def _hashes(comparison: Comparison, name: str) -> set[str]:
    """Return the hashes of the parameters of what is called ``name`` on the datasets."""
    return {
        str(run.manifest["retriever"]["hash"])
        for group in comparison.groups
        for other, run in zip(group.names, group.runs, strict=True)
        if other == name and run.manifest.get("retriever", {}).get("hash")
    }
