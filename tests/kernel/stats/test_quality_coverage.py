"""Intervals of quality cover what they say, whatever the values look like; the table of widths is
made by ``python -m tests.benchmarks.quality_coverage``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.benchmarks.quality_coverage import ONE_SAMPLE, PAIRED, SIZES, Shape, cells, least

ALL = {**ONE_SAMPLE, **{f"paired: {name}": shape for name, shape in PAIRED.items()}}


def _missed(shapes: Mapping[str, Shape], sizes: tuple[int, ...], sets: int) -> list[str]:
    found = cells(shapes, sizes, sets, beside=False)
    return [
        f"{one.shape}, n = {one.n}: {one.covered}" for one in found if one.covered < least(sets)
    ]


@pytest.mark.slow
def test_few_queries_are_covered() -> None:
    assert _missed(ALL, (5, 10), 400) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", list(ALL))
def test_every_cell_is_covered(name: str) -> None:
    assert _missed({name: ALL[name]}, SIZES, 10_000) == []


def test_the_bootstrap_would_not_cover_rare_misses() -> None:
    (cell,) = cells({"": ONE_SAMPLE["hit, mean 0.95"]}, (10,), 500, beside=True)
    assert cell.covered >= least(500)
    assert cell.bootstrap_covered < 0.5
