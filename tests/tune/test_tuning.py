from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, DataError, HarnessError
from retrieval_bench.core.types import Document, Query, Verdict
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import default_metrics, parse_metric
from retrieval_bench_tune.api import TuneResult
from retrieval_bench_tune.doubts import doubts
from retrieval_bench_tune.grid import Grid, make_grid
from retrieval_bench_tune.selection import Selection, chosen_on_dev, cross_validated
from retrieval_bench_tune.tune import groups_of, tune
from retrieval_bench_tune.tuned import Tuning, judged
from tests.builders.tuning_data import NOTED, Noted, dataset, hybrid

GRID = {"fusion.k": [1, 60], "depth": [3, 100]}
METRIC = parse_metric("nDCG@10")
ONCE = Protocol(rounds=1, warm_up_s=0)


@pytest.fixture(scope="module")
def found() -> Tuning:
    return tune(hybrid(), dataset(), grid=GRID, repeats=2)


# -- tune -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cross_validation_is_over_the_queries_of_the_split(found: Tuning) -> None:
    data = dataset()
    assert found.query_ids == tuple(sorted(data.qrels))
    assert found.values.shape == (4, 24)
    texts = {query.id: query.text for query in data.queries}
    expected = cross_validated(
        found.values,
        [" ".join(texts[query_id].split()) for query_id in found.query_ids],
        n_folds=5,
        repeats=2,
        seed=found.plan.seed,
    )
    np.testing.assert_allclose(found.selection.held_out, expected.held_out, rtol=1e-12, atol=1e-15)
    assert len(found.selection.choices) == 10


@pytest.mark.slow
def test_the_default_has_the_values_that_bench_reports(found: Tuning) -> None:
    run = bench(hybrid(), dataset(), protocol=ONCE).run
    assert found.default == pytest.approx(run.evaluation.mean(METRIC).mean)
    assert found.default_ci95 == pytest.approx(run.evaluation.mean(METRIC).ci95)


@pytest.mark.slow
def test_the_recommended_config_is_the_one_that_bench_takes(tmp_path: Path) -> None:
    out = tmp_path / "조정.yaml"
    grid: dict[str, Any] = {
        "fusion.k": [0, 60],
        "fusion.weights": [[1, 0], [0.1, 0.9]],
        "depth": [2],
    }
    found = tune(hybrid(), dataset(), grid=grid, folds=4, repeats=1, out=out)
    text = out.read_text(encoding="utf-8")
    comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    assert f"nDCG@10: {found.held_out:.4f} held out ({found.default:.4f} by the" in comment
    assert f"not {found.selection.tuning:.4f}, which is on the tuning queries" in comment
    assert f"{found.winner}" in comment
    run = bench(str(out), dataset(), protocol=ONCE).run
    assert run.name == "mixed-tuned"
    assert run.evaluation.mean(METRIC).mean == pytest.approx(found.means.max())
    with pytest.raises(ConfigError, match="a file that is not there yet"):
        tune(hybrid(), dataset(), grid=grid, out=out)


@pytest.mark.slow
def test_choosing_on_a_dev_set_and_reporting_on_another() -> None:
    dev, test = dataset("dev", seed=1), dataset("test", seed=3)
    found = tune(hybrid(), test, dev=dev, grid=GRID)
    assert (found.plan.split, found.plan.dev_split) == ("test", "dev")
    alone = [tune(hybrid(), data, grid=GRID, repeats=1).values for data in (dev, test)]
    expected = chosen_on_dev(*alone)
    assert found.selection.winner == expected.winner
    np.testing.assert_allclose(found.values, alone[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.selection.held_out, expected.held_out, rtol=1e-12, atol=1e-15)
    assert found.query_ids == tuple(sorted(test.qrels))


def test_queries_of_the_dev_split_that_are_reported_on_are_left_out() -> None:
    dev, test = dataset("dev", seed=1), dataset("test", seed=3)
    same_text = replace(dev.queries[0], text=f"  {test.queries[0].text.upper()} ")
    same_id = replace(dev.queries[1], id=test.queries[1].id)
    rows = [dict(dev.qrels[query.id]) for query in dev.queries]
    changed = (same_text, same_id, *dev.queries[2:])
    qrels = {query.id: row for query, row in zip(changed, rows, strict=True)}
    leaking = build_dataset("small", list(dev.documents or ()), changed, qrels, split="dev")
    found = tune(NOTED, test, dev=leaking, grid={"boost": [1, 2]})
    assert found.values.shape == (3, 22)
    assert "2 queries of split 'dev' left out: the same id or text is in 'test'" in found.warnings
    clean = tune(NOTED, test, dev=dev, grid={"boost": [1, 2]})
    assert not [text for text in clean.warnings if "left out" in text]


def test_the_order_of_queries_changes_nothing(found: Tuning) -> None:
    data = dataset()
    turned = tune(hybrid(), replace(data, queries=data.queries[::-1]), grid=GRID, repeats=2)
    assert turned.as_dict() == found.as_dict()


@pytest.mark.slow
def test_without_a_grid_the_retrievers_own_search_space_is_tried() -> None:
    config = hybrid(fusion={"method": "convex", "weights": [3, 1]}, depth=7)
    found = tune(config, dataset(), repeats=1)
    assert list(found.grid.parameters) == ["fusion.weights", "depth"]
    assert found.grid.default_on_grid
    assert found.grid.settings[0].values == {"fusion.weights": [0.75, 0.25], "depth": 7}
    assert found.legs == ("sparse", "count")


def test_a_retriever_without_a_search_space_needs_a_grid() -> None:
    with pytest.raises(ConfigError) as problem:
        tune(NOTED, dataset())
    assert "does not say what is worth tuning" in str(problem.value)
    assert "--grid" in str(problem.value)
    assert Noted.closed == 1


def test_overrides_are_the_same_in_every_setting() -> None:
    found = tune(hybrid(), dataset(), grid={"depth": [3]}, overrides=["fusion.k=7"], repeats=1)
    assert found.recommended.params["fusion"] == {"k": 7}
    assert not found.grid.default_on_grid or found.grid.settings[0].values == {"depth": 100}


def test_a_default_of_the_config_is_found_on_a_given_grid() -> None:
    config = {**NOTED, "params": {"boost": 2}}
    found = tune(config, dataset(), grid=["boost=[1,2]"], repeats=1)
    assert found.grid.default_on_grid
    assert [str(setting) for setting in found.grid.settings] == ["boost=2", "boost=1"]
    unknown = tune(NOTED, dataset(), grid=["boost=[1,2]"], repeats=1)
    assert [str(s) for s in unknown.grid.settings] == ["as it is", "boost=1", "boost=2"]


CHUNKED: dict[str, Any] = {
    **{"name": "cut", "target": "bm25", "rate_limit": 900.0, "price": {"tokens_in": 2.0}},
    "chunk": {"by": "tokens", "size": 40, "overlap": 0},
}


def test_how_documents_are_cut_is_tuned_and_stands_in_what_is_recommended(tmp_path: Path) -> None:
    grid, out = {"chunk.size": [1, 40]}, tmp_path / "cut.yaml"
    found = tune(CHUNKED, dataset(), grid=grid, repeats=1, price=False, out=out)
    assert [s.values["chunk.size"] for s in found.grid.settings] == [40, 1]
    alone = {**CHUNKED, "chunk": {**CHUNKED["chunk"], "size": 1}}
    means = [
        bench(c, dataset(), protocol=ONCE).run.evaluation.mean(METRIC).mean
        for c in (CHUNKED, alone)
    ]
    assert found.means == pytest.approx(means)
    assert found.means[0] != found.means[1]
    best = (CHUNKED, alone)[found.selection.winner]
    assert TuneResult(found).recommended == {**best, "params": {}}
    written = load_retriever_config(str(out))
    assert written.model_dump(exclude_unset=True, exclude={"name"}) == {
        key: value for key, value in best.items() if key != "name"
    }
    assert found.as_dict()["recommended"]["chunk"] == best["chunk"]


def test_legs_are_asked_anew_for_each_way_to_cut() -> None:
    cut = {"by": "tokens", "size": 40, "overlap": 0}
    found = tune({**hybrid(), "chunk": cut}, dataset(), grid={"chunk.size": [1, 40]}, repeats=1)
    assert len(set(found.means)) == 2


def test_where_truth_is_by_rule_its_own_metric_is_tuned_on() -> None:
    queries = [Query(f"q{i}", f"w{i}", metadata={"expect": f"w{i}"}) for i in range(6)]
    documents = [Document(f"d{i}", f"w{i}") for i in range(6)]
    data = build_dataset("ruled", documents, queries, None)
    found = tune("bm25", data, grid={"k1": [1, 2]}, repeats=1, price=False)
    assert found.metric == default_metrics(10, data.qrels)[0]
    with pytest.raises(ConfigError, match="--metric"):
        tune("bm25", data, grid={"k1": [1, 2]}, metric="nDCG@10", repeats=1)


@pytest.mark.parametrize("keys", [("talk", None), (None, "talk")])
def test_one_of_two_splits_may_have_clusters(keys: tuple[str | None, str | None]) -> None:
    dev, test = (
        replace(
            data,
            queries=tuple(replace(q, metadata={"talk": q.id[-1]}) for q in data.queries),
            cluster_key=key,
        )
        for data, key in zip((dataset("dev", seed=1), dataset()), keys, strict=True)
    )
    assert tune(NOTED, test, dev=dev, grid={"boost": [1, 2]}).values.shape == (3, 24)


def test_queries_of_one_cluster_or_one_text_stay_together() -> None:
    texts = {"a": "one", "b": "One", "c": "two", "d": "three", "e": "two"}
    queries = [Query(name, text) for name, text in texts.items()]
    groups = groups_of(queries, {"a": "x", "b": "y", "c": "y", "d": "z"})
    assert len({groups[q] for q in "abce"}) == 1
    assert groups["d"] != groups["a"]
    assert len(set(groups_of(queries, {}).values())) == 3


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as problem:
        tune(
            "bm25",
            "no-such-dataset",
            grid=["k1=[]", "k1"],
            k=0,
            folds=1,
            repeats=0,
            seed=-1,
            margin=2,
            out=tmp_path / "tuned.json",
        )
    for part in (
        "no-such-dataset",
        "'k1=[]'",
        "'k1'",
        "k = 0",
        "--folds 1",
        "--repeats 0",
        "--seed -1",
        "margin 2",
        "tuned.json",
    ):
        assert part in str(problem.value), part


@pytest.mark.parametrize("name", ["folds", "repeats"])
def test_numbers_beyond_all_arithmetic_are_refused(name: str) -> None:
    given: dict[str, Any] = {name: int("1" * 400)}
    with pytest.raises(HarnessError, match=rf"--{name} 1111") as caught:
        tune(NOTED, dataset(), grid={"boost": [1]}, **given)
    assert "to 10,000" in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "accepted"),
    [("nDCG@20", "cut-offs up to k = 10"), ("GMAP", "the arithmetic one"), ("nDGC", "nDCG")],
)
def test_a_metric_that_cannot_be_tuned_on_is_refused(metric: str, accepted: str) -> None:
    with pytest.raises(ConfigError, match=accepted):
        tune(NOTED, dataset(), grid={"boost": [1]}, metric=metric)


def test_few_different_queries_or_no_relevant_document_are_nothing_to_tune_on() -> None:
    with pytest.raises(DataError, match="3 different queries"):
        tune(NOTED, dataset(n_queries=3), grid={"boost": [1]})
    data = dataset()
    qrels = {query: dict.fromkeys(row, 0) for query, row in data.qrels.items()}
    with pytest.raises(DataError, match="no evaluated query has a relevant document"):
        tune(NOTED, replace(data, qrels=qrels), grid={"boost": [1]})


def test_a_dev_split_needs_queries_of_its_own_and_the_same_documents() -> None:
    data = dataset()
    with pytest.raises(DataError, match="0 queries to choose on"):
        tune(NOTED, data, dev=data, grid={"boost": [1]})
    other = build_dataset(
        "other", list(data.documents or ())[:9], [Query("q", "word1")], {"q": {"d01": 1}}
    )
    with pytest.raises(DataError, match="9 documents with split"):
        tune(NOTED, data, dev=other, grid={"boost": [1]})
    with pytest.raises(ConfigError, match="given as an object"):
        tune(NOTED, data, dev="train", grid={"boost": [1]})


def test_a_retriever_object_or_one_without_documents_cannot_be_tuned() -> None:
    with pytest.raises(ConfigError, match="a Noted to tune"):
        tune(Noted(), dataset(), grid={"boost": [1]})  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has no corpus"):
        tune(NOTED, replace(dataset(), documents=None), grid={"boost": [1]})


def test_a_config_is_not_written_to_where_its_paths_lead_nowhere(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    (home / "own.py").write_text("from tests.builders.tuning_data import Noted\n", encoding="utf-8")
    (home / "own.yaml").write_text("target: own.py:Noted\n", encoding="utf-8")
    given: dict[str, Any] = {"grid": {"boost": [1, 2]}, "repeats": 1}
    with pytest.raises(ConfigError, match=r"write it to .*home"):
        tune(home / "own.yaml", dataset(), out=other / "tuned.yaml", **given)
    tune(home / "own.yaml", dataset(), out=home / "tuned.yaml", **given)
    assert "target: own.py:Noted" in (home / "tuned.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["tuned", "tuned.json", "no-folder/tuned.yaml"])
def test_a_place_where_no_config_can_be_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--out"):
        tune(NOTED, dataset(), grid={"boost": [1]}, out=tmp_path / name)
    assert Noted.indexed == 0


def test_secrets_are_in_neither_the_document_nor_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_TOKEN", "hush-hush")
    config = {**NOTED, "params": {"fail_on": "${OWN_TOKEN}"}}
    out = tmp_path / "tuned.yaml"
    grid: dict[str, Any] = {"boost": [1, 2], "fail_on": ["hush-hush"]}
    found = tune(config, dataset(), grid=grid, repeats=1, out=out)
    assert "fail_on: ${OWN_TOKEN}" in out.read_text(encoding="utf-8")
    assert "hush" not in json.dumps(found.as_dict()) + out.read_text(encoding="utf-8")


# -- what is made of it ---------------------------------------------------------------------------


def _selection(default: Any, held_out: Any) -> Selection:
    both = np.array([default, held_out], dtype=float)
    return replace(chosen_on_dev(both, both), held_out=both[1], default=both[0])


RNG = np.random.default_rng(0)
N = 400
BASE = RNG.uniform(0.2, 0.6, N)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (RNG.normal(0.05, 0.05, N), Verdict.BETTER),
        (RNG.normal(-0.05, 0.05, N), Verdict.WORSE),
        (RNG.normal(0, 0.003, N), Verdict.EQUIVALENT),
        (np.zeros(N), Verdict.EQUIVALENT),
        (np.r_[[0.9], np.zeros(N - 1)] - np.r_[np.zeros(N - 2), [0.9, 0.9]], Verdict.UNDECIDED),
    ],
)
def test_the_verdict_is_on_held_out_queries(change: Any, verdict: Verdict) -> None:
    delta = judged(_selection(BASE, BASE + change), METRIC, "data")
    assert delta.verdict is verdict
    assert (delta.a, delta.b, delta.dataset) == ("default", "tuned", "data")
    assert delta.difference == pytest.approx(change.mean(), abs=1e-12)
    assert (delta.queries_needed is not None) == (verdict is Verdict.UNDECIDED)


def _doubts(values: Any, grid: Grid | None = None) -> list[str]:
    made = grid or make_grid({"k": tuple(range(len(values) - 1))}, {}, seed=0)
    n = np.asarray(values).shape[1]
    return doubts(made, values, cross_validated(values, range(n), n_folds=5, repeats=1, seed=0))


def _grid(**parameters: Any) -> Grid:
    return make_grid(parameters, {name: values[0] for name, values in parameters.items()}, seed=0)


def test_few_queries_are_told_as_those_of_the_smallest_training_part() -> None:
    clear = np.repeat([[0.1], [0.9], [0.2], [0.3]], 60, axis=1)
    assert "40 tuning queries: with fewer than 50 luck decides" in _doubts(clear[:, :50])
    assert "48 tuning queries: with fewer than 50 luck decides" in _doubts(clear)
    assert [text for text in _doubts(np.tile(clear, 2)) if "luck" in text] == []


def test_ties_say_what_is_taken() -> None:
    same = np.full((3, 100), 0.5)
    assert "3 settings tie for the best mean: the default is taken" in _doubts(same)
    same[0] = 0.4
    assert "2 settings tie for the best mean: the first is taken, k=0" in _doubts(same)


def test_the_best_at_an_end_of_its_values_is_told() -> None:
    values = np.full((4, 100), 0.1)
    values[3] = 0.9
    (text,) = [t for t in _doubts(values) if "at an end" in t]
    assert "k=2" in text
    values[3], values[2] = 0.1, 0.9
    assert not [t for t in _doubts(values) if "at an end" in t]
    words = _grid(tokenizer=("auto", "word", "kiwi", "ngram"))
    assert not [t for t in _doubts(values, words) if "at an end" in t]


def test_weights_are_at_an_end_when_a_leg_has_its_lowest_or_highest() -> None:
    weights = _grid(weights=([0.5, 0.5], [0.1, 0.9], [0.2, 0.8], [1, 0]))
    values = np.full((4, 100), 0.1)
    values[1] = 0.9
    assert [t for t in _doubts(values, weights) if "at an end of what was tried in weights" in t]
    for inside in (2, 3):  # beyond a leg alone there is nothing
        values = np.full((4, 100), 0.1)
        values[inside] = 0.9
        assert not [t for t in _doubts(values, weights) if "at an end" in t]


def test_a_leg_that_does_as_well_alone_is_told() -> None:
    weights = make_grid({"fusion.weights": ([0.5, 0.5], [0, 1], [0.2, 0.8])}, {}, seed=0)
    values = np.random.default_rng(3).uniform(0, 1, (1, 200)) * np.ones((4, 1))
    values[3] += np.random.default_rng(4).normal(0.002, 0.05, 200)
    values[:2] -= 0.2
    told = [t for t in _doubts(values, weights) if "one leg alone" in t]
    (text,) = told
    assert text.startswith(
        "one leg alone cannot be told from the best (fusion.weights=[0, 1]): the others"
    )
    values[2] += 0.3
    assert "one leg alone is the best" in " ".join(_doubts(values, weights))
    values[2] -= 0.5
    assert not [t for t in _doubts(values, weights) if "one leg alone" in t]


def test_settings_within_noise_of_the_best_are_counted() -> None:
    rng = np.random.default_rng(5)
    values = rng.uniform(0, 1, 200) + rng.normal(0, 0.05, (6, 200))
    values[4:] -= 0.5
    (text,) = [t for t in _doubts(values) if t.startswith("3 of 5 other settings")]
    assert "cannot be told from the best" in text


def test_a_choice_that_changes_from_fold_to_fold_is_told() -> None:
    noise = np.random.default_rng(6).uniform(0, 1, (300, 60))
    assert [text for text in _doubts(noise) if "is not settled" in text]
    noise[7] += 1
    assert not [text for text in _doubts(noise) if "is not settled" in text]


def test_each_parameter_is_seen_with_the_others_as_in_the_best(found: Tuning) -> None:
    at = {
        str(setting): mean for setting, mean in zip(found.grid.settings, found.means, strict=True)
    }
    centre = found.centre()
    assert at[str(centre)] == max(at.values())
    views = found.views()
    assert [value for value, _ in views["depth"]] == [3, 100]
    k = centre.values["fusion.k"]
    assert views["depth"] == [(d, at[f"fusion.k={k} depth={d}"]) for d in (3, 100)]


def test_the_document_adds_up(found: Tuning) -> None:
    document = found.as_dict()
    json.dumps(document)
    queries = document["queries"]
    assert np.mean([q["held_out"] for q in queries]) == pytest.approx(found.held_out)
    assert np.mean([q["default"] for q in queries]) == pytest.approx(found.default)
    assert sum(s["chosen"] for s in document["settings"]) == len(document["choices"]) == 10
    assert document["tuned"]["gap"] == pytest.approx(
        document["tuned"]["tuning"] - document["tuned"]["held_out"]
    )
    assert document["naive"]["mean"] == max(s["tuning"] for s in document["settings"])
    assert document["delta"]["verdict"] == found.delta.verdict.value
    assert document["recommended"]["params"]["legs"]
