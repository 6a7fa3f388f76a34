from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.stats.percentiles import (
    NEEDS,
    CallSample,
    Needs,
    clusters,
    needs,
    percentile,
    quantiles,
)
from tests.builders import some

Ints = NDArray[np.int32]


def _calls(queries: int, rounds: int, launches: int = 1) -> tuple[Ints, Ints, Ints]:
    """Launch, round and query of every call; the place in the round is the query."""
    launch, round_, query = np.indices((launches, rounds, queries), dtype=np.int32)
    return launch.ravel(), round_.ravel(), query.ravel()


def _sample(values: NDArray[np.float64], launches: int = 1) -> CallSample:
    """``values``: (launches * rounds, queries)."""
    launch, round_, query = _calls(values.shape[1], len(values) // launches, launches)
    return CallSample(values.ravel(), query, clusters(round_, query, launch))


def test_a_percentile_is_numpy_s_with_an_interval_around_it() -> None:
    values = np.random.default_rng(3).lognormal(size=1000)
    result = percentile(values, 95.0)
    assert result.value == pytest.approx(np.percentile(values, 95))
    assert some(result.ci95)[0] < some(result.value) < some(result.ci95)[1]


@pytest.mark.parametrize(("level", "row"), NEEDS.items())
def test_the_rule_for_other_percentiles_gives_the_rows_of_the_protocol(
    level: float, row: Needs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval_bench.stats.percentiles.NEEDS", {})
    assert needs(level) == row


@pytest.mark.parametrize(
    ("level", "row"),
    [
        (90.0, (36, 100, 500)),
        (99.9, (3_688, 10_000, 50_000)),
        (5.0, (72, 200, 1_000)),
        (25.0, (13, 40, 200)),
        (60.0, (8, 30, 125)),
    ],
)
def test_any_percentile_has_its_needs(level: float, row: tuple[int, int, int]) -> None:
    assert needs(level) == row


@pytest.mark.parametrize("level", [0.0, 100.0, -5.0, float("nan")])
def test_what_is_no_percentile_is_refused(level: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and below 100") as caught:
        needs(level)
    assert "correct the percentile" in str(caught.value)


@pytest.mark.parametrize(("level", "row"), NEEDS.items())
def test_a_percentile_that_the_sample_cannot_support_is_not_given(level: float, row: Needs) -> None:
    needed = row.printed
    result = percentile(np.arange(needed - 1.0), level)
    assert (result.value, result.ci95, result.gates) == (None, None, False)
    assert result.reason == f"{needed - 1:,} calls, p{level:g} needs {needed:,}: 1 more call"
    assert percentile(np.arange(float(needed)), level).value is not None


def test_the_reason_says_how_many_more_queries_or_calls() -> None:
    assert percentile(np.arange(166.0), 95.0, "query").reason == (
        "166 queries, p95 needs 200: 34 more queries"
    )
    assert _sample(np.ones((4, 10))).percentile(99.0).reason == (
        "40 calls, p99 needs 1,000: 960 more calls"
    )


@pytest.mark.parametrize(("level", "row"), NEEDS.items())
def test_a_percentile_gates_from_its_size_on(level: float, row: Needs) -> None:
    assert not percentile(np.arange(row.gated - 1.0), level).gates
    assert percentile(np.arange(float(row.gated)), level).gates


@pytest.mark.parametrize(("level", "row"), NEEDS.items())
def test_order_statistics_give_a_finite_interval_from_the_textbook_size(
    level: float, row: Needs
) -> None:
    from retrieval_bench.stats.percentiles import _order_statistics

    assert _order_statistics(np.arange(row.finite - 1.0), level / 100) is None
    assert _order_statistics(np.arange(float(row.finite)), level / 100) is not None


@pytest.mark.parametrize(
    ("rounds", "launches", "words", "label"),
    [
        pytest.param(4, 1, "4 rounds", lambda launch, round_: round_, id="rounds of one launch"),
        pytest.param(
            2, 3, "6 rounds", lambda launch, round_: 2 * launch + round_, id="rounds of each launch"
        ),
        pytest.param(10, 1, "10 rounds", lambda launch, round_: round_, id="ten rounds"),
        pytest.param(
            11, 1, "6 groups of 2 rounds", lambda launch, round_: round_ // 2, id="many rounds"
        ),
        pytest.param(4, 5, "5 launches", lambda launch, round_: launch, id="five launches"),
    ],
)
def test_clusters_are_rounds_groups_of_neighbours_or_from_five_on_launches(
    rounds: int, launches: int, words: str, label: Any
) -> None:
    launch, round_, query = _calls(5, rounds, launches=launches)
    groups = clusters(round_, query, launch * 7)
    assert (groups.n, groups.words, groups.repeated) == (int(words.partition(" ")[0]), words, True)
    assert groups.label.tolist() == label(launch, round_).tolist()


def test_a_group_of_rounds_is_of_one_launch() -> None:
    launch, round_, query = _calls(3, 15, launches=2)
    groups = clusters(round_, query, launch)
    assert (groups.n, groups.words) == (10, "10 groups of 3 rounds")
    assert all(len(set(launch[groups.label == label])) == 1 for label in range(10))


def test_a_slow_drift_over_many_rounds_widens_the_interval() -> None:
    noise = np.random.default_rng(9).lognormal(0, 0.2, size=(200, 50))
    state = np.exp(0.05 * np.sin(np.linspace(0, 9, 200)))[:, None]
    shuffled = np.random.default_rng(10).permutation(state)
    widths = []
    for values in (noise * shuffled, noise * state):
        ends = some(_sample(values).percentile(50.0).ci95)
        widths.append(ends[1] - ends[0])
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize(("rounds", "n"), [(1, 6), (2, 6), (3, 6)])
def test_few_rounds_are_cut_into_parts_of_neighbouring_calls(rounds: int, n: int) -> None:
    launch, round_, position = _calls(12, rounds)
    groups = clusters(round_, position, launch)
    assert (groups.n, groups.words, groups.repeated) == (n, "parts of the rounds", False)
    assert groups.label.tolist() == np.repeat(np.arange(n), 12 * rounds // n).tolist()


def test_an_interval_from_few_rounds_never_gates() -> None:
    rng = np.random.default_rng(1)
    assert not _sample(rng.random((3, 400))).percentile(50.0).gates
    assert _sample(rng.random((4, 400))).percentile(50.0).gates
    assert _sample(rng.random((1, 400)).repeat(5, axis=0), launches=5).percentile(50.0).gates


def test_no_calls_make_no_percentile() -> None:
    none = np.zeros(0, dtype=np.int32)
    result = CallSample(np.zeros(0), none, clusters(none, none, none)).percentile(50.0)
    assert (result.value, result.reason) == (None, "0 calls, p50 needs 30: 30 more calls")


def test_the_share_below_has_the_t_interval_of_its_values_in_each_round() -> None:
    values = np.random.default_rng(6).random((7, 166)) + np.linspace(0, 0.3, 7)[:, None]
    below = values <= 0.6
    shares = below.mean(axis=1)
    half = scipy.stats.t.ppf(0.975, 6) * shares.std(ddof=1) / np.sqrt(7)
    assert _sample(values)._half_width(below.ravel()) == pytest.approx(half)


@pytest.mark.parametrize("level", [5.0, 30.0, 50.0])
def test_times_seen_in_a_mirror_have_the_mirrored_interval(level: float) -> None:
    values = np.random.default_rng(7).random((6, 101))
    one, other = _sample(values).percentile(level), _sample(1 - values).percentile(100 - level)
    assert some(one.ci95) == pytest.approx((1 - some(other.ci95)[1], 1 - some(other.ci95)[0]))


def test_constant_times_are_known_exactly() -> None:
    for rounds in (1, 7):
        result = _sample(np.full((rounds, 60), 2.5)).percentile(50.0)
        assert (result.value, result.ci95) == (2.5, (2.5, 2.5))


def test_queries_that_differ_do_not_widen_the_interval_of_calls() -> None:
    """The set of queries is fixed: of times that repeat exactly only the neighbour is in doubt."""
    result = _sample(np.tile(np.arange(1.0, 167.0), (7, 1))).percentile(95.0)
    assert result.value == 158.0
    assert 157.0 <= some(result.ci95)[0] <= 158.0 <= some(result.ci95)[1] <= 159.0


def test_the_gap_between_two_queries_is_within_the_interval() -> None:
    """99 queries take 1 ms and one takes 10: no call tells where between them p99 is."""
    values = np.ones((12, 100))
    values[:, 99] = 10.0
    result = _sample(values).percentile(99.0)
    assert result.ci95 == (1.0, 10.0)


def test_rounds_that_differ_widen_the_interval_of_calls() -> None:
    rng = np.random.default_rng(2)
    noise = rng.lognormal(0, 0.2, size=(7, 166))
    shift = np.exp(0.1 * np.array([[-1], [1], [0], [2], [-2], [0.5], [-0.5]]))
    widths = []
    for values in (noise, noise * shift):
        ends = some(_sample(values).percentile(50.0).ci95)
        widths.append(ends[1] - ends[0])
    assert widths[1] > 3 * widths[0]


def test_one_bad_round_reaches_the_largest_call_at_most() -> None:
    values = np.random.default_rng(3).lognormal(size=(7, 166))
    values[0] *= 1_000
    result = _sample(values).percentile(99.0)
    assert some(result.ci95)[1] <= values.max()
    assert some(result.ci95)[0] >= values.min()


def test_a_query_that_was_asked_once_is_not_taken_for_a_difference_between_rounds() -> None:
    """Failed queries are not repeated: the first round has more calls than the others."""
    values = np.random.default_rng(4).lognormal(0, 0.2, size=(7, 166))
    _, round_, query = _calls(166, 7)
    kept = (query < 150) | (round_ == 0)
    values[0, 150:] = 60_000.0

    def width(mask: NDArray[np.bool_]) -> float:
        groups = clusters(round_[mask], query[mask], np.zeros_like(query[mask]))
        ends = some(CallSample(values.ravel()[mask], query[mask], groups).percentile(50.0).ci95)
        return ends[1] - ends[0]

    assert width(kept) == pytest.approx(width(query < 150), rel=0.25)


def test_numbers_of_queries_may_have_gaps() -> None:
    values = np.random.default_rng(5).lognormal(size=(4, 50))
    _, round_, query = _calls(50, 4)
    groups = clusters(round_, query, np.zeros_like(query))
    plain = CallSample(values.ravel(), query, groups).percentile(50.0)
    assert CallSample(values.ravel(), query * 3 + 2, groups).percentile(50.0) == plain


def test_calls_whose_places_are_not_known_are_taken_as_independent() -> None:
    nowhere = np.zeros(400, dtype=np.int32)
    groups = clusters(nowhere, nowhere, nowhere)
    assert groups.n == 1
    values = np.random.default_rng(8).random(400)
    ours = CallSample(values, np.arange(400, dtype=np.int32), groups).percentile(50.0)
    assert ours.ci95 == pytest.approx(percentile(values, 50.0).ci95, abs=0.01)


def test_s4_quantiles_are_numpy_s_percentiles_to_the_last_digit() -> None:
    values = np.random.default_rng(8).lognormal(size=997)
    counts = (1e6 * values).astype(np.int64)
    for level in (5.0, 50.0, 95.0, 99.0):
        assert quantiles(values, level / 100) == np.percentile(values, level)
        assert quantiles(counts, level / 100) == np.percentile(counts, level)
        higher = np.percentile(values, level, method="higher")
        assert quantiles(values, level / 100, observed=True) == higher
    late = np.array([1.0, 2.0, np.inf])
    assert quantiles(late, 0.5, observed=True) == 2.0
    assert quantiles(late, 0.99, observed=True) == np.inf
