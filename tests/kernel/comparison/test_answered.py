"""No verdict on quality rests on queries that failed, or on metrics that cannot differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import parse_metrics
from tests.builders import some
from tests.builders.runs import failing, run

RNG = np.random.default_rng(16)
BASE = RNG.uniform(0.3, 1.0, 300)


FAILED = range(0, 300, 25)


def test_a_network_that_fails_now_and_then_is_no_difference_in_quality() -> None:
    flaky = failing("flaky", BASE, FAILED)
    steady = failing("steady", BASE, [])
    comparison = compare_runs([steady, flaky])
    (delta,) = comparison.deltas
    assert some(delta.p) < 0.001  # the test over all queries is certain
    assert delta.p_adjusted == 1.0  # and Holm takes the larger of the two
    assert delta.verdict is Verdict.UNDECIDED
    assert delta.rests_on_failures
    answered = some(delta.answered)
    assert (answered.n, answered.failed_a, answered.failed_b) == (288, 0, 12)
    assert answered.difference == 0.0
    assert delta.queries_needed is None
    assert "flaky failed on 12 queries" in delta.reason
    (answer,) = comparison.recommendations
    assert answer.system is None
    assert "only queries that failed tell these systems apart" in answer.sentence
    row = delta.as_dict()
    assert row["rests_on_failures"] is True
    assert row["answered"]["n"] == 288


def test_a_service_that_also_ranks_otherwise_is_worse_or_no_equal() -> None:
    worse = failing("worse", BASE - 0.1, FAILED)
    (delta,) = compare_runs([failing("steady", BASE, []), worse]).deltas
    assert delta.verdict is Verdict.WORSE
    assert not delta.rests_on_failures
    assert some(delta.answered).difference == pytest.approx(-0.1)
    assert some(delta.answered).verdict is Verdict.WORSE
    # The better one failed so often that the means are equal: neither is as good as the other.
    better = failing("better", BASE + 0.05, FAILED)
    (delta,) = compare_runs([failing("steady", BASE, []), better]).deltas
    assert some(delta.answered).verdict is Verdict.BETTER
    assert delta.verdict is not Verdict.EQUIVALENT


@pytest.mark.slow
def test_where_nobody_failed_nothing_is_said_of_it() -> None:
    (delta,) = compare_runs([failing("a", BASE, []), failing("b", BASE, [])]).deltas
    assert delta.answered is None
    assert "answered" not in delta.as_dict()


def test_holm_takes_the_larger_p_in_place_of_the_first() -> None:
    runs = [
        failing("steady", BASE, []),
        failing("flaky", BASE, FAILED),
        failing("worse", BASE - 0.2, []),
    ]
    deltas = {(d.a, d.b): d for d in compare_runs(runs).deltas}
    assert deltas["steady", "flaky"].rests_on_failures
    assert deltas["steady", "worse"].verdict is Verdict.WORSE
    assert deltas["flaky", "worse"].verdict is Verdict.WORSE
    assert deltas["steady", "worse"].answered is None


def test_nothing_that_both_answered() -> None:
    half, other = range(150), range(150, 300)
    (delta,) = compare_runs([failing("a", BASE * 0.1, half), failing("b", BASE, other)]).deltas
    assert delta.verdict is Verdict.MISSING
    assert delta.p is None
    assert "no query was answered by both" in delta.reason


@pytest.mark.slow
def test_a_p_that_rests_on_failures_rejects_nothing_for_the_others() -> None:
    """Holm rejects the flaky pair's tiny p first, and then asks less of the next one."""
    rng = np.random.default_rng(15)
    steady = rng.uniform(0.3, 1.0, 300)
    for _ in range(500):
        other = steady + rng.normal(0.02, 0.2, 300)
        alone = compare_runs([run("steady", steady), run("other", other)]).deltas[0]
        if 0.03 < some(alone.p) < 0.045:
            break
    flaky = failing("flaky", steady, FAILED)
    found = compare_runs(
        [failing("steady", steady, []), failing("other", other, []), flaky],
        baseline="steady",
    ).deltas
    verdicts = {delta.b: delta.verdict for delta in found}
    assert verdicts == {"other": Verdict.UNDECIDED, "flaky": Verdict.UNDECIDED}


class TestNothingCanDiffer:
    def compared(self, first: float, second: float, **facts: int) -> Delta:
        data = {"fingerprint": "f", "split": "test", **facts}
        runs = [run(name, [value] * 30, dataset=data)
                for name, value in (("a", first), ("b", second))]  # fmt: skip
        (delta,) = compare_runs(runs).deltas
        return delta

    def test_only_queries_without_any_relevant_document_are_no_comparison(self) -> None:
        delta = self.compared(0.0, 0.0, n_without_relevant=30)
        assert delta.verdict is Verdict.MISSING
        assert delta.p is None
        assert delta.queries_needed is None
        assert "no evaluated query has a relevant document" in delta.reason
        delta = self.compared(0.0, 0.0, n_without_relevant=29)
        assert delta.p is not None
        assert self.compared(1.0, 1.0, n_documents=5).p is not None

    @pytest.mark.parametrize(("n_documents", "compares"), [(5, False), (11, True)])
    def test_recall_of_the_whole_corpus_is_none(self, n_documents: int, compares: bool) -> None:
        data = {"fingerprint": "f", "split": "test", "n_documents": n_documents}
        runs = [run(name, [1.0] * 30, dataset=data) for name in "ab"]
        recall = parse_metrics(["R@10"])
        runs = [replace(one, evaluation=replace(one.evaluation, metrics=recall)) for one in runs]
        (delta,) = compare_runs(runs).deltas
        assert (delta.p is not None) is compares
        assert ("looks at the whole corpus" in delta.reason) is not compares
