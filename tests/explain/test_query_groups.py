from __future__ import annotations

import math

import numpy as np
import pytest

from retrieval_bench.metrics import parse_metric
from retrieval_bench.stats.paired import paired_tests
from retrieval_bench_explain.partitions import Gap, Partition, best_leg, by_fusion, outcome
from tests.builders import some

METRIC = parse_metric("nDCG@10")
FLOOR = np.zeros(6)


def labels(partition: Partition) -> list[str]:
    return [partition.labels[at] for at in partition.member.tolist()]


def test_two_systems_win_tie_or_both_miss_and_rounding_makes_no_difference() -> None:
    values = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.0, 0.0], [0.0, 0.2], [0.3, 0.0]])
    found = outcome(["a", "b"], values, FLOOR)
    assert labels(found) == [
        "won by a", "won by b", "tie", "both miss", "won by b", "won by a",
    ]  # fmt: skip
    assert found.gain.tolist() == pytest.approx([-0.8, 0.8, 0, 0, 0.2, -0.3])
    found = outcome(["a", "b"], np.array([[0.1 + 0.2, 0.3]]), FLOOR[:1])
    assert labels(found) == ["tie"]


LEGS = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.0, 0.0], [0.0, 0.0], [0.0, 0.2]])
FUSED = np.array([0.9, 0.5, 0.7, 0.0, 0.3, 0.0])


def test_the_best_leg_and_what_fusion_made_of_it_are_told_apart() -> None:
    legs = best_leg({"h": FUSED}, ["leg x", "leg y"], LEGS, FLOOR)
    assert labels(legs) == [
        "won by leg x", "won by leg y", "legs tie",
        "every leg misses", "every leg misses", "won by leg y",
    ]  # fmt: skip
    fusion = by_fusion("h", LEGS, FUSED, FLOOR)
    assert labels(fusion) == [
        "as its best leg", "lost by fusion", "gained by fusion",
        "all miss", "gained by fusion", "lost by fusion",
    ]  # fmt: skip
    values = np.array([[0.5, 0.5, 0.1], [0.1, 0.2, 0.3]])
    found = best_leg({"h": values[:, 0]}, ["x", "y", "z"], values, FLOOR[:2])
    assert labels(found) == ["legs tie", "won by z"]
    found = best_leg({"h": FUSED, "g": FUSED / 2}, ["x", "y"], LEGS, FLOOR)
    assert (found.of, found.columns) == ("h and g", ("x", "y", "h", "g"))
    assert found.values.shape == (6, 4)


@pytest.mark.parametrize(
    "partition",
    [
        outcome(["a", "b"], LEGS, FLOOR),
        best_leg({"h": FUSED}, ["x", "y"], LEGS, FLOOR),
        by_fusion("h", LEGS, FUSED, FLOOR),
    ],
    ids=lambda partition: partition.kind,
)
def test_the_counts_add_up_and_the_means_are_those_of_all(partition: Partition) -> None:
    groups, whole = partition.groups(METRIC), partition.whole(METRIC)
    assert sum(group.n for group in groups) == whole.n == 6
    filled = [group for group in groups if group.n]
    for column, mean in whole.means.items():
        total = sum(group.n * some(group.means[column]) for group in filled)
        assert total / 6 == pytest.approx(mean)
    assert sum(group.n * some(group.gain) for group in filled) / 6 == pytest.approx(whole.gain)


def test_empty_groups_stay_and_have_no_mean() -> None:
    found = outcome(["a", "b"], np.array([[1.0, 0.0]]), FLOOR[:1]).groups(METRIC)
    assert [(group.label, group.n) for group in found] == [
        ("won by a", 1), ("won by b", 0), ("tie", 0), ("both miss", 0),
    ]  # fmt: skip
    assert found[1].means == {"a": None, "b": None}
    assert found[1].gain is None
    empty = np.zeros((0, 2))
    for nothing in (
        outcome(["a", "b"], empty, np.zeros(0)),
        best_leg({"h": np.zeros(0)}, ["x", "y"], empty, np.zeros(0)),
        by_fusion("h", empty, np.zeros(0), np.zeros(0)),
    ):
        assert nothing.whole(METRIC).n == 0


def test_a_miss_is_the_value_of_an_empty_ranking_whatever_that_is() -> None:
    floor = np.full(2, 1e-5)
    values = np.array([[1e-5, 1e-5], [1e-5, 0.5]])
    found = outcome(["a", "b"], values, floor)
    assert labels(found) == ["both miss", "won by b"]
    assert found.whole(parse_metric("GMAP")).means["b"] == pytest.approx(math.sqrt(1e-5 * 0.5))


def test_a_gap_counts_as_the_test_of_the_pair_and_the_groups_do() -> None:
    """What ``bench`` says that fusion hurt and helped, and what ``explain`` says."""
    fused, leg = np.array([0.1 + 0.2, 0.5, 0.2, 0.7]), np.array([0.3, 0.5 + 5e-11, 0.9, 0.1])
    gap = Gap.of(["h", "leg"], fused, leg, METRIC)
    found = paired_tests(np.stack([fused, leg])[:, :, None], [(0, 1)])
    assert (gap.higher, gap.lower) == (1, 2)
    assert (int(found.losses[0, 0]), int(found.wins[0, 0])) == (gap.higher, gap.lower)
    groups = by_fusion("h", leg[:, None], fused, np.zeros(4))
    assert labels(groups).count("lost by fusion") == gap.lower


def test_columns_of_one_name_keep_their_own_values() -> None:
    values = np.array([[1.0, 0.5], [0.5, 0.25]])
    floor, member = np.zeros(2), np.zeros(2, np.int64)
    names = ("best leg", "best leg")
    partition = Partition("fusion", "best leg", ("all",), member, names, values, floor, floor)
    (group,) = partition.groups(METRIC)
    assert group.means == {"best leg": 0.75, "best leg#2": 0.375}
