"""``bench`` on queries with filters, as a user sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.files import beir, save
from tests.cli.project import Command


@pytest.fixture(autouse=True)
def project(here: Path) -> Path:
    documents = [{"_id": f"d{i}", "text": "red apples", "tenant": "ab"[i % 2]} for i in range(6)]
    queries: list[dict[str, Any]] = [
        {"_id": f"q{i}", "text": "apples", "filter": {"tenant": "ab"[i % 2]}} for i in range(4)
    ]
    beir(here / "data", documents, queries, [(f"q{i}", f"d{i}", 1) for i in range(4)])
    return save(here / "own.py", "def careless(text, k):\n    return ['d0', 'd1', 'd2'][:k]\n")


QUICK = ("--dataset", "data", "--profile", "smoke", "--warm-up", "0")


def test_a_built_in_leaks_nothing_and_says_so(run: Command) -> None:
    assert run("bench bm25 --no-leaks -v", *QUICK) == 0
    assert "4 queries with a filter, no hit outside of it" in run.unwrapped


@pytest.mark.slow
def test_leaks_are_a_warning_and_a_failure_where_they_must_not_be(run: Command) -> None:
    own = ("bench", "--retriever", "leaky.yaml", *QUICK)
    Path("leaky.yaml").write_text("target: callable\nparams: {function: 'own.py:careless'}\n")
    assert run(*own) == 0
    assert "6 hits of 4 queries leaked" in run.unwrapped
    assert run(*own, "--no-leaks") == 1
    assert "leaky leaked 6 hits: --no-leaks" in run.err
    assert run("bench bm25 --no-leaks --profile smoke") == 4
    assert "--no-leaks shows nothing of bm25: no query has a filter" in run.err


@pytest.mark.slow
def test_slices_show_where_filters_cost(run: Command) -> None:
    assert run("compare bm25 bm25 --slices filter selectivity", *QUICK) == 0
    assert "up to 50%" in run.out
