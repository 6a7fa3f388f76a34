"""The interval beside a word never contradicts it, and holds where enough queries carry it."""

from __future__ import annotations

import pytest

from tests.benchmarks.bracket_coverage import SHAPES, SIZES, cells, missed


@pytest.mark.slow
def test_few_sets_hold_without_a_contradiction() -> None:
    found = list(cells({"normal": SHAPES["normal"]}, (10, 30), 300))
    assert [missed(one, 300) for one in found] == [[], []]
    assert found[0].beside == 1 > found[1].beside


@pytest.mark.slow
def test_where_rare_queries_carry_a_difference_the_bound_has_to_stand_beside() -> None:
    (cell,) = cells({"": SHAPES["hits: 1 % lost"]}, (100,), 300)
    assert cell.beside == 1
    assert cell.covered < 0.8


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", list(SHAPES))
def test_every_cell_reaches_the_goals(name: str) -> None:
    assert [missed(one) for one in cells({name: SHAPES[name]}, SIZES)] == [[]] * len(SIZES)
