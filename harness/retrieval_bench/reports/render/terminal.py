"""Tables for a terminal, a pipe or a log: aligned, in colours where there are any, wrapped."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import IO, TYPE_CHECKING

from retrieval_bench.core.wrapping import WIDTH, wrapped
from retrieval_bench.reports.render.cells import cell_of
from retrieval_bench.reports.render.table import (
    SIGNS,
    AnyNote,
    NoteKind,
    Table,
    kind_of,
    one_line,
    text_of,
)

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = WIDTH
"""Of what is no terminal."""

_INDENT = "  "
_GAP, _NARROW_GAP = "   ", "  "
_FOLDED, _HEAD = 12, 16
"""Words, and a word in a head, are not made narrower."""

_STYLES = {
    NoteKind.RESULT: "",
    NoteKind.METHOD: "dim",
    NoteKind.LEGEND: "dim",
    NoteKind.WARNING: "yellow",
    NoteKind.MORE: "dim",
    NoteKind.NEXT: "",
}


def to_console(tables: Iterable[Table], console: Console) -> None:
    """Print in the width and colours of ``console``.

    An interval stands behind its figure where the table has room, else below it. A table that is
    wider still is printed in blocks of columns, each with the words that its rows begin with.
    """
    from rich.text import Text

    for at, table in enumerate(tables):
        if at:
            console.print()
        for line in _wrapped(table.title, console.width):
            console.print(Text(line, style="bold"), soft_wrap=True, highlight=False)
        _print_notes(table.lead, console)
        for block in _blocks(table, console.width - len(_INDENT)):
            if table.title or table.lead:
                console.print()
            for line, style in block:
                console.print(Text(line, style=style), soft_wrap=True, highlight=False)
        if table.rows and table.notes:
            console.print()
        _print_notes(table.notes, console)


def plain(tables: Iterable[Table], file: IO[str] | None = None) -> str:
    """Render without colours, for logs, files and ``print()``."""
    from rich.console import Console

    text = io.StringIO()
    to_console(
        tables, Console(file=file or text, width=PLAIN_WIDTH, no_color=True, force_terminal=False)
    )
    return text.getvalue()


def _print_notes(notes: Sequence[AnyNote], console: Console) -> None:
    """Each behind the sign of its level, wrapped with a hanging indent; a command stays whole, to
    be copied."""
    from rich.text import Text

    for note in notes:
        kind, text = kind_of(note), text_of(note)
        start = f"{_INDENT}{SIGNS[kind]}  " if kind in SIGNS else _INDENT
        width = max(console.width - len(start), 20)
        if kind is NoteKind.NEXT:
            lines = wrapped(one_line(text), width).split("\n")
        else:
            lines = _wrapped(text, width)
        for at, line in enumerate(lines):
            lead = " " * len(start) if at else start
            console.print(Text(lead + line, style=_STYLES[kind]), soft_wrap=True, highlight=False)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as text: its head and, for each row, one line or several."""

    head: str
    cells: list[list[str]]
    words: bool

    @property
    def width(self) -> int:
        return max(map(_len, [self.head, *(line for cell in self.cells for line in cell)]))

    @property
    def least(self) -> int:
        """The width below which it is not folded."""
        if self.words:
            return min(self.width, _FOLDED)
        figures = (line for cell in self.cells for line in cell)
        longest = max(map(_len, self.head.split(" ")))
        return max([*map(_len, figures), min(longest, _HEAD)])


def _blocks(table: Table, width: int) -> Iterator[list[tuple[str, str]]]:
    """Lines with their styles, block by block."""
    if not table.rows:
        return
    gap = _GAP
    for inline, gap in product((True, False), (_GAP, _NARROW_GAP)):
        columns = [_column(table, at, inline=inline) for at in range(len(table.columns))]
        if _least(columns, gap) <= width:
            break
    first = 0
    while first in table.words and first < len(columns) - 1:
        first += 1
    keys, others = columns[:first], columns[first:]
    while others:
        n = len(others)
        while n > 1 and _least([*keys, *others[:n]], gap) > width:
            n -= 1
        yield list(_lines([*keys, *others[:n]], table, width, gap))
        others = others[n:]


def _column(table: Table, at: int, *, inline: bool) -> _Column:
    cells = [cell_of(row[at]) for row in table.rows]
    words = at in table.words
    values = [one_line(cell.text + cell.marks.translate(RAISED)) for cell in cells]
    more = [one_line(cell.more) for cell in cells]
    if not inline:
        lines = [[a, b] if b else [a] for a, b in zip(values, more, strict=True)]
    elif words or not any(more):
        lines = [[f"{a} {b}" if b else a] for a, b in zip(values, more, strict=True)]
    else:
        # Figures stand below figures, intervals below intervals.
        left, right = max(map(_len, values)), max(map(_len, more))
        lines = [
            [f"{_padded(a, left, right=True)} {_padded(b, right)}"]
            for a, b in zip(values, more, strict=True)
        ]
    return _Column(one_line(table.columns[at]), lines, words)


def _least(columns: Sequence[_Column], gap: str) -> int:
    return sum(column.least for column in columns) + len(gap) * (len(columns) - 1)


def _lines(
    columns: Sequence[_Column], table: Table, width: int, gap: str
) -> Iterator[tuple[str, str]]:
    widths = [column.width for column in columns]
    for _ in range(sum(widths) + len(gap) * (len(widths) - 1) - width):
        can = [at for at, column in enumerate(columns) if widths[at] > column.least]
        if not can:
            break
        widths[max(can, key=widths.__getitem__)] -= 1
    if table.headed:
        for line in _row([[column.head] for column in columns], columns, widths, gap):
            yield line, "dim"
    for at in range(len(table.rows)):
        if at and at in table.rules:
            yield "", ""
        for line in _row([column.cells[at] for column in columns], columns, widths, gap):
            yield line, ""


def _row(
    cells: Sequence[Sequence[str]], columns: Sequence[_Column], widths: Sequence[int], gap: str
) -> Iterator[str]:
    """One row as lines; what is too wide is folded."""
    folded = [
        [part for line in cell for part in _wrapped(line, width)]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for parts in zip_longest(*folded, fillvalue=""):
        line = gap.join(
            _padded(part, width, right=not column.words)
            for part, column, width in zip(parts, columns, widths, strict=True)
        )
        yield (_INDENT + line).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, broken between words where there are some."""
    from rich.console import Console
    from rich.text import Text

    line = one_line(text)
    if _len(line) <= width:
        return [line] if line else []
    return [part.plain.rstrip() for part in Text(line).wrap(Console(width=width), width)]


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - _len(text))
    return space + text if right else text + space


def _len(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


RAISED = str.maketrans(
    "abcdefghijklmnopqrstuvwxyz0123456789-,", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ𐞥ʳˢᵗᵘᵛʷˣʸᶻ⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒"
)
