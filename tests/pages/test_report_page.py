from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import COUNT, Cell, Content
from retrieval_bench.reports.render.table import Table, warning
from retrieval_bench.reports.tables.run_facts import without_folders
from retrieval_bench.runs.run import Run
from retrieval_bench_pages import choices, verify
from retrieval_bench_pages import html_page as document
from retrieval_bench_pages.analysis import analyse
from retrieval_bench_pages.explorer import json_in_html
from retrieval_bench_pages.html import whole
from retrieval_bench_pages.html_page import report_page
from retrieval_bench_pages.markup import Markup, el, harmless, joined
from retrieval_bench_pages.methods import methods
from tests.builders.page_sample import NASTY, make_dataset, make_runs

VOID = {"meta", "link", "br", "input", "path", "use", "rect"}
DATA = make_dataset()


class Page(HTMLParser):
    """A page as a browser takes it: elements, and the text of each part."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.captions: list[str] = []
        self.headings: list[str] = []
        self.feed(page)
        assert self.open == [], "an element is left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self.open:
            self.texts.append(data)
            for kind, found in (("caption", self.captions), ("h2", self.headings)):
                if kind in self.open:
                    found.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def explorers(self) -> list[Any]:
        return [json.loads(script) for script in self.scripts if script.startswith("{")]


def page_of(runs: list[Run], *sources: Dataset | str, **options: Any) -> Page:
    return Page(report_page(analyse(compare_runs(runs), sources or [DATA]), **options))


@cache
def usual() -> str:
    return report_page(analyse(compare_runs(make_runs(DATA)), [DATA]))


@cache
def parsed() -> Page:
    return Page(usual())


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take nine tenths of the time."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)


# -- what is on it -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_opens_with_the_answer_and_has_every_part() -> None:
    [answer] = compare_runs(make_runs(DATA)).recommendations
    assert parsed().headings == [
        "No recommendation",
        "Quality and time",
        "The systems beside each other",
        "Is the difference real?",
        "Speed, memory, disk",
        "Hybrids and their legs",
        "Kinds of queries",
        "Single queries",
        "What the figures rest on",
        "Runs and manifests",
    ]
    text = parsed().text
    assert answer.sentence in text
    assert all(reason in text for reason in answer.reasons)
    assert text.index(answer.sentence) < text.index("Quality on sample")


def test_no_heading_is_there_twice() -> None:
    page = usual()
    texts = re.findall(r"<(?:h2|caption|summary)[^>]*>(.*?)</(?:h2|caption|summary)>", page)
    drawn = re.findall(r'class="wide"><svg.*?<title[^>]*>(.*?)</title>', page, re.DOTALL)
    of_page = [text for text in texts if 'class="gain"' not in text]
    headings = [re.sub("<[^>]+>", "", text) for text in [*of_page, *drawn]]
    assert len(drawn) == 7
    assert sorted(headings) == sorted(set(headings))


def test_the_answer_has_its_figures_and_says_what_they_mean() -> None:
    page = usual()
    box = page[page.index('<section id="answer"') : page.index("</section>")]
    assert "<dt" not in box  # F4: all three may be the best, so no tiles of one of them
    assert "would show" in box
    assert "nDCG@10 tells how good the order of the first 10 hits is" in box


@pytest.mark.slow
def test_what_warns_of_the_answer_or_the_comparison_is_there_once_in_its_box() -> None:
    one, *others = make_runs(DATA)
    loud = replace(one, summary=one.summary.replace(warnings=["something was wrong"]))
    page = report_page(analyse(compare_runs([loud, *others]), [DATA]))
    box = page[page.index('<section id="answer"') : page.index("</section>")]
    assert '<li dir="auto" class="warning">one: something was wrong</li>' in box
    assert page.count("one: something was wrong") == 1
    *others, best = make_runs(DATA)
    judged = dict.fromkeys(best.evaluation.judged, 0.9)
    more = replace(best, evaluation=replace(best.evaluation, judged=judged))
    read = Page(report_page(analyse(compare_runs([*others, more]), [DATA])))
    assert read.text.count("hits without a judgement count as not relevant") == 1


def test_every_metric_and_slice_has_a_table_of_which_the_first_is_seen() -> None:
    page = usual()
    found = re.findall(r'<div data-metric="([^"]+)" data-slice="([^"]+)"( hidden)?>', page)
    (group,) = analyse(compare_runs(make_runs(DATA)), [DATA]).groups
    slices = {one.label for slicing in group.slicings for one in slicing.slices}
    assert len({name for name, _, _ in found}) == len(group.group.metrics)
    assert len({name for _, name, _ in found}) == len(slices) + 1
    assert len(found) == len(group.group.metrics) * (len(slices) + 1)
    assert [bool(hidden) for *_, hidden in found] == [False] + [True] * (len(found) - 1)


def test_each_choice_of_metric_and_slice_finds_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all of them have room, a slice is left out for every metric."""
    analysis = analyse(compare_runs(make_runs(DATA)), [DATA])
    (group,) = analysis.groups
    monkeypatch.setattr(choices, "MOST_TABLES", 2 * len(group.group.metrics) + 3)
    page = choices.choices_html(group, None)
    found = re.findall(r'data-metric="([^"]+)" data-slice="([^"]+)"', page)
    both = ({name for name, _ in found}, {name for _, name in found})
    assert sorted(found) == sorted(product(*both))
    assert len(both[1]) == 2


def test_with_a_baseline_the_first_table_holds_the_others_against_it() -> None:
    analysis = analyse(compare_runs(make_runs(DATA), baseline="one"), [DATA])
    page = choices.choices_html(analysis.groups[0], "one")
    assert "against one" in page
    assert "not compared" not in page


def test_links_of_the_contents_lead_to_parts() -> None:
    ids = [attrs["id"] for _, attrs in parsed().tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [a["href"] for tag, a in parsed().tags if tag == "a" and a.get("href")]
    assert len(targets) > 12
    assert all(str(target)[1:] in ids for target in targets)


def test_cost_stands_beside_quality_and_a_manifest_of_every_run_is_there() -> None:
    text = parsed().text
    for head in ("p50 ms", "p95 ms", "p99 ms", "calls/s", "index s", "memory MB", "disk MB"):
        assert head in text
    assert "120" in text
    assert "1.50" in text
    assert parsed().text.count("Manifest of") == 3
    assert '"session": "s"' in parsed().text


def test_pictures_can_be_read_aloud_and_tables_have_captions_and_heads() -> None:
    pictures = [attrs for tag, attrs in parsed().tags if tag == "svg"]
    assert len(pictures) == 2 * 7, "each for a desk and for a phone"
    ids = {attrs.get("id") for _, attrs in parsed().tags}
    for attrs in pictures:
        assert attrs["role"] == "img"
        assert set(str(attrs["aria-labelledby"]).split()) <= ids
    tables = sum(tag == "table" for tag, _ in parsed().tags)
    assert len(parsed().captions) == tables
    heads = [attrs for tag, attrs in parsed().tags if tag == "th"]
    assert {attrs.get("scope") for attrs in heads} == {"row", "col"}


@pytest.mark.slow
def test_nothing_says_where_files_lie_on_the_machine_of_the_author(tmp_path: Path) -> None:
    home = tmp_path / "home of 누구"
    one, *others = make_runs(DATA, warnings=[f"cannot read {home}/x.json"])
    told = {"source": f"{home}/my.yaml", "params": {"model": [str(home / "model")]}}
    manifest = {**one.manifest, "retriever": told, "dataset": {"source": str(home / "data")}}
    away = replace(one, manifest=manifest, folder=home / "runs" / "first")
    page = report_page(analyse(compare_runs([away, *others]), [f"no dataset at {tmp_path}/d."]))
    assert tmp_path.name not in page
    for shown in ("…/my.yaml", "…/model", "…/data", "…/first", "x.json", "no dataset at …/d."):
        assert shown in Page(page).text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/home/me/my docs/a b.yaml", "…/a b.yaml"),
        ("/home/me/own.py:Overlap", "…/own.py:Overlap"),
        (r"C:\Users\me\x.yaml", "…/x.yaml"),
        ("/data/a.json: 3 faults, 1/2 read", "…/a.json: 3 faults, 1/2 read"),
        ({"a": ["see /home/me/x, please", 1]}, {"a": ["see …/x, please", 1]}),
        ("https://host.org/a/b", "https://host.org/a/b"),
        ("own.py:Overlap and/or a/b/c", "own.py:Overlap and/or a/b/c"),
    ],
)
def test_folders_of_absolute_paths_are_cut_off(given: object, shown: object) -> None:
    assert without_folders(given) == shown


# -- safety --------------------------------------------------------------------------------------


def test_nothing_is_loaded_and_no_script_but_its_own_may_run() -> None:
    page = usual()
    assert not re.search(r"""(?:src|srcset|action|data|poster)\s*=\s*["']?(?!image)""", re.sub(
        r"<(?:script|style)\b.*?</(?:script|style)>|&[a-z#0-9]+;.*?<", "", page, flags=re.DOTALL
    ).replace("data-", ""))  # fmt: skip
    links = re.findall(r'href="([^"]*)"', page)
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert not re.search(r"@import|url\((?!#)", page)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    [policy] = [a["content"] for t, a in parsed().tags if a.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; script-src 'sha256-")
    script_rule = str(policy).split(";")[1]
    assert "unsafe" not in script_rule


def test_the_policy_knows_the_script_that_is_there() -> None:
    import base64
    import hashlib

    own = [script for script in parsed().scripts if not script.startswith("{")]
    assert len(own) == 1
    digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in usual()


def test_texts_are_shown_and_never_become_elements() -> None:
    """The parser checks that every element is closed where it was opened."""
    known = {
        "a", "b", "bdi", "body", "button", "caption", "circle", "code", "dd", "defs", "desc",
        "details", "div", "dl", "dt", "figure", "footer", "g", "h1", "h2", "h3", "head", "header",
        "html", "li", "line", "link",
        "main", "meta", "nav", "ol", "p", "path", "pattern", "pre", "rect",
        "script", "section", "small", "span", "strong", "style", "summary", "sup", "svg", "table",
        "tbody", "td", "text", "th", "thead", "title", "tr", "tspan", "ul", "use", "clippath",
    }  # fmt: skip
    page = parsed()
    assert {tag for tag, _ in page.tags} <= known
    assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert "<script>window.broken = 1</script> \"quoted\" & 'single'" in page.text
    assert "</script><img src=x onerror='window.broken = 2'> -->" in page.text


@pytest.mark.slow
def test_names_from_data_are_escaped_everywhere() -> None:
    names = [" ".join(NASTY[:4]), NASTY[4] + NASTY[1], " ".join(NASTY[5:])]
    page = page_of(make_runs(DATA, names, warnings=NASTY), title=NASTY[0])
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    for name in names:
        assert " ".join(harmless(name).split()) in page.text
    assert NASTY[0] in page.text
    assert page.explorers[0]["systems"] == list(map(harmless, names))


def test_what_html_cannot_hold_is_replaced() -> None:
    assert harmless("a\x00b\ud800c\uffff") == "a\ufffdb\ufffdc\ufffd"
    assert harmless("x\u202ey\u2066z") == "xyz"
    assert harmless("한국어 العربية\n\t🎉") == "한국어 العربية\n\t🎉"
    usual().encode()  # no lone surrogate is left


def test_only_markup_is_not_escaped() -> None:
    assert el("p", "<b>", Markup("<i></i>"), title='"x"') == (
        '<p title="&quot;x&quot;">&lt;b&gt;<i></i></p>'
    )
    assert joined(["a", Markup("<br>")], " & ") == "a &amp; <br>"
    assert el("input", hidden=True, value=None, class_="n") == '<input hidden class="n">'


def test_json_in_html_ends_no_script_and_reads_back() -> None:
    given = {"text": NASTY[:3] + NASTY[4:], "line": "\u2028", "sign": "<!--&"}
    text = json_in_html(given)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == given


# -- without texts -------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_texts_none_is_left_anywhere() -> None:
    quoting = [f"failed on {query.text}" for query in DATA.queries]
    comparison = compare_runs(make_runs(DATA, warnings=quoting))
    page = report_page(analyse(comparison, [DATA]), with_text=False)
    for text in ("question", "title 1", "title 2", "text of", *NASTY[:3], *NASTY[5:]):
        assert text not in page.replace('<title id="', "")
        assert harmless(text) not in Page(page).text
    shown = Page(page)
    assert "30 warnings left out with --no-text" in shown.text
    [data] = shown.explorers
    assert data["queries"][0].keys() == {"i", "v", "p", "r", "j", "l"}
    assert all(len(doc) == 1 for doc in data["docs"])


# -- the explorer --------------------------------------------------------------------------------


def test_the_explorer_holds_rankings_grades_and_ranks_of_legs() -> None:
    [data] = parsed().explorers
    runs = make_runs(DATA)
    assert data["systems"] == ["one", "two", "both"]
    assert data["legs"] == [[], [], ["sparse", "dense"]]
    assert len(data["queries"]) == 30
    for query in data["queries"]:
        at = runs[2].rankings.query_ids.index(query["i"])
        for system, run in enumerate(runs):
            shown = [data["docs"][doc][0] for doc in query["r"][system]]
            assert shown == list(run.rankings.row(at).doc_ids)
            value = run.evaluation.values(Metric("nDCG", 10))[at]
            assert query["v"][system] == pytest.approx(value, abs=1e-4)
        grades = {data["docs"][int(doc)][0]: grade for doc, grade in query["j"].items()}
        known = DATA.qrels[query["i"]]
        assert grades == {d: g for d, g in known.items() if g or d in grades}
        for doc, ranks in query["l"]["2"].items():
            for leg, rank in zip(data["legs"][2], ranks, strict=False):
                own = runs[2].rankings.leg_lists[leg][at].tolist()
                ids = [runs[2].rankings.doc_ids[i] for i in own if i >= 0]
                name = data["docs"][int(doc)][0]
                assert rank == (ids.index(name) + 1 if name in ids else 0)


def test_without_the_script_the_largest_differences_are_there_to_open() -> None:
    page = usual()
    still = page[page.index('<div class="still">') : page.index('<script type="application/json">')]
    gains = [float(x) for x in re.findall(r'class="gain">([^<]+)<', still)]
    assert len(gains) == 20
    assert np.abs(gains).tolist() == sorted(np.abs(gains).tolist(), reverse=True)
    assert still.count("<details") == 20
    assert "Relevant documents that are not among its 10:" in still
    assert "grade\u00a02" in still


@pytest.mark.slow
def test_a_page_stays_below_its_limit_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document, "LARGEST", 400_000)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    data = make_dataset(1_000)
    text = report_page(analyse(compare_runs(make_runs(data, rounds=1)), [data]))
    assert 250_000 < len(text.encode()) < 400_000
    page = Page(text)
    [found] = page.explorers
    shown = len(found["queries"])
    assert 20 < shown < 1_000
    assert f"{shown:,} of 1,000 queries: those with the largest differences." in page.text


# -- any runs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_equal_input_gives_equal_text() -> None:
    assert report_page(analyse(compare_runs(make_runs(DATA)), [DATA])) == usual()


@pytest.mark.slow
def test_without_its_dataset_a_page_says_why_and_has_the_rest() -> None:
    page = page_of(make_runs(DATA), "the dataset 'sample' of the run was not found again.")
    assert "No slices: the dataset 'sample' of the run was not found again." in page.text
    assert "No single queries: the dataset 'sample'" in page.text
    assert "Hybrids and their legs" not in page.headings
    assert len([tag for tag, _ in page.tags if tag == "svg"]) == 2 * 6
    assert page.explorers == []


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_without_vl_convert_a_page_says_so_and_has_the_rest() -> None:
    """Who reads a page installs nothing: the reason is for who makes it."""
    told: list[str] = []
    page = Page(
        report_page(analyse(compare_runs(make_runs(DATA)), [DATA]), no_pictures=told.append)
    )
    assert told == ["the package vl-convert-python is not installed"]
    assert "This page was made without pictures." in page.text
    assert "installed" not in page.text
    assert not [tag for tag, _ in page.tags if tag == "svg"]
    assert len(page.explorers) == 1


@pytest.mark.slow
def test_rankings_without_times_have_no_picture_of_them() -> None:
    page = page_of(make_runs(DATA, replayed=True))
    assert "No system has a time" in page.text
    assert "Quality and time" in page.headings
    bare = [replace(run, timings=replace(run.timings, **_nothing(run))) for run in make_runs(DATA)]
    assert page_of(bare).explorers


def _nothing(run: Run) -> dict[str, Any]:
    names = ("wall_ns", "round", "position", "query", "failed", "launch")
    return {name: getattr(run.timings, name)[:0] for name in names} | {"stages": {}}


@pytest.mark.slow
def test_few_calls_show_p50_and_one_query_is_a_page() -> None:
    page = page_of(make_runs(DATA, rounds=2))
    assert "p50 of all calls" in page.text
    data = make_dataset(1)
    page = page_of(make_runs(data, rounds=40), data)
    assert len(page.explorers[0]["queries"]) == 1


@pytest.mark.slow
def test_twenty_seven_systems_of_one_name() -> None:
    runs = make_runs(DATA, ["same"] * 27, rounds=2)
    page = Page(report_page(analyse(compare_runs(runs, baseline="same"), [DATA])))
    assert "same#27" in page.text
    [data] = page.explorers
    assert len(data["systems"]) == 27
    assert len(set(data["systems"])) == 27


@pytest.mark.slow
@pytest.mark.parametrize(("n", "open_", "folded"), [(6, 15, None), (7, 6, 21), (13, 12, None)])
def test_of_many_pairs_those_of_the_best_system_are_open(
    n: int, open_: int, folded: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    runs = [_only_first_metric(run) for run in make_runs(DATA, ["s"] * n, rounds=2)]
    page = report_page(analyse(compare_runs(runs), [DATA]))
    part = page[page.index('<section id="d1-differences"') : page.index('<section id="d1-times"')]
    counts = [body.count("<tr>") for body in re.findall(r"<tbody>.*?</tbody>", part)]
    assert counts == ([open_] if folded is None else [open_, folded])
    assert ("All pairs in nDCG@10" in part) == (folded is not None)
    assert ("more pairs: --format json has all." in part) == (open_ < n * (n - 1) / 2)


def _only_first_metric(run: Run) -> Run:
    found = run.evaluation
    first = replace(
        found, metrics=found.metrics[:1], per_query=found.per_query[:, :1], means=found.means[:1]
    )
    return replace(run, evaluation=first)


@pytest.mark.usefixtures("undrawn")
def test_what_cannot_be_compared_is_told_as_the_answer_or_not_explored() -> None:
    other = make_dataset(20, "other")
    runs = [make_runs(DATA)[0], make_runs(other)[1]]
    page = page_of(runs, "runs on 2 datasets or splits.")
    assert "Nothing here can be compared" in page.text
    assert "different dataset fingerprint" in page.text
    one, two = make_runs(DATA)[:2]
    page = page_of([one, replace(two, summary=two.summary.replace(k=5))])
    assert "No two systems here can be compared query by query." in page.text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_several_datasets_have_their_parts_and_one_table_of_all() -> None:
    other = make_dataset(20, "other")
    page = page_of([*make_runs(DATA), *make_runs(other)], DATA, other)
    assert "All datasets" in page.headings
    for name in ("sample", "other"):
        assert f"Single queries on {name}" in page.headings
    assert [len(data["queries"]) for data in page.explorers] == [30, 20]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_partial_runs_and_warnings_stand_with_the_answer() -> None:
    one, *others = make_runs(DATA)
    part = replace(one, summary=one.summary.replace(status="partial"))
    page = page_of([part, *others])
    assert "one was interrupted" in page.text


# -- tables --------------------------------------------------------------------------------------


def test_a_table_can_be_sorted_unless_it_has_sections_or_one_row() -> None:
    rows: list[list[Content]] = [["a", Cell(1, interval=(0, 2), marks="bc")], ["d", COUNT(2)]]
    html = whole(Table("T", ["", "x"], rows, notes=["n < 3", warning("mind")]))
    assert html.count("<tr>") == 3
    assert "1<sup>bc</sup><small>[0, 2]</small>" in html
    assert '<table class="sortable">' in html
    assert '<li dir="auto" class="method">n &lt; 3</li>' in html
    assert '<li dir="auto" class="warning">mind</li>' in html
    assert '<th scope="row" dir="auto">a</th>' in html
    sections = Table("T", ["a", "b"], [["x", "1"], ["y", "2"]], rules=[1])
    assert "sortable" not in whole(sections)
    assert whole(sections).count("<tbody>") == 2
    assert "sortable" not in whole(Table("T", ["a"], [["x"]]))


def test_the_script_is_small() -> None:
    assert len(document._file("script.js").encode()) < 12_000


# -- methods, verification -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "warm_up", "says", "never"),
    [
        (((), ()), (1, 1), ["have relevance judgements", "NIST", ", after a warm-up,"], "where"),
        ((("spans",),) * 2, (0, 0), ["have answer spans", ", without a warm-up,"], "NIST"),
        ((("slots",),) * 2, (0, 1), ["have rules for their hits", "client, over"], "NIST"),
        (((), ("spans",)), (1, 1), ["NIST", "apart where documents are judged."], "spans"),
    ],
)
def test_methods_claim_only_what_was_done(
    kept: Any, warm_up: tuple[int, ...], says: list[str], never: str
) -> None:
    runs = []
    for run, keys, calls in zip(make_runs(DATA), kept, warm_up, strict=False):
        latency = run.summary.latency_ms.replace(warm_up_calls=calls)
        manifest = {**run.manifest, **dict.fromkeys(keys)}
        summary = run.summary.replace(latency_ms=latency)
        runs.append(replace(run, summary=summary, manifest=manifest))
    paragraph = methods(compare_runs(runs))[0].split("\n\n")[1]
    assert [text for text in says if text not in paragraph] == []
    assert never not in paragraph


def test_a_value_that_is_no_number_is_not_that_of_the_rankings() -> None:
    run, *_ = make_runs(DATA)
    assert list(verify._of_rankings(run, DATA, "a run")) == []
    values = run.evaluation.per_query.copy()
    values[0, 0] = np.nan
    changed = replace(run, evaluation=replace(run.evaluation, per_query=values))
    (found,) = verify._of_rankings(changed, DATA, "a run")
    assert found.says == "nan"
