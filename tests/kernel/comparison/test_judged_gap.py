"""A difference is called the judges' only where it can be: by who is ahead, by hits that there are,
and by what judgements could turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.pairs.judged_gap import JUDGED_GAP
from retrieval_bench.core.types import Ranking
from retrieval_bench.runs.run import Run, pack_rankings
from tests.builders.runs import numbered, run

N = 20
AHEAD, BEHIND = [0.6] * N, [0.5] * N


def judged(
    name: str,
    values: Sequence[float],
    share: float | Mapping[str, float],
    *,
    hits: Sequence[Sequence[str]] | None = None,
    **summary: Any,
) -> Run:
    """A run that has ``share`` of its hits judged; on each query ten hits that no other run has."""
    lists = hits or [[f"{name}{rank}" for rank in range(10)]] * N
    packed = pack_rankings(numbered(N), [Ranking(list(one)) for one in lists], 10)
    known = {"Judged@10": share} if isinstance(share, float) else share
    found = run(name, values, **summary)
    evaluation = replace(found.evaluation, judged=known)
    return replace(found, rankings=packed, status=("ok",) * N, evaluation=evaluation)


def warnings_of(*runs: Run, **how: Any) -> tuple[str, ...]:
    return compare_runs(runs, **how).warnings


def test_a_winner_whose_hits_are_judged_far_more_may_be_the_judges() -> None:
    runs = judged("a", BEHIND, 0.2), judged("b", AHEAD, 0.4)
    (warning,) = warnings_of(*runs)
    assert warning == (
        "Judged@10 is 0.20 for a and 0.40 for b: hits without a judgement count as not relevant, "
        "so b may look better because more of its hits were judged."
    )
    assert warnings_of(*reversed(runs)) == (warning,)
    assert compare_runs(runs).as_dict()["warnings"] == [warning]


@pytest.mark.parametrize("values", [AHEAD, BEHIND], ids=["ahead", "equal"])
def test_one_that_is_judged_less_and_not_behind_was_not_helped(values: list[float]) -> None:
    assert warnings_of(judged("a", values, 0.2), judged("b", BEHIND, 0.4)) == ()


@pytest.mark.parametrize(("gap", "warned"), [(0.0, 0), (0.0499, 0), (0.0501, 1), (0.3, 1)])
def test_a_small_gap_is_none(gap: float, warned: int) -> None:
    assert JUDGED_GAP == 0.05
    assert len(warnings_of(judged("a", BEHIND, 0.5), judged("b", AHEAD, 0.5 + gap))) == warned


def test_the_pair_that_is_farthest_apart_is_named() -> None:
    shares = {"a": (BEHIND, 0.8), "b": (AHEAD, 0.95), "c": ([0.4] * N, 0.55)}
    runs = [judged(name, *known) for name, known in shares.items()]
    (warning,) = warnings_of(*runs)
    assert warning.startswith("Judged@10 is 0.55 for c and 0.95 for b: ")
    (warning,) = warnings_of(*runs, baseline="a")
    assert warning.startswith("Judged@10 is 0.55 for c and 0.80 for a: ")


def test_lists_without_a_hit_have_no_hit_without_a_judgement() -> None:
    hits = [[f"a{rank}" for rank in range(10)]] * 10 + [[]] * 10
    # Of the ten lists with hits .8 is judged, which counts .4 over all twenty.
    assert warnings_of(judged("a", BEHIND, 0.4, hits=hits), judged("b", AHEAD, 0.8)) == ()
    (warning,) = warnings_of(judged("a", BEHIND, 0.3, hits=hits), judged("b", AHEAD, 0.8))
    assert warning.startswith("Judged@10 of the queries with hits is 0.60 for a and 0.80 for b: ")


def test_what_the_other_one_lacks_no_judgement_can_give() -> None:
    better = [f"b{rank}" for rank in range(10)]
    first = judged("b", AHEAD, 0.8, hits=[better] * N)
    # Whatever is relevant, the beginning of a list is never better than the whole list.
    assert warnings_of(judged("a", BEHIND, 0.5, hits=[better[:5]] * N), first) == ()
    other = judged("a", BEHIND, 0.5, hits=[[*better[:5], "a"]] * N)
    assert len(warnings_of(other, first)) == 1


def test_where_few_hits_are_not_judged_few_queries_can_turn() -> None:
    # Of 200 hits of a 10 are not judged: at most 10 of 20 queries can lose more than they have.
    sure = judged("b", [1.0] * N, 1.0)
    assert len(warnings_of(judged("a", [0.9] * N, 0.95), sure)) == 1
    assert warnings_of(judged("a", [0.0] * N, 0.95), sure) == ()


@pytest.mark.parametrize("metric", ["GMAP", "AP@100"])
def test_where_no_bound_is_known_any_judgement_may_turn_it(metric: str) -> None:
    runs = [
        judged(n, v, s, metrics=[metric]) for n, v, s in (("a", BEHIND, 0.2), ("b", AHEAD, 0.4))
    ]
    assert len(warnings_of(*runs)) == 1


def test_shares_of_other_depths_or_data_or_never_measured_are_not_compared() -> None:
    assert warnings_of(judged("a", AHEAD, {"Judged@3": 0.9}), judged("b", BEHIND, 0.2)) == ()
    other: dict[str, Any] = {"dataset": {"fingerprint": "g", "split": "test"}}
    assert warnings_of(judged("a", AHEAD, 0.9), judged("b", BEHIND, 0.2, **other)) == ()
    assert warnings_of(judged("a", AHEAD, 0.9), run("b", BEHIND)) == ()
