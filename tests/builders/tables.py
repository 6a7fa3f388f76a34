"""Tables as a reader sees them."""

from __future__ import annotations

from retrieval_bench.reports.render.cells import cell_of
from retrieval_bench.reports.render.table import Table


def texts(table: Table) -> list[list[str]]:
    """Each row as the texts of its cells, intervals and remarks behind their values."""
    return [
        [" ".join(filter(None, (cell.text, cell.more))) for cell in map(cell_of, row)]
        for row in table.rows
    ]


def folded(text: str) -> str:
    """``text`` without its line breaks: where a sentence is wrapped says nothing."""
    return " ".join(text.split())
