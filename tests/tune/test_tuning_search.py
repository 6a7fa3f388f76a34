from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench
from retrieval_bench.core.config import inline_config
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.progress import Silent
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.remembered import Remembered
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.core.units.collapsing import UnitRetriever
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import parse_metric
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import pack_rankings
from retrieval_bench_tune.grid import Grid, Setting, make_grid
from retrieval_bench_tune.search import Tunable, values_of
from tests.builders.tuning_data import NOTED, Noted, dataset, hybrid


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset()


def _made(config: Mapping[str, Any], **parameters: Sequence[Any]) -> tuple[Tunable, Grid]:
    given = {path.replace("__", "."): tuple(values) for path, values in parameters.items()}
    tunable = Tunable(inline_config(config))
    grid = make_grid(given, {}, seed=0)
    tunable.remember(given)
    tunable.check(grid, 10)
    return tunable, grid


def _values(tunable: Tunable, grid: Grid, data: Dataset, metric: str = "nDCG@10") -> Any:
    return values_of(
        tunable,
        grid,
        data,
        data.evaluated,
        data.qrels,
        k=10,
        metric=parse_metric(metric),
        reporter=Silent(),
    )


def _fresh(tunable: Tunable, setting: Setting, data: Dataset) -> Any:
    """The values of a retriever that is built, indexed and asked for this setting alone."""
    own = tunable.config
    inline = {"name": own.name, "target": own.target, "params": own.params}
    retriever = inline_config(inline, setting.overrides).build()
    retriever.use_k(10)
    retriever.use_language(data.language)
    retriever.index(data.documents or ())
    seen = UnitRetriever(retriever, data.unit_of) if data.unit_of else retriever
    queries = data.evaluated
    found = [checked_ranking(seen.search(query, 10), 10) for query in queries]
    seen.close()
    ids = [query.id for query in queries]
    packed = pack_rankings(ids, found, 10)
    metrics = [parse_metric("nDCG@10")]
    return evaluate(packed.ranking, packed.doc_ids, ids, data.qrels, metrics).per_query[:, 0]


def _benched(tunable: Tunable, setting: Setting, data: Dataset) -> Any:
    """The values of ``bench --set``."""
    inline = {"target": tunable.config.target, "params": tunable.config.params}
    once = Protocol(rounds=1, warm_up_s=0)
    run = bench(inline, data, overrides=setting.overrides, protocol=once).run
    order = [run.evaluation.query_ids.index(query.id) for query in data.evaluated]
    return run.evaluation.values(parse_metric("nDCG@10"))[order]


RRF: dict[str, Any] = {
    "fusion__k": [1, 60],
    "fusion__weights": [[1, 1], [0, 1], [0.3, 0.7]],
    "depth": [3, 12, 100],
}
CONVEX: dict[str, Any] = {"fusion__weights": [[1, 1], [0.05, 0.95], [1, 0]], "depth": [3, [12, 30]]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rrf": (hybrid(), RRF),
    "convex": (hybrid(fusion={"method": "convex"}), CONVEX),
    "weights by name": (hybrid(), {"fusion__weights": [{"sparse": 1, "count": 3}]}),
    "method": (hybrid(), {"fusion": [{"method": "rrf"}, {"method": "convex", "weights": [1, 2]}]}),
    "equal names": (hybrid(["bm25", "bm25"]), {"fusion__weights": [{"bm25": 1, "bm25#2": 2}]}),
    "in threads": (hybrid(parallel=True), {"fusion__k": [1, 9]}),
    "approximate leg": (hybrid(["bm25", {**NOTED, "params": {"exact": False}}]), {"depth": [4, 9]}),
    "no scores": (hybrid(["bm25", {**NOTED, "params": {"scores": False}}]), {"depth": [4, 9]}),
    "hybrid in a hybrid": (
        hybrid(["bm25", {**hybrid(depth=5), "name": "inner"}]),
        {"depth": [2, 4, 30], "fusion__k": [2, 60]},
    ),
    "parameters of a leg": (hybrid(), {"legs__0__params__k1": [0.1, 5.0], "depth": [10]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_setting_of_a_hybrid_has_exactly_the_values_of_a_fresh_one(
    case: str, data: Dataset
) -> None:
    config, parameters = CASES[case]
    if case == "parameters of a leg":
        config = hybrid([{"target": "bm25", "params": {"k1": 0.9}}, NOTED])
    tunable, grid = _made(config, **parameters)
    assert tunable.shares == (case != "parameters of a leg")
    values = _values(tunable, grid, data)
    tunable.close()
    for row, setting in zip(values, grid.settings, strict=True):
        np.testing.assert_allclose(
            row, _fresh(tunable, setting, data), rtol=1e-12, atol=1e-15, err_msg=str(setting)
        )
    if len(grid.settings) > 4:
        assert len({tuple(row) for row in values}) > 3


@pytest.mark.slow
def test_every_setting_of_a_hybrid_has_exactly_the_rankings_of_a_fresh_one(data: Dataset) -> None:
    tunable, grid = _made(hybrid(), **RRF)
    tunable.base.index(data.documents or ())
    for setting in grid.settings:
        ours = tunable.build(setting)
        fresh = tunable.config_of(setting).build()
        fresh.index(data.documents or ())
        for query in data.evaluated:
            assert list(checked_ranking(ours.search(query, 10), 10)) == list(
                checked_ranking(fresh.search(query, 10), 10)
            )


@pytest.mark.slow
def test_a_leg_is_indexed_once_and_asked_once_for_each_query(data: Dataset) -> None:
    tunable, grid = _made(hybrid(), **RRF)
    _values(tunable, grid, data)
    assert len(grid.settings) == 19
    assert Noted.indexed == 1
    assert Noted.told == [100, "en"]
    assert Noted.searches == {(query.id, 100): 1 for query in data.evaluated}
    assert Noted.closed == 0
    tunable.close()
    assert Noted.closed == 1


def test_an_approximate_leg_is_asked_once_for_each_depth(data: Dataset) -> None:
    config = hybrid(["bm25", {**NOTED, "params": {"exact": False}}], depth=12)
    tunable, grid = _made(config, depth=[12, 30], fusion__k=[1, 60])
    _values(tunable, grid, data)
    assert Noted.searches == {(query.id, k): 1 for query in data.evaluated for k in (12, 30)}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["bm25", "bm25s"])
def test_a_grid_of_bm25_has_the_values_of_bench_with_set(target: str, data: Dataset) -> None:
    tunable, grid = _made({"target": target}, k1=[0.4, 3.0], b=[0.0, 1.0])
    assert not tunable.shares
    values = _values(tunable, grid, data)
    for row, setting in zip(values, grid.settings, strict=True):
        np.testing.assert_allclose(row, _benched(tunable, setting, data), rtol=1e-12, atol=1e-15)
    assert len({tuple(row) for row in values}) > 3


@pytest.mark.slow
def test_judgements_on_units_are_met_by_units() -> None:
    data = dataset(unit_key="unit")
    tunable, grid = _made(hybrid(), depth=[5, 50], fusion__k=[1, 60])
    values = _values(tunable, grid, data)
    for row, setting in zip(values, grid.settings, strict=True):
        np.testing.assert_allclose(row, _fresh(tunable, setting, data), rtol=1e-12, atol=1e-15)
    assert values.max() > 0


def test_a_retriever_without_legs_is_built_anew_and_closed_for_each_setting(data: Dataset) -> None:
    tunable, grid = _made(NOTED, boost=[1, 2])
    _values(tunable, grid, data)
    tunable.close()
    assert Noted.indexed == 3
    assert Noted.told == [10, "en"] * 3
    assert Noted.closed == 3 + 3 + 1  # checked, tried, and the one of the config


def test_the_metric_that_is_asked_for_is_computed(data: Dataset) -> None:
    tunable, grid = _made(NOTED, boost=[1])
    values = _values(tunable, grid, data, "Success@1")
    assert set(values.ravel().tolist()) == {0.0, 1.0}
    assert values.shape == (2, 24)


def test_all_faulty_values_are_told_at_once_each_fault_once() -> None:
    with pytest.raises(ConfigError) as problem:
        _made({"target": "bm25"}, k1=[1.0, -1.0, "x"], b=[0.4, 7], nope=[1, 2])
    text = str(problem.value)
    assert "unknown key 'nope'" in text
    assert "'k1'" in text
    assert "k1=1.0 b=0.4 nope=1" in text
    with pytest.raises(ConfigError) as problem:
        _made({"target": "bm25"}, k1=[1.0, -1.0], b=[0.4, 7])
    text = str(problem.value)
    assert "k1" in text
    assert "in 2 of 5 settings, such as k1=-1.0 b=0.4" in text
    assert "in 1 of 5 settings, such as k1=1.0 b=7" in text


def test_combinations_that_do_not_go_together_are_told_with_the_way_out() -> None:
    with pytest.raises(ConfigError) as problem:
        _made(hybrid(), fusion__method=["rrf", "convex"], fusion__k=[10, 60])
    assert "in 2 of 5 settings, such as fusion.method=convex fusion.k=10" in str(problem.value)
    assert "'fusion=[{method: rrf, k: 60}" in str(problem.value)


def test_a_setting_or_a_leg_that_fails_on_a_query_or_breaks_the_contract_is_named(
    data: Dataset,
) -> None:
    tunable, grid = _made(NOTED, fail_on=["nobody", "test0-07"])
    with pytest.raises(ContractError) as problem:
        _values(tunable, grid, data)
    for part in ("RuntimeError: no answer", "Noted with fail_on=test0-07, query 'test0-07'"):
        assert part in str(problem.value)
    config = hybrid(["bm25", {**NOTED, "name": "count", "params": {"fail_on": "test0-03"}}])
    tunable, grid = _made(config, depth=[5])
    with pytest.raises(ContractError, match="leg 'count', query 'test0-03'"):
        _values(tunable, grid, data)
    tunable, grid = _made({"target": "tests.builders.tuning_data:Foreign"}, boost=[1])
    with pytest.raises(ContractError, match="'nowhere' is not in the corpus"):
        _values(tunable, grid, data)


def test_what_is_remembered_is_cut_with_its_scores_and_asked_deeper_when_needed() -> None:
    inner = Noted()
    inner.index(dataset().documents or ())
    leg, query = Remembered("count", inner), Query("q", "word1 word2 word3")
    leg.use_k(20)
    leg.use_k(5)
    short = leg.search(query, 5)
    assert short.doc_ids == checked_ranking(inner.search(query, 5), 5).doc_ids
    assert leg.searches == 1
    assert len(leg.search(query, 20)) == 20
    assert leg.searches == 1
    assert len(leg.search(query, 40)) > 20
    assert leg.searches == 2
    assert len(leg.search(query, 1000)) < 40  # there are no more: nobody is asked again
    assert leg.searches == 2
    assert leg.capabilities.external
    assert leg.name == "count"
