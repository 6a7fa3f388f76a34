"""Tables as comma-separated values (RFC 4180, lines end in a line feed)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from retrieval_bench.reports.render.cells import Cell, cell_of, code_of
from retrieval_bench.reports.render.table import Table, one_line, signed_note


def render(tables: Iterable[Table]) -> str:
    """Table by table: a row with its title, its header, its rows and a row for each note, then an
    empty line.

    Titles and notes begin with ``# ``, and no other row does. A column is followed by others for
    what its figures have: ``low`` and ``high`` for an interval, ``marks``, ``remark``. Numbers
    stand without thousands separators. A text that a spreadsheet would take for a formula gets an
    apostrophe in front.
    """
    return "\n".join(map(_table, tables))


def tidy(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """One header and one row for each of ``rows``, with nothing else: figures as they were
    computed, and nothing where there is none.

    Args:
        columns: those that are there in any case; others of the rows follow.
    """
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return _safe(value)
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN


def _table(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    said = (table.title, *map(signed_note, table.lead))
    writer.writerows([f"# {one_line(line)}"] for line in said if line)
    rows = [list(map(cell_of, row)) for row in table.rows]
    columns = [
        _column(head, [row[at] for row in rows], words=at in table.words)
        for at, head in enumerate(table.columns)
    ]
    writer.writerows(
        [part for column in columns for part in column[at]] for at in range(len(rows) + 1) if rows
    )
    writer.writerows([f"# {one_line(signed_note(note))}"] for note in table.notes)
    return text.getvalue()


def _column(head: str, cells: list[Cell], *, words: bool) -> list[list[str]]:
    """The head and each row of one column, as the values of one column or of several."""
    head = code_of(head)
    whole = [[_safe(head), *(_value(code_of(cell.text), words=words) for cell in cells)]]
    if any(cell.interval is not None for cell in cells):
        ends = [cell.ends or ("", "") for cell in cells]
        whole += [[f"{head} low".strip(), *(low for low, _ in ends)]]
        whole += [[f"{head} high".strip(), *(high for _, high in ends)]]
    for name in ("marks", "remark"):
        if any(getattr(cell, name) for cell in cells):
            texts = [_safe(getattr(cell, name)) for cell in cells]
            whole.append([_safe(f"{head} ({name})" if head else name), *texts])
    return [list(row) for row in zip(*whole, strict=True)]


def _value(text: str, *, words: bool) -> str:
    if not words and _THOUSANDS.fullmatch(text):
        return text.replace(",", "")
    return _safe(text)


def _safe(text: str) -> str:
    shown = one_line(text)
    formula = shown.lstrip()[:1] in ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    if shown.startswith("# ") or (formula and not _HARMLESS.fullmatch(shown)):
        return f"'{shown}"
    return shown


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_HARMLESS = re.compile(r"-|[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%)?", re.IGNORECASE)
