"""The table of a comparison that everybody reads: each row speaks of its own system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.render.cells import Cell
from retrieval_bench.reports.render.words import verdict_label
from retrieval_bench.reports.tables.again import same_of
from retrieval_bench.reports.tables.brief import against, comparison_brief
from tests.builders import some
from tests.builders.runs import run, sample_run

GOOD = np.linspace(0.5, 0.9, 40)
BAD = GOOD - np.linspace(0.1, 0.3, 40)  # lower by 0.2


def test_the_same_retriever_is_named_with_its_chunker(here: Path) -> None:
    made = {"hash": "h", "target": "m:C", "chunk": {"by": "tokens", "size": 40, "overlap": 0}}
    for source, named in ((here / "a" / "mine.yaml", "a/mine.yaml"), (None, "m:C")):
        told = {**made, "source": source and str(source)}
        again = replace(sample_run("mine+tokens-40-0", 0), manifest={"retriever": told})
        assert f"bench {named}+tokens-40-0 " in same_of(again, "bench")


in_either_order = pytest.mark.parametrize("names", [("good", "bad"), ("bad", "good")])


@in_either_order
@pytest.mark.parametrize(
    ("name", "other", "sign", "word"),
    [("bad", "good", -1, Verdict.WORSE), ("good", "bad", 1, Verdict.BETTER)],
)
def test_a_difference_has_the_sign_of_the_system_in_the_row(
    names: tuple[str, ...], name: str, other: str, sign: int, word: Verdict
) -> None:
    runs = [run(one, GOOD if one == "good" else BAD) for one in names]
    (group,) = compare_runs(runs).groups
    gap, said = against(group, group.metrics[0], name, other)
    assert isinstance(gap, Cell)
    assert gap.value == pytest.approx(0.2 * sign)
    low, high = some(gap.interval)
    assert low < 0.2 * sign < high
    assert low * high > 0, "the interval lies on the side of the difference"
    assert said == verdict_label(word)


@in_either_order
def test_the_screen_says_how_far_below_the_leader_a_system_is(names: tuple[str, ...]) -> None:
    runs = [run(one, GOOD if one == "good" else BAD) for one in names]
    text = terminal.plain(comparison_brief(compare_runs(runs)))
    (row,) = [line for line in text.splitlines() if line.split()[:1] == ["bad"]]
    assert "-0.200 [-0." in row
    assert "+" not in row
