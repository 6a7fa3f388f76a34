"""Which queries belong together, and which are one question under several ids (F10)."""

from __future__ import annotations

import pytest

from retrieval_bench.core.types import Message, Query
from retrieval_bench.runs.dataset import _nearly, alike, n_alike, told_alike


def groups(*texts: str) -> list[int]:
    """The first query of the group that each text is in; each by itself = 0, 1, 2, ..."""
    labels = alike([Query(str(at), text) for at, text in enumerate(texts)])
    return list(map(int, labels)) if labels else list(range(len(texts)))


LONG = (
    "what did the committee of the national assembly decide about the rules for the water supply "
    "of smaller towns in the northern provinces"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alpha", "alpha"),
        ("Who wrote Faust?", "who  wrote faust"),
        ("who invented the telephone", "who invented the telefhone"),
        ("what is machine learning", "what is machine lerning?"),
        ("ｆｕｌｌ width", "full width"),
        ("北京的天气", "北京的天气?"),
        (LONG, LONG.replace("did the", "did a")),
    ],
)
def test_f10_one_question_in_the_same_words_or_nearly(one: str, other: str) -> None:
    assert groups("something else", one, other) == [0, 1, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alpha", "beta"),
        ("A+ donor", "A- donor"),
        ("revenue in 2019", "revenue in 2020"),
        ("capital of france", "capital of germany"),
        (f"{LONG} in 1990", f"{LONG} in 1991"),
        ("C", "C++"),
        ("", "x"),
        (LONG, LONG.replace("committee", "president").replace("water", "power")),
    ],
)
def test_other_questions_stay_apart(one: str, other: str) -> None:
    assert groups(one, other) == [0, 1]


def test_f10_ninety_queries_have_six_different_texts() -> None:
    texts = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    labels = alike([Query(f"{text}{i}", text) for text in texts for i in range(15)])
    assert n_alike(labels) == 6
    told = told_alike(90, 6, "nothing changes")
    assert told.startswith("90 queries have 6 different texts, or nearly.")
    assert told.code != told_alike(90, 89, "nothing changes").code  # a note, no warning


def test_what_was_said_before_makes_another_question() -> None:
    before = [(Message("user", text),) for text in ("of France?", "of Spain?")]
    queries = [Query(str(at), "and the capital?", messages=before[at]) for at in range(2)]
    assert alike(queries) == ()


def test_very_long_words_and_questions_are_compared_whole() -> None:
    assert len(list(_nearly(["y" * 51, "eau"]))) == 1
    assert len(list(_nearly(["mot"] * 501))) == 1
    long = " ".join(["mot"] * 501)
    assert n_alike(alike([Query("a", long), Query("b", long), Query("c", "eau")])) == 2
