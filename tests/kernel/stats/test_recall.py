"""The mean recall of a search, and its tail."""

from __future__ import annotations

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench.stats.recall import Recall, check_tail


def test_a_high_mean_hides_queries_that_find_nothing() -> None:
    found = Recall.of([1.0] * 19 + [0.0])
    assert (found.mean, found.tail) == (0.95, 0.95)
    assert found.tail_ci95 == pytest.approx(clopper_pearson(19, 20))
    even = Recall.of([0.95] * 20)
    assert even.mean == pytest.approx(0.95)
    assert even.tail == 1.0


@pytest.mark.parametrize("recall", [9 / 10, sum([0.1] * 9), 1 - 1 / 10])
def test_nine_of_ten_are_nine_tenths(recall: float) -> None:
    assert Recall.of([recall] * 4).tail == 1.0
    assert Recall.of([recall] * 4, 0.95).tail == 0.0


def test_without_a_query_nothing_is_known() -> None:
    assert Recall.of([]) == Recall(None, None, None, None)
    one = Recall.of([1.0])
    assert (one.mean, one.ci95, one.tail, one.tail_ci95) == (1.0, None, 1.0, None)
    assert Recall.of([]).text(5) == (
        "- of the exact top 5, the mean over queries; - of queries find 0.9 of it"
    )


def test_clusters_are_the_unit() -> None:
    recalls, clusters = [1.0] * 45 + [0.0] * 15, Clusters.by([at // 10 for at in range(60)])
    alone, found = Recall.of(recalls), Recall.of(recalls, clusters=clusters)
    assert (found.mean, found.tail) == (alone.mean, alone.tail) == (0.75, 0.75)
    for ends, wide in ((alone.ci95, found.ci95), (alone.tail_ci95, found.tail_ci95)):
        assert ends is not None
        assert wide is not None
        assert wide[1] - wide[0] > 2 * (ends[1] - ends[0])
    assert found.tail_ci95 == found.ci95  # of a cluster a share of hits may be any


@pytest.mark.parametrize("tail", [0.0, -0.1, 1.01, float("nan")])
def test_a_tail_is_the_recall_of_a_query(tail: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        check_tail(tail)
