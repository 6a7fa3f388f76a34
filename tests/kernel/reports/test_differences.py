"""How a difference is written, and which of many differences are shown."""

from __future__ import annotations

from itertools import combinations

import pytest

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.figures import change_text, end_text, signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import cell_of
from retrieval_bench.reports.tables.understand.comparison import difference_rows, most_telling

NAMES = ["worst", "best", "third", "second", "fourth"]
BEST_FIRST = ["best", "second", "third", "fourth", "worst"]


def pairs(deltas: list[Delta]) -> list[tuple[str, str]]:
    return [(delta.a, delta.b) for delta in deltas]


DELTAS = [Delta("nDCG@10", a, b, Verdict.UNDECIDED) for a, b in combinations(NAMES, 2)]


def test_few_pairs_are_all_shown_in_their_order() -> None:
    assert most_telling(DELTAS, BEST_FIRST, baseline=None, most=10) == DELTAS


def test_of_many_pairs_the_best_system_s_stand_first_against_the_best_of_the_others() -> None:
    found = most_telling(DELTAS, BEST_FIRST, baseline=None, most=9)
    assert pairs(found) == [
        ("best", "second"),
        ("best", "third"),
        ("best", "fourth"),
        ("worst", "best"),
    ]


def test_with_a_baseline_its_pairs_are_shown_whatever_is_best() -> None:
    own = [delta for delta in DELTAS if delta.a == "worst"]
    found = most_telling(own, BEST_FIRST, baseline="worst", most=3)
    assert pairs(found) == [("worst", name) for name in BEST_FIRST[:-1]]


def test_what_there_is_no_figure_of_is_a_dash() -> None:
    missing = Delta("nDCG@10", "a", "b", Verdict.MISSING, reason="no value")
    (row,) = difference_rows(missing, ["t"])
    assert [cell_of(cell).text for cell in row] == ["b - a", *["-"] * 7, "not known"]
    assert cell_of(row[-1]).more == "(no value)"


def test_figures_of_a_difference() -> None:
    delta = Delta(
        "nDCG@10", "a", "b", Verdict.UNDECIDED, n=1_203,
        difference=0.12345, ci=(0.1, 0.15), effect_size=-0.001, wins=1_200, ties=0, losses=3,
        p_adjusted=0.0004, tests={"t": (0.01, 0.0301)}, queries_needed=1_100,
    )  # fmt: skip
    (row,) = difference_rows(delta, ["t", "wilcoxon"])
    assert [cell_of(cell).text for cell in row] == [
        *("b - a", "+0.1235", "0.00", "1,200", "0", "3", "< .001", ".030", "-", "can't tell")
    ]
    assert [cell_of(row[at]).more for at in (1, -1)] == [
        "[+0.100, +0.150]",
        "(needs about 2,300 queries)",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "+0.5000"), (-0.5, "-0.5000"), (0.0, "0.0000"), (-1e-9, "0.0000"), (1e-9, "0.0000"),
     (None, "-"), (float("nan"), "-")],
)  # fmt: skip
def test_a_difference_has_its_sign_unless_it_is_none(value: float | None, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.031, "+3.1 %"), (-0.0004, "0.0 %"), (0.0004, "0.0 %"), (-0.0006, "-0.1 %"),
     (12.5, "+1,250.0 %"), (None, "-")],
)  # fmt: skip
def test_a_change_in_percent_has_its_sign_unless_it_is_none(share: float | None, text: str) -> None:
    assert change_text(share) == text


def test_a_difference_has_the_decimals_and_the_unit_that_are_asked_for() -> None:
    assert signed(-0.4, 0) == "0"
    assert signed(-1.26, 1, " ms") == "-1.3 ms"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        *((0.0, "+0.000"), (0.0124, "+0.012"), (-0.0004, "-0.0004"), (9.4e-5, "+0.00009")),
        *((-1e-7, "-0.0000001"), (0.00051, "+0.001")),
    ],
)
def test_an_end_shows_on_which_side_of_nothing_it_lies(end: float, text: str) -> None:
    assert end_text(end) == text
