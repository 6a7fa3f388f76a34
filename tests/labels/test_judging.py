"""What a person is asked, and which answers are kept."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_labels.judge.judging import (
    ChangedPoolError,
    Judging,
    checked_name,
    progress_sentence,
)
from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.store import Store
from tests.builders import some
from tests.builders.labels import changed_text, make_pool, make_store, said

POOL = make_pool()


@pytest.fixture
def judging(tmp_path: Path) -> Judging:
    return Judging(make_store(tmp_path / "labels.sqlite", POOL))


def answers(judging: Judging, who: str, *grades: int | None) -> list[Pair]:
    """Grade what comes; the pairs in their order."""
    pairs = []
    for grade in grades:
        asked = some(judging.next(who))
        judging.answer(Label(asked.pair, who, grade, digest=asked.digest))
        pairs.append(asked.pair)
    return pairs


def test_one_document_comes_after_the_other_and_says_which_of_them_it_is(judging: Judging) -> None:
    answers(judging, "anna", 0)
    asked = some(judging.next("anna"))
    assert (asked.place, asked.of, asked.again) == (2, 3, False)
    assert asked.document.text == "The text of d0-1. It has two sentences."
    assert answers(judging, "anna", *[1] * 8) == POOL.pairs[1:]
    assert judging.next("anna") is None


def test_an_answer_or_an_undoing_that_comes_twice_is_one(judging: Judging) -> None:
    label = said(POOL, "q0", "d0-0", "anna", 2)
    assert judging.answer(label) == judging.answer(label)
    judging.undo("anna")
    assert judging.store.labels() == []
    answers(judging, "anna", 1, 2)
    number = judging.last("anna")
    assert judging.undo("anna", number) is not None
    assert judging.undo("anna", number) is None
    assert len(judging.store.labels()) == 1


def test_undoing_gives_the_question_and_the_answer_back(judging: Judging) -> None:
    label = replace(said(POOL, "q0", "d0-0", "anna", 2), note="why", span=(0, 3))
    judging.answer(label)
    undone = some(judging.undo("anna"))
    assert some(undone.question).pair == label.pair
    assert (undone.label.note, undone.label.span) == ("why", (0, 3))
    assert judging.undo("anna") is None


def test_another_pool_is_noticed(judging: Judging) -> None:
    label = said(POOL, "q0", "d0-0", "anna", 1)
    Store(judging.store.path).put_pool(changed_text(POOL, "d0-0", "Another text."))
    with pytest.raises(ChangedPoolError, match="the pool has changed"):
        judging.answer(label)
    assert some(judging.next("anna")).document.text == "Another text."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grade": 4}, "grade 4"),
        ({"note": "x" * 2_001}, "2,001 characters"),
        ({"span": (0, 1_000)}, "from 0 to 1000"),
        ({"span": (3, 3)}, "from 3 to 3"),
        ({"span": (-1, 3)}, "from -1 to 3"),
    ],
)
def test_what_cannot_be_is_refused(
    judging: Judging, changes: dict[str, object], message: str
) -> None:
    label = said(POOL, "q0", "d0-0", "anna", 1)
    with pytest.raises(ConfigError, match=re.escape(message)):
        judging.answer(replace(label, **changes))  # type: ignore[arg-type]
    assert judging.store.labels() == []


@pytest.mark.parametrize("pair", [Pair("q0", "d1-0"), Pair("q9", "d0-0"), Pair("", "")])
@pytest.mark.parametrize("digest", ["", "0" * 16])
def test_a_pair_that_nobody_asks_is_refused(judging: Judging, pair: Pair, digest: str) -> None:
    with pytest.raises(ChangedPoolError):
        judging.answer(Label(pair, "anna", 1, digest=digest))


def test_a_person_does_not_take_the_name_of_a_model(judging: Judging) -> None:
    judging.store.add(Label(Pair("q0", "d0-0"), "gpt", 1, Kind.MODEL))
    for ask in (judging.next, lambda who: judging.answer(said(POOL, "q0", "d0-1", who, 1))):
        with pytest.raises(ConfigError, match="'gpt' is the name of a model"):
            ask("gpt")


@pytest.mark.parametrize(
    ("given", "name"),
    [(name, name) for name in ("Anna", "안나", "آنا", "Anne-Marie O'Neil", "x" * 80, "👩‍🔬")]
    + [("  Zoe\u0308   B ", "Zoë B")],
)
def test_a_name_may_be_in_any_script_and_is_one_whatever_its_blanks_and_accents(
    given: str, name: str
) -> None:
    assert checked_name(given) == name


@pytest.mark.parametrize(
    "name", ["", "   ", "x" * 81, "a\nb", "a\x00", "a\x1b[2J", "a\u202eb", "a\u2028b", "\ud800"]
)
def test_a_name_that_cannot_be_seen_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        checked_name(name)


@pytest.mark.slow
def test_two_people_share_the_questions_and_a_third_settles(tmp_path: Path) -> None:
    pool = make_pool(40, 1)
    judging = Judging(make_store(tmp_path / "labels.sqlite", pool))
    asked: dict[str, list[Pair]] = {"anna": [], "ben": []}
    for _ in range(100):
        for who, grade in (("anna", 1), ("ben", 2)):
            if judging.next(who) is not None:
                asked[who] += answers(judging, who, grade)
    both = set(asked["anna"]) & set(asked["ben"])
    assert set(asked["anna"]) | set(asked["ben"]) == set(pool.pairs)
    assert 0 < len(both) < 20
    assert judging.progress().disputed == len(both)
    again = [some(judging.next("carl"))]
    assert again[0].again
    assert set(answers(judging, "carl", *[2] * len(both))) == both
    assert judging.progress().disputed == 0
    assert judging.next("carl") is None


def test_progress_is_told_in_a_sentence(judging: Judging) -> None:
    answers(judging, "anna", 1, 1, 1, 2)
    assert progress_sentence(judging.progress()) == (
        "1 of 3 questions and 4 of 9 documents are judged; "
        "about 2 more questions are worth judging."
    )
    answers(judging, "anna", *[0] * 5)
    assert progress_sentence(judging.progress()).endswith("; no more question is worth judging.")
