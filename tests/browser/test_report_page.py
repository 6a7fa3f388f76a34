"""The report in a real browser: it runs without a fault, loads nothing, and does what it says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench_pages.analysis import analyse
from retrieval_bench_pages.html_page import report_page
from tests.builders.page_sample import make_dataset, make_runs

pytestmark = [pytest.mark.needs("playwright"), pytest.mark.slow]

SIZES = pytest.mark.parametrize("width", [1280, 390])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


@dataclass
class Opened:
    """A page that is open, and what it complained of or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = make_dataset(60)
    page = report_page(analyse(compare_runs(make_runs(data)), [data]))
    path = tmp_path_factory.mktemp("report") / "보고서.html"
    path.write_text(page, encoding="utf-8")
    return path


def opened(
    browser: Any, report: Path, *, width: int = 1280, scheme: str = "light", scripts: bool = True
) -> Opened:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
    )
    page = context.new_page()
    seen = Opened(page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(report.as_uri())
    return seen


@pytest.fixture
def seen(browser: Any, report: Path) -> Iterator[Opened]:
    found = opened(browser, report)
    yield found
    assert found.complaints == []
    found.page.context.close()


def ids(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".list .query > summary .id").all_inner_texts()]


def gains(page: Any) -> list[float]:
    return [float(text) for text in page.locator(".list .gain").all_inner_texts()]


def open_first(page: Any) -> Any:
    """The first query in the list, opened: the browser tells the script a moment later."""
    query = page.locator(".list .query").first
    query.locator("summary").click()
    query.locator(".pair > div").nth(1).wait_for()
    return query


def test_it_runs_without_a_fault_and_asks_for_nothing_but_itself(
    seen: Opened, report: Path
) -> None:
    for summary in seen.page.locator("section > details > summary").all():
        summary.click()
    assert seen.complaints == []
    assert seen.requests == [report.as_uri()]


def test_nothing_of_the_texts_was_run(seen: Opened) -> None:
    open_first(seen.page)
    assert seen.page.evaluate("window.broken") is None
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("body").evaluate("e => getComputedStyle(e).display") != "none"


def test_a_head_sorts_its_column_and_says_so(seen: Opened) -> None:
    table = seen.page.locator("#d1-times table.sortable").first
    head = table.locator("th[scope=col]", has_text="p50 ms")
    column = head.evaluate("e => e.cellIndex")

    def values() -> list[float]:
        cells = table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
        return [float(text.split()[0].replace(",", "")) for text in cells]

    head.locator("button").click()
    assert values() == sorted(values(), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    seen.page.keyboard.press("Enter")  # the button has the focus
    assert values() == sorted(values())
    assert head.get_attribute("aria-sort") == "ascending"
    table.locator("th[scope=col] button", has_text="system").click()
    names = table.locator("tbody th").all_inner_texts()
    assert names == sorted(names)
    assert head.get_attribute("aria-sort") is None


def test_intervals_move_with_their_figures(seen: Opened) -> None:
    table = seen.page.locator("#d1-systems > .scroll table.sortable")
    before = table.locator("tbody tr").all_inner_texts()
    for _ in range(2):  # the best first, as they stand, then the other way round
        table.locator("button", has_text="nDCG@10").click()
    after = table.locator("tbody tr").all_inner_texts()
    assert after != before
    assert sorted(after) == sorted(before)


def test_queries_are_found_by_id_and_text(seen: Opened) -> None:
    search = seen.page.get_by_label("search ids and texts")
    search.fill("양자 컴퓨터")
    assert sorted(ids(seen.page)) == sorted(f"q{i}" for i in range(60) if i % 10 == 6)
    search.fill("Q41")
    assert ids(seen.page) == ["q41"]
    search.fill("nothing like that")
    assert ids(seen.page) == []
    assert seen.page.get_by_role("status").inner_text().startswith("0 of 60 queries")


def test_queries_are_sorted_as_asked(seen: Opened) -> None:
    sort = seen.page.get_by_label("sort by")
    assert [abs(gain) for gain in gains(seen.page)] == sorted(
        (abs(gain) for gain in gains(seen.page)), reverse=True
    )
    sort.select_option("gain")
    assert gains(seen.page) == sorted(gains(seen.page), reverse=True)
    sort.select_option("loss")
    assert gains(seen.page) == sorted(gains(seen.page))
    sort.select_option("id")
    assert ids(seen.page)[:3] == ["q0", "q1", "q2"]


def test_queries_are_filtered_by_who_wins_and_by_fusion(seen: Opened) -> None:
    only = seen.page.get_by_label("only")
    only.select_option("both is better")
    assert gains(seen.page)
    assert min(gains(seen.page)) > 0
    only.select_option("both: lost by fusion")
    found = ids(seen.page)
    assert found
    assert "both: lost by fusion" in open_first(seen.page).locator(".groups").inner_text()


def test_another_pair_can_be_chosen(seen: Opened) -> None:
    seen.page.get_by_label("system", exact=True).select_option("one")
    assert "of one minus two" in seen.page.get_by_role("status").inner_text()
    heads = open_first(seen.page).locator("h3").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["one", "two"]
    first, second = (float(head.split()[1]) for head in heads)
    assert first - second == pytest.approx(gains(seen.page)[0], abs=2e-4)


def test_metric_and_slice_are_chosen_among_the_tables_that_are_there(seen: Opened) -> None:
    def shown() -> list[str]:
        captions = seen.page.locator(".choices caption").all()
        return [one.inner_text() for one in captions if one.is_visible()]

    assert shown() == ["nDCG@10 over all 60 queries"]
    seen.page.get_by_label("metric", exact=True).select_option("MRR@10")
    assert shown() == ["MRR@10 over all 60 queries"]
    queries = seen.page.get_by_label("queries", exact=True)
    label = queries.locator("option").nth(1).inner_text()
    queries.select_option(label)
    (caption,) = shown()
    assert caption.startswith("MRR@10 over ")
    assert caption != "MRR@10 over all 60 queries"


def test_the_answer_needs_no_sideways_scroll_on_a_phone(browser: Any, report: Path) -> None:
    found = opened(browser, report, width=390)
    wide = found.page.evaluate(
        "[...document.querySelectorAll('#answer *')].filter(e => e.scrollWidth > e.clientWidth + 1"
        " && getComputedStyle(e).display !== 'inline').length"
    )
    assert wide == 0
    assert found.page.locator(".menu").is_visible()
    assert not found.page.locator("nav.side").is_visible()
    table = found.page.locator("table.judged").first
    scroll = table.locator("xpath=..")
    kept, moved = scroll.evaluate("e => getComputedStyle(e).backgroundAttachment").split(", ")[::-1]
    assert (kept, moved) == ("scroll", "local"), "nothing shows that the table scrolls"
    box = scroll.bounding_box()
    for cell in (table.locator("tbody th").first, table.locator("tbody td:last-child").first):
        place = cell.bounding_box()
        assert box["x"] - 1 <= place["x"]
        assert place["x"] + place["width"] <= box["x"] + box["width"] + 1
    found.page.context.close()


def test_contents_stand_at_the_side_of_a_desk(seen: Opened) -> None:
    assert seen.page.locator("nav.side").is_visible()
    assert not seen.page.locator(".menu").is_visible()


def test_more_queries_are_shown_on_demand(seen: Opened) -> None:
    more = seen.page.get_by_role("button", name="Show more")
    assert len(ids(seen.page)) == 20
    more.click()
    assert len(set(ids(seen.page))) == 40
    more.click()
    assert len(set(ids(seen.page))) == 60
    assert more.is_hidden()


def test_a_query_opens_with_both_rankings_and_texts_as_texts(seen: Opened) -> None:
    seen.page.get_by_label("search ids and texts").fill("question 10 ")
    [query] = seen.page.locator(".list .query").all()
    assert '<script>window.broken = 1</script> "quoted"' in query.inner_text()
    query.locator("summary").focus()
    seen.page.keyboard.press("Enter")
    query.locator(".pair > div").nth(1).wait_for()
    shown = query.inner_text()
    assert "grade\u00a02" in shown
    assert "sparse\u00a0" in shown
    assert query.locator("li.relevant").count() >= 1


@SCHEMES
@SIZES
def test_the_page_is_as_wide_as_the_screen(
    browser: Any, report: Path, width: int, scheme: str
) -> None:
    found = opened(browser, report, width=width, scheme=scheme)
    for summary in found.page.locator("section > details > summary").all():
        summary.click()
    open_first(found.page)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    assert found.complaints == []
    # One of the two drawings is seen, and fits.
    drawn = [one for one in found.page.locator("figure svg").all() if one.is_visible()]
    assert len(drawn) == found.page.locator("figure").count()
    assert all(300 < one.bounding_box()["width"] <= width for one in drawn)
    found.page.context.close()


CONTRAST = """
() => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)|transparent/.test(color)) return color;
    }
  };
  let least = 99;
  const text = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (text.nextNode()) {
    const e = text.currentNode.parentElement;
    if (!text.currentNode.textContent.trim() || e.closest("svg, script, [hidden]")) continue;
    const pair = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
    least = Math.min(least, (pair[0] + 0.05) / (pair[1] + 0.05));
  }
  return least;
}
"""


@SCHEMES
def test_every_text_stands_out_from_its_background(browser: Any, report: Path, scheme: str) -> None:
    found = opened(browser, report, scheme=scheme)
    open_first(found.page)
    assert found.page.evaluate(CONTRAST) >= 4.5, "contrast of WCAG 2.2, AA"
    paper = found.page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 24, 28)"}[scheme]
    found.page.context.close()


def test_without_scripts_tables_pictures_and_queries_are_there(browser: Any, report: Path) -> None:
    found = opened(browser, report, scripts=False)
    page = found.page
    assert page.locator("table").first.is_visible()
    assert page.locator("figure svg").first.is_visible()
    assert page.locator("button, select, input").count() == 0, "nothing that would do nothing"
    assert page.locator("details.query").count() == 20
    query = page.locator("details.query").first
    assert not query.locator("ol").first.is_visible()
    query.locator("summary").click()
    assert query.locator("ol").first.is_visible()
    assert not page.locator(".shown").is_visible()
    page.context.close()


def test_a_keyboard_reaches_the_answer_first(seen: Opened) -> None:
    seen.page.keyboard.press("Tab")
    focused = seen.page.locator(":focus")
    assert focused.inner_text() == "Skip to the answer"
    assert focused.bounding_box()["x"] >= 0, "seen while it has the focus"
    seen.page.keyboard.press("Enter")
    assert seen.page.url.endswith("#answer")


AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@SCHEMES
@SIZES
def test_axe_finds_nothing(browser: Any, report: Path, width: int, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip(f"no axe-core: npm install --no-save --prefix {sys.prefix}/axe axe-core")
    found = opened(browser, report, width=width, scheme=scheme)
    for summary in found.page.locator("section > details > summary").all():
        summary.click()
    open_first(found.page)
    found.page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = found.page.evaluate("axe.run().then((found) => found.violations)")
    told = {one["id"]: [node["html"][:200] for node in one["nodes"]] for one in violations}
    assert told == {}
    found.page.context.close()
