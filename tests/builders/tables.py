"""Tables as a reader sees them."""

from __future__ import annotations

import pytest

from retrieval_bench.reports.render import terminal
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


def rows_in(width: int, table: Table, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The last lines of ``table`` in a terminal of ``width``, one for each row, in words."""
    monkeypatch.setattr(terminal, "PLAIN_WIDTH", width)
    text = terminal.plain([Table("", table.columns, table.rows, table.rules)])
    lines = [line for line in text.splitlines() if line.strip()]
    assert max(map(len, lines)) <= width
    return [line.split() for line in lines[-len(table.rows) :]]
