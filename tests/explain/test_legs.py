"""A hybrid beside its best leg, on runs whose values can be computed by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.tables.brief import run_brief
from retrieval_bench.reports.tables.measure.run import run_tables
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.of_run import best_leg, told
from retrieval_bench_explain.parts import Parts
from tests.builders import some
from tests.builders.hybrid_runs import make_dataset, make_run
from tests.builders.page_sample import make_dataset as page_dataset
from tests.builders.page_sample import make_runs
from tests.builders.tables import folded

QUERIES = [f"q{i:02}" for i in range(20)]
DATA = make_dataset({query: {"a": 1} for query in QUERIES})

FIRST = dict.fromkeys(QUERIES, "axy")  # RR@3 1
SECOND = dict.fromkeys(QUERIES, "xay")  # 1/2
THIRD = dict.fromkeys(QUERIES, "xya")  # 1/3


def hybrid(fused: dict[str, str], **legs: dict[str, str]) -> Run:
    return make_run("mixed", DATA, fused, legs)


def test_a_hybrid_is_worse_than_its_best_leg_better_or_the_same() -> None:
    run = hybrid(SECOND | {"q00": "axy"}, sparse=THIRD, dense=FIRST | {"q00": "xya"})
    leg = some(best_leg(run, DATA))
    assert (leg.a, leg.b, leg.metric, leg.n) == ("mixed", "dense", "RR@3", 20)
    assert leg.difference == pytest.approx((19 * 0.5 - 2 / 3) / 20)
    assert leg.verdict is Verdict.BETTER  # b, the leg
    assert (leg.wins, leg.ties, leg.losses) == (19, 0, 1)
    run = hybrid(FIRST, sparse=THIRD, dense=SECOND)
    leg = some(best_leg(run, DATA))
    assert (leg.b, leg.verdict) == ("dense", Verdict.WORSE)
    assert leg.difference == pytest.approx(-0.5)
    assert (leg.wins, leg.ties, leg.losses) == (0, 0, 20)
    leg = some(best_leg(hybrid(FIRST, sparse=THIRD, dense=FIRST), DATA))
    assert (leg.b, leg.difference) == ("dense", 0.0)
    assert leg.verdict in {Verdict.EQUIVALENT, Verdict.UNDECIDED}


def test_all_legs_are_one_family() -> None:
    """Six queries differ, so p is 2 / 2^6 = 0.031, and 0.0625 after Holm over two legs."""
    six = FIRST | dict.fromkeys(QUERIES[:6], "xay")
    alone = some(best_leg(hybrid(six, dense=FIRST), DATA))
    beside = some(best_leg(hybrid(six, dense=FIRST, sparse=FIRST), DATA))
    assert some(alone.p) == some(beside.p) < 0.05
    assert some(alone.p_adjusted) == alone.p
    assert some(beside.p_adjusted) == pytest.approx(2 * some(beside.p))
    assert (alone.verdict, beside.verdict) == (Verdict.BETTER, Verdict.UNDECIDED)


def test_without_legs_without_queries_and_for_a_deeper_metric_there_is_no_best_leg() -> None:
    assert best_leg(make_run("plain", DATA, FIRST), DATA) is None
    assert best_leg(make_run("old", DATA, FIRST, {"dense": FIRST}, told=False), DATA) is None
    run = make_run("mixed", DATA, FIRST, {"dense": FIRST}, metrics=("RR@10",))
    assert best_leg(run, DATA) is None
    failed = dict.fromkeys(QUERIES, "not run")
    assert best_leg(make_run("mixed", DATA, FIRST, {"dense": FIRST}, failed=failed), DATA) is None


# -- what is said of it --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> Run:
    """A hybrid with times and all that the tables show."""
    return make_runs(page_dataset())[2]


def shown(run: Run, leg: Run, *, full: bool = False) -> str:
    """What is said of ``measured`` beside the best leg of another run."""
    beside = best_leg(leg, DATA)
    findings = told(run, Parts(beside))
    tables = run_tables(run, findings) if full else [run_brief(run, findings)]
    return folded(terminal.plain(tables))


@pytest.mark.parametrize("full", [False, True])
def test_a_worse_hybrid_warns_right_below_the_answer_and_a_better_one_does_not(
    measured: Run, full: bool
) -> None:
    text = shown(measured, hybrid(SECOND, sparse=THIRD, dense=FIRST), full=full)
    assert "! Use dense alone: " in text
    assert "+0.500 [+0.500, +0.500]" in text
    assert "Compared with it, fusion hurt 20 of 20 queries and helped 0." in text
    findings = told(measured, Parts(best_leg(hybrid(SECOND, dense=FIRST), DATA)))
    first = terminal.plain([run_brief(measured, findings)])
    assert first.splitlines()[1].startswith("  !  Use dense alone: ")
    text = shown(measured, hybrid(FIRST, sparse=THIRD, dense=SECOND), full=full)
    assert "Its best leg alone, dense, is worse: " in text
    assert "fusion hurt 0 of 20 queries and helped 20." in text
    assert "Use dense alone" not in text


def test_geometric_means_are_held_beside_each_other_by_their_ratio(measured: Run) -> None:
    run = make_run("mixed", DATA, SECOND, {"dense": FIRST, "sparse": THIRD}, metrics=["GMAP"])
    text = shown(measured, run)
    assert re.search(r"! Use dense alone: \d\.\d{3}, 2\.00x \[2\.00x, 2\.00x\]\. Compared", text)


def test_a_difference_that_few_queries_carry_is_told_with_the_careful_interval(
    measured: Run,
) -> None:
    some_lost = {
        query: SECOND[query] if at < 6 else FIRST[query] for at, query in enumerate(QUERIES)
    }
    text = shown(measured, hybrid(some_lost, dense=FIRST))
    found = re.search(
        r"Use dense alone: .*\], but with so few queries that may be chance: the careful interval "
        r"\[(\S+), (\S+)\] includes 0\. Compared with it, fusion hurt 6 of 20",
        text,
    )
    assert float(some(found)[1]) < 0 < float(some(found)[2])


def test_an_undecided_one_says_that_nobody_can_tell_and_a_run_without_legs_nothing(
    measured: Run,
) -> None:
    rng = np.random.default_rng(3)
    mixed = {query: ("axy", "xya")[int(rng.integers(2))] for query in QUERIES}
    other = {query: ("axy", "xya")[int(rng.integers(2))] for query in QUERIES}
    text = shown(measured, hybrid(mixed, dense=other))
    assert "These queries can't tell it from dense, its best leg, alone: " in text
    text = folded(terminal.plain([run_brief(measured)]))
    assert "alone" not in text
    assert "fusion" not in text
