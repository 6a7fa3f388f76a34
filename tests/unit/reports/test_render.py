"""Every format shows the same cells, and what data hold cannot become mark-up."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.slices import slicings
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.reports.render import render
from retrieval_bench.reports.render.table import Marked, Table
from retrieval_bench.reports.tables.comparison import comparison_tables
from retrieval_bench.reports.tables.run import run_tables
from retrieval_bench.reports.tables.slice import slice_tables
from tests.builders.runs import sample_run as make_run
from tests.golden.test_formats import SAMPLE

NASTY = r"""a_b%c&d#e$f{g}h~i^j\k<b>l|m`n"o'p--q*r한"""

# -- marks ---------------------------------------------------------------------------------------


def test_marks_are_raised_letters_in_plain_text() -> None:
    cell = Marked("0.7154", "abd-f,12")
    assert cell == "0.7154ᵃᵇᵈ⁻ᶠ˒¹²"
    assert (cell.text, cell.marks) == ("0.7154", "abd-f,12")


def test_every_mark_is_one_column_wide() -> None:
    for mark in "abcdefghijklmnopqrstuvwxyz0123456789-,*":
        assert cell_len(Marked("", mark)) == 1


def test_a_cell_without_marks_has_no_mark_up() -> None:
    table = Table("t", ("a",), [(Marked("1", ""),)])
    assert "<sup>" not in render.html([table]) + render.markdown([table])
    assert "textsuperscript" not in render.latex([table])
    assert "(marks)" not in render.csv([table])


# -- text stays text -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["title", "head", "cell", "note", "mark"])
def test_nothing_in_data_becomes_a_control_character_or_breaks_utf8(place: str) -> None:
    bad = "x\x1b[31m\x07y\nz\ud800\u202e\x9b\r\n\u2028end"
    table = _with(place, bad)
    for form in (render.plain, render.markdown, render.html, render.latex, render.csv):
        text = form([table])
        text.encode("utf-8")
        assert not set(text) & set("\x1b\x07\x9b\r\u202e\u2028"), form
        assert text.count("\ufffd") == 5, form  # escape, bell, surrogate, bidi, CSI


@pytest.mark.parametrize("place", ["title", "head", "cell", "note"])
def test_html_is_escaped_everywhere(place: str) -> None:
    found: list[str] = []

    class Texts(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            assert tag != "b"

        def handle_data(self, data: str) -> None:
            found.append(data)

    Texts().feed(render.html([_with(place, NASTY)]))
    assert NASTY in found


def test_html_takes_its_colours_from_the_page_and_says_what_heads_what() -> None:
    text = render.html(SAMPLE)
    assert not re.search(r"#[0-9a-f]{3}|rgb|color:|background", text)
    assert text.count('<th scope="col"') == 4
    assert text.count('<th scope="row"') == 2
    assert text.count("border-top:1px solid") == 4
    assert '<td style="text-align:right">0.7154<sup>ab</sup></td>' in text


@pytest.mark.parametrize("place", ["title", "head", "cell", "note"])
def test_latex_is_escaped_everywhere(place: str) -> None:
    text = render.latex([_with(place, NASTY)])
    escaped = (
        r"a\_b\%c\&d\#e\$f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"""\textless{}b\textgreater{}l\textbar{}m\textasciigrave{}n"o'p-{}-{}q*r한"""
    )
    assert escaped in text


@pytest.mark.parametrize("start", ["[x]", "*x"])
def test_a_latex_row_may_begin_with_what_a_line_break_takes_as_its_own(start: str) -> None:
    text = render.latex([Table("t", (start,), [(start,)])])
    assert text.count(f"    {{{start[0]}}}{start[1:]} \\\\\n") == 2


def test_latex_has_minus_signs_before_numbers_only() -> None:
    rows = [("all-MiniLM-L6", "-0.01", "[-.104, +.111]", "-", "2024-11-02", Marked("-1", "a"))]
    text = render.latex([Table("t", ("",) * 6, rows)])
    assert (
        r"all-MiniLM-L6 & $-$0.01 & {[}$-$.104, +.111] & - & 2024-11-02 & "
        r"$-$1\textsuperscript{a} \\"
    ) in text


def test_markdown_cells_are_no_mark_up() -> None:
    cells = {
        "a|b": r"a\|b",
        "**b**": r"\*\*b\*\*",
        "`c`": r"\`c\`",
        "<b>": r"\<b>",
        "< .001": "< .001",
        "&lt;": r"\&lt;",
        "a & b": "a & b",
        "a_name_here": "a_name_here",
        "_x_": r"\_x\_",
        "~~x~~": r"\~~x\~~",
        "[a](b)": r"[a\](b)",
        "[.1, .2]": "[.1, .2]",
        "$x$": r"\$x\$",
        "a\nb": "a b",
        r"a\b": r"a\\b",
    }
    for cell, shown in cells.items():
        assert f"\n| {shown} |\n" in render.markdown([Table("t", ("",), [(cell,)])])


def test_a_table_without_columns_is_its_title_and_notes() -> None:
    table = Table("Take bm25.", (), (), notes=["it is fast"])
    assert render.markdown([table]) == "**Take bm25.**\n\n- it is fast\n"
    assert render.plain([table]) == "Take bm25.\nit is fast\n"
    assert render.csv([table]) == "# Take bm25.\n# it is fast\n"
    assert "tabular" not in render.latex([table])
    assert "<table" not in render.html([table])


# -- CSV -----------------------------------------------------------------------------------------


def test_csv_is_read_back_as_the_guide_says() -> None:
    rows = [r for r in csv.reader(io.StringIO(render.csv(SAMPLE))) if not r or r[0][:2] != "# "]
    assert rows == [
        ["", "n", "n (marks)", "bm25", "bm25 (marks)", "a_b - bm25"],
        ["all", "1204", "", "0.7154", "ab", "-0.0100"],
        ["", "", "", "[.576, .711]", "", "[-0.104, +0.111]"],
        ["한국어", "9", "*", "0.5000", "", "-"],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", " =1", "\t=1", "\n=1", "＝1+1", "-x", "+", "# note"],
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    table = Table("t", (text, "n"), [(text, text)])
    header, row = list(csv.reader(io.StringIO(render.csv([table]))))[1:]
    assert all(cell.startswith("'") for cell in (header[0], *row))


@pytest.mark.parametrize(
    "number", ["-0.01", "+0.3920", "-.5", "+1e-05", "-12", "-", "< .001", "-1.5 %", "-3%"]
)
def test_numbers_stay_numbers_in_csv(number: str) -> None:
    assert render.csv([Table("t", ("", "n"), [("a", number)])]).endswith(f"a,{number}\n")


@pytest.mark.parametrize(
    ("cell", "number", "word"),
    [
        ("1,204", "1204", "1,204"),
        ("-12,345.5", "-12345.5", "-12,345.5"),
        ("[1,204, 2]", "[1,204, 2]", "[1,204, 2]"),
        ("1,2", "1,2", "1,2"),
    ],
)
def test_only_whole_numbers_lose_their_separators_in_csv(cell: str, number: str, word: str) -> None:
    text = render.csv([Table("t", ("w", "n"), [(cell, cell)])])
    assert list(csv.reader(io.StringIO(text)))[2] == [word, number]


# -- terminals -----------------------------------------------------------------------------------

LONG = ["한국어검색기" * 10, "dense-" + "x" * 54, "데이터 검색 모델 " * 6, "a b " * 15, "ㅎ" * 60]


def _every_table(n: int) -> list[Table]:
    runs = [make_run(name, i % 4) for i, name in enumerate(LONG[:n])]
    group = compare_runs(runs)
    queries = tuple(
        Query(
            f"q{i}", "한국어 " * (i % 9 + 1), metadata={"tags": ["태그" * 25, "t"] if i % 3 else []}
        )
        for i in range(40)
    )
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    data = Dataset("tiny", None, queries, qrels, "test", "ko", "f" * 32)
    sliced = slicings(group.groups[0], data, ["tags", "source", "length", "relevant"])
    return [*run_tables(runs[0]), *comparison_tables(group), *slice_tables(sliced)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_table_fits_eighty_columns_and_breaks_no_figure(n: int) -> None:
    tables = _every_table(n)
    console = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    with console.capture() as capture:
        render.to_console(tables, console)
    shown = capture.get()
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "…" not in shown
    figures = {
        cell
        for table in tables
        for row in table.rows
        for i, cell in enumerate(row)
        if i not in table.words and cell
    }
    assert len(figures) > 20
    assert not [cell for cell in figures if cell not in shown]


def test_names_are_folded_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "PLAIN_WIDTH", 80)
    name = "".join(chr(ord("가") + i) for i in range(60))
    table = Table("t", ("", "n", name), [(name, "1,204", "[.576, .711]")])
    rows = render.plain([table]).splitlines()[2:]
    shown = "".join("".join(row.split()) for row in rows)
    assert all(shown.count(letter) == 2 for letter in name)


def test_a_name_is_folded_before_a_wide_figure_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "PLAIN_WIDTH", 80)
    figure = "[-0.1040, +0.1110]"
    shown = render.plain([Table("t", ("", "a", "b", "c"), [("x" * 60, figure, figure, figure)])])
    assert shown.count(figure) == 3
    assert max(map(len, shown.splitlines())) <= 80


def test_a_heading_of_wide_letters_is_not_folded_where_there_is_room() -> None:
    heading = "가나다라마바사아자차카타"
    assert heading in render.plain([Table("t", ("", heading), [("a", "1")])])


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_honoured_in_a_terminal(no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    with console.capture() as capture:
        render.to_console(SAMPLE, console)
    assert not re.search(r"\x1b\[[\d;]*(3|4|9|10)\d", capture.get())


def test_what_is_no_terminal_gets_plain_text_with_whole_notes() -> None:
    note = "a note that is much longer than eighty columns " * 4
    file = io.StringIO()
    render.to_console([Table("t", ("a",), [("1",)], notes=[note])], Console(file=file, width=80))
    assert "\x1b" not in file.getvalue()
    assert note in file.getvalue()


def _with(place: str, text: str) -> Table:
    given = {"title": "t", "head": "h", "cell": "c", "note": "n", "mark": ""} | {place: text}
    cell = Marked("c", text) if place == "mark" else given["cell"]
    return Table(given["title"], (given["head"],), [(cell,)], notes=[given["note"]])
