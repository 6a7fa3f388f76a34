"""Tables as a reader sees them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console

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


LONG = ["한국어검색기" * 10, "dense-" + "x" * 54, "데이터 검색 모델 " * 6, "a b " * 15, "ㅎ" * 60]
"""Names of systems."""


def check_width(tables: Sequence[Table]) -> None:
    """Check that tables fit 80 columns, and that no figure of them is broken."""
    console = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    with console.capture() as capture:
        terminal.to_console(tables, console)
    shown = capture.get()
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "…" not in shown
    figures = {
        text
        for table in tables
        for row in table.rows
        for at, content in enumerate(row)
        if at not in table.words
        for text in (cell_of(content).text, cell_of(content).more)
        if text
    }
    assert len(figures) > 20
    assert not [text for text in figures if text not in shown]
