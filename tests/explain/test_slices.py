"""Slices show what the same figures of only these queries would be."""

from __future__ import annotations

import json
from functools import cache, partial

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.fixed import Fixed
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.evaluation import averaged
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.intervals import mean_intervals
from retrieval_bench_explain.slices import FEWEST, Slicing, slicings
from tests.builders import some
from tests.builders.runs import numbered
from tests.builders.runs import run as valued

NAMES = ["nDCG@10", "GMAP", "AP@10"]
METRICS = parse_metrics(NAMES)
N = 60
run = partial(valued, metrics=NAMES, dataset={"name": "tiny", "fingerprint": "f", "split": "test"})
ids = partial(numbered, N)


def values(seed: int, n: int = N) -> NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(0.01, 1, (n, 3))


def dataset(n: int = N, key: str = "tags") -> Dataset:
    """Every third query has the tag x, every second y; q00 is unanswerable."""
    queries = [
        Query(q, "w " * (i % 7 + 1), metadata={key: ["x"] * (i % 3 == 0) + ["y"] * (i % 2 == 0)})
        for i, q in enumerate(numbered(n))
    ]
    needless = Query("hello", "hi", metadata={"answerable": False, "tags": ["small-talk"]})
    not_judged = Query("open", "hi", metadata={"tags": ["open"]})
    qrels = {q.id: {f"d{j}": 1 for j in range(i % 4 + 1)} for i, q in enumerate(queries)}
    return Dataset("tiny", None, (*queries, needless, not_judged), qrels, "test", None, "f")


def group(*runs: Run) -> DatasetComparison:
    (found,) = compare_runs(runs).groups
    return found


@cache
def three() -> DatasetComparison:
    return group(*(run(name, values(seed), ids()) for seed, name in enumerate("abc")))


@cache
def one(by: str = "tags", baseline: str | None = None) -> Slicing:
    (found,) = slicings(three(), dataset(), [by], baseline=baseline)
    return found


def sliced(among: DatasetComparison) -> Slicing:
    (found,) = slicings(among, dataset(), ["tags"])
    return found


def rows_of(slicing: Slicing, label: str) -> list[int]:
    (found,) = [s for s in slicing.slices if s.label == label]
    return [ids().index(q) for q in found.query_ids]


@pytest.mark.slow
def test_a_slice_has_the_queries_of_its_label() -> None:
    assert rows_of(one(), "x") == list(range(0, N, 3))
    assert rows_of(one(), "(none)") == [i for i in range(N) if i % 3 and i % 2]
    assert [s.label for s in one().slices] == ["y", "x", "(none)"]


def test_means_and_intervals_are_those_of_an_evaluation_of_these_queries_alone() -> None:
    slicing = one()
    for s in (slicing.whole, *slicing.slices):
        rows = [ids().index(q) for q in s.query_ids]
        for seed, name in enumerate("abc"):
            alone = averaged(list(s.query_ids), METRICS, values(seed)[rows])
            for mean, expected in zip(s.means[name], alone.means, strict=True):
                assert mean.mean == pytest.approx(expected.mean)
                assert mean.ci95 == pytest.approx(expected.ci95)
                assert mean.n == len(rows)


def test_differences_are_paired_by_query_and_that_of_geometric_means_is_of_the_means() -> None:
    slicing = one()
    rows = rows_of(slicing, "y")
    d = (values(2) - values(0))[rows]
    found = next(s for s in slicing.slices if s.label == "y").differences["c"]
    ends = mean_intervals(d, [one.scale and one.scale.of_differences for one in METRICS])
    for at in (0, 2):  # the geometric mean has a difference of its own
        assert found[at].mean == pytest.approx(d[:, at].mean())
        assert found[at].ci == pytest.approx(tuple(ends[at]))
    whole = one().whole
    means = [np.exp(np.log(values(seed)[:, 1]).mean()) for seed in range(3)]
    assert whole.means["b"][1].mean == pytest.approx(means[1])
    difference = whole.differences["b"][1]
    assert difference.mean == pytest.approx(means[1] - means[0])
    assert some(difference.ci)[0] < difference.mean < some(difference.ci)[1]


def test_the_whole_is_what_the_comparison_says() -> None:
    whole = one().whole
    for delta in three().of(METRICS[0]):
        if delta.a == "a":
            assert whole.differences[delta.b][0].mean == pytest.approx(delta.difference)
            # F7: not a third interval, at a level of its own.
            gap = whole.differences[delta.b][0]
            assert (gap.ci, gap.level) == (delta.ci, delta.level)
    assert whole.n == N


@pytest.mark.slow
def test_all_are_compared_with_the_baseline_and_an_unknown_one_is_the_first() -> None:
    assert list(one().whole.differences) == ["b", "c"]
    slicing = one(baseline="b")
    assert slicing.baseline == "b"
    assert list(slicing.whole.differences) == ["a", "c"]
    assert slicing.whole.differences["a"][0].mean == pytest.approx(
        -one().whole.differences["b"][0].mean
    )
    assert one(baseline="elsewhere").baseline == "a"


def test_below_ten_queries_there_is_no_interval() -> None:
    for n, given in ((FEWEST - 1, False), (FEWEST, True)):
        runs = [run(name, values(seed, n), numbered(n)) for seed, name in enumerate("ab")]
        (slicing,) = slicings(group(*runs), dataset(n), ["tags"])
        assert (slicing.whole.means["a"][0].ci95 is not None) is given
        assert slicing.whole.differences["b"][0].ci is not None  # it is the table's


@pytest.mark.slow
def test_the_order_of_queries_changes_nothing() -> None:
    order = np.random.default_rng(1).permutation(N)
    shuffled = [
        run(name, values(seed)[order], [ids()[i] for i in order])
        for seed, name in enumerate(["a", "b", "c"])
    ]
    data = dataset()
    turned = Dataset("tiny", None, data.queries[::-1], data.qrels, "test", None, "f")
    for by in ("tags", "length", "relevant"):
        (found,) = slicings(group(*shuffled), turned, [by])
        assert found.as_dict() == one(by).as_dict()


def test_equal_systems_differ_by_nothing() -> None:
    same = group(run("a", values(0), ids()), run("b", values(0) + 1e-15, ids()))
    assert {mean.mean for s in sliced(same).slices for mean in s.differences["b"]} == {0.0}


def test_what_cannot_be_compared_or_stands_alone_has_means_but_no_difference() -> None:
    mixed = group(run("a", values(0), ids()), run("b", values(1), ids(), k=5))
    slicing = sliced(mixed)
    assert slicing.whole.differences == {}
    assert slicing.whole.means["b"][0].mean == pytest.approx(values(1)[:, 0].mean())
    assert slicing.warnings[-1] == "b has no differences from a: k 10 and 5."
    alone = Fixed("tiny", three().runs[:1], ("a",), METRICS, ())
    assert sliced(alone).whole.differences == {}
    assert sliced(alone).whole.means["a"][0].ci95 is not None


def test_slices_are_of_the_queries_that_all_systems_finished_and_none_without_any() -> None:
    partial = group(run("a", values(0), ids()), run("b", values(1, 40), numbered(40)))
    slicing = sliced(partial)
    assert slicing.whole.n == 40
    assert slicing.whole.means["a"][0].mean == pytest.approx(values(0)[:40, 0].mean())
    assert slicing.warnings[-2:] == (
        "b has no differences from a: different queries were finished.",
        "Only the 40 of 60 queries that all systems finished count.",
    )
    apart = group(run("a", values(0, 9), numbered(9)), run("b", values(1)[9:], ids()[9:]))
    slicing = sliced(apart)
    assert slicing.slices == ()
    assert slicing.whole.n == 0
    assert json.loads(to_json(slicing.as_dict()))["whole"]["n"] == 0
    assert slicings(apart, dataset()) == []


@pytest.mark.slow
def test_all_are_those_with_two_slices_and_names_are_taken_once_in_their_order() -> None:
    assert [s.by for s in slicings(three(), dataset())] == ["tags", "length", "relevant"]
    queries = tuple(Query(q, "one text", metadata={"source": "wiki"}) for q in ids())
    plain = Dataset("tiny", None, queries, {q: {"d": 1} for q in ids()}, "test", None, "f")
    assert slicings(three(), plain) == []
    assert [s.label for s in slicings(three(), plain, ["source"])[0].slices] == ["wiki"]
    names = ["length", "tags", "length"]
    assert [s.by for s in slicings(three(), dataset(), names)] == ["length", "tags"]


def test_sources_that_are_as_good_as_ids_are_left_out_unless_asked_for() -> None:
    queries = tuple(Query(q, "one text", metadata={"source": q}) for q in ids())
    data = Dataset("tiny", None, queries, {q: {"d": 1} for q in ids()}, "test", None, "f")
    assert slicings(three(), data) == []
    (slicing,) = slicings(three(), data, ["source"])
    assert len(slicing.slices) == 20
    assert slicing.slices[-1].n == 41


def test_a_metadata_key_is_a_name_and_a_wrong_one_is_refused() -> None:
    (slicing,) = slicings(three(), dataset(key="topic"), ["topic"])
    assert [s.label for s in slicing.slices] == ["y", "x", "(none)"]
    with pytest.raises(ConfigError, match="did you mean topic"):
        slicings(three(), dataset(key="topic"), ["topics"])


def test_the_document_is_plain_and_has_every_system_and_metric() -> None:
    document = json.loads(json.dumps(one().as_dict(), allow_nan=False))
    assert document["by"] == "tags"
    assert document["baseline"] == "a"
    assert [s["label"] for s in document["slices"]] == ["y", "x", "(none)"]
    first = document["slices"][0]
    assert first["n"] == 30
    assert [system["name"] for system in first["systems"]] == ["a", "b", "c"]
    assert list(first["systems"][0]["metrics"]) == [str(metric) for metric in METRICS]
    assert [(d["a"], d["b"]) for d in first["differences"]] == [("a", "b"), ("a", "c")]
    found = first["differences"][0]["metrics"]["nDCG@10"]
    mean = one().slices[0].differences["b"][0]
    assert found == {"difference": mean.mean, "ci": list(mean.ci or ()), "level": 0.95}
