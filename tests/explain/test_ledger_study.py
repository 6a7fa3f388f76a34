"""The ledger on parts whose worth was planted: none that helps may be called dead, and nearly all
that are dead or harmful must be named."""

from __future__ import annotations

import pytest

from tests.benchmarks.parts import named
from tests.builders.planted_parts import DEAD, HARMFUL, HELPING, MIXED


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*DEAD, *HARMFUL, *HELPING, MIXED])
def test_what_was_planted_is_found(kind: str) -> None:
    assert all(said == worth for worth, said in named(kind, [1]))


@pytest.mark.slow
@pytest.mark.long
def test_of_many_parts_19_in_20_are_named_and_none_that_helps_is_called_dead() -> None:
    bad = [pair for kind in (*DEAD, *HARMFUL) for pair in named(kind, range(10))]
    mixed = list(named(MIXED, range(10)))
    bad += [pair for pair in mixed if pair[0] != "helps"]
    good = [pair for kind in HELPING for pair in named(kind, range(34))]
    good += [pair for pair in mixed if pair[0] == "helps"]
    assert len(bad) >= 100
    assert sum(said in ("dead", "harmful") for _, said in bad) >= 0.95 * len(bad)
    assert len(good) >= 100
    assert not [said for _, said in good if said in ("dead", "harmful")]
