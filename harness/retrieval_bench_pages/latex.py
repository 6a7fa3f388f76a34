"""Tables as LaTeX, to be input into a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.render.cells import Content, cell_of
from retrieval_bench.reports.render.table import NoteKind, Table, kind_of, one_line, text_of

_HEAD = r"""% Preamble: \usepackage{booktabs}. This file is UTF-8: letters that are not Latin
% (Korean, Chinese, Arabic ...) need xelatex or lualatex and a font that has them.
"""


def render(tables: Iterable[Table]) -> str:
    r"""One ``table`` environment each, with the rules of booktabs, and a ``\label`` by its title.

    A paper has no use for columns and tables without a figure (the notes of such a table go to the
    one before), for commands to run next, and for the folders that files lie in.
    """
    kept: list[Table] = []
    for table in tables:
        filled = _filled(table)
        if filled is not None or not kept:
            kept.append(filled or table)
        else:
            kept[-1] = kept[-1].with_notes([*table.lead, *table.notes])
    titles = (table.title.partition(":")[0].lower() for table in kept)
    slugs = [_NO_LABEL.sub("-", title).strip("-") or "table" for title in titles]
    labels = [name.replace("#", "-") for name in distinct_names(slugs)]
    return _HEAD + "".join(
        "\n" + _table(table, label) for table, label in zip(kept, labels, strict=True)
    )


def _filled(table: Table) -> Table | None:
    """The columns in which something stands, with their notes; None where no figure does, though
    there are columns for figures."""
    texts = [[cell_of(content).text for content in row] for row in table.rows]
    kept = [
        at
        for at in range(len(table.columns))
        if at in table.words or not texts or any(row[at] not in ("", "-") for row in texts)
    ]
    figures = len(table.columns) > len(table.words)
    if texts and figures and all(at in table.words for at in kept):
        return None
    gone = tuple(f"{name}:" for at, name in enumerate(table.columns) if at not in kept)
    return replace(
        table,
        columns=[table.columns[at] for at in kept],
        rows=[[row[at] for at in kept] for row in table.rows],
        words=[place for place, at in enumerate(kept) if at in table.words],
        notes=[note for note in table.notes if not text_of(note).startswith(gone)],
    )


def _table(table: Table, label: str) -> str:
    notes = [
        rf"\par\noindent {escaped(text_of(note))}"
        for note in (*table.lead, *table.notes)
        if kind_of(note) not in (NoteKind.NEXT, NoteKind.MORE)
    ]
    if not table.rows:
        return "\n".join([rf"\noindent\textbf{{{escaped(table.title)}}}", *notes, r"\par", ""])
    sides = "".join("l" if i in table.words else "r" for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(table.title)}}}\label{{tab:{label}}}",
        rf"  \begin{{tabular}}{{{sides}}}",
        r"    \toprule",
        *([_row(table.columns), r"    \midrule"] if table.headed else []),
    ]
    for i, row in enumerate(table.rows):
        lines += [r"    \midrule"] if i in table.rules and i else []
        lines.append(_row(row))
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    if notes:
        lines += [r"  \par\medskip", r"  \begin{minipage}{\linewidth}\footnotesize\raggedright"]
        lines += [f"    {note}" for note in notes]
        lines.append(r"  \end{minipage}")
    return "\n".join([*lines, r"\end{table}", ""])


def _row(cells: Sequence[Content]) -> str:
    return "    " + " & ".join(map(_cell, cells)) + r" \\"


def _cell(content: Content) -> str:
    cell = cell_of(content)
    shown = _figure(cell.text)
    shown = rf"\textbf{{{shown}}}" if cell.strong else shown
    if cell.marks:
        shown += rf"\textsuperscript{{{escaped(cell.marks)}}}"
    if cell.more:
        shown = rf"{shown} {{\footnotesize {_figure(cell.more)}}}"
    # The end of the row before, or a rule, would take it for its own argument.
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def _figure(text: str) -> str:
    return escaped(_MINUS.sub("\N{MINUS SIGN}", text))


def escaped(text: str) -> str:
    """``text`` of any origin as LaTeX, files by their names alone."""
    return _SPECIAL.sub(lambda sign: _INSTEAD[sign[0]], _FOLDERS.sub("", one_line(text)))


_FOLDERS = re.compile(r"(?<![\w/:.}~])(?:/[^\s/;,:'\"]+)+/(?=[^\s/;,:'\"])")
_NO_LABEL = re.compile(r"[^a-z0-9]+")
_MINUS = re.compile(r"(?<![\w.-])-(?=\.?\d)")
_INSTEAD = {
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
_SPECIAL = re.compile("|".join(map(re.escape, _INSTEAD)))
