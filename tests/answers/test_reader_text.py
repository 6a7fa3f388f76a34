"""Texts against gold texts: SQuAD's two scores and the character F1."""

from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench_answers.reader_text import (
    COLUMNS,
    METRICS,
    character_f1,
    characters,
    normalise,
    score,
)

TEXTS = st.text(alphabet=st.sampled_from("aAtheé ,.'한국漢ガ😀-\u3000"), max_size=12)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat sat.", "cat sat"),
        ("  an  apple\t a\nday ", "apple day"),
        ("don't", "dont"),  # punctuation goes before articles are looked for
        ("a.b", "ab"),
        ("U.S.A", "usa"),
        ("theatre another", "theatre another"),
        ("$5.00", "500"),
        ("the", ""),
        ("«été» — l’eau", "«été» — l’eau"),  # other punctuation than ASCII's stays
        ("l’an", "l’"),  # and bounds words: the official script takes this for an article
        ("THE 서울 a", "서울"),
    ],
)
def test_normalisation_is_the_official_one(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_token_and_character_f1_by_hand() -> None:
    # Common: x once, y once; 2 * 2 / (4 + 3).
    assert score(["x x y z"], "x y y")[:2] == pytest.approx((0, 4 / 7))
    # 세 종 대 왕 against 세 종 왕 자: 3 common of 4 and 4; token F1 sees two different words.
    assert character_f1(["세종대왕"], "세종왕자") == pytest.approx(6 / 8)
    assert score(["세종대왕"], "세종왕자")[1] == 0
    assert character_f1([], "the") == 0
    assert character_f1(["the"], "the") == 1
    assert characters("€ 5 + 😀!") == "€5+😀"
    assert character_f1(["😀"], "") == 0


def test_the_best_gold_counts_for_each_score_by_itself() -> None:
    golds = ["red blue", "green"]
    assert score(golds, "red") == pytest.approx((0, 2 / 3, 2 * 3 / (7 + 3)))
    assert score(golds, "The Green!") == pytest.approx((1, 1, 2 * 5 / (8 + 5)))


@pytest.mark.parametrize(
    ("golds", "answer", "value"),
    [
        ([], "", 1),
        ([], "Paris", 0),
        (["Paris"], "", 0),
        (["the"], "", 1),  # a gold that is normalised to nothing is the empty gold
        (["the", "Paris"], "", 0),  # but does not count beside one with content
        ([], "the", 1),
    ],
)
def test_both_empty_is_one_and_one_empty_is_zero(
    golds: list[str], answer: str, value: float
) -> None:
    assert score(golds, answer)[:2] == (value, value)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("세종 대왕", "세종대왕"),
        ("東京都", "東 京\u3000都"),
        ("北京市。", "「北京市」"),
        ("ﾊﾟｿｺﾝ", "パソコン"),
        ("１９９０年", "1990年"),
        ("한국", unicodedata.normalize("NFD", "한국")),
        ("Straße", "STRASSE"),
        ("l'été", "L’ÉTÉ"),
        ("مرحبا، بك", "مرحبا بك"),
    ],
)
def test_character_f1_sees_the_same_characters_in_any_script(gold: str, answer: str) -> None:
    assert character_f1([gold], answer) == 1


def test_names_are_those_of_the_official_script() -> None:
    assert METRICS["HasAns_exact"] == ("exact", "has_answer")
    assert METRICS["NoAns_f1"] == ("f1", "no_answer")
    assert list(METRICS)[:3] == list(COLUMNS) == ["exact", "f1", "char_f1"]
    assert len(METRICS) == 9


@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_scores_lie_between_0_and_1_and_exact_implies_f1(golds: list[str], answer: str) -> None:
    exact, f1, char_f1 = score(golds, answer)
    assert exact in (0, 1)
    assert 0 <= exact <= f1 <= 1
    assert 0 <= char_f1 <= 1


@given(TEXTS, TEXTS)
def test_one_gold_and_the_answer_may_change_places(gold: str, answer: str) -> None:
    assert score([gold], answer) == score([answer], gold)


@given(st.lists(TEXTS, max_size=5), TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_golds_changes_nothing(
    golds: list[str], answer: str, order: random.Random
) -> None:
    shuffled = list(golds)
    order.shuffle(shuffled)
    assert score(shuffled, answer) == score(golds, answer)


@given(st.lists(TEXTS.filter(characters), min_size=1, max_size=4), TEXTS, TEXTS.filter(characters))
def test_one_more_gold_never_lowers_a_character_f1(
    golds: list[str], answer: str, more: str
) -> None:
    assert character_f1([*golds, more], answer) >= character_f1(golds, answer)


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_a_gold_as_the_answer_scores_1(golds: list[str]) -> None:
    answer = next((gold for gold in golds if normalise(gold) and characters(gold)), None)
    if answer is not None:
        assert score(golds, answer) == (1, 1, 1)


@given(st.text(alphabet="ab한국 ", max_size=10), st.integers(0, 10))
def test_a_blank_anywhere_leaves_the_character_f1_as_it_is(text: str, position: int) -> None:
    spaced = f"{text[:position]} {text[position:]}"
    assert character_f1(["a한 국b"], spaced) == character_f1(["a한 국b"], text)
