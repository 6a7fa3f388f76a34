"""The exact text of what people read. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.errors import DataError, HarnessError
from retrieval_bench.experiment.planned_run import PlannedRun, Trial
from retrieval_bench.experiment.preparation import Problems
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench.reports.render.table import Table, text_of, warning
from retrieval_bench.reports.tables.brief import comparison_brief
from retrieval_bench.reports.tables.measure import run as tables
from retrieval_bench.reports.tables.understand.comparison import PAIRS_SHOWN, comparison_tables
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import Summary
from retrieval_bench_pages import html
from tests.builders.golden import golden
from tests.builders.runs import sample_run


def test_the_table_of_a_run() -> None:
    golden("run.txt", terminal.plain(tables.run_tables(sample_run("sample", 0))))


def test_the_table_of_a_short_partial_and_failing_run() -> None:
    run = sample_run("sample", 1, calls=40, status="partial", n_failed=2, n_collapsed=1234)
    golden("run_partial.txt", terminal.plain(tables.run_tables(run)))


def test_the_markdown_of_a_run() -> None:
    golden("run.md", markdown.render(tables.run_tables(sample_run("sample", 0))))


def test_the_html_of_a_run() -> None:
    golden("run.html", html.render(tables.run_tables(sample_run("<b>", 0))))


def test_five_systems_side_by_side() -> None:
    runs = [
        sample_run(name, i % 3) for i, name in enumerate(["bm25", "dense", "검색", "bm25", "e"])
    ]
    golden("comparison.txt", terminal.plain(comparison_tables(compare_runs(runs))))
    golden("comparison_brief.txt", terminal.plain(comparison_brief(compare_runs(runs))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, "measured together, alternating"),
        ({"session": "t"}, "Times were measured apart"),
        ({"machine_of": "n"}, "Times cannot be compared: measured on different machines."),
        ({"threads": 2}, "Times cannot be compared: measured with different threads."),
        ({"min_calls": 5}, "measured together, alternating"),  # more calls of the same kind
    ],
)
def test_a_comparison_says_how_the_times_came_about(other: dict[str, Any], says: str) -> None:
    comparison = compare_runs([sample_run("a", 0), sample_run("b", 1, **other)])
    (costs,) = [t for t in comparison_tables(comparison) if t.title.startswith("Time and cost")]
    assert any(says in text_of(note) for note in costs.notes)


def test_a_comparison_tells_what_is_not_the_same_of_all_runs() -> None:
    runs = [
        sample_run("whole", 0, warnings=[f"fault {i}" for i in range(8)]),
        sample_run("part", 1, calls=40, threads=2, status="partial", warnings=["fault 0"]),
        sample_run("shallow", 2, calls=40, session="t", k=3),
    ]
    golden("comparison_unlike.txt", terminal.plain(comparison_tables(compare_runs(runs))))


def test_the_record_of_an_older_run_can_be_shown() -> None:
    """What came into the record later may be missing from it."""
    new = sample_run("new", 0)
    kept = ("retriever", "dataset", "k", "metrics", "convention", "metrics_version")
    facts = new.summary.as_dict()
    data = {key: facts["dataset"][key] for key in ("name", "split", "fingerprint")}
    summary = Summary.model_validate({key: facts[key] for key in kept} | {"dataset": data})
    old = Run(summary, {}, new.rankings, new.status, new.timings, new.evaluation)
    assert "new on tiny (test), k = 10" in terminal.plain(tables.run_tables(old))
    shown = terminal.plain(comparison_tables(compare_runs([old, new])))
    assert "cannot be compared" in shown


def test_many_warnings_are_cut_short() -> None:
    notes = tables.run_tables(sample_run("a", 0, warnings=[f"w{i}" for i in range(8)]))[-1].notes
    assert list(notes[-2:]) == [warning("w4"), warning("... and 3 more in summary.json")]
    notes = tables.run_tables(sample_run("a", 0, warnings=[f"w{i}" for i in range(5)]))[-1].notes
    assert notes[-1] == warning("w4")


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 6])
def test_eighty_columns_are_enough(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(terminal, "PLAIN_WIDTH", 80)
    names = ["bm25", "dense", "hybrid", "hybrid-convex", "my-own-retriever", "검색기"][:n]
    comparison = compare_runs([sample_run(name, i % 3) for i, name in enumerate(names)])
    shown = terminal.plain(
        [Table(t.title, t.columns, t.rows, t.rules) for t in comparison_tables(comparison)[1:]]
    )
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert all(metric in shown for metric in ("nDCG@10", "MAP@10", "success@1"))


def make_others(name: str, shift: int) -> Run:
    """A run as of :func:`sample_run`, on another dataset."""
    run = sample_run(name, shift)
    data = run.summary.dataset.replace(name="다른", fingerprint="e" * 32)
    return sample_run(name, shift, dataset=data)


@pytest.mark.slow
def test_two_systems_on_two_datasets_with_all_that_can_be_asked_for() -> None:
    runs = [sample_run("a", 0), sample_run("b", 1), make_others("a", 1), make_others("b", 0)]
    comparison = compare_runs(runs, baseline="b", tests=["wilcoxon"], margin=0.2)
    golden("comparison_datasets.txt", terminal.plain(comparison_tables(comparison)))
    golden("comparison_datasets.md", markdown.render(comparison_tables(comparison)))


def test_of_very_many_systems_all_have_a_number_in_latex() -> None:
    runs = [sample_run("same", i % 3, calls=40) for i in range(26)]
    ranked = comparison_tables(compare_runs(runs, baseline="same"), letters=True)[1]
    assert {str(row[0]).rpartition(" ")[2] for row in ranked.rows} == {
        f"({n})" for n in range(1, 27)
    }


def test_with_a_baseline_of_very_many_systems_its_pairs_are_shown() -> None:
    runs = [sample_run("same", i % 3, calls=40) for i in range(PAIRS_SHOWN + 6)]
    tables_ = comparison_tables(compare_runs(runs, baseline="same#26"))
    (differences,) = [t for t in tables_ if t.title.startswith("Paired")]
    assert len(differences.rows) == PAIRS_SHOWN
    assert "5 more pairs: --format json has all." in map(text_of, differences.notes)


def test_the_plan_of_a_dry_run() -> None:
    document: dict[str, Any] = {
        "retrievers": ["bm25", "mine"],
        "dataset": "tiny",
        "queries": 300,
        "rounds": 4,
        "measured_calls": 1200,
        "launches": 1,
        "warm_up_calls_at_least": 300,
        "warm_up_calls_at_most": None,
        "warm_up_seconds_at_most": 10.0,
        "calls_at_least": 3000,
        "calls_at_most": None,
        "tried": [Trial("bm25", documents=20, hits=10)],
        "not_checked": ["mine was built, not asked: whether it answers"],
        "warnings": ["3 empty documents"],
    }
    golden("plan.txt", terminal.plain([tables.plan_table(PlannedRun(**document))]))


def test_several_problems_in_one_message() -> None:
    problems = Problems()
    problems.add(HarnessError("k = 0", where="--k", accepted="1 or more", fix="ask for more"))
    problems.add(DataError("2 faults", where="data", faults=["a.jsonl:3: no id", "b.tsv:9: x"]))
    with pytest.raises(HarnessError) as raised:
        problems.raise_if_any()
    golden("problems.txt", raised.value.render() + "\n")
