"""Tables as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from retrieval_bench.reports.render.cells import Content, cell_of
from retrieval_bench.reports.render.table import AnyNote, Table, one_line, signed_note


def render(tables: Iterable[Table]) -> str:
    """Title, what leads, rows, notes; an interval stands behind its figure."""
    return "\n\n".join(map(_table, tables)) + "\n"


def _table(table: Table) -> str:
    blocks = [f"**{_escaped(table.title)}**"] if table.title else []
    blocks += [_notes(table.lead)] if table.lead else []
    if table.rows:
        sides = ("---" if i in table.words else "---:" for i in range(len(table.columns)))
        lines = [_row(table.columns), f"|{'|'.join(sides)}|", *map(_row, table.rows)]
        blocks.append("\n".join(lines))
    blocks += [_notes(table.notes)] if table.notes else []
    return "\n\n".join(blocks)


def _notes(notes: Iterable[AnyNote]) -> str:
    return "\n".join(f"- {_escaped(signed_note(note))}" for note in notes)


def _row(cells: Iterable[Content]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(content: Content) -> str:
    cell = cell_of(content)
    marks = f"<sup>{_escaped(cell.marks)}</sup>" if cell.marks else ""
    text = f"**{_escaped(cell.text)}**" if cell.strong else _escaped(cell.text)
    return f"{text}{marks} {_escaped(cell.more)}".strip()


def _escaped(text: str) -> str:
    """Escaped where it would be mark-up, so that names stay readable in the source."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


_MARKUP = re.compile(
    r"""[\\|*`$]                # columns, emphasis, code, formulas
      | <(?=[A-Za-z/!?])        # a tag, not "< .001"
      | &(?=\#?\w+;)            # an entity
      | (?<!\w)_ | _(?!\w)      # emphasis, not the inside of a_name
      | ~(?=~)                  # struck out
      | \](?=\()                # a link
      """,
    re.VERBOSE,
)
