"""The page on which people judge, in a real browser and by keyboard alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_labels.judge.judging import Judging
from retrieval_bench_labels.judge.offline import offline_page, read_offline
from retrieval_bench_labels.label import Label, Pair, Pool
from retrieval_bench_labels.store import Store
from tests.builders.labels import HOSTILE, changed_text, make_pool, make_store, said, served
from tests.builders.processes import within

pytestmark = [pytest.mark.needs("playwright"), pytest.mark.slow]

SIZES = pytest.mark.parametrize("width", [1280, 390])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"

POOL = make_pool()


class Judge:
    """Somebody with a keyboard; ``complaints`` are of the browser."""

    def __init__(self, browser: Any, url: str, who: str = "", **given: Any) -> None:
        size = {"width": given.pop("width", 1280), "height": 800}
        self.context = browser.new_context(viewport=size, **given)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        if who:
            self.type(who)
            self.press("Enter")
            self.ready()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def ready(self) -> None:
        """Wait until nothing is on its way."""
        self.page.locator("body[aria-busy=false]").wait_for()

    def grade(self, *keys: str) -> None:
        for key in keys:
            self.press(key)
            self.ready()

    def text(self, id_: str) -> str:
        return str(self.page.locator(f"#{id_}").text_content())

    def dialogs(self, answer: str) -> list[str]:
        """The kinds of dialogs that come from now on; each is answered so."""
        kinds: list[str] = []

        def on_dialog(dialog: Any) -> None:
            kinds.append(dialog.type)
            getattr(dialog, answer)()

        self.page.on("dialog", on_dialog)
        return kinds

    def seen(self, id_: str) -> bool:
        return bool(self.page.locator(f"#{id_}").is_visible())

    def cut_off(self) -> list[str]:
        """Buttons whose text does not fit into them."""
        wide = "b => b.checkVisibility() && b.scrollWidth > b.clientWidth"
        script = f"[...document.querySelectorAll('button')].filter({wide}).map(b => b.id)"
        return [str(id_) for id_ in self.page.evaluate(script)]

    def too_wide(self) -> bool:
        width: int = self.page.evaluate("document.documentElement.scrollWidth")
        return width > int(self.page.viewport_size["width"])


Open = Callable[..., Judge]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", POOL)


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with served(store) as server:
        yield server.url


@pytest.fixture
def judges(browser: Any) -> Iterator[Open]:
    """Opens pages, which must have complained of nothing in the end."""
    opened: list[Judge] = []

    def open_(url: str, who: str = "", **given: Any) -> Judge:
        opened.append(Judge(browser, url, who, **given))
        return opened[-1]

    yield open_
    for one in opened:
        assert one.complaints == []
        one.context.close()


def kept(store: Store) -> dict[Pair, Label]:
    return {label.pair: label for label in Store(store.path).labels()}


def grades(store: Store) -> list[int | None]:
    return [label.grade for label in store.labels()]


@SIZES
def test_all_is_done_by_keyboard(judges: Open, store: Store, url: str, width: int) -> None:
    anna = judges(url, width=width)
    assert "Answers the question fully." in anna.text("entry")
    anna.type("안나 B")
    anna.press("Enter")
    anna.ready()
    assert (anna.text("query"), anna.text("title")) == ("question 0?", "Title d0-0")
    assert anna.text("progress") == (
        "0 of 3 questions, 0 of 9 documents judged; about 3 more questions are worth judging"
    )
    anna.grade("2")
    assert grades(store) == [2]
    anna.press("n")
    anna.type("0 and s and u are no keys in here")
    anna.press("Enter", "m", "ArrowDown", "ArrowLeft", "ArrowLeft", "Shift+ArrowRight")
    anna.press("Enter")
    assert anna.text("text") == "The text of d0-1. It has two sentences."
    assert anna.page.locator("mark").text_content() == "has two"
    anna.grade("3")
    label = kept(store)[Pair("q0", "d0-1")]
    assert label.note == "0 and s and u are no keys in here"
    start, stop = label.span or (0, 0)
    assert POOL.documents["d0-1"].text[start:stop] == "has two"
    anna.grade("s")
    assert grades(store) == [2, 3, None]
    assert anna.text("query") == "question 1?"
    anna.grade("u", "Backspace")
    assert grades(store) == [2]
    assert anna.text("title") == "Title d0-1"
    assert anna.page.locator("mark").text_content() == "has two"
    assert anna.page.locator("#note").input_value() == label.note
    assert anna.page.locator("[aria-pressed=true]").get_attribute("value") == "3"
    anna.press("?")
    assert anna.seen("help")
    anna.press("1", "?")
    assert not anna.seen("help")
    assert grades(store) == [2], "a key of the help grades nothing"
    anna.grade(*"01230123")
    assert anna.text("end-head") == "Nothing is left for you, 안나 B."
    assert "retrieval-bench label status" in anna.text("end")
    assert len(kept(store)) == 9
    anna.grade("u")
    assert anna.text("title") == "Title d2-2"
    assert not anna.too_wide()


def test_the_buttons_are_reached_and_pressed_by_keyboard(
    judges: Open, store: Store, url: str
) -> None:
    anna = judges(url, "anna")
    reached = []
    for _ in range(8):
        anna.press("Tab")
        reached.append(str(anna.page.locator(":focus").text_content()).split()[0])
    assert [name[0] for name in reached] == list("0123smn?"), "undo can do nothing yet"
    anna.page.locator("#grades button").nth(1).focus()
    anna.press("Space")
    anna.ready()
    assert grades(store) == [1]
    assert anna.page.evaluate("document.activeElement.id") == "document"


def test_a_key_that_is_held_down_judges_one_document(judges: Open, store: Store, url: str) -> None:
    anna = judges(url, "anna")
    for _ in range(5):
        anna.page.keyboard.down("1")
        anna.ready()
    assert grades(store) == [1]


def test_letters_are_known_by_their_place_on_another_keyboard(
    judges: Open, store: Store, url: str
) -> None:
    anna = judges(url, "anna")
    press = (
        "([key, code]) => document.body.dispatchEvent("
        "new KeyboardEvent('keydown', {key, code, bubbles: true, cancelable: true}))"
    )
    for key, code in (("ㄴ", "KeyS"), ("&", "Digit1"), ("ㅕ", "KeyU")):
        anna.page.evaluate(press, [key, code])
        anna.ready()
    assert grades(store) == [None]


def test_keys_with_ctrl_belong_to_the_browser(judges: Open, store: Store, url: str) -> None:
    anna = judges(url, "anna")
    anna.press("Control+1", "Alt+2", "Control+u")
    anna.ready()
    assert grades(store) == []


def test_a_selection_is_what_is_marked(judges: Open, store: Store, url: str) -> None:
    anna = judges(url, "anna")
    anna.page.locator("#text").evaluate(
        "e => getSelection().setBaseAndExtent(e.firstChild, 3, e.firstChild, 9)"
    )
    anna.grade("m", "1")
    assert kept(store)[Pair("q0", "d0-0")].span == (4, 8)


@pytest.mark.parametrize(
    ("question", "text", "underlined"),
    [
        (
            "How do whales sleep?",
            "A whale sleeps. Narwhals do not. WHALE!",
            ["whale", "sleep", "WHALE"],
        ),
        ("고래의 심장은 얼마나 큰가", "고래는 심장이 크다.", ["고래", "심장"]),
        ("鲸鱼的心脏", "鲸鱼有心脏。", ["鲸鱼", "心脏"]),
        ("Pourquoi l'été ?", "L'été vient.", ["été"]),
    ],
)
def test_words_of_the_question_are_underlined_and_the_text_stays(
    judges: Open, tmp_path: Path, question: str, text: str, underlined: list[str]
) -> None:
    pool = make_pool(texts={"d": text})
    pool = replace(pool, queries=(replace(pool.queries[0], text=question),))
    with served(make_store(tmp_path / "asked.sqlite", pool)) as server:
        judge = judges(server.url, "Ada")
        words = judge.page.evaluate(
            "[...CSS.highlights.get('asked')]"
            ".filter(r => r.startContainer.parentNode.id === 'text').map(r => r.toString())"
        )
        assert sorted(words) == sorted(underlined)
        assert judge.text("text") == text


def test_a_mark_can_be_given_up(judges: Open, store: Store, url: str) -> None:
    anna = judges(url, "anna")
    anna.press("m", "Enter", "m", "ArrowDown", "Escape")
    assert anna.page.locator("mark").text_content() == "The text of d0-0."
    anna.press("m", "Delete")
    assert anna.page.locator("mark").count() == 0
    anna.press("m", "Shift+ArrowDown")
    assert anna.page.locator("mark").text_content() == POOL.documents["d0-0"].text
    anna.grade("2")
    assert kept(store)[Pair("q0", "d0-0")].span == (0, 39), "a grade keeps the mark"


@SIZES
def test_hostile_texts_are_shown_as_texts(judges: Open, tmp_path: Path, width: int) -> None:
    pool = make_pool(texts=HOSTILE)
    store = make_store(tmp_path / "hostile.sqlite", pool)
    with served(store) as server:
        url = server.url
        anna = judges(url, "<img src=x onerror=alert(1)>", width=width)
        for text in HOSTILE.values():
            assert anna.text("query") == "Which <b>text</b> is it?"
            assert anna.text("title") == f"title: {text[:60]}"
            assert anna.text("text") == (text or "There is no text but the title.")
            assert not anna.too_wide()
            anna.press("m", "ArrowDown", "Enter")
            anna.grade("0")
        assert anna.text("who") == "<img src=x onerror=alert(1)>"
        assert anna.page.evaluate("window.broken") is None
        assert anna.page.locator("img, main script, main a").count() == 0
        assert {request.split("?")[0].rpartition("/")[0] for request in anna.requests} == {
            url.rstrip("/"),
            f"{url}api",
        } | ({"data:,"} & set(anna.requests))
    label = kept(store)[Pair("q0", "emoji")]
    start, stop = label.span or (0, 0)
    assert HOSTILE["emoji"][start:stop] == "The second sentence is here."


CODE = """
import sys
from pathlib import Path
from retrieval_bench_labels.judge.judging import Judging
from retrieval_bench_labels.judge.server import open_server
from retrieval_bench_labels.store import Store
with open_server(Judging(Store(Path(sys.argv[1])))) as server:
    print(server.url, flush=True)
    server.serve_forever()
"""


@contextmanager
def process(store: Store) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its URL."""
    command = [sys.executable, "-c", CODE, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


def test_a_server_that_is_killed_loses_nothing(browser: Any, store: Store) -> None:
    with process(store) as (first, url):
        anna = Judge(browser, url, "anna")
        anna.grade("1", "2")
        first.send_signal(signal.SIGKILL)
        first.wait()
        anna.press("n")
        anna.type("said while nobody heard it")
        anna.press("Enter", "3")
        problem = anna.page.locator("#problem", has_text="Not saved: the server does not answer")
        problem.wait_for()
        assert anna.text("title") == "Title d0-2", "what is not saved stays on the screen"
        anna.press("0", "s", "u")
    assert grades(store) == [1, 2]
    with process(store) as (_, again):
        assert again == url
        anna.page.locator("#title", has_text="Title d1-0").wait_for()
        assert anna.text("problem") == ""
        assert grades(store) == [1, 2, 3]
        assert kept(store)[Pair("q0", "d0-2")].note == "said while nobody heard it"
        opened = Judge(browser, url, "anna")
        assert opened.text("title") == "Title d1-0"
        assert "3 of 9 documents judged" in opened.text("progress")
        opened.context.close()
    anna.context.close()


def test_an_answer_that_is_on_its_way_is_not_left_behind(browser: Any, store: Store) -> None:
    with process(store) as (started, url):
        anna = Judge(browser, url, "anna")
        started.kill()
        started.wait()
        anna.press("1")
        anna.page.locator("#problem", has_text="Not saved").wait_for()
        asked = anna.dialogs("dismiss")
        anna.page.close(run_before_unload=True)
        assert within(5, lambda: bool(anna.page.wait_for_timeout(50) or asked))
        assert asked == ["beforeunload"]
        anna.context.close()


def test_two_people_at_once_and_a_third_where_they_differ(
    judges: Open, browser: Any, tmp_path: Path
) -> None:
    pool = make_pool(20, 1)
    store = make_store(tmp_path / "two.sqlite", pool)
    with served(store) as server:
        url = server.url
        people = {"1": judges(url, "anna"), "2": judges(url, "ben", width=390)}
        while any(one.seen("document") for one in people.values()):
            for grade, one in people.items():
                if one.seen("document"):
                    one.press(grade)  # both answers are on their way at once
            for one in people.values():
                one.ready()
        who: dict[Pair, set[str]] = {}
        for label in store.labels():
            who.setdefault(label.pair, set()).add(label.who)
        both = {pair for pair, names in who.items() if names == {"anna", "ben"}}
        assert set(who) == set(pool.pairs)
        assert 0 < len(both) < 20
        assert "people differ" in people["1"].text("end")
        carl = judges(url, "carl")
        settled = set()
        while carl.seen("document"):
            assert carl.text("place").startswith("Others differ on this one")
            carl.grade("2")
        settled = {label.pair for label in store.labels() if label.who == "carl"}
        assert settled == both
    assert Judging(store).progress().disputed == 0


def test_of_a_pool_of_5_000_documents_the_page_gets_no_more_than_of_a_small_one(
    judges: Open, tmp_path: Path
) -> None:
    pool = make_pool(500, 10)
    store = make_store(tmp_path / "large.sqlite", pool)
    store.add_all(said(pool, *pair, "ben", 1) for pair in pool.pairs[:2_000])
    with served(store) as server:
        url = server.url
        anna = judges(url)
        sizes: list[int] = []
        anna.page.on("response", lambda got: sizes.append(int(got.headers["content-length"])))
        anna.type("anna")
        anna.press("Enter")
        anna.page.locator("#title:not(:empty)").wait_for()
        anna.grade(*"0123012301")
        assert 10 <= len(sizes) <= 40, "for ten answers"
        assert sum(sizes) < 20_000, "a few documents, of 5,000"
    assert len(store.labels()) == 2_010


def test_another_pool_is_said_and_answers_to_the_old_one_are_refused(
    judges: Open, store: Store, url: str
) -> None:
    anna = judges(url, "anna")
    store.put_pool(changed_text(POOL, "d0-0", "Another text."))
    anna.grade("1")
    assert "Not saved: the pool has changed" in anna.text("problem")
    assert grades(store) == []
    anna.complaints = [one for one in anna.complaints if "409" not in one]
    anna.page.get_by_role("button", name="Reload").focus()
    anna.press("Enter")
    anna.page.locator("#text", has_text="Another text.").wait_for()
    anna.ready()
    anna.grade("1")
    assert grades(store) == [1]


def test_the_name_is_proposed_the_next_time(judges: Open, url: str) -> None:
    anna = judges(url, "anna")
    anna.page.reload()
    anna.page.locator("#who", has_text="anna").wait_for()
    other = anna.context.new_page()
    other.goto(url)
    assert other.locator("#name").input_value() == "anna"
    anna.page.locator("#other").focus()
    anna.press("Enter")
    anna.page.keyboard.type("ben")
    anna.press("Enter")
    anna.page.locator("#who", has_text="ben").wait_for()


def offline(tmp_path: Path, pool: Pool, store: Store, who: str = "anna") -> str:
    path = tmp_path / "판정.html"
    path.write_text(offline_page(pool, store, who), encoding="utf-8")
    return path.as_uri()


@SIZES
def test_a_file_is_judged_saved_and_imported(
    judges: Open, store: Store, tmp_path: Path, width: int
) -> None:
    place = offline(tmp_path, POOL, store)
    anna = judges(place, width=width)
    anna.ready()
    assert anna.cut_off() == []
    anna.press("n")
    anna.type("왜")
    anna.press("Enter", "m", "ArrowDown", "Enter")
    anna.grade(*"3s2u1")
    assert "2 of 9 documents of this file judged" in anna.text("progress")
    with anna.page.expect_download() as download:
        anna.press("Control+s")
    assert download.value.suggested_filename == "labels-anna.json"
    first = read_offline(download.value.path())
    assert [label.grade for label in first] == [3, None, 1]
    anna.grade(*"012012")
    assert anna.text("end-head") == "You have judged all of this file."
    assert not anna.too_wide()
    with anna.page.expect_download() as download:
        anna.press("Enter")
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert (saved["who"], saved["fingerprint"]) == ("anna", POOL.fingerprint)
    store.add_all(read_offline(download.value.path()))
    assert {label.pair for label in store.labels()} == set(POOL.pairs)
    label = kept(store)[Pair("q0", "d0-0")]
    assert (label.grade, label.note) == (3, "왜")
    start, stop = label.span or (0, 0)
    assert POOL.documents["d0-0"].text[start:stop] == "It has two sentences."
    assert {request for request in anna.requests if not request.startswith("blob:")} == {place}


def test_a_file_that_is_opened_again_goes_on(judges: Open, store: Store, tmp_path: Path) -> None:
    anna = judges(offline(tmp_path, POOL, store))
    anna.ready()
    anna.grade("1", "2")
    asked = anna.dialogs("accept")
    anna.page.reload()
    anna.page.locator("#title", has_text="Title d0-2").wait_for()
    assert asked == ["beforeunload"]
    with anna.page.expect_download():
        anna.press("Control+s")
    anna.page.reload()
    anna.page.locator("#title", has_text="Title d0-2").wait_for()
    assert len(asked) == 1, "what is saved may be left"


def test_a_browser_that_keeps_nothing_for_files_is_told_of(
    judges: Open, store: Store, tmp_path: Path
) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no') }})"
    anna = judges("about:blank")
    anna.context.add_init_script(refuse)
    anna.page.goto(offline(tmp_path, POOL, store, ""))
    anna.type("anna")
    anna.press("Enter")
    anna.ready()
    anna.grade("1")
    assert anna.text("place").endswith("This browser keeps no answers: save often.")
    anna.page.locator("#other").focus()
    anna.press("Enter")
    assert anna.text("problem").startswith("Save the file first")
    with anna.page.expect_download() as download:
        anna.page.get_by_role("button", name="Save").first.press("Enter")
    assert len(read_offline(download.value.path())) == 1


def test_a_file_with_hostile_texts_shows_them_as_texts(judges: Open, tmp_path: Path) -> None:
    pool = make_pool(texts=HOSTILE)
    store = make_store(tmp_path / "hostile.sqlite", pool)
    anna = judges(offline(tmp_path, pool, store, ""), "</script><b>")
    for text in HOSTILE.values():
        assert anna.text("text") == (text or "There is no text but the title.")
        anna.grade("1")
    assert anna.page.evaluate("window.broken") is None
    with anna.page.expect_download() as download:
        anna.press("Control+s")
    assert download.value.suggested_filename == "labels--script-b-.json"
    assert len(read_offline(download.value.path())) == len(HOSTILE)


@SIZES
def test_a_finger_finds_every_button(judges: Open, url: str, width: int) -> None:
    anna = judges(url, "anna", width=width)
    anna.press("m")
    small = "b => b.checkVisibility() && (b.offsetHeight < 44 || b.offsetWidth < 44)"
    for state in ("marking", "judging"):
        found = anna.page.evaluate(f"[...document.querySelectorAll('button')].filter({small})")
        assert found == [], state
        assert anna.cut_off() == [], state
        assert not anna.too_wide()
        anna.press("Enter")


def test_what_comes_next_is_announced(judges: Open, url: str) -> None:
    anna = judges(url, "anna")
    assert anna.text("said").startswith("Document 1 of 3. Question: question 0?. Title d0-0")
    assert anna.page.locator("#said").get_attribute("role") == "status"
    anna.grade("1")
    assert anna.text("said").startswith("Document 2 of 3.")


@SCHEMES
@SIZES
def test_axe_finds_nothing(judges: Open, url: str, tmp_path: Path, width: int, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip(f"no axe-core: npm install --no-save --prefix {sys.prefix}/axe axe-core")
    anna = judges(url, width=width, color_scheme=scheme, bypass_csp=True)
    found = [violations(anna)]
    anna.type("anna")
    anna.press("Enter")
    anna.ready()
    anna.press("n")
    anna.type("a note")
    anna.press("Enter", "m")
    found.append(violations(anna))
    anna.press("Enter")
    found.append(violations(anna))
    anna.press("?")
    found.append(violations(anna))
    anna.press("?")
    anna.grade(*"011111111")
    found.append(violations(anna))
    assert found == [{}] * 5


def violations(judge: Judge) -> dict[str, list[str]]:
    judge.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = judge.page.evaluate("axe.run().then((found) => found.violations)")
    return {one["id"]: [node["html"][:200] for node in one["nodes"]] for one in found}
