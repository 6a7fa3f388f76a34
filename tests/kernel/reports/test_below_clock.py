"""A p50 that would be written as 0.000 ms is told in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.figures import ms_text, short_ms
from retrieval_bench.reports.tables.brief import run_brief
from retrieval_bench.runs.run import Run
from tests.builders.runs import sample_run

WORDS = "below what the clock can tell (answers are remembered?)"


def at(p50: float, name: str = "quick") -> Run:
    one = sample_run(name, 0)
    latency = one.summary.latency_ms
    entry = latency.levels["p50"].replace(value=p50, ci95=(p50, p50))
    latency = latency.replace(levels=latency.levels | {"p50": entry})
    return replace(one, summary=one.summary.replace(latency_ms=latency))


@pytest.mark.needs("retrieval_bench_pages")
@pytest.mark.parametrize("p50", [0.0, 0.0004])
def test_the_answer_says_so(p50: float) -> None:
    from retrieval_bench_pages.answer import answers_html

    assert run_brief(at(p50)).title.endswith(f", p50 {WORDS}")
    assert WORDS not in run_brief(at(0.0005)).title
    beaten = sample_run("other", 3)
    comparison = compare_runs([at(p50), beaten])
    page = str(answers_html(comparison, comparison.recommendations))
    assert f"<dd>{WORDS}</dd>" in page
    assert "0.000 ms" not in page


def test_no_time_is_written_as_nothing() -> None:
    assert [ms_text(0.0004), short_ms(0.0004), ms_text(0.0)] == ["< 0.001"] * 3
    assert [ms_text(0.0006), short_ms(0.0006)] == ["0.001"] * 2
