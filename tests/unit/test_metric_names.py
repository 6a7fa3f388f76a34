from __future__ import annotations

import pytest

from harness.errors import ConfigError
from harness.metrics import default_metrics, parse_metric, parse_metrics


@pytest.mark.parametrize(
    "name",
    [
        *("nDCG@10", "nDCG", "AP", "AP@3", "RR@10", "RR", "P@5", "R@100", "Success@5", "F1@5"),
        *("AP(rel=2)@3", "nDCG(gain=exp)@10"),
    ],
)
def test_a_name_prints_back_exactly(name: str) -> None:
    assert str(parse_metric(name)) == name


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("map", "AP"),
        ("MAP@3", "AP@3"),
        ("map_cut_3", "AP@3"),
        ("ndcg_cut_10", "nDCG@10"),
        ("NDCG@3", "nDCG@3"),
        ("ndcg@10", "nDCG@10"),
        ("ndcg_burges@10", "nDCG(gain=exp)@10"),
        ("recall_100", "R@100"),
        ("ndcg_cut.10", "nDCG@10"),
        ("P.5", "P@5"),
        ("AP(rel=1)@10", "AP@10"),
        ("nDCG(gain=linear)@10", "nDCG@10"),
        ("Recall@5", "R@5"),
        ("recip_rank", "RR"),
        ("MRR", "RR"),
        ("mrr@10", "RR@10"),
        ("success_5", "Success@5"),
        ("hit_rate@5", "Success@5"),
        ("HitRate@5", "Success@5"),
        ("P_5", "P@5"),
        ("Precision@5", "P@5"),
        (" f1@5 ", "F1@5"),
    ],
)
def test_names_of_other_tools_are_read_but_never_printed(alias: str, name: str) -> None:
    assert str(parse_metric(alias)) == name


def test_a_metric_is_a_value() -> None:
    assert parse_metric("MAP@3") == parse_metric("AP@3")
    assert len({parse_metric("MAP@3"), parse_metric("AP@3")}) == 1
    assert len(parse_metrics(["nDCG@10", "ndcg_cut_10", "R@10"])) == 2
    assert parse_metric("AP(rel=1)@3") == parse_metric("AP@3")
    assert parse_metric("AP(rel=1)@3") != parse_metric("AP(rel=2)@3")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nDGC@10", "did you mean nDCG"),
        ("P", "P@k"),
        ("nDCG@0", "at least 1"),
        ("nDCG@-3", "at least 1"),
        ("nDCG@ten", "NAME@k"),
        ("AP(rel=0)@3", "rel = a whole number"),
        ("AP(gain=exp)", "parameters rel"),
        ("AP(rel=2, rel=3)@3", "rel once"),
        ("ndcg_burges(gain=linear)@10", "gain once"),
        ("nDCG(gain=cubic)", "linear or exp"),
        ("", "NAME"),
    ],
)
def test_a_wrong_name_is_told_what_is_accepted(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("(", r"\(")):
        parse_metric(name)


def test_defaults_follow_k() -> None:
    assert [str(m) for m in default_metrics(10)] == [
        "nDCG@10",
        "AP@10",
        "RR@10",
        "R@10",
        "Success@1",
    ]
    assert [str(m) for m in default_metrics(3)][:2] == ["nDCG@3", "AP@3"]
    assert [str(m) for m in default_metrics(1000)][-2:] == ["Success@1", "R@100"]
    assert [str(m) for m in default_metrics(100)].count("R@100") == 1
