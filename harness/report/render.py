"""Tables as terminal output, plain text, Markdown and HTML."""

from __future__ import annotations

import html as _html
import io
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from harness.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100


def to_console(tables: Iterable[Table], console: Console) -> None:
    """Print with rich, in the width and colours of ``console``."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    after_notes = False
    for table in tables:
        if after_notes:
            console.print()
        after_notes = bool(table.notes)
        shown = RichTable(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        for i, column in enumerate(table.columns):
            shown.add_column(
                Text(column), justify="left" if i in table.words else "right", overflow="fold"
            )
        for i, row in enumerate(table.rows):
            if i in table.rules:
                shown.add_section()
            shown.add_row(*(Text(cell) for cell in row))
        console.print(Text(table.title, style="bold"), soft_wrap=not console.is_terminal)
        console.print(shown)
        for note in table.notes:
            # In a file or a pipe a note stays one line, for those who search in it.
            console.print(Text(note), soft_wrap=not console.is_terminal, highlight=False)


def plain(tables: Iterable[Table], file: IO[str] | None = None) -> str:
    """Without colours, for logs and ``print()``."""
    from rich.console import Console

    text = io.StringIO()
    to_console(
        tables, Console(file=file or text, width=PLAIN_WIDTH, no_color=True, force_terminal=False)
    )
    return text.getvalue()


def markdown(tables: Iterable[Table]) -> str:
    """GitHub-flavoured Markdown."""
    blocks = []
    for table in tables:
        lines = [f"**{_md(table.title)}**", ""]
        lines.append("| " + " | ".join(_md(column) for column in table.columns) + " |")
        rules = ("---" if i in table.words else "---:" for i in range(len(table.columns)))
        lines.append("|" + "|".join(rules) + "|")
        lines += ["| " + " | ".join(_md(cell) for cell in row) + " |" for row in table.rows]
        lines += ["", *(f"- {_md(note)}" for note in table.notes)]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks) + "\n"


def html(tables: Iterable[Table]) -> str:
    """An HTML fragment; every text is escaped."""
    blocks = []
    for table in tables:
        head = "".join(f"<th>{_html.escape(column)}</th>" for column in table.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in table.rows
        )
        notes = "".join(f"<li>{_html.escape(note)}</li>" for note in table.notes)
        blocks.append(
            f"<table><caption>{_html.escape(table.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )
    return "<div>" + "".join(blocks) + "</div>"


def _md(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
