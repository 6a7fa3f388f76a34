"""The page of the notebook's functions runs, prints what it says, and agrees with the harness."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.measure.tutorial import tutorial_latency

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "harness" / "docs" / "notebook.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the blocks leave behind, and under ``printed`` what they print."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    printed: list[str] = []
    names: dict[str, Any] = {"print": lambda *words: printed.append(" ".join(map(str, words)))}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)  # the page is ours
    (shown,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return names | {"printed": printed, "shown": shown.splitlines()}


def test_the_page_prints_what_it_shows(page: dict[str, Any]) -> None:
    assert page["printed"][:3] == page["shown"]
    assert page["printed"][3].startswith("p50 ")
    assert "p99 needs 1,000" in page["printed"][4]


def test_the_four_functions_agree_with_the_harness_to_the_last_digit(page: dict[str, Any]) -> None:
    assert page["lists"].means["R@10"] == pytest.approx(np.mean(page["recalls"]), abs=1e-12)
    assert page["lists"].means["nDCG@10"] == pytest.approx(np.mean(page["ndcgs"]), abs=1e-12)
    assert page["means"]["nDCG@10"] == pytest.approx(np.mean(page["ndcgs"]), abs=1e-12)


def test_the_functions_keep_the_figures_of_the_notebook(page: dict[str, Any]) -> None:
    ids = [f"d{i}" for i in range(20)]
    assert page["recall_at_k"](ids, [*ids[:8], "x", "y"], 10) == 0.8
    assert page["recall_at_k"](ids, [], 10) == 0.0
    assert page["dcg_at_k"](["a", "b", "b"], {"a": 2, "b": 1}, 3) == pytest.approx(
        2 + 1 / np.log2(3) + 1 / 2
    )
    assert page["ndcg_at_k"](["b", "a"], {"a": 2, "b": 1}, 2) == pytest.approx(
        (1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3))
    )
    assert page["ndcg_at_k"](["a"], {"b": 0}, 2) == 0.0


def test_the_loop_leaves_the_first_queries_out_as_the_harness_s_copy_does(
    page: dict[str, Any],
) -> None:
    class Service:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def invoke(self, text: str) -> None:
            self.asked.append(text)

    service = Service()
    figures = page["measure_latency"](service, ["a", "b", "c"])
    assert service.asked == ["a", "b", "c"]
    assert set(figures) == {"mean", "p50", "p95", "p99"}
    nothing = page["measure_latency"](service, ["a", "b"])
    assert nothing == dict.fromkeys(figures, 0.0)
    ours = tutorial_latency(service.invoke, ["a", "b"])
    assert [ours.mean, ours.p50, ours.p95, ours.p99] == [0.0] * 4
