from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.comparison import compare_runs
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
    assert delta.queries_needed > 80


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
