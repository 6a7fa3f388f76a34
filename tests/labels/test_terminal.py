"""Judging in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from retrieval_bench.core.errors import ConfigError, Interrupted
from retrieval_bench_labels.judge.judging import Judging
from retrieval_bench_labels.judge.terminal_judging import LINES, WIDTH, judge
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.store import Store
from tests.builders.labels import HOSTILE, changed_text, make_pool, make_store

POOL = make_pool()
Type = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", POOL)


@pytest.fixture
def typed(store: Store) -> Type:
    """What is shown when these lines are typed."""
    return lambda *lines: session(store, *lines)


def session(store: Store, *lines: str) -> str:
    left, shown = iter(lines), []

    def read(prompt: str) -> str:
        shown.append(prompt)
        for line in left:
            return f"{line}\n"
        raise EOFError

    judge(Judging(store), "anna", read, shown.append)
    return "\n".join(shown)


def one(store: Store) -> Label:
    (label,) = store.labels()
    return label


def test_grades_are_kept_one_by_one(typed: Type, store: Store) -> None:
    shown = typed("0", "3", "2", "q")
    assert [label.grade for label in store.labels()] == [0, 3, 2]
    assert [label.pair for label in store.labels()] == POOL.pairs[:3]
    assert " ".join(shown.split()).endswith(
        "3 answers of this session are kept. 1 of 3 questions and 3 of 9 documents are judged; "
        "about 2 more questions are worth judging."
    )


def test_an_answer_is_on_disk_before_the_next_question(store: Store) -> None:
    kept = []

    def read(prompt: str) -> str:
        kept.append(len(Store(store.path).labels()))
        return "1"

    judge(Judging(store), "anna", read, lambda text: None)
    assert kept == list(range(9))


def test_the_guidelines_are_shown_once(typed: Type) -> None:
    shown = typed("1", "1")
    assert shown.count("Answers the question fully.") == 1
    assert shown.count("question 0?") == 3
    assert "document 2 of 3: d0-1" in shown


def test_the_end_says_what_comes_next(typed: Type) -> None:
    shown = typed(*["1"] * 9)
    assert "Nothing is left for you. Next: retrieval-bench label status" in shown


@pytest.mark.parametrize(
    ("lines", "shown", "kept"),
    [
        (["n 왜 그런가", "m The  text of", "s"], "", (None, "왜 그런가", (0, 11))),
        (["m text", "m", "1"], "", (1, "", None)),
        (["m something else", "1"], "This does not stand in the text.", (1, "", None)),
        (["m te", "1"], "It stands there 2 times; the first is marked.", (1, "", (4, 6))),
        (["２"], "", (2, "", None)),
    ],
    ids=["skipped", "mark taken away", "quote not there", "quote twice", "wide digit"],
)
def test_an_answer_is_kept_with_its_note_and_its_mark(
    typed: Type, store: Store, lines: list[str], shown: str, kept: tuple[Any, ...]
) -> None:
    assert shown in typed(*lines)
    assert (one(store).grade, one(store).note, one(store).span) == kept


def test_a_note_and_a_mark_belong_to_one_document(typed: Type, store: Store) -> None:
    typed("n why", "m text", "1", "2")
    assert [(label.note, label.span) for label in store.labels()] == [("why", (4, 8)), ("", None)]


def test_undo_shows_the_document_again_where_there_is_something_to_undo(
    typed: Type, store: Store
) -> None:
    assert "There is nothing to undo." in typed("u")
    shown = typed("n why", "1", "u", "3")
    assert "You said 1. Judge it again." in shown
    assert (one(store).pair, one(store).grade, one(store).note) == (Pair("q0", "d0-0"), 3, "why")


@pytest.mark.parametrize("line", ["4", "-1", "12", "x", "quit", "s now", "0 1", "²"])
def test_what_means_nothing_changes_nothing(typed: Type, store: Store, line: str) -> None:
    assert "is none of these:" in typed(line)
    assert store.labels() == []


def test_a_long_text_is_shown_in_parts(store: Store) -> None:
    store.put_pool(make_pool(texts={"long": "word " * 2_000}))
    shown = session(store, "")
    lines = shown.splitlines()
    assert sum(line.startswith("word word") for line in lines) == 2 * LINES
    assert "... 95 more lines: press Enter" in lines
    assert "... 65 more lines: press Enter" in lines
    assert max(len(line) for line in lines if "word" in line) <= WIDTH


def test_wide_characters_fit_as_well(store: Store) -> None:
    store.put_pool(make_pool(texts={"korean": "프랑스의 수도는 파리이다. " * 20}))
    lines = [line for line in session(store).splitlines() if "프랑스" in line]
    assert len(lines) > 5
    assert max(map(cell_len, lines)) <= WIDTH + 10


def test_no_text_can_do_anything_to_the_terminal(store: Store) -> None:
    store.put_pool(make_pool(texts=HOSTILE))
    shown = session(store, *["1"] * len(HOSTILE))
    assert len(store.labels()) == len(HOSTILE)
    assert "\\x1b[31mred" in shown
    assert not {c for c in shown if ord(c) < 32 and c != "\n"}


def test_ctrl_c_says_what_is_kept(store: Store) -> None:
    lines: Iterator[str] = iter(["1", "2"])

    def read(prompt: str) -> str:
        for line in lines:
            return line
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="2 answers of this session are kept"):
        judge(Judging(store), "anna", read, lambda text: None)
    assert len(store.labels()) == 2


def test_a_pool_that_is_replaced_meanwhile_is_asked_anew(store: Store) -> None:
    shown: list[str] = []
    lines = iter(["put", "1"])

    def read(prompt: str) -> str:
        for line in lines:
            if line == "put":
                store.put_pool(changed_text(POOL, "d0-0", "Another text."))
            return "1"
        raise EOFError

    judge(Judging(store), "anna", read, shown.append)
    assert "Not saved: the pool has changed" in "\n".join(shown)
    assert "Another text." in "\n".join(shown)
    assert len(store.labels()) == 1


def test_a_name_is_needed(store: Store) -> None:
    with pytest.raises(ConfigError, match="no name"):
        judge(Judging(store), " ", lambda prompt: "q", lambda text: None)
