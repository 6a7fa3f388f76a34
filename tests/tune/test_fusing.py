"""Saved runs fused: the lists of a hybrid, and what was tuned on other queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench import bench, compare
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Verdict
from retrieval_bench.data import load_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_tune.fusing import ACCEPTED, fused, fusion_config, with_fusions
from retrieval_bench_tune.tune import tune

pytestmark = pytest.mark.slow

ONE_ROUND = Protocol(rounds=1, warm_up_s=0.0)
LEGS = [
    {"name": "words", "target": "bm25", "params": {"tokenizer": "word"}},
    {"name": "stems", "target": "bm25", "params": {"k1": 0.1, "b": 1.0}},
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("science-mini")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> list[Run]:
    place = tmp_path_factory.mktemp("runs")
    return [
        bench(leg, data, k=20, protocol=ONE_ROUND, out=place / str(leg["name"])).run for leg in LEGS
    ]


@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_the_fusion_of_saved_runs_is_that_of_a_hybrid_that_asks_the_same_systems(
    here: Path, saved: Sequence[Run], data: Dataset, method: str
) -> None:
    params = {"legs": LEGS, "fusion": {"method": method}, "depth": 20}
    live = bench({"target": "hybrid", "params": params}, data, k=20, protocol=ONE_ROUND).run
    found = fused(saved, data, method)
    assert found.name == f"{method} of words + stems"
    for at, query_id in enumerate(live.rankings.query_ids):
        expected, given = live.rankings.row(at), found.rankings.row(at)
        assert list(given.doc_ids) == list(expected.doc_ids), query_id
        np.testing.assert_allclose(
            np.asarray(given.scores), np.asarray(expected.scores), rtol=1e-12
        )
    assert found.evaluation.metrics == saved[0].evaluation.metrics
    assert set(found.rankings.leg_lists) == {"words", "stems"}
    assert found.folder is not None
    assert found.summary.latency_ms.mean is None


@pytest.mark.slow
def test_a_tuned_fusion_answers_each_query_by_what_was_chosen_without_it(
    here: Path, data: Dataset
) -> None:
    few = data.queries[:40]
    data = replace(data, queries=few, qrels={query.id: data.qrels[query.id] for query in few})
    saved = [bench(leg, data, k=20, protocol=ONE_ROUND, out=str(leg["name"])).run for leg in LEGS]
    found = fused(saved, data, "tuned-rrf")
    tuning = tune(fusion_config(saved), data, k=20, repeats=1)
    column = found.evaluation.values(tuning.metric)
    values = dict(zip(found.evaluation.query_ids, column, strict=True))
    np.testing.assert_allclose(
        [values[q] for q in tuning.query_ids], tuning.selection.held_out, rtol=0, atol=1e-12
    )
    other = _without_its_judgements(data, tuning.query_ids[3])
    again = tune(fusion_config(saved), other, k=20, repeats=1)
    assert again.selection.chosen[0, 3] == tuning.selection.chosen[0, 3]


def _without_its_judgements(data: Dataset, query_id: str) -> Dataset:
    others = sorted({doc for row in data.qrels.values() for doc in row})
    return replace(data, qrels={**data.qrels, query_id: {others[0]: 1}})


@pytest.mark.slow
def test_runs_and_their_fusions_stand_side_by_side_without_a_verdict_on_time(
    here: Path, saved: Sequence[Run]
) -> None:
    found = compare(saved, fuse=["rrf", "tuned-convex"])
    names = ["words", "stems", "rrf of words + stems", "tuned-convex of words + stems"]
    assert [run.name for run in found.runs] == names
    verdicts = {d.verdict for d in found.comparison.groups[0].latency if names[2] in (d.a, d.b)}
    assert verdicts == {Verdict.MISSING}
    assert with_fusions(saved, []) == list(saved)


@pytest.mark.slow
def test_lists_of_saved_runs_have_no_depth_to_tune(
    here: Path, saved: Sequence[Run], data: Dataset
) -> None:
    assert set(tune(fusion_config(saved), data, repeats=1).grid.parameters) == {
        "fusion.k",
        "fusion.weights",
    }


def test_retrievers_are_measured_and_fused_in_one_step(
    here: Path, saved: Sequence[Run], data: Dataset
) -> None:
    found = compare(LEGS, data, k=20, protocol=ONE_ROUND, fuse="rrf").runs
    assert [run.name for run in found] == ["words", "stems", "rrf of words + stems"]
    assert all(run.folder is not None for run in found)
    same = fused(saved, data, "rrf")
    assert found[2].evaluation.means[0].mean == same.evaluation.means[0].mean


def test_what_cannot_be_fused_is_refused(saved: Sequence[Run], data: Dataset) -> None:
    with pytest.raises(ConfigError, match="fusion 'borda'") as told:
        fused(saved, data, "borda")
    assert all(name in str(told.value) for name in ACCEPTED)
    with pytest.raises(ConfigError, match="1 run to fuse"):
        fused(saved[:1], data, "rrf")
    with pytest.raises(ConfigError, match="not saved"):
        fused([saved[0], replace(saved[1], folder=None)], data, "rrf")
    few = replace(data, queries=data.queries[:4])
    few = replace(few, qrels={query.id: data.qrels[query.id] for query in few.queries})
    with pytest.raises(ConfigError, match="use rrf, or judge 5 queries or more"):
        fused(saved, few, "tuned-rrf")
    with pytest.raises(ConfigError, match="fusion 'borda'"):
        compare(["bm25", "bm25s"], fuse=["borda"])
