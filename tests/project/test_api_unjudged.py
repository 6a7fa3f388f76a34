"""The Python front door on documents and questions without judgements."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench import Document, Query, bench, compare, diff, evaluate, tune
from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.records import read_run
from retrieval_bench_modes.unjudged import Unjudged
from tests.builders.reference import TermOverlap

pytestmark = pytest.mark.slow

ONCE = Protocol(rounds=1, warm_up_s=0)


def backwards(query: str, k: int) -> list[str]:
    return ["d2", "d1"][:k]


@pytest.fixture
def loose(here: Path) -> Dataset:
    documents = [Document("d1", "red apples", "Apples"), Document("d2", "blue whales")]
    return build_dataset("loose", documents, [Query("q1", "red"), Query("q2", "whales")], None)


def test_every_query_is_asked_and_none_evaluated(loose: Dataset) -> None:
    experiment = prepare([TermOverlap()], loose, protocol=ONCE, save=False)
    assert [query.id for query in experiment.queries] == ["q1", "q2"]
    assert experiment.counted == ()
    assert experiment.plan.measured == 2


def test_a_run_has_hits_and_times_and_no_means_and_is_read_back_as_it_was(loose: Dataset) -> None:
    result = bench(TermOverlap(), loose, protocol=ONCE, save=True)
    assert result.summary["hits"] == {"n": 2, "mean": 1.0, "fewer_than_k": 2, "none": 0}
    assert all(math.isnan(mean.mean) for mean in result.evaluation.means)
    assert result.evaluation.per_query.shape == (0, len(result.evaluation.metrics))
    assert "Nothing is judged yet" in str(result)
    assert "nDCG" not in str(result) + repr(result) + str(result.details)
    made = result.run
    assert made.folder is not None
    read = read_run(made.folder)
    assert (read.judged, read.answered, read.summary.as_dict()["hits"]) == (
        False,
        True,
        made.summary.as_dict()["hits"],
    )
    assert read.evaluation.query_ids == ()
    assert np.array_equal(read.rankings.ranking, made.rankings.ranking)


def test_a_comparison_has_texts_of_a_dataset_in_memory_and_frames_hits_and_pairs(
    loose: Dataset, tmp_path: Path
) -> None:
    result = compare([TermOverlap(), backwards], loose, protocol=ONCE)
    assert result.deltas == ()
    assert result.recommendations[0].leaders == ()
    (group,) = result.comparison.groups
    assert isinstance(group, Unjudged)
    assert group.likeness.without_texts == ""
    assert dict(group.likeness.differing[0].titles) == {"d1": "Apples", "d2": "blue whales"}
    assert "q1: red" in str(result)
    page = result.write_report(tmp_path / "page.html", loose).read_text("utf-8")
    assert "q1: red" in page
    means = result.to_frame()
    assert set(means["metric"]) <= {"hits", "p50 ms", "p95 ms", "p99 ms"}
    pairs = result.to_frame("pairs")
    assert list(pairs["metric"]) == ["overlap@10", "RBO"]
    assert pairs["mean"].tolist() == pytest.approx([0.5, (0.45 + 1.0) / 2])
    assert result.to_frame("queries").empty
    assert len(result.to_frame("hits")) == 6


def test_what_rests_on_judgements_is_refused(loose: Dataset) -> None:
    runs = [bench(one, loose, protocol=ONCE).run for one in (TermOverlap(), backwards)]
    with pytest.raises(DataError, match="explain rests on judgements") as caught:
        diff(runs, loose)
    assert "compare shows the queries on which two runs differ most" in caught.value.render()
    with pytest.raises(DataError, match="tuning rests on judgements"):
        tune("bm25", loose)
    with pytest.raises(DataError, match="a score rests on judgements"):
        evaluate({"q1": ["d1"]}, loose)
    with pytest.raises(DataError, match="--until-decided rests on judgements"):
        compare([TermOverlap(), backwards], loose, until_decided="split")
