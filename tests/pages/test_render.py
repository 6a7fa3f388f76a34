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
from retrieval_bench.reports.render import csv as as_csv
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, Cell, Content
from retrieval_bench.reports.render.table import Table, next_step, warning
from retrieval_bench.reports.tables.measure.run import run_tables
from retrieval_bench.reports.tables.understand.comparison import comparison_tables
from retrieval_bench_pages import html, latex
from tests.builders.runs import sample_run
from tests.builders.sample_tables import SAMPLE
from tests.builders.tables import LONG, check_width

FORMATS = (terminal.plain, markdown.render, html.render, latex.render, as_csv.render)
NASTY = r"""a_b%c&d#e$f{g}h~i^j\k<b>l|m`n"o'p--q*r한"""

# -- cells ---------------------------------------------------------------------------------------


def test_a_cell_is_a_value_with_its_interval_marks_and_remark() -> None:
    cell = QUALITY(0.71542, (0.5764, 0.7111), "ab")
    assert (cell.text, cell.ends, cell.more) == ("0.7154", ("0.576", "0.711"), "[0.576, 0.711]")
    assert Cell("worse", remark="(small)").more == "(small)"
    assert [QUALITY(value).text for value in (None, float("nan"))] == ["-", "-"]


def test_every_mark_is_one_column_wide() -> None:
    for mark in "abcdefghijklmnopqrstuvwxyz0123456789-,*":
        assert cell_len(mark.translate(terminal.RAISED)) == 1


def test_a_cell_without_marks_has_no_mark_up() -> None:
    table = Table("t", ("a",), [(COUNT(1),)])
    assert "<sup>" not in html.render([table]) + markdown.render([table])
    assert "textsuperscript" not in latex.render([table])
    assert "(marks)" not in as_csv.render([table])


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_value_interval_marks_remark_and_notes(form: Any) -> None:
    cells = (QUALITY(0.5, (0.25, 0.75), "a"), Cell("worse", remark="(small)"))
    text = form(
        [Table("T", ("x", "y"), [cells], notes=["how"], lead=[warning("mind")], words=(1,))]
    )
    marked = "0.5000ᵃ" if form is terminal.plain else "a"
    for part in ("T", "0.5000", "0.250", "0.750", marked, "worse", "(small)", "how", "mind"):
        assert part in text


# -- levels --------------------------------------------------------------------------------------


def test_a_warning_and_a_note_have_a_sign_and_a_class() -> None:
    table = Table("t", ("a",), [("1",)], notes=["how it was measured", warning("it is busy")])
    assert "  i  how it was measured\n  !  it is busy\n" in terminal.plain([table])
    assert "- i how it was measured\n- ! it is busy\n" in markdown.render([table])
    assert '<li dir="auto" class="warning">it is busy</li>' in html.render([table])


def test_on_a_terminal_a_warning_is_yellow() -> None:
    console = Console(width=80, force_terminal=True, color_system="standard", file=io.StringIO())
    with console.capture() as capture:
        terminal.to_console([Table("t", (), (), notes=[warning("it is busy")])], console)
    assert "\x1b[33m  !  it is busy\x1b[0m" in capture.get()


# -- text stays text -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["title", "head", "cell", "note", "mark"])
def test_nothing_in_data_becomes_a_control_character_or_breaks_utf8(place: str) -> None:
    bad = "x\x1b[31m\x07y\nz\ud800\u202e\x9b\r\n\u2028end"
    table = _with(place, bad)
    for form in FORMATS:
        text = form([table])
        text.encode("utf-8")
        assert not set(text) & set("\x1b\x07\x9b\r\u202e\u2028"), form
        times = 2 if form is html.render and place == "title" else 1  # also the label of the box
        assert text.count("\ufffd") == 5 * times, form  # escape, bell, surrogate, bidi, CSI


@pytest.mark.parametrize("place", ["title", "head", "cell", "note"])
def test_html_is_escaped_everywhere(place: str) -> None:
    found: list[str] = []

    class Texts(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            assert tag != "b"

        def handle_data(self, data: str) -> None:
            found.append(data)

    Texts().feed(html.render([_with(place, NASTY)]))
    assert NASTY in found


def test_html_takes_its_colours_from_the_page_and_says_what_heads_what() -> None:
    text = html.render(SAMPLE)
    assert not re.search(r"#[0-9a-f]{3}|rgb|[^-]color:|background", text)
    assert text.count('scope="col"') == 3
    assert text.count('scope="row"') == 2
    assert text.count("<tbody>") == 2
    assert '<td class="n">0.7154<sup>ab</sup><small>[0.576, 0.711]</small></td>' in text


@pytest.mark.parametrize("place", ["title", "head", "cell", "note"])
def test_latex_is_escaped_everywhere(place: str) -> None:
    text = latex.render([_with(place, NASTY)])
    escaped = (
        r"a\_b\%c\&d\#e\$f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r"""\textless{}b\textgreater{}l\textbar{}m\textasciigrave{}n"o'p-{}-{}q*r한"""
    )
    assert escaped in text


@pytest.mark.parametrize("start", ["[x]", "*x"])
def test_a_latex_row_may_begin_with_what_a_line_break_takes_as_its_own(start: str) -> None:
    text = latex.render([Table("t", (start,), [(start,)])])
    assert text.count(f"    {{{start[0]}}}{start[1:]} \\\\\n") == 2


def test_latex_has_minus_signs_before_numbers_only() -> None:
    cells = (
        "all-MiniLM-L6",
        DIFFERENCE(-0.01, (-0.104, 0.111)),
        "-",
        "2024-11-02",
        COUNT(-1, marks="a"),
    )
    text = latex.render([Table("t", ("",) * 5, [cells], words=(0, 2))])
    assert (
        r"all-MiniLM-L6 & $-$0.0100 {\footnotesize [$-$0.104, +0.111]} & - & 2024-11-02 & "
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
        assert f"\n| {shown} |\n" in markdown.render([Table("t", ("",), [(cell,)])])


def test_a_table_without_columns_is_its_title_and_notes() -> None:
    table = Table("Take bm25.", (), (), notes=["it is fast"])
    assert markdown.render([table]) == "**Take bm25.**\n\n- i it is fast\n"
    assert terminal.plain([table]) == "Take bm25.\n  i  it is fast\n"
    assert as_csv.render([table]) == "# Take bm25.\n# i it is fast\n"
    assert "tabular" not in latex.render([table])
    assert "<table" not in html.render([table])


# -- CSV -----------------------------------------------------------------------------------------


def test_csv_is_read_back_as_the_guide_says() -> None:
    rows = [r for r in csv.reader(io.StringIO(as_csv.render(SAMPLE))) if not r or r[0][:2] != "# "]
    assert rows == [
        [
            *("", "n", "n (marks)", "bm25", "bm25 low", "bm25 high", "bm25 (marks)"),
            *("a_b - bm25", "a_b - bm25 low", "a_b - bm25 high"),
        ],
        ["all", "1204", "", "0.7154", "0.576", "0.711", "ab", "-0.0100", "-0.104", "+0.111"],
        ["한국어", "9", "*", "0.5000", "", "", "", "-", "", ""],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", " =1", "\t=1", "\n=1", "＝1+1", "-x", "+", "# note"],
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    table = Table("t", (text, "n"), [(text, text)])
    header, row = list(csv.reader(io.StringIO(as_csv.render([table]))))[1:]
    assert all(cell.startswith("'") for cell in (header[0], *row))


@pytest.mark.parametrize(
    "number", ["-0.01", "+0.3920", "-.5", "+1e-05", "-12", "-", "< .001", "-1.5 %", "-3%"]
)
def test_numbers_stay_numbers_in_csv(number: str) -> None:
    assert as_csv.render([Table("t", ("", "n"), [("a", number)])]).endswith(f"a,{number}\n")


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
    text = as_csv.render([Table("t", ("w", "n"), [(cell, cell)])])
    assert list(csv.reader(io.StringIO(text)))[2] == [word, number]


# -- terminals -----------------------------------------------------------------------------------


def _every_table(n: int) -> list[Table]:
    runs = [sample_run(name, i % 4) for i, name in enumerate(LONG[:n])]
    return [*run_tables(runs[0]), *comparison_tables(compare_runs(runs))]


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_table_fits_eighty_columns_and_breaks_no_figure(n: int) -> None:
    check_width(_every_table(n))


def test_an_interval_stands_behind_its_figure_where_there_is_room() -> None:
    rows: list[list[Content]] = [
        ["a", *(QUALITY(0.5, (0.25, 0.75)) for _ in range(n))] for n in (2, 2)
    ]
    shown = terminal.plain([Table("t", ("", "x", "y"), rows)])
    assert "  a   0.5000 [0.250, 0.750]   0.5000 [0.250, 0.750]\n" in shown


def test_a_table_that_is_too_wide_is_shown_in_blocks_with_the_names_in_each() -> None:
    names = [f"system {at}" for at in range(12)]
    rows: list[list[Content]] = [
        [name, *(QUALITY(at / 10, (0, 1)) for at in range(12))] for name in names
    ]
    shown = terminal.plain([Table("t", ("", *names), rows)])
    assert max(map(cell_len, shown.splitlines())) <= terminal.PLAIN_WIDTH
    assert shown.count("\n  system 3 ") == 2 + 1  # two heads begin with others


def test_names_are_folded_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PLAIN_WIDTH", 80)
    name = "".join(chr(ord("가") + i) for i in range(60))
    table = Table("t", ("", "n", name), [(name, "1,204", "[.576, .711]")])
    rows = terminal.plain([table]).splitlines()
    shown = "".join("".join(row.split()) for row in rows)
    assert all(shown.count(letter) == 2 for letter in name)


def test_a_name_is_folded_before_a_wide_figure_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PLAIN_WIDTH", 80)
    figure = "[-0.1040, +0.1110]"
    shown = terminal.plain([Table("t", ("", "a", "b", "c"), [("x" * 60, figure, figure, figure)])])
    assert shown.count(figure) == 3
    assert max(map(len, shown.splitlines())) <= 80


def test_a_heading_of_wide_letters_is_not_folded_where_there_is_room() -> None:
    heading = "가나다라마바사아자차카타"
    assert heading in terminal.plain([Table("t", ("", heading), [("a", "1")])])


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_honoured_in_a_terminal(no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    with console.capture() as capture:
        terminal.to_console(SAMPLE, console)
    assert not re.search(r"\x1b\[[\d;]*(3|4|9|10)\d", capture.get())


def test_what_is_no_terminal_gets_plain_text_wrapped_without_trailing_blanks() -> None:
    note = "a note that is much longer than eighty columns " * 4
    file = io.StringIO()
    terminal.to_console([Table("t", ("a",), [("1",)], notes=[note])], Console(file=file, width=80))
    assert "\x1b" not in file.getvalue()
    assert " ".join(file.getvalue().split()).endswith(note.strip())
    assert not [line for line in file.getvalue().splitlines() if line != line.rstrip()]


def _with(place: str, text: str) -> Table:
    given = {"title": "t", "head": "h", "cell": "c", "note": "n", "mark": ""} | {place: text}
    cell = Cell("c", marks=text) if place == "mark" else given["cell"]
    return Table(given["title"], (given["head"],), [(cell,)], notes=[given["note"]])


class TestForPapers:
    """N6: LaTeX holds what a paper can use."""

    def test_columns_and_tables_without_a_figure_are_left_out_with_their_legends(self) -> None:
        first = Table("Quality on x: means", ("system", "nDCG"), [("a", "0.5"), ("b", "0.4")])
        notes = ["calls/s: one at a time", "disk MB: all of it", "Convention: trec"]
        cost = Table("Cost", ("system", "calls/s", "disk MB"), [("a", "-", "1"), ("b", "", "2")])
        text = latex.render([first, cost.with_notes(notes)])
        assert "calls/s" not in text
        assert "disk MB: all of it" in text
        none = Table("Which is faster", ("", "ratio", "verdict"), [("a", "-", "no")], words=(0, 2))
        text = latex.render([first, none.with_notes(["no times of a"])])
        assert text.count("tabular") == 2, "one table, begun and ended"
        assert "no times of a" in text

    def test_words_alone_are_a_table_and_commands_are_none_of_a_paper(self) -> None:
        words = Table("What they are", ("", "kind"), [("a", "-")], words=(0, 1))
        text = latex.render([words.with_notes([next_step("next:  retrieval-bench x")])])
        assert "tabular" in text
        assert "retrieval-bench" not in text

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("path /home/me/runs/a.run, k 1.5", "path a.run, k 1.5"),
            ("a with /x/y.run; b with /x/z/w.run.", "a with y.run; b with w.run."),
            ("https://host/a/b, 1/2 and and/or", "https://host/a/b, 1/2 and and/or"),
        ],
    )
    def test_files_stand_without_their_folders(self, given: str, shown: str) -> None:
        assert shown in latex.render([Table("t", ("",), [(given,)])])

    def test_each_table_has_a_label_of_its_own(self) -> None:
        titles = ("Quality on x: means", "Quality on x: medians", "\u8cea", "p50 (ms)")
        text = latex.render([Table(title, ("",), [("1",)]) for title in titles])
        labels = re.findall(r"\\label\{(.*?)\}", text)
        assert labels == ["tab:quality-on-x", "tab:quality-on-x-2", "tab:table", "tab:p50-ms"]
