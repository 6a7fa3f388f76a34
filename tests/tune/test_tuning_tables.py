"""The exact text of ``tune``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.config import inline_config
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import parse_metric
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench_tune.doubts import doubts
from retrieval_bench_tune.grid import make_grid
from retrieval_bench_tune.selection import chosen_on_dev, cross_validated
from retrieval_bench_tune.shown import TunedDataset
from retrieval_bench_tune.tables.tuning import sentence, tuning_brief, tuning_tables
from retrieval_bench_tune.tuned import Plan, Tuning, judged
from tests.builders.golden import golden
from tests.builders.tables import rows_in

WEIGHTS = ([0.5, 0.5], [0.0, 1.0], [0.2, 0.8], [0.8, 0.2], [1.0, 0.0])
PARAMETERS: dict[str, Any] = {"fusion.k": (60, 10, 1), "fusion.weights": WEIGHTS}
CONFIG = {"name": "hybrid", "target": "hybrid", "params": {"legs": ["bm25", "dense"]}}


def made(dev_split: str | None, *, lead: float = 0.0, on_grid: bool = True) -> Tuning:
    """15 settings on 120 queries; one of them is ahead by ``lead``, the others differ by noise."""
    current = {path: values[0] for path, values in PARAMETERS.items()} if on_grid else {}
    grid = make_grid(PARAMETERS, current, seed=0)
    n = len(grid.settings)
    rng = np.random.default_rng(7)
    values = rng.uniform(0.2, 0.8, 120) + rng.normal(0, 0.05, (n, 120))
    values[7] += lead
    config = inline_config(CONFIG)
    if dev_split is None:
        tuning, held_out = values, values
        selection = cross_validated(values, range(120), n_folds=5, repeats=3, seed=1)
    else:
        tuning, held_out = np.split(values, [80], axis=1)
        selection = chosen_on_dev(tuning, held_out)
    winner = grid.settings[selection.winner]
    return Tuning(
        config,
        TunedDataset("tiny", "f" * 32, "test", dev_split),
        10,
        parse_metric("nDCG@10"),
        Plan("test", dev_split, 5, 3, 1),
        grid,
        tuning,
        tuple(f"q{i:03d}" for i in range(held_out.shape[1])),
        selection,
        judged(selection, parse_metric("nDCG@10"), "tiny"),
        inline_config(CONFIG, winner.overrides),
        ("bm25", "dense"),
        ("a warning of the data", *doubts(grid, tuning, selection)),
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tuning_noise.txt", made(None)),
        ("tuning_better.txt", made(None, lead=0.08)),
        ("tuning_dev.txt", made("train", lead=0.02, on_grid=False)),
    ],
)
def test_tables_of_tuning(name: str, found: Tuning) -> None:
    golden(name, terminal.plain(tuning_tables(found)))


def test_tuning_as_markdown() -> None:
    golden("tuning_brief.txt", terminal.plain(tuning_brief(made(None, lead=0.08))))
    golden("tuning.md", markdown.render(tuning_tables(made(None, lead=0.08))))


def test_the_sentence_says_what_the_verdict_says() -> None:
    found = made(None)
    words = {
        Verdict.BETTER: "tuning helps",
        Verdict.WORSE: "tuning does harm",
        Verdict.EQUIVALENT: "changes nothing that matters",
        Verdict.UNDECIDED: "no gain from tuning is shown",
    }
    for verdict, told in words.items():
        delta = replace(found.delta, verdict=verdict)
        assert told in sentence(replace(found, delta=delta))


def test_a_verdict_that_few_queries_carry_is_doubted() -> None:
    found = made(None, lead=0.08)
    few = replace(found.delta, few=True, bound=(-0.01, 0.2))
    assert few.verdict is Verdict.BETTER
    doubted = replace(found, delta=few)
    assert "but with so few queries that may be chance" in sentence(doubted)
    text = " ".join(terminal.plain(tuning_tables(doubted)).split())
    assert "careful interval [-0.010, +0.200]" in text
    shown = replace(found, delta=replace(few, bound=(0.01, 0.2)))
    assert "careful interval" not in sentence(shown)


def test_a_default_that_nothing_beats_is_said_to_be_that() -> None:
    found = made(None)
    same = np.repeat(found.values[:1], len(found.values), axis=0)
    selection = cross_validated(same, range(120), n_folds=5, repeats=1, seed=1)
    delta = judged(selection, found.metric, "tiny")
    kept = replace(found, values=same, selection=selection, delta=delta)
    assert sentence(kept) == "hybrid on tiny: nothing that was tried is better than hybrid as it is"
    text = terminal.plain(tuning_tables(kept))
    assert "-0.0000" not in text
    assert "Recommended: the default (fusion.k=60 fusion.weights=[0.5, 0.5])" in text


def test_an_answer_fits_80_columns_apart_from_its_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in tuning_tables(made("train", lead=0.02)):
        assert rows_in(80, table, monkeypatch) == rows_in(300, table, monkeypatch)
