"""Tables as LaTeX, to be input into a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from retrieval_bench.reports.render.cells import Content, cell_of
from retrieval_bench.reports.render.table import Table, one_line, text_of

_HEAD = r"""% Preamble: \usepackage{booktabs}. This file is UTF-8: letters that are not Latin
% (Korean, Chinese, Arabic ...) need xelatex or lualatex and a font that has them.
"""


def render(tables: Iterable[Table]) -> str:
    """One ``table`` environment each, with the rules of booktabs."""
    return _HEAD + "".join("\n" + _table(table) for table in tables)


def _table(table: Table) -> str:
    notes = [rf"\par\noindent {escaped(text_of(note))}" for note in (*table.lead, *table.notes)]
    if not table.rows:
        return "\n".join([rf"\noindent\textbf{{{escaped(table.title)}}}", *notes, r"\par", ""])
    sides = "".join("l" if i in table.words else "r" for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(table.title)}}}",
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
    """``text`` of any origin as LaTeX."""
    return _SPECIAL.sub(lambda sign: _INSTEAD[sign[0]], one_line(text))


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
