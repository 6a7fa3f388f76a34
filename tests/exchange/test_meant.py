"""Names of metrics that other tools use: which of ours is meant."""

from __future__ import annotations

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics import parse_metric
from retrieval_bench_exchange.meant import meant


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ndcg_at_10", "nDCG@10"),
        ("recall_at_100", "R@100"),
        ("map_at_1000", "AP@1000"),
        ("mrr_at_10", "RR@10"),
        ("accuracy@1", "Success@1"),
        ("cosine_accuracy@3", "Success@3"),
        ("hits@1", "Success@1"),
        ("HR@20", "Success@20"),
        ("top_10_accuracy", "Success@10"),
        ("top-5", "Success@5"),
        ("R_cap@100", "P(relative=True)@100"),
        ("recall_cap_at_100", "P(relative=True)@100"),
        ("mean_average_precision", "AP"),
        ("Mean Reciprocal Rank@10", "RR@10"),
        ("nDCG@10-l2", "nDCG(gains={1:0})@10"),
        ("mrr@10-l2", "RR(rel=2)@10"),
        ("R_cap@100-l2", "P(rel=2, relative=True)@100"),
        ("dcg@10", "nDCG@10"),
        ("nDCG10", "nDCG@10"),
        ("prec@5", "P@5"),
        ("accuracy", "Success@10"),
        ("r_precision", "Rprec"),
    ],
)
def test_names_of_other_tools_are_answered_with_ours_which_can_be_read(
    theirs: str, ours: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_metric(theirs)
    assert caught.value.accepted.startswith(f"did you mean {ours}? ")
    assert str(parse_metric(ours)) == ours


@pytest.mark.parametrize("name", ["xyzzy", "module:function", "faithfulness", "nDGC@10"])
def test_what_no_tool_calls_a_metric_of_ours_is_not_guessed(name: str) -> None:
    assert meant(name) == ""
