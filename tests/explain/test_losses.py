from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset, Verdict
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render.table import text_of
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench_explain.commands.losses import between
from retrieval_bench_explain.losses import Losses, Seen, losses
from retrieval_bench_explain.tables.losses import answer, losses_table
from tests.builders import some
from tests.builders.planted_losses import STEPS, Planted
from tests.builders.planted_parts import Scripted, base_ranks, by_query, collection

pytestmark = pytest.mark.dense


def found(retriever: Retriever, data: Dataset) -> Losses:
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    metrics = ["nDCG@10", "R@10"]
    with closing(prepare([retriever], data, metrics=metrics, protocol=protocol, save=False)) as own:
        ladder, rungs = between(own)
        return losses("served", rungs, ladder.run(save=False))


def planted(
    monkeypatch: pytest.MonkeyPatch, seed: int, lost: dict[str, int]
) -> tuple[Planted, Losses]:
    made = Planted(lost, seed)
    return made, found(made.retriever(monkeypatch), made.dataset())


def attributed(made: Planted, told: Losses) -> bool:
    """Whether each loss is told at its own step, of its size, and none at another one."""
    for step in told.measured[1:]:
        delta, expected = step.differences[0], made.expected(step.name)
        low, high = delta.ci or (0.0, 0.0)
        if (delta.verdict is Verdict.WORSE) is not bool(expected):
            return False
        if not low - 1e-9 <= expected <= high + 1e-9:
            return False
    return True


def drawn(seed: int) -> dict[str, int]:
    """At some of the steps 10 to 15 of 100 queries."""
    rng = np.random.default_rng(seed)
    return {step: int(rng.integers(10, 16)) for step in STEPS if rng.random() < 0.6}


def tries(n: int) -> int:
    """How many of ``n`` are attributed as they should be."""
    right = 0
    for seed in range(n):
        with pytest.MonkeyPatch.context() as monkeypatch:
            right += attributed(*planted(monkeypatch, seed, drawn(seed)))
    return right


def test_a_loss_is_told_at_its_own_step_and_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {step: 12 + at for at, step in enumerate(STEPS)}
    made, told = planted(monkeypatch, 1, lost)
    assert [step.name for step in told.measured] == ["exact", *STEPS]
    for step in told.measured[1:]:
        delta = step.differences[0]
        assert delta.difference == pytest.approx(made.expected(step.name), abs=1e-9), step.name
        assert delta.verdict is Verdict.WORSE
        assert some(step.changed) >= lost[step.name]


def test_the_tail_is_told_beside_the_mean_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = planted(monkeypatch, 3, {"index": 12, "filter": 14})
    exact, *steps = told.measured
    assert exact.found is None
    found = {step.name: some(step.found) for step in steps}
    tails = {name: some(one.tail) for name, one in found.items()}
    assert tails["int8"] > tails["index"] > tails["filter"]
    last = found["depth"]
    assert last.tail_ci95 == pytest.approx(clopper_pearson(round(100 * some(last.tail)), 100))
    assert f"It finds {last.text(10)}." in [text_of(note) for note in answer(told)]
    assert "with 0.9" in losses_table(told).columns


def test_losses_of_known_size_are_attributed() -> None:
    assert tries(3) == 3


@pytest.mark.slow
@pytest.mark.long
def test_losses_of_known_size_are_attributed_in_two_hundred_tries() -> None:
    assert tries(200) >= 190


def test_the_steps_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = planted(monkeypatch, 5, {"tokens": 13, "index": 7, "depth": 21})
    for at, whole in enumerate(told.whole):
        steps = sum(some(step.differences[at].difference) for step in told.measured[1:])
        assert abs(steps - some(whole.difference)) < 1e-12
    means = [some(step.means["nDCG@10"]) for step in told.measured]
    assert abs(means[-1] - means[0] - some(told.whole[0].difference)) < 1e-12


def test_each_step_has_its_time_and_the_bytes_of_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = planted(monkeypatch, 2, {})
    n = len(Planted({}, 2).documents)
    sizes = [some(step.index_bytes) for step in told.measured]
    assert sizes[:4] == [n * 64 * 4, n * 64 * 4, n * 32 * 4, n * 32]
    assert sizes[4] == sizes[5] == sizes[6] > sizes[3]
    assert all(some(step.p50_ms) > 0 for step in told.measured)


def test_the_answer_comes_first_and_names_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = planted(monkeypatch, 3, {"int8": 20})
    first, steps, tail, price = map(text_of, answer(told))
    assert first == "served reaches nDCG@10 0.800, 0.200 below an exact search (1.000)."
    assert steps.startswith("Lost by int8 (-0.200). No ranking changes by tokens, ")
    assert tail.startswith("It finds ")
    assert price.startswith("The index takes ")
    table = losses_table(told)
    assert [str(row[0]).partition(":")[0] for row in table.rows] == ["exact", *STEPS, "all of it"]
    assert len(table.rows) + len(table.lead) <= 20


def test_what_is_exact_loses_nothing_and_says_so() -> None:
    class Exact(Scripted):
        def rungs(self):  # type: ignore[no-untyped-def]
            from retrieval_bench.core.retriever import Rung

            other = Scripted("other", self._lists)
            return [Rung("exact", "all", other), Rung("size", "unheard of", known=False)]

    lists = by_query(base_ranks(np.random.default_rng(1), 30))
    told = found(Exact("own", lists), collection(30))
    assert [step.state for step in told.steps] == [Seen.MEASURED, Seen.UNKNOWN]
    assert not told.whole
    assert text_of(answer(told)[0]).startswith("served is exact")
    assert "each by itself" not in str(losses_table(told))
    notes = " ".join(map(text_of, losses_table(told).notes))
    assert "size: cannot be told apart: unheard of" in notes


def test_a_retriever_without_steps_is_refused_with_what_has_some() -> None:
    lists = by_query(base_ranks(np.random.default_rng(1), 30))
    with pytest.raises(ConfigError, match="does not say what an exact form of it would be"):
        found(Scripted("own", lists), collection(30))
