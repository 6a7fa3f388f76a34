"""Text made harmless and cut to its room, and numbers as people read them."""

from __future__ import annotations

import pytest

from retrieval_bench.reports.render.text import cells_of, clean, cut, number
from tests.builders.pictures import TEXTS


@pytest.mark.parametrize("cells", [4, 9, 20])
@pytest.mark.parametrize("text", [*TEXTS, "", "a", "e\u0301" * 30])
def test_a_cut_text_keeps_to_its_width(text: str, cells: int) -> None:
    short = cut(text, cells)
    assert cells_of(short) <= cells
    whole = clean(text)
    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))


def test_a_cut_goes_between_characters_as_people_see_them() -> None:
    assert cut("ab👩‍👩‍👧cd", 5) == "ab…"
    assert cut("abe\u0301def", 4) == "abe\u0301…"
    assert cut("한국어입니다", 7) == "한국어…"


def test_text_is_made_harmless() -> None:
    assert clean("a\x07b\ud800\ufffe") == "a\ufffdb\ufffd\ufffd"
    assert clean("evil\u202etxt.exe \n x") == "eviltxt.exe x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.03526, "0.0353"), (0.035, "0.0350"), (9.996, "10.0"), (17.0, "17.0"),
        (99.96, "100"), (1234.4, "1,234"), (2e-7, "0.000000200"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert number(value) == text
