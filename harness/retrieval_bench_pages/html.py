"""Tables as HTML: captions, headers that belong to rows and columns, notes below."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from retrieval_bench.reports.render.cells import Content, cell_of
from retrieval_bench.reports.render.table import SIGNS, AnyNote, Table, kind_of, one_line, text_of
from retrieval_bench_pages.markup import Markup, el, joined

_NOTEBOOK_STYLE = (
    ".rb table{border-collapse:collapse}.rb caption{text-align:start;font-weight:bold}"
    ".rb th,.rb td{text-align:start;vertical-align:top}.rb .n{text-align:end}"
    ".rb th[scope=row]{font-weight:normal}.rb small{display:block}"
    ".rb tbody+tbody tr:first-child>*{border-top:1px solid}"
)


def render(tables: Iterable[Table]) -> str:
    """A fragment for a notebook, in the colours, fonts and sizes of the page that it stands in."""
    blocks = [whole(table, sortable=False) for table in tables]
    return el("div", el("style", Markup(_NOTEBOOK_STYLE)), *blocks, class_="rb")


def whole(table: Table, *, sortable: bool = True) -> Markup:
    """``table`` in a box that scrolls sideways on a small screen, and its notes below.

    One of several rows without sections can be sorted by the reader, unless ``sortable`` is false.
    """
    if not table.rows:
        title = el("p", el("strong", one_line(table.title), dir="auto"))
        return joined([title, notes_html([*table.lead, *table.notes])])
    starts = sorted({0, *(at for at in table.rules if at < len(table.rows)), len(table.rows)})
    bodies = [
        el("tbody", *(_row(row, table.words) for row in table.rows[start:end]))
        for start, end in itertools.pairwise(starts)
    ]
    heads = (_head(column, at in table.words) for at, column in enumerate(table.columns))
    content = el(
        "table",
        el("caption", el("span", one_line(table.title), dir="auto")),
        *([el("thead", el("tr", *heads))] if table.headed else []),
        *bodies,
        class_=" ".join(_kinds(table, sortable and len(bodies) == 1)) or None,
    )
    box = el(
        "div",
        content,
        class_="scroll",
        role="region",
        tabindex="0",
        aria_label=one_line(table.title),
    )
    return joined([notes_html(table.lead), box, notes_html(table.notes)])


def _kinds(table: Table, sortable: bool) -> Iterator[str]:
    """Classes: whether a reader can sort it, and whether its last column is a verdict, which stays
    in view."""
    if sortable and len(table.rows) > 1:
        yield "sortable"
    if table.columns[-1] == "verdict":
        yield "judged"


def notes_html(notes: Sequence[AnyNote]) -> Markup:
    """Notes as a list, their level as a class; nothing where there are none."""
    if not notes:
        return Markup()
    items = (
        el(
            "li",
            one_line(text_of(note)),
            dir="auto",
            class_=kind_of(note).value if kind_of(note) in SIGNS else None,
        )
        for note in notes
    )
    return el("ul", *items, class_="notes")


def _head(column: str, words: bool) -> Markup:
    kind = None if words else "n"
    return el("th", one_line(column), scope="col", class_=kind) if column else el("td", class_=kind)


def _row(row: Sequence[Content], words: Sequence[int]) -> Markup:
    cells = []
    for at, content in enumerate(row):
        inside, kind = _inside(content), None if at in words else "n"
        if at == 0:
            cells.append(el("th", inside, scope="row", class_=kind, dir="auto"))
        else:
            cells.append(el("td", inside, class_=kind))
    return el("tr", *cells)


def _inside(content: Content) -> Markup:
    cell = cell_of(content)
    return joined(
        [
            el("strong", one_line(cell.text)) if cell.strong else one_line(cell.text),
            el("sup", one_line(cell.marks)) if cell.marks else "",
            el("small", one_line(cell.more)) if cell.more else "",
        ]
    )
