"""Is a judge fit: what it overrates, stratum by stratum, and by no verdict of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_judges.alarms import Alarm, overrated_p, rung, untested
from retrieval_bench_judges.evidence import Labels, Systems, gather_evidence
from retrieval_bench_judges.fit import fits_of
from retrieval_bench_judges.judged_by import compare_judged
from retrieval_bench_labels.decide.status import status
from retrieval_bench_labels.label import Kind, Pair
from retrieval_bench_labels.store import Store
from tests.builders import some
from tests.builders.judged import differences, label_all, pooled, systems

QUERIES = [f"q{at}" for at in range(30)]


def _errors(chance: Mapping[str, float], seed: int = 0) -> dict[str, dict[str, bool]]:
    """Documents of three groups that people find not relevant, and those that a judge takes in."""
    rng = np.random.default_rng(seed)
    return {
        q: {
            f"{group}{at}": bool(rng.random() < p) for group, p in chance.items() for at in range(5)
        }
        for q in QUERIES
    }


def _rung(chance: Mapping[str, float]) -> dict[tuple[str, ...], Alarm]:
    """Alarms by name: what ``a`` alone returned begins with a, what is near in words with w."""
    a, b, near = ({q: {f"{of}{at}" for at in range(5)} for q in QUERIES} for of in "abw")
    return {of.systems: of for of in rung(_errors(chance), [(("a",), a), (("b",), b)], near)}


def test_each_alarm_rings_for_what_it_is_named_for() -> None:
    circular = _rung({"a": 0.6, "b": 0.1, "w": 0.1})
    assert [name for name, alarm in circular.items() if alarm.rings] == [("a",)]
    lexical = _rung({"a": 0.1, "b": 0.1, "w": 0.6})
    assert [name for name, alarm in lexical.items() if alarm.rings] == [()]
    assert lexical[()].kind == "lexical"


def test_a_judge_that_underrates_a_group_rings_for_no_such_group() -> None:
    alarms = _rung({"a": 0.05, "b": 0.5, "w": 0.5})
    assert not alarms["a",].rings


def test_of_many_fair_judges_few_ring_at_all() -> None:
    chance = dict.fromkeys("abw", 0.3)
    groups = [((of,), {q: {f"{of}{at}" for at in range(5)} for q in QUERIES}) for of in "ab"]
    near = {q: {f"w{at}" for at in range(5)} for q in QUERIES}
    rings = [
        any(of.rings for of in rung(_errors(chance, seed), groups, near)) for seed in range(60)
    ]
    assert sum(rings) <= 7


def test_a_group_of_most_documents_rings_no_oftener_for_a_fair_judge() -> None:
    rng, rung_in = np.random.default_rng(2), 0
    group = {q: {f"g{at}" for at in range(9)} for q in QUERIES}
    for _ in range(200):
        errors = {
            q: {doc: bool(rng.random() < 0.3) for doc in [*sorted(group[q]), "other"]}
            for q in QUERIES
        }
        rung_in += any(of.rings for of in rung(errors, [], group))
    assert rung_in <= 16


@pytest.mark.parametrize(("wrong", "p"), [((2, 2, 2, 5), 0.1), ((1, 2, 1, 4), 0.5)])
def test_p_is_that_of_fishers_exact_test(wrong: tuple[int, int, int, int], p: float) -> None:
    assert overrated_p(np.array([wrong])) == pytest.approx(p)
    assert overrated_p(np.array([wrong, wrong])) == pytest.approx(p * p)
    assert overrated_p(np.zeros((0, 4), dtype=np.int64)) == 1.0


def test_what_no_document_tells_is_not_called_without_an_alarm() -> None:
    errors = {q: {"a1": False, "a2": True} for q in QUERIES[:1]}
    assert untested(rung(errors, [], {})) == "one system or words"
    assert untested(rung(errors, [(("a",), {QUERIES[0]: {"a1"}})], {QUERIES[0]: {"a2"}})) == ""


@pytest.mark.parametrize(
    ("said", "rate", "elsewhere", "tells"),
    [
        ({"a0": True}, 1.0, None, False),
        ({"b0": True}, None, 1.0, False),
        ({"a0": True, "b0": True}, 1.0, 1.0, False),
        ({"a0": False, "b0": False}, 0.0, 0.0, True),
    ],
)
def test_without_anything_to_hold_it_against_a_group_has_no_p(
    said: dict[str, bool], rate: float | None, elsewhere: float | None, tells: bool
) -> None:
    group = {q: {"a0"} for q in QUERIES}
    of = rung(dict.fromkeys(QUERIES, said), [(("a",), group)], group)
    assert (of[0].rate, of[0].elsewhere, of[0].rings) == (rate, elsewhere, False)
    assert (of[0].p is not None, untested(of) == "") == (tells, tells)


def _store(tmp_path: Path, n: int, error: float = 0.05) -> tuple[list[Any], Store, dict[Pair, int]]:
    runs, truth = systems(metrics=("nDCG@10",))
    store, rng = pooled(tmp_path / "labels.sqlite", runs), random.Random(3)
    first = {query.id for query in store.pool().queries[:n]}
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in first else None)
    label_all(store, "gpt", Kind.MODEL, lambda q, d: truth[Pair(q, d)] ^ int(rng.random() < error))
    return runs, store, truth


def test_the_status_says_of_a_judge_what_the_comparison_says(tmp_path: Path) -> None:
    runs, store, _ = _store(tmp_path, 25)
    (fit,) = fits_of(store)
    made = compare_judged(runs, store)
    assert fit == made.fit
    (pair,) = fit.differences
    assert (pair.rho, pair.worth) == (made.pairs[0].rho, made.pairs[0].worth)


def test_a_model_alone_has_no_verdict_whatever_it_judged(tmp_path: Path) -> None:
    runs, store, _ = _store(tmp_path, 0)
    state = status(store)
    assert (state.completeness.judged, state.progress.judged, state.whose.judges) == (0, 0, {})
    assert state.models == {"gpt": state.completeness.pairs}
    assert not state.done
    assert fits_of(store)[0].documents == 0
    assert compare_judged(runs, store).pairs[0].both.verdict is Verdict.MISSING


@pytest.mark.parametrize("first", [0, 1])
def test_twins_count_as_one_and_what_they_alone_returned_rings(tmp_path: Path, first: int) -> None:
    runs, truth = systems(metrics=("nDCG@10",))
    other = runs[1 - first]
    runs = [
        runs[first],
        replace(runs[first], summary=runs[first].summary.model_copy(update={"retriever": "twin"})),
    ]
    store = pooled(tmp_path / "labels.sqlite", [*runs, other])
    mine = {Pair(q, d) for q, of in store.pool().lists[runs[0].name].items() for d in of}
    mine -= {Pair(q, d) for q, of in store.pool().lists[other.name].items() for d in of}
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)])
    label_all(store, "gpt", Kind.MODEL, lambda q, d: int(Pair(q, d) in mine or truth[Pair(q, d)]))
    rings = [alarm for alarm in fits_of(store)[0].alarms if alarm.rings]
    assert [alarm.systems for alarm in rings] == [(runs[0].name, "twin")]


def _strata(store: Store, every: int) -> dict[str, str]:
    """Of the pool's order, every so many queries are rare."""
    ids = [query.id for query in store.pool().queries]
    return {q: "rare" if at % every == 0 else "often" for at, q in enumerate(ids)}


def test_strata_count_by_their_shares_on_both_sides(tmp_path: Path) -> None:
    runs, store, truth = _store(tmp_path, 0)
    strata = _strata(store, 2)
    # 15 of one kind and 25 of the other, of 30 each.
    chosen = [q for q in strata if strata[q] == "rare"][:15]
    chosen += [q for q in strata if strata[q] == "often"][:25]
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in chosen else None)
    made = compare_judged(runs, store, strata=strata)
    assert made.strata == {"often": 0.5, "rare": 0.5}
    assert not made.warnings
    evidence = gather_evidence(
        Labels.of(store, "gpt", strata), Systems.of_runs(runs, ["s0", "s1"], store.pool())
    )
    own = (evidence.people[1] - evidence.people[0])[:, 0]
    rare = np.array([strata[q] == "rare" for q in evidence.query_ids])
    (pair,) = made.pairs
    assert pair.people.difference == pytest.approx((own[rare].mean() + own[~rare].mean()) / 2)
    low, high = some(pair.people.ci)
    assert (low + high) / 2 == pytest.approx(some(pair.people.difference))
    assert pair.decided_by == "people and model"
    narrow = some(pair.both.ci)
    assert narrow[1] - narrow[0] < high - low
    assert {stratum.name for stratum in made.fit.strata} == {"rare", "often"}


def test_people_count_by_shares_of_all_queries_whatever_the_model_judged(tmp_path: Path) -> None:
    runs, store, truth = _store(tmp_path, 0)
    strata = _strata(store, 2)
    chosen = [q for q in strata if strata[q] == "rare"][:5]
    chosen += [q for q in strata if strata[q] == "often"][:20]
    label_all(store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in chosen else None)
    whole = compare_judged(runs, store, strata=strata)
    rare = [q for q in strata if strata[q] == "rare"]
    with store._open() as base, base:
        marks = ", ".join("?" * len(rare[8:]))
        base.execute(f"DELETE FROM labels WHERE who = 'gpt' AND query IN ({marks})", rare[8:])
    made = compare_judged(runs, store, strata=strata)
    assert "only 3 queries of rare" in made.why_people
    assert made.strata == {"often": 0.5, "rare": 0.5}
    assert made.pairs[0].people == whole.pairs[0].people
    true = differences(runs, truth, "nDCG@10")
    means = [np.mean([true[q] for q in chosen if strata[q] == of]) for of in ("rare", "often")]
    assert made.pairs[0].people.difference == pytest.approx(np.mean(means))


def test_of_a_stratum_people_judge_two_or_there_is_no_verdict(tmp_path: Path) -> None:
    runs, store, _ = _store(tmp_path, 11)
    made = compare_judged(runs, store, strata=_strata(store, 11))
    (pair,) = made.pairs
    assert pair.people.verdict is pair.both.verdict is Verdict.MISSING
    assert "people judged only 1 query of rare" in pair.people.reason


def test_a_stratum_of_which_people_judged_too_little_leaves_it_to_them(tmp_path: Path) -> None:
    runs, store, _ = _store(tmp_path, 25)
    made = compare_judged(runs, store, strata=_strata(store, 10))
    assert "only 3 queries of rare" in made.why_people
    assert {pair.decided_by for pair in made.pairs} == {"people"}
