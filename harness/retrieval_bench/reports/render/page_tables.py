"""Tables as HTML: captions, headers that belong to rows and columns, notes below.

A row whose first cell is empty goes on with the row above it (intervals below their means): both
become one row, so that a reader can sort.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.reports.render.markup import Markup, el, escaped, joined
from retrieval_bench.reports.render.table import Marked, Table


def table_html(table: Table, *, sortable: bool = True) -> Markup:
    """``table`` in a box that scrolls sideways on a small screen, and its notes below.

    One of several rows without sections can be sorted by the reader, unless ``sortable`` is false.
    """
    rows = _merged(table.rows, table.rules)
    sections = sorted({start for start, _ in rows})
    bodies = [
        el("tbody", *(_row(lines, table) for start, lines in rows if start == section))
        for section in sections
    ]
    sortable = sortable and len(sections) == 1 and len(rows) > 1
    head = el("tr", *(_head(column, at, table.words) for at, column in enumerate(table.columns)))
    whole = el(
        "table",
        el("caption", el("span", table.title, dir="auto")),
        el("thead", head),
        *bodies,
        class_="sortable" if sortable else None,
    )
    box = el("div", whole, class_="scroll", role="region", tabindex="0", aria_label=table.title)
    return joined([box, notes_html(table.notes)])


def notes_html(notes: Sequence[str]) -> Markup:
    """Notes as a list; nothing where there are none."""
    if not notes:
        return Markup()
    return el("ul", *(el("li", note, dir="auto") for note in notes), class_="notes")


def _head(column: str, at: int, words: Sequence[int]) -> Markup:
    kind = None if at in words else "n"
    if not column:
        return el("td", class_=kind)
    return el("th", escaped(column), scope="col", class_=kind)


def _merged(
    rows: Sequence[Sequence[str]], rules: Sequence[int]
) -> list[tuple[int, list[Sequence[str]]]]:
    """Rows with those that go on with them, each with the number of its section."""
    merged: list[tuple[int, list[Sequence[str]]]] = []
    section = 0
    for at, row in enumerate(rows):
        if at in rules:
            section += 1
        if merged and merged[-1][0] == section and not (row and row[0]):
            merged[-1][1].append(row)
        else:
            merged.append((section, [row]))
    return merged


def _row(lines: Sequence[Sequence[str]], table: Table) -> Markup:
    first, *below = lines
    cells = []
    for at, cell in enumerate(first):
        more = [el("small", _cell(line[at])) for line in below if line[at]]
        inside = joined([_cell(cell), *more])
        kind = None if at in table.words else "n"
        if at == 0:
            cells.append(el("th", inside, scope="row", class_=kind, dir="auto"))
        else:
            cells.append(el("td", inside, class_=kind))
    return el("tr", *cells)


def _cell(text: str) -> Markup:
    if isinstance(text, Marked):
        return joined([text.text, el("sup", text.marks)]) if text.marks else escaped(text.text)
    return escaped(str(text))
