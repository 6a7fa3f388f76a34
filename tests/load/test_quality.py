"""Answers under load beside those without: of the same queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.data import load_dataset
from retrieval_bench.metrics import parse_metric
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.quality import LevelQuality, Scorer
from tests.builders.queued import queue

DATA = load_dataset("science-mini")


def _made(asked: list[int], *, wrong: list[int]) -> LevelCalls:
    """A level that asked these queries in turn; ``wrong`` ones get no relevant document."""
    made = queue(0.2, 5.0, 1)
    query = np.resize(np.array(asked), len(made.calls))
    answers = {}
    for at in asked:
        grades = DATA.qrels[DATA.evaluated[at].id]
        best = max(grades, key=lambda document: grades[document])
        answers[0, at] = (at, ("no such document",) if at in wrong else (best,))
    return replace(made, calls=replace(made.calls, query=query, answer=query), answers=answers)


def _scored(unloaded: list[int], loaded: list[int], wrong: list[int]) -> LevelQuality:
    scorer = Scorer(DATA.evaluated, DATA, parse_metric("Success@1"), 1)
    scorer.scored(_made(unloaded, wrong=[]))
    return scorer.scored(_made(loaded, wrong=wrong))[0]


def test_means_are_those_of_queries_that_were_asked_without_load_too() -> None:
    found = _scored([0, 1, 2, 3], [1, 2, 3, 4, 5], wrong=[3, 5])
    assert found.queries == 3
    assert found.unloaded == pytest.approx(1.0)
    assert found.mean == pytest.approx(2 / 3)
    assert found.difference == pytest.approx(-1 / 3)


def test_where_no_query_was_asked_without_load_the_mean_stands_alone() -> None:
    found = _scored([0, 1], [4, 5], wrong=[5])
    assert (found.mean, found.queries, found.unloaded, found.difference) == (0.5, 2, None, None)
