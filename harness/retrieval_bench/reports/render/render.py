"""Tables as terminal output, plain text, Markdown, HTML, LaTeX and CSV.

Cells may hold what data hold, in any script. In every format what would not be text is text:
mark-up is escaped, and control characters, which could steer a terminal, are replaced.
"""

from __future__ import annotations

import csv as _csv
import html as _html
import io
import re
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING

from retrieval_bench.reports.render.table import Marked, Table

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
        widths = _widths(table, console.width)
        for i, (column, width) in enumerate(zip(table.columns, widths, strict=True)):
            shown.add_column(
                Text(_clean(column)),
                justify="left" if i in table.words else "right",
                overflow="fold",
                max_width=width,
            )
        for i, row in enumerate(table.rows):
            if i in table.rules:
                shown.add_section()
            shown.add_row(*(Text(_clean(cell)) for cell in row))
        # In a file or a pipe a line stays one line, for those who search in it.
        whole_lines = not console.is_terminal
        console.print(Text(_clean(table.title), style="bold"), soft_wrap=whole_lines)
        if table.columns:
            console.print(shown)
        for note in table.notes:
            console.print(Text(_clean(note)), soft_wrap=whole_lines, highlight=False)


def _widths(table: Table, width: int) -> list[int]:
    """Of the columns, so that they fit: names and headings are folded, the longest first, before
    a figure is."""
    from rich.cells import cell_len

    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    cells = [max((cell_len(_clean(cell)) for cell in column), default=1) for column in columns]
    heads = [cell_len(_clean(column)) for column in table.columns]
    widths = [max(pair) for pair in zip(cells, heads, strict=True)]
    least = [min(n, _FOLDED) if i in table.words else max(n, 1) for i, n in enumerate(cells)]
    too_much = sum(widths) + 3 * len(widths) - 1 - width
    for _ in range(too_much):
        can = [i for i, n in enumerate(widths) if n > least[i]]
        if not can:
            break
        widths[max(can, key=widths.__getitem__)] -= 1
    return widths


_FOLDED = 12
"""Words are not made narrower, unless a table does not fit otherwise."""


def plain(tables: Iterable[Table], file: IO[str] | None = None) -> str:
    """Without colours, for logs and ``print()``."""
    from rich.console import Console

    text = io.StringIO()
    to_console(
        tables, Console(file=file or text, width=PLAIN_WIDTH, no_color=True, force_terminal=False)
    )
    return text.getvalue()


def _clean(text: str) -> str:
    """One line that a terminal shows and UTF-8 can hold: blanks for line breaks, a replacement
    character for every other control character and for half of a surrogate pair."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _BREAK.sub(" ", text))


_BREAK = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# -- Markdown ------------------------------------------------------------------------------------


def markdown(tables: Iterable[Table]) -> str:
    """GitHub-flavoured Markdown."""
    blocks = []
    for table in tables:
        lines = [f"**{_md(table.title)}**", ""]
        if table.columns:
            lines.append("| " + " | ".join(map(_md_cell, table.columns)) + " |")
            rules = ("---" if i in table.words else "---:" for i in range(len(table.columns)))
            lines.append("|" + "|".join(rules) + "|")
            lines += ["| " + " | ".join(map(_md_cell, row)) + " |" for row in table.rows]
            lines.append("")
        lines += [f"- {_md(note)}" for note in table.notes]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks) + "\n"


def _md_cell(cell: str) -> str:
    if isinstance(cell, Marked) and cell.marks:
        return f"{_md(cell.text)}<sup>{_md(cell.marks)}</sup>"
    return _md(cell)


def _md(text: str) -> str:
    """Escaped where it would be mark-up, so that names stay readable in the source."""
    return _MARKDOWN.sub(r"\\\g<0>", _clean(text))


_MARKDOWN = re.compile(
    r"""[\\|*`$]                # columns, emphasis, code, formulas
      | <(?=[A-Za-z/!?])        # a tag, not "< .001"
      | &(?=\#?\w+;)            # an entity
      | (?<!\w)_ | _(?!\w)      # emphasis, not the inside of a_name
      | ~(?=~)                  # struck out
      | \](?=\()                # a link
      """,
    re.VERBOSE,
)


# -- HTML ----------------------------------------------------------------------------------------


def html(tables: Iterable[Table]) -> str:
    """An HTML fragment, for a notebook; every text is escaped.

    Colours, fonts and sizes are those of the page that it stands in.
    """
    return "<div>" + "".join(map(_html_table, tables)) + "</div>"


def _html_table(table: Table) -> str:
    notes = "".join(f"<li>{_tagged(note)}</li>" for note in table.notes)
    listed = f"<ul>{notes}</ul>" if notes else ""
    if not table.columns:
        return f"<p><strong>{_tagged(table.title)}</strong></p>{listed}"
    align = ["left" if i in table.words else "right" for i in range(len(table.columns))]
    head = "".join(
        f'<th scope="col" style="text-align:{side}">{_tagged(column)}</th>'
        for side, column in zip(align, table.columns, strict=True)
    )
    body = []
    for i, row in enumerate(table.rows):
        line = "border-top:1px solid;" if i in table.rules else ""
        cells = []
        for j, (side, cell) in enumerate(zip(align, row, strict=True)):
            style = f'style="{line}text-align:{side}"'
            if j == 0 and cell:
                style = style.removesuffix('"') + ';font-weight:normal"'
                cells.append(f'<th scope="row" {style}>{_tagged(cell)}</th>')
            else:
                cells.append(f"<td {style}>{_tagged(cell)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        '<table style="border-collapse:collapse">'
        f'<caption style="text-align:left;font-weight:bold">{_tagged(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{listed}"
    )


def _tagged(cell: str) -> str:
    if isinstance(cell, Marked) and cell.marks:
        return f"{_escaped(cell.text)}<sup>{_escaped(cell.marks)}</sup>"
    return _escaped(cell)


def _escaped(text: str) -> str:
    return _html.escape(_clean(text))


# -- LaTeX ---------------------------------------------------------------------------------------

_LATEX_HEAD = r"""% Preamble: \usepackage{booktabs}. This file is UTF-8: letters that are not Latin
% (Korean, Chinese, Arabic ...) need xelatex or lualatex and a font that has them.
"""


def latex(tables: Iterable[Table]) -> str:
    """One ``table`` environment each, with the rules of booktabs, to be input into a document."""
    return _LATEX_HEAD + "".join("\n" + _latex_table(table) for table in tables)


def _latex_table(table: Table) -> str:
    notes = [rf"\par\noindent {_tex(note)}" for note in table.notes]
    if not table.columns:
        return "\n".join([rf"\noindent\textbf{{{_tex(table.title)}}}", *notes, r"\par", ""])
    sides = "".join("l" if i in table.words else "r" for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_tex(table.title)}}}",
        rf"  \begin{{tabular}}{{{sides}}}",
        r"    \toprule",
        _latex_row(table.columns),
        r"    \midrule",
    ]
    for i, row in enumerate(table.rows):
        lines += [r"    \midrule"] if i in table.rules and i else []
        lines.append(_latex_row(row))
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    if notes:
        lines += [r"  \par\medskip", r"  \begin{minipage}{\linewidth}\footnotesize\raggedright"]
        lines += [f"    {note}" for note in notes]
        lines.append(r"  \end{minipage}")
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_row(cells: Sequence[str]) -> str:
    return "    " + " & ".join(map(_tex_cell, cells)) + r" \\"


def _tex_cell(cell: str) -> str:
    marks = cell.marks if isinstance(cell, Marked) else ""
    shown = _tex(_MINUS.sub("\N{MINUS SIGN}", cell.text if isinstance(cell, Marked) else cell))
    if marks:
        shown += rf"\textsuperscript{{{_tex(marks)}}}"
    # The end of the row before, or a rule, would take it for its own argument.
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def _tex(text: str) -> str:
    return _TEX.sub(lambda found: _TEX_FOR[found[0]], _clean(text))


_MINUS = re.compile(r"(?<![\w.-])-(?=\.?\d)")
_TEX_FOR = {
    **{sign: "\\" + sign for sign in "_%&#${}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "--": "-{}-{}",
    "\N{MINUS SIGN}": "$-$",
}
_TEX = re.compile("|".join(map(re.escape, _TEX_FOR)))


# -- CSV -----------------------------------------------------------------------------------------


def csv(tables: Iterable[Table]) -> str:
    """Comma-separated values (RFC 4180, lines end in a line feed), table by table.

    A table is a row with its title, its header, its rows and a row for each note, then an empty
    line. Titles and notes begin with ``# ``, and no other row does. Numbers stand without marks
    and thousands separators; marks have a column of their own behind them. A text that a
    spreadsheet would take for a formula gets an apostrophe in front.
    """
    return "\n".join(map(_csv_table, tables))


def _csv_table(table: Table) -> str:
    text = io.StringIO()
    writer = _csv.writer(text, lineterminator="\n")
    writer.writerow([f"# {_clean(table.title)}"])
    if table.columns:
        marked = {
            i for row in table.rows for i, cell in enumerate(row) if getattr(cell, "marks", "")
        }
        head: list[str] = []
        for i, column in enumerate(table.columns):
            head += [_safe(column), *([_safe(f"{column} (marks)")] if i in marked else [])]
        writer.writerow(head)
        for row in table.rows:
            writer.writerow(_csv_row(row, marked, table.words))
    writer.writerows([f"# {_clean(note)}"] for note in table.notes)
    return text.getvalue()


def _csv_row(row: Sequence[str], marked: set[int], words: Sequence[int]) -> list[str]:
    cells = []
    for i, cell in enumerate(row):
        text, marks = (cell.text, cell.marks) if isinstance(cell, Marked) else (cell, "")
        number = i not in words and _THOUSANDS.fullmatch(text)
        cells.append(text.replace(",", "") if number else _safe(text))
        if i in marked:
            cells.append(_safe(marks))
    return cells


def _safe(text: str) -> str:
    shown = _clean(text)
    formula = shown.lstrip()[:1] in ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    if shown.startswith("# ") or (formula and not _HARMLESS.fullmatch(shown)):
        return f"'{shown}"
    return shown


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_HARMLESS = re.compile(r"-|[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%)?", re.IGNORECASE)
