"""Of two systems that differ by nothing but noise, hardly ever is one called better; and ``label
status`` and ``compare`` never differ on the same complete judgements."""

from __future__ import annotations

import pytest

from tests.benchmarks.noise_twins import MOST, SIZES, TRIES, Scored


@pytest.fixture(scope="module")
def scored() -> Scored:
    return Scored.read()


@pytest.mark.slow
def test_of_a_few_twins_the_two_say_the_same(scored: Scored) -> None:
    tries = [scored.twins(30, seed) for seed in range(5)]
    assert not any(one.differ for one in tries)
    assert all(one.early.anytime and not one.complete.anytime for one in tries)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("n", SIZES)
def test_twins_are_called_better_no_more_often_than_promised(scored: Scored, n: int) -> None:
    tries = [scored.twins(n, seed) for seed in range(TRIES)]
    assert sum(one.status_says_better for one in tries) <= MOST
    assert sum(one.compare_says_better for one in tries) <= MOST
    assert not any(one.differ for one in tries)
