"""Betting confidence sequences: their capital is the formula's, what they rule out is not the
truth, and looking after every value costs no more errors than one look."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.intervals import SHARE, Floats
from retrieval_bench_modes.sequential import BETS, Betting, Draw, anytime_intervals, verdicts
from tests.builders.streams import SHAPES, centred

DIFFERENCE = SHARE.of_differences
MARGIN = 0.01


def ruled_out(values: list[Fraction], mean: Fraction, total: int | None) -> bool:
    """Whether 20-fold capital was ever made against ``mean`` from below, by the definition:
    exact fractions, on values from 0 to 1."""
    bets = [Fraction(2 * i + 1, 20) for i in range(len(BETS))]
    capital, seen = [Fraction(1)] * len(bets), Fraction(0)
    for n, value in enumerate(values):
        expected = mean if total is None else (total * mean - seen) / (total - n)
        if expected <= 0:
            return expected < 0 or value > 0
        capital = [
            each * (1 + bet / expected * (value - expected))
            for each, bet in zip(capital, bets, strict=True)
        ]
        if sum(capital) / len(bets) >= 40:
            return True
        seen += value
    return total is not None and total * mean < seen


@pytest.mark.slow
@pytest.mark.parametrize("total", [None, 24, 60])
def test_the_capital_is_that_of_the_definition_in_exact_fractions(total: int | None) -> None:
    rng = np.random.default_rng(5)
    grid = [Fraction(at, 40) for at in range(1, 40)]
    for tenths in rng.choice([0, 4, 5, 5, 9, 10], (4, 24)):
        values = [Fraction(int(one), 10) for one in tenths]
        above = Betting([float(mean) for mean in grid], SHARE, total=total)
        below = Betting([1 - float(mean) for mean in grid], SHARE, total=total)
        for value in values:
            above.add([float(value)])
            below.add([1 - float(value)])
        expected = [ruled_out(values, mean, total) for mean in grid]
        if total == len(values):  # all are known: whatever was won by chance is forgotten
            expected = [mean < sum(values) / total for mean in grid]
        assert above.too_low[0].tolist() == expected
        assert below.too_high[0].tolist() == expected
        assert any(expected)


@pytest.mark.slow
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=30),
    st.sampled_from([None, 30, 45]),
)
def test_the_interval_shrinks_and_agrees_with_the_bets(
    values: list[float], total: int | None
) -> None:
    column = np.array(values)[:, None]
    before = np.array([-1.0, 1.0])
    for n in (1, len(values) // 2 + 1, len(values)):
        ((low, high),) = anytime_intervals(column[:n], DIFFERENCE, total=total)
        assert -1 <= low <= high <= 1
        if n != total:
            assert low >= before[0] - 1e-5
            assert high <= before[1] + 1e-5
        before = np.array([low, high])
    inside = np.array([low + 1e-4, high - 1e-4, low - 1e-4, high + 1e-4])
    betting = Betting(inside, DIFFERENCE, total=total)
    for value in values:
        betting.add([value])
    if high - low > 3e-4:
        assert not betting.too_low[0, 0]
        assert not betting.too_high[0, 1]
    assert betting.too_low[0, 2] or low <= -1 + 1e-4
    assert betting.too_high[0, 3] or high >= 1 - 1e-4


def test_when_all_values_were_drawn_the_mean_is_known() -> None:
    values = np.array([[0.0], [0.5], [0.25], [-0.35]])
    assert anytime_intervals(values, DIFFERENCE, total=4) == pytest.approx(
        np.array([[0.1, 0.1]]), abs=1e-12
    )
    betting = Betting([-MARGIN, 0.0, MARGIN], DIFFERENCE, total=4)
    for row in values[:3]:
        betting.add(row)
        assert verdicts(betting) == [Verdict.UNDECIDED]
    betting.add(values[3])
    assert verdicts(betting) == [Verdict.BETTER]


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.2, Verdict.BETTER), (-0.2, Verdict.WORSE), (0.0, Verdict.EQUIVALENT)],
)
def test_what_is_shown_has_a_verdict(value: float, verdict: Verdict) -> None:
    betting = Betting([-MARGIN, 0.0, MARGIN], DIFFERENCE)
    decided = 0
    while verdicts(betting) == [Verdict.UNDECIDED]:
        betting.add([value])
        decided += 1
    assert verdicts(betting) == [verdict]
    # Of what may be lost at once, each value wins this share: 0 is 1 above the end of the range.
    won = abs(value) or MARGIN / (1 - MARGIN)
    assert decided == next(n for n in count(1) if np.mean((1 + BETS * won) ** n) >= 2 / 0.05)


def test_a_stream_is_judged_alone() -> None:
    rng = np.random.default_rng(2)
    values = rng.uniform(-1, 1, (20, 3))
    together = anytime_intervals(values, DIFFERENCE, total=30)
    for at in range(3):
        alone = anytime_intervals(values[:, [at]], DIFFERENCE, total=30)
        assert alone[0] == pytest.approx(together[at])


def test_what_does_not_belong_is_refused() -> None:
    betting = Betting([0.0], DIFFERENCE, total=1)
    with pytest.raises(ValueError, match=r"a value outside of \[-1, 1\]"):
        betting.add([1.5])
    with pytest.raises(ValueError, match="a value outside"):
        betting.add([float("nan")])
    betting.add([0.5])
    with pytest.raises(ValueError, match="more than 1 value"):
        betting.add([0.5])


QUERIES = 300


def errors(split: Floats, rng: np.random.Generator, total: int | None, streams: int) -> float:
    """Share of streams from ``split`` whose true mean was ruled out at any look."""
    draws = np.array([split[rng.permutation(QUERIES)] for _ in range(streams)])
    if total is None:
        draws = rng.choice(split, (streams, QUERIES))
    betting = Betting([split.mean()], DIFFERENCE, streams=streams, total=total)
    wrong = np.zeros(streams, dtype=bool)
    for values in draws.T:
        betting.add(values)
        wrong |= (betting.too_low | betting.too_high)[:, 0]
    return float(wrong.mean())


@pytest.mark.parametrize("total", [QUERIES, None], ids=["split", "population"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "streams", [100, pytest.param(2_000, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_the_true_mean_is_hardly_ever_ruled_out_however_often_one_looks(
    shape: str, total: int | None, streams: int
) -> None:
    rng = np.random.default_rng([streams, len(shape)])
    found = errors(centred(shape, 0.03, QUERIES, rng), rng, total, streams)
    sys.stdout.write(f"{shape}: {100 * found:.1f} %\n")
    assert found <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / streams)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("total", [QUERIES, None], ids=["split", "population"])
@pytest.mark.parametrize("effect", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_larger_difference_takes_fewer_queries(
    effect: float, total: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """And which verdict it ends with is wrong in at most 5 % of streams."""
    for shape in SHAPES:
        if shape == "equal" and effect:
            continue
        rng = np.random.default_rng(round(1000 * effect))
        split, streams = centred(shape, effect, QUERIES, rng), 400
        betting = Betting([-MARGIN, 0.0, MARGIN], DIFFERENCE, streams=streams, total=total)
        draws = np.array([split[rng.permutation(QUERIES)] for _ in range(streams)])
        if total is None:
            draws = rng.choice(split, (streams, QUERIES))
        looks = np.full(streams, QUERIES)
        ended = np.full(streams, Verdict.UNDECIDED, dtype=object)
        for n, values in enumerate(draws.T, start=1):
            betting.add(values)
            found = np.array(verdicts(betting), dtype=object)
            first = (found != Verdict.UNDECIDED) & (ended == Verdict.UNDECIDED)
            looks[first], ended[first] = n, found[first]
        share = float(np.median(looks)) / QUERIES
        right = {Verdict.UNDECIDED, Verdict.BETTER if effect else Verdict.EQUIVALENT}
        wrong = float(np.mean([one not in right for one in ended]))
        with capsys.disabled():
            target = "split" if total else "population"
            text = f"\n{shape}, {effect:+.2f}, {target}: {100 * share:.0f} % of the queries"
            sys.stdout.write(text)
        assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / streams)
        if effect >= 0.2:
            assert share <= 0.25


def drawn(chances: NDArray[np.float64], order: NDArray[np.int64]) -> list[Draw]:
    """One stream of values within [-1, 1] times the chances, in ``order``."""
    left = np.concatenate([chances[order][::-1].cumsum()[::-1], [0.0]])
    return [
        Draw(
            np.array([chances[place] / left[at]]),
            np.array([-left[at]]),
            np.array([left[at]]),
            np.array([-left[at + 1]]),
            np.array([left[at + 1]]),
        )
        for at, place in enumerate(order)
    ]


def weighted_order(chances: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    keys = np.random.default_rng(seed).exponential(size=len(chances)) / chances
    return np.argsort(keys)


def test_equal_chances_are_the_draws_without_replacement_of_before() -> None:
    values = np.random.default_rng(5).uniform(-1, 1, 30)
    even = np.ones(30)
    plain = Betting([-0.1, 0.0, 0.1], SHARE.of_differences, total=30)
    weighed = Betting([-0.1, 0.0, 0.1], SHARE.of_differences, total=30, known=[0.0])
    for value, draw in zip(values, drawn(even, np.arange(30)), strict=True):
        plain.add([value])
        weighed.add([value], draw)
        assert plain.too_low.tolist() == weighed.too_low.tolist()
        assert plain.too_high.tolist() == weighed.too_high.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_with_unequal_chances_the_true_mean_is_hardly_ever_ruled_out(spread: float) -> None:
    """In any of 400 draws of a population, looked at after every value."""
    rng = np.random.default_rng(11)
    chances = np.exp(-spread * rng.random(60))
    values = chances * rng.choice([-1.0, -0.2, 0.0, 0.7, 1.0], 60)
    ruled_out = 0
    for seed in range(400):
        order = weighted_order(chances, seed)
        betting = Betting([values.mean()], SHARE.of_differences, total=60, known=[0.0])
        for place, draw in zip(order[:-1], drawn(chances, order), strict=False):
            betting.add([values[place]], draw)
        ruled_out += bool(betting.too_low[0, 0] or betting.too_high[0, 0])
    assert ruled_out <= 0.05 * 400


def test_chances_in_proportion_to_the_bounds_decide_sooner() -> None:
    rng = np.random.default_rng(2)
    bounds = rng.choice([0.05, 0.1, 1.0], 200)
    values = bounds * rng.choice([-0.2, 0.3, 0.8], 200)

    def steps(chances: NDArray[np.float64], seed: int) -> int:
        order = weighted_order(chances, seed)
        low = (bounds / chances).max()
        betting = Betting([0.0], SHARE.of_differences, total=200, known=[0.0])
        for at, (place, draw) in enumerate(zip(order, drawn(chances, order), strict=True), 1):
            wide = Draw(draw.chance, low * draw.low, low * draw.high, draw.left_low, draw.left_high)
            betting.add([values[place]], wide)
            if betting.too_low[0, 0]:
                return at
        return 200

    even = np.median([steps(np.ones(200), seed) for seed in range(15)])
    assert np.median([steps(bounds, seed) for seed in range(15)]) < 0.6 * even


def test_the_mean_is_known_when_nothing_is_left() -> None:
    chances, values = np.array([1.0, 0.5]), np.array([0.5, -0.25])
    betting = Betting([0.1, 0.125, 0.2], SHARE.of_differences, total=4, known=[0.25])
    for value, draw in zip(values, drawn(chances, np.arange(2)), strict=True):
        betting.add([value], draw)
    assert betting.complete
    assert betting.too_low[0].tolist() == [True, False, False]
    assert betting.too_high[0].tolist() == [False, False, True]


def test_a_value_that_cannot_be_and_a_chance_in_a_population_are_refused() -> None:
    (draw,) = drawn(np.array([0.5]), np.array([0]))
    with pytest.raises(ValueError, match="outside of what it can be"):
        Betting([0.0], SHARE.of_differences, total=2, known=[0.0]).add([0.9], draw)
    with pytest.raises(ValueError, match="from a population"):
        Betting([0.0], SHARE.of_differences).add([0.1], draw)


def test_an_interval_of_unequal_draws_holds_the_mean_and_shrinks() -> None:
    rng = np.random.default_rng(4)
    chances = rng.uniform(0.2, 1, 80)
    values = chances * rng.choice([-0.5, 0.5, 1.0], 80)
    order = weighted_order(chances, 1)
    draws = drawn(chances, order)
    widths = []
    for n in (10, 40, 70):
        (ends,) = anytime_intervals(
            values[order[:n], None],
            SHARE.of_differences,
            total=80,
            draws=draws[:n],
            known=np.zeros(1),
        )
        assert ends[0] <= values.mean() <= ends[1]
        widths.append(ends[1] - ends[0])
    assert widths == sorted(widths, reverse=True)
