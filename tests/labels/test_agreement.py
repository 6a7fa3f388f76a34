"""How far judges agree, against published figures and what must hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench_labels.agreement import cohen_kappa


def test_kappa_of_the_textbook_example() -> None:
    pairs = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15
    assert cohen_kappa({"q": pairs}, 2).value == pytest.approx(0.4)
    assert cohen_kappa({"q": pairs}, 2, weighted=True).value == pytest.approx(0.4)


def test_quadratic_weights_forgive_what_is_near() -> None:
    near, far = [(0, 0), (3, 3), (2, 3), (1, 0)], [(0, 0), (3, 3), (0, 3), (3, 0)]
    assert cohen_kappa({"q": near}, 4, weighted=True).value > cohen_kappa({"q": near}, 4).value
    assert cohen_kappa({"q": far}, 4, weighted=True).value < 0.1


grades = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from("abcd"), grades, min_size=1))
def test_it_is_at_most_one_and_one_is_full_agreement(
    pairs: dict[str, list[tuple[int, int]]],
) -> None:
    for weighted in (False, True):
        kappa = cohen_kappa(pairs, 4, weighted=weighted).value
        turned = {q: [(b, a) for a, b in of] for q, of in pairs.items()}
        assert math.isnan(kappa) or kappa <= 1 + 1e-12
        assert cohen_kappa(turned, 4, weighted=weighted).value == pytest.approx(kappa, nan_ok=True)
        same = {q: [(a, a) for a, _ in of] for q, of in pairs.items()}
        full = cohen_kappa(same, 4, weighted=weighted).value
        assert math.isnan(full) or full == pytest.approx(1.0)


def test_judges_who_guess_agree_as_by_chance_and_the_interval_says_so() -> None:
    rng = np.random.default_rng(1)
    pairs = {str(q): [tuple(rng.integers(0, 4, 2).tolist()) for _ in range(10)] for q in range(60)}
    for found in (cohen_kappa(pairs, 4), cohen_kappa(pairs, 4, weighted=True)):
        assert found.value == pytest.approx(0.0, abs=0.12)
        assert found.ci95 is not None
        assert found.ci95[0] < 0 < found.ci95[1]


def test_one_grade_alone_says_nothing() -> None:
    assert math.isnan(cohen_kappa({"q": [(1, 1), (1, 1)]}, 4).value)
    assert cohen_kappa({}, 4).n == 0
    assert cohen_kappa({}, 4).as_dict() == {"value": None, "ci95": None, "n": 0}
