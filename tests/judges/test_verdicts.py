"""Which labels a verdict rests on: whole queries, people's and the model's never mixed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.runs.run import Run
from retrieval_bench_judges.judged_by import JudgedComparison, compare_judged, sentence
from retrieval_bench_judges.tables.judged_by import judged_tables
from retrieval_bench_labels.label import Kind, Pair
from retrieval_bench_labels.store import Store
from tests.builders import some
from tests.builders.judged import differences, half_alike, label_all, pooled, systems

N = 25


@pytest.fixture
def given(tmp_path: Path) -> tuple[list[Run], Store, dict[Pair, int]]:
    """Two systems, a pool in which nothing is judged, and the truth."""
    runs, truth = systems()
    return runs, pooled(tmp_path / "labels.sqlite", runs), truth


def _label(store: Store, truth: dict[Pair, int], *, error: float = 0.05, n: int = N) -> list[str]:
    """Anna judges the first ``n`` queries, the model all; gives these n."""
    rng, first = random.Random(3), [query.id for query in store.pool().queries[:n]]
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in first else None)
    label_all(store, "gpt", Kind.MODEL, lambda q, d: truth[Pair(q, d)] ^ int(rng.random() < error))
    return first


def _compared(runs: list[Run], store: Store, **how: Any) -> JudgedComparison:
    return compare_judged(runs, store, **how)


def test_a_good_judge_narrows_the_interval_and_is_told_what_it_is_worth(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth)
    made = _compared(runs, store)
    (pair, _) = made.pairs
    assert (made.queries_people, made.queries_both, made.queries_model) == (N, N, 60 - N)
    assert pair.decided_by == "people and model"
    assert some(pair.rho) > 0.6
    assert some(pair.worth) > N
    assert sentence(made, pair) == "s0 is better than s1 in nDCG@10, by people and model."


def test_a_judge_that_guesses_changes_nothing(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth, error=0.5)
    made = _compared(runs, store)
    for pair in made.pairs:
        assert pair.decided_by == "people"
        assert (pair.both.ci, pair.both.p) == (pair.people.ci, pair.people.p)


def test_that_a_judge_errs_nowhere_stands_among_the_reasons_why_people_decide(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth, error=0.0)
    made = _compared(runs, store)
    assert made.pairs[0].decided_by == "people"
    assert "differ from people's on fewer than 2." in str(judged_tables(made)[1].lead)


def test_labels_of_the_model_where_people_judged_change_no_value_of_people(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth)
    before = _compared(runs, store).pairs[0].people
    label_all(store, "gpt", Kind.MODEL, lambda _q, _d: 0)
    assert _compared(runs, store).pairs[0].people == before


def test_what_people_began_and_did_not_finish_is_left_out_of_both_sides(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth)
    begun = store.pool().queries[N]
    label_all(
        store,
        "anna",
        Kind.PERSON,
        lambda q, d: 1 if q == begun.id and d == begun.documents[0] else None,
    )
    made = _compared(runs, store)
    assert made.left_out.begun == 1
    assert (made.queries_people, made.queries_model) == (N, 60 - N - 1)


def test_queries_of_the_prompt_count_for_people_alone(given: Any) -> None:
    runs, store, truth = given
    first = _label(store, truth)
    store.set_fact("judges", {"gpt": {"prompted": first[:3]}})
    made = _compared(runs, store)
    assert (made.queries_people, made.queries_both, made.left_out.prompted) == (N, N - 3, 3)


def test_queries_that_the_model_did_not_finish_are_told(given: Any) -> None:
    runs, store, truth = given
    first = _label(store, truth)
    last = store.pool().queries[-1].id
    with store._open() as base, base:
        base.execute("DELETE FROM labels WHERE who = 'gpt' AND query IN (?, ?)", (first[0], last))
    made = _compared(runs, store)
    assert (made.left_out.judged_alone, made.left_out.unlabelled) == (1, 1)
    assert (made.queries_people, made.queries_both, made.queries_model) == (N, N - 1, 60 - N - 1)


def test_systems_that_return_the_same_everywhere_leave_nothing_to_judge(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth)
    made = _compared([runs[0], replace(runs[0], summary=runs[1].summary)], store)
    assert (made.queries_people, made.queries_model, made.queries_alike) == (0, 0, 60)
    assert made.pairs[0].people.verdict is Verdict.MISSING
    assert "nothing to judge" in made.pairs[0].people.reason


def _half(tmp_path: Path, metric: str, step: int) -> tuple[list[Run], Store, dict[Pair, int]]:
    """200 queries, on half of which two systems cannot differ in a metric."""
    runs, truth = systems(200, metrics=("nDCG@10", "R@10"), noises=(0.7, 3))
    runs = half_alike(runs, step)
    return runs, pooled(tmp_path / "labels.sqlite", runs, metric=metric), truth


@pytest.mark.parametrize(("metric", "step"), [("nDCG@10", 1), ("R@10", -1)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("model", [100, 60, 40])
def test_what_is_known_to_be_alike_counts_by_its_share_however_far_anybody_came(
    tmp_path: Path, metric: str, step: int, last: bool, model: int
) -> None:
    runs, store, truth = _half(tmp_path, metric, step)
    order = [query.id for query in store.pool().queries if query.weight > 0]
    assert len(order) == 100
    chosen, seen, rng = {*order[:N], *order[-1:] * last}, {*order[:model]}, random.Random(1)
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in chosen else None)
    label_all(
        store,
        "gpt",
        Kind.MODEL,
        lambda q, d: truth[Pair(q, d)] ^ int(rng.random() < 0.03) if q in seen else None,
    )
    made, true = _compared(runs, store), differences(runs, truth, metric)
    (pair,) = [pair for pair in made.pairs if pair.people.metric == metric]
    assert (made.queries_people, made.queries_alike) == (len(chosen), 100)
    assert made.queries_model == model - len(chosen & seen)
    own = [true[q] for q in chosen]
    assert pair.people.difference == pytest.approx(sum(own) / len(own) / 2)
    low, high = some(pair.people.ci)
    spread = np.std(own, ddof=1) / len(own) ** 0.5 / 2
    assert high - low == pytest.approx(4 * spread, rel=0.15)
    low, high = some(pair.both.ci)
    assert low <= sum(true.values()) / 200 <= high


def test_a_metric_is_left_out_in_which_queries_count_that_nobody_is_asked_for(
    tmp_path: Path,
) -> None:
    runs, store, truth = _half(tmp_path, "R@10", -1)
    _label(store, truth, n=200)
    made = _compared(runs, store)
    assert set(made.metrics) == {"nDCG@10", "R@10"}, "all was judged"
    with store._open() as base, base:
        base.execute("DELETE FROM labels WHERE query IN (SELECT id FROM queries WHERE weight = 0)")
    made = _compared(runs, store)
    assert made.metrics == ("R@10",)
    assert made.warnings == (
        "left out, since queries count in it that nobody is asked for: nDCG@10",
    )


def test_a_geometric_mean_is_left_out_where_queries_count_by_shares(tmp_path: Path) -> None:
    runs, truth = systems(metrics=("GMAP", "nDCG@10"))
    store = pooled(tmp_path / "labels.sqlite", runs)
    _label(store, truth)
    kinds = {query.id: "ab"[at % 2] for at, query in enumerate(store.pool().queries)}
    assert _compared(runs, store).metrics == ("GMAP", "nDCG@10")
    assert _compared(runs, store, strata=kinds).metrics == ("nDCG@10",)
    assert _compared(half_alike(runs), store).metrics == ("nDCG@10",)


def test_a_failed_query_counts_as_an_empty_list_and_no_verdict_rests_on_failures(
    given: Any,
) -> None:
    runs, store, truth = given
    _label(store, truth)
    better = runs[0].rankings
    status = tuple("failed" if at % 2 else "ok" for at in range(60))
    same = replace(runs[1], rankings=better, status=status)
    (pair, _) = _compared([runs[0], same], store).pairs
    assert pair.both.rests_on_failures
    assert pair.both.verdict is Verdict.UNDECIDED
    assert some(pair.both.answered).failed_b > 0


@pytest.mark.parametrize(
    ("target", "metrics", "decided_by"),
    [
        (Target.SPLIT, ("nDCG@10",), "people"),
        (Target.POPULATION, ("GMAP", "nDCG@10"), "people"),
        (Target.POPULATION, ("nDCG@10",), "people and model"),
    ],
)
def test_geometric_means_and_hard_queries_first_are_for_people_alone(
    tmp_path: Path, target: Target, metrics: tuple[str, ...], decided_by: str
) -> None:
    runs, truth = systems(metrics=metrics)
    store = pooled(tmp_path / "labels.sqlite", runs, target)
    _label(store, truth)
    assert _compared(runs, store).pairs[0].decided_by == decided_by


def test_all_pairs_enter_holm_together_at_one_level(tmp_path: Path) -> None:
    runs, truth = systems(metrics=("nDCG@10",), noises=(1, 1.5, 3))
    store = pooled(tmp_path / "labels.sqlite", runs)
    _label(store, truth)
    made = _compared(runs, store)
    assert len({pair.both.level for pair in made.pairs}) == 1
    adjusted = sorted((some(p.both.p), some(p.both.p_adjusted)) for p in made.pairs)
    assert adjusted[0][1] == pytest.approx(3 * adjusted[0][0])


@pytest.mark.parametrize("n", [0, 3])
def test_where_people_judged_too_little_that_is_said_of_them_and_nothing_is_decided(
    tmp_path: Path, n: int
) -> None:
    runs, truth = systems(metrics=("nDCG@10",), noises=(1, 1.1, 1.2))
    store = pooled(tmp_path / "labels.sqlite", runs)
    _label(store, truth, n=n)
    made = _compared(runs, store)
    assert made.why_people == f"people judged only {n} queries"
    assert {pair.both.verdict is Verdict.MISSING for pair in made.pairs} == {n == 0}
    table = judged_tables(made)[1]
    assert "0 of 3 pairs decided" in table.title
    assert len(table.lead) == (n > 0), "people decide where they judged anything"
    assert ("brackets" in str(table.notes)) == (n > 0)


def test_chosen_queries_are_told(given: Any) -> None:
    runs, store, truth = given
    chosen = [query.id for query in store.pool().queries[::3]]
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in chosen else None)
    label_all(store, "gpt", Kind.MODEL, lambda q, d: truth[Pair(q, d)])
    assert any("chosen and not drawn" in text for text in _compared(runs, store).warnings)


def test_of_two_models_one_is_named(given: Any) -> None:
    runs, store, truth = given
    _label(store, truth)
    label_all(store, "other", Kind.MODEL, lambda _q, _d: 0)
    with pytest.raises(ConfigError, match="--judge"):
        _compared(runs, store)
    assert _compared(runs, store, judge="gpt").fit.judge == "gpt"


def test_a_judge_that_follows_one_system_rings(tmp_path: Path) -> None:
    runs, truth = systems(metrics=("nDCG@10",))
    store = pooled(tmp_path / "labels.sqlite", runs)
    _label(store, truth)
    mine = {Pair(q, d) for q, of in store.pool().lists["s0"].items() for d in of}
    mine -= {Pair(q, d) for q, of in store.pool().lists["s1"].items() for d in of}
    label_all(store, "gpt", Kind.MODEL, lambda q, d: 1 if Pair(q, d) in mine else None)
    rings = [alarm for alarm in _compared(runs, store).fit.alarms if alarm.rings]
    assert [alarm.systems for alarm in rings] == [("s0",)]
    assert rings[0].rate == 1.0


def test_people_decide_by_clusters_where_queries_come_in_them(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, store, truth = given
    _label(store, truth)
    alone = _compared(runs, store).pairs[0].people
    fives = {query: f"c{at // 5}" for at, query in enumerate(runs[0].rankings.query_ids)}
    monkeypatch.setattr(Run, "clusters", property(lambda _run: fives))
    (pair, _) = _compared(runs, store).pairs
    assert pair.decided_by == "people"
    assert pair.people.difference == alone.difference
    assert some(pair.people.p) > some(alone.p)
