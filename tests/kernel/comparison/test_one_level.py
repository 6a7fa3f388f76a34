"""All intervals of a table and metric have one level, and agree with the words (F7, F8)."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import Comparison, compare_runs
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import Run
from tests.builders import some
from tests.builders.marks import also
from tests.builders.runs import failing, run

RNG = np.random.default_rng(58)
BASE = RNG.uniform(0.2, 0.8, 60)
ENSEMBLE = np.clip(BASE + RNG.normal(0.08, 0.2, 60), 0, 1)


def by_pair(comparison: Comparison) -> dict[tuple[str, str], Delta]:
    return {(delta.a, delta.b): delta for delta in comparison.deltas}


def test_f7_a_twin_has_the_interval_of_its_twin_which_is_that_of_a_table_without_it() -> None:
    alone = by_pair(compare_runs([run("bm25", BASE), run("ensemble", ENSEMBLE)]))
    three = [run("bm25", BASE), run("ensemble", ENSEMBLE), run("twin", ENSEMBLE)]
    found = by_pair(compare_runs(three))
    first, twin = found["bm25", "ensemble"], found["bm25", "twin"]
    assert first.verdict is Verdict.BETTER
    assert some(first.ci) == pytest.approx(some(twin.ci), abs=1e-9)
    assert some(first.ci) == pytest.approx(some(alone["bm25", "ensemble"].ci), abs=1e-9)
    assert {delta.level for delta in found.values()} == {0.95}  # one of three is open


def test_the_level_is_what_holm_leaves_to_those_that_he_does_not_decide() -> None:
    noise = [np.clip(BASE + RNG.normal(0, 0.2, 60), 0, 1) for _ in range(2)]
    runs = [run("bm25", BASE), run("far", np.clip(BASE - 0.2, 0, 1))]
    found = compare_runs([*runs, *(run(f"near{at}", one) for at, one in enumerate(noise))]).deltas
    decided = sum(not delta.verdict.open for delta in found)
    assert 0 < decided < 6
    assert {delta.level for delta in found} == {1 - 0.05 / (6 - decided)}
    assert {delta.level for delta in compare_runs(runs).deltas} == {0.95}  # all are decided


def test_f8_which_interval_decides_is_said_where_two_stand() -> None:
    few = np.zeros(60)
    few[:7] = 0.4
    (better,) = compare_runs([run("a", BASE * 0), run("b", few)]).deltas
    assert better.verdict is Verdict.BETTER
    assert some(better.bound)[0] <= 0 < some(better.ci)[0]
    assert better.as_dict()["decides"] == "ci"
    (open_,) = compare_runs([run("a", BASE * 0), run("b", few * 0)]).deltas
    assert open_.as_dict()["decides"] == "ci and bound"
    (plain,) = compare_runs([run("a", BASE), run("b", ENSEMBLE)]).deltas
    assert plain.bound is None
    assert "decides" not in plain.as_dict()
    assert not {"ci95", "p_answered"} & set(plain.as_dict())


def test_a_pair_with_failures_enters_holm_once_with_the_larger_p() -> None:
    failed = range(0, 60, 12)
    runs = [failing("a", BASE, []), failing("b", ENSEMBLE, failed)]
    (delta,) = compare_runs(runs).deltas
    answered = some(delta.answered)
    assert some(delta.p) > some(answered.p)
    assert delta.p_adjusted == delta.p
    (delta,) = compare_runs([runs[0], failing("b", BASE - 0.05, failed)]).deltas
    assert delta.verdict is Verdict.WORSE  # by both
    assert delta.p_adjusted == max(some(delta.p), some(some(delta.answered).p))


def table(seed: int) -> list[Run]:
    """Systems with copies, failures and ties, on a metric with an arithmetic and one with a
    geometric mean."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([8, 12, 40, 90]))
    metrics = ("nDCG@10", "GMAP")
    base = rng.uniform(0.1, 0.9, (n, 2))
    runs = []
    for at in range(int(rng.integers(2, 5))):
        values = np.clip(base + rng.normal(rng.choice([0.0, 0.05, 0.2]), 0.15, (n, 2)), 0.001, 1)
        values = np.where(rng.random((n, 2)) < rng.choice([0, 0.5]), base, values)  # ties
        failed = np.flatnonzero(rng.random(n) < rng.choice([0, 0.15]))
        runs += [failing(f"{at}{copy}", values, failed, metrics=metrics) for copy in ("", " again")]
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, *also(*range(1, 4), *range(5, 25))])
def test_no_word_is_at_odds_with_its_interval_and_copies_have_equal_ones(seed: int) -> None:
    comparison = compare_runs(table(seed))
    for metric in comparison.metrics:
        deltas = [delta for delta in comparison.deltas if delta.metric == str(metric)]
        assert len({delta.level for delta in deltas if delta.level is not None}) == 1
        ends: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        for delta in deltas:
            low, high = 0.0, 0.0
            if delta.ci is not None:
                low, high = delta.ci
            elif delta.ratio is not None:
                low, high = (float(np.log(end)) for end in delta.ratio[1:])
            else:
                continue
            decided = delta.verdict in (Verdict.BETTER, Verdict.WORSE)
            assert (low > 1e-12 or high < -1e-12) is decided, delta
            sign = 1 if delta.a < delta.b else -1
            of = tuple(sorted((delta.a.split()[0], delta.b.split()[0])))
            ends.setdefault((of[0], of[1]), []).append(tuple(sorted((sign * low, sign * high))))
        for of_copies in ends.values():
            for other in of_copies[1:]:
                assert other == pytest.approx(of_copies[0], abs=1e-9)
