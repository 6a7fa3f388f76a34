from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from harness.comparison import ALPHA, compare_runs, queries_needed, resamples_for
from harness.errors import ConfigError
from harness.evaluation import Evaluation, Mean
from harness.measure.runner import Timings
from harness.metrics import parse_metrics
from harness.run import Run, pack_rankings
from harness.types import Verdict


def run(name: str, values: list[float], **summary: Any) -> Run:
    per_query = np.array(values, dtype=np.float64)[:, None]
    query_ids = tuple(f"q{i}" for i in range(len(values)))
    mean = float(per_query.mean()) if values else float("nan")
    evaluation = Evaluation(
        query_ids, parse_metrics(["nDCG@10"]), per_query, (Mean(mean, None, len(values)),)
    )
    empty = np.zeros(0, dtype=np.int64)
    timings = Timings(empty, empty.astype(np.int32), empty.astype(np.int32),
                      empty.astype(np.int32), empty.astype(bool), {})  # fmt: skip
    facts = {
        "retriever": name,
        "dataset": {"fingerprint": "f", "split": "test"},
        "k": 10,
        "convention": "trec",
        "metrics_version": 1,
    }
    return Run(facts | summary, {}, pack_rankings([], [], 1), (), timings, evaluation)


RNG = np.random.default_rng(8)
BASE = RNG.random(80).tolist()
WORSE = [max(0.0, value - 0.1) for value in BASE]


def test_a_clear_difference_is_better_one_way_and_worse_the_other() -> None:
    (delta,) = compare_runs([run("a", WORSE), run("b", BASE)]).deltas
    assert delta.verdict is Verdict.BETTER
    assert delta.difference == pytest.approx(np.mean(BASE) - np.mean(WORSE))
    assert delta.ci95 is not None
    assert delta.ci95[0] > 0
    assert delta.queries_needed is None
    (delta,) = compare_runs([run("a", BASE), run("b", WORSE)]).deltas
    assert delta.verdict is Verdict.WORSE


def test_what_the_queries_cannot_tell_is_undecided_with_the_number_it_takes() -> None:
    noisy = (np.array(BASE) + RNG.normal(0.01, 0.2, 80)).tolist()
    (delta,) = compare_runs([run("a", BASE), run("b", noisy)]).deltas
    assert delta.verdict is Verdict.UNDECIDED
    assert delta.queries_needed is not None
    assert delta.queries_needed >= 1
    differences = np.array(noisy) - np.array(BASE)
    assert delta.queries_needed == queries_needed(differences, ALPHA)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 30])
def test_queries_needed_agrees_with_an_independent_power_computation(alpha: float) -> None:
    differences = np.random.default_rng(3).normal(0.02, 0.2, 300)
    effect = differences.mean() / differences.std(ddof=1)
    needed = queries_needed(differences, alpha)
    assert needed is not None
    n = 300 + needed

    def power(queries: int) -> float:  # two-sided t test, noncentral t
        critical = scipy.stats.t.ppf(1 - alpha / 2, queries - 1)
        shift = abs(effect) * np.sqrt(queries)
        return float(
            scipy.stats.nct.sf(critical, queries - 1, shift)
            + scipy.stats.nct.cdf(-critical, queries - 1, shift)
        )

    assert power(n) == pytest.approx(0.8, abs=0.005)


def test_queries_needed_is_for_the_level_that_holm_holds_the_row_against() -> None:
    rng = np.random.default_rng(5)
    noise = [rng.normal(0, 0.2, 300) for _ in range(7)]
    # One clear difference among 28 pairs, too small once Holm looks at all of them.
    noise[0] = noise[0] - noise[0].mean()
    shifted = noise[0] + rng.normal(0, 0.2, 300)
    shifted += 0.034 - (shifted - noise[0]).mean()
    systems = [*noise, shifted]
    runs = [run(str(i), (0.5 + values).tolist()) for i, values in enumerate(systems)]
    deltas = compare_runs(runs).deltas
    ordered = sorted(deltas, key=lambda delta: delta.p or 0)
    told = [delta for delta in deltas if delta.p and delta.p < ALPHA and delta.queries_needed]
    assert told
    for delta in told:
        differences = systems[int(delta.b)] - systems[int(delta.a)]
        level = ALPHA / (len(deltas) - ordered.index(delta))
        assert delta.queries_needed == queries_needed(differences, level)
        # With one test instead of all, hardly any more would be needed: a contradiction.
        assert delta.queries_needed is not None
        assert delta.queries_needed > (queries_needed(differences, ALPHA) or 0) + 50


def test_a_comparison_of_many_rows_can_still_find_a_difference() -> None:
    rng = np.random.default_rng(6)
    base = rng.random(40)
    runs = [run(str(i), (base + rng.normal(0, 0.01, 40)).tolist()) for i in range(32)]
    runs.append(run("best", (base + 1).tolist()))
    comparison = compare_runs(runs)
    assert len(comparison.deltas) == 528
    assert comparison.resamples == comparison.as_dict()["resamples"] == 200_000
    best = [delta for delta in comparison.deltas if delta.b == "best"]
    assert {delta.verdict for delta in best} == {Verdict.BETTER}


@pytest.mark.parametrize("rows", [0, 1, 25, 26, 500, 5_000])
def test_resamples_follow_the_rows(rows: int) -> None:
    resamples = resamples_for(rows)
    assert 10_000 <= resamples <= 200_000
    assert rows / (resamples + 1) < ALPHA
    assert (resamples == 10_000) == (rows <= 25)


def test_without_an_evaluated_query_the_difference_is_missing() -> None:
    (delta,) = compare_runs([run("a", []), run("b", [])]).deltas
    assert (delta.verdict, delta.reason) == (Verdict.MISSING, "no evaluated query")
    assert (delta.difference, delta.p, delta.ci95) == (None, None, None)


def test_a_pair_without_a_test_leaves_the_others_alone() -> None:
    runs = [run("a", WORSE), run("b", BASE, k=3), run("c", BASE), run("d", BASE[:5])]
    verdicts = {(delta.a, delta.b): delta.verdict for delta in compare_runs(runs).deltas}
    assert verdicts.pop(("a", "c")) is Verdict.BETTER
    assert set(verdicts.values()) == {Verdict.NOT_COMPARABLE}


def test_equal_runs_are_undecided_and_no_number_of_queries_helps() -> None:
    (delta,) = compare_runs([run("a", BASE), run("b", BASE)]).deltas
    assert (delta.verdict, delta.p, delta.queries_needed) == (Verdict.UNDECIDED, 1.0, None)


def test_holm_counts_all_rows_of_the_comparison() -> None:
    runs = [run(str(i), (np.array(BASE) + RNG.normal(0.02, 0.1, 80)).tolist()) for i in range(4)]
    deltas = compare_runs(runs).deltas
    assert len(deltas) == 6
    smallest = min(deltas, key=lambda delta: delta.p or 0)
    assert smallest.p is not None
    assert smallest.p_adjusted == pytest.approx(min(1, 6 * smallest.p))


def test_queries_are_paired_by_id_not_by_place() -> None:
    a, b = run("a", [0.1, 0.9]), run("b", [0.9, 0.1])
    turned = Evaluation(("q1", "q0"), b.evaluation.metrics, b.evaluation.per_query, ())
    b = Run(b.summary, {}, b.rankings, (), b.timings, turned)
    (delta,) = compare_runs([a, b]).deltas
    assert delta.difference == 0
    assert delta.p == 1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"k": 100}, "k 10 and 100"),
        ({"metrics_version": 2}, "metrics_version 1 and 2"),
        ({"convention": "piaf"}, "convention trec and piaf"),
        ({"dataset": {"fingerprint": "g", "split": "test"}}, "different dataset fingerprint"),
        ({"dataset": {"fingerprint": "f", "split": "dev"}}, "different dataset split"),
    ],
)
def test_runs_that_measured_something_else_are_not_comparable(
    change: dict[str, Any], reason: str
) -> None:
    (delta,) = compare_runs([run("a", BASE), run("b", WORSE, **change)]).deltas
    assert (delta.verdict, delta.reason) == (Verdict.NOT_COMPARABLE, reason)
    assert delta.p is None


def test_a_partial_run_over_other_queries_is_not_comparable() -> None:
    (delta,) = compare_runs([run("a", BASE), run("b", BASE[:40])]).deltas
    assert delta.reason == "different queries were finished"


def test_equal_names_are_told_apart() -> None:
    assert compare_runs([run("a", BASE)] * 3).names == ("a", "a#2", "a#3")
    runs = [run("a", BASE), run("a#2", BASE), run("a", BASE)]
    assert compare_runs(runs).names == ("a", "a#2", "a#3")


def test_fewer_than_two_runs_or_no_common_metric() -> None:
    with pytest.raises(ConfigError, match="1 run"):
        compare_runs([run("a", BASE)])
    other = run("b", BASE)
    evaluation = Evaluation(
        other.evaluation.query_ids, parse_metrics(["R@3"]), other.evaluation.per_query, ()
    )
    with pytest.raises(ConfigError, match="no metric in common"):
        compare_runs(
            [run("a", BASE), Run(other.summary, {}, other.rankings, (), other.timings, evaluation)]
        )


def test_one_query_can_be_compared_without_crashing() -> None:
    (delta,) = compare_runs([run("a", [0.2]), run("b", [0.9])]).deltas
    assert (delta.verdict, delta.ci95, delta.queries_needed) == (Verdict.UNDECIDED, None, None)
    assert delta.p == 1.0
