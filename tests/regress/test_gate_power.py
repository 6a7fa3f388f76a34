"""How often a policy passes a real drop and stops a change that is as good: the guide says so."""

from __future__ import annotations

import pytest

from tests.benchmarks.gate_power import DROPS, SIZES, Cell, cells, row
from tests.builders.guide import guide_page


@pytest.mark.slow
def test_a_rise_passes_a_small_fall_does_not_unless_undecided_does() -> None:
    good, worse = cells([40], [0.0, 0.1], 40)
    for cell in (good, worse):
        strict, shipped, lax = cell.passed.values()
        assert strict <= shipped <= lax
    assert good.passed["as shipped"] > 0.3 > good.passed["rise: undecided"]
    assert worse.passed["as shipped"] < 0.1
    assert good.passed["undecided: pass"] > 0.8


def test_the_guide_has_a_row_for_every_cell() -> None:
    text = guide_page("regression.md")
    for n in SIZES:
        for drop in DROPS:
            assert row(Cell(n, drop, {})).removesuffix(" |  |") in text


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("n", SIZES)
def test_every_row_of_the_guide_is_what_the_study_finds(n: int) -> None:
    text = guide_page("regression.md")
    for cell in cells([n]):
        start = row(Cell(n, cell.drop, {})).removesuffix(" |  |")
        (line,) = (line for line in text.splitlines() if line.startswith(f"{start} |"))
        shown = [float(share.strip(" %")) / 100 for share in line.strip("|").split("|")[2:]]
        # To the rounding of the guide, and one set of questions that another processor may turn.
        assert list(cell.passed.values()) == pytest.approx(shown, abs=0.0076)
