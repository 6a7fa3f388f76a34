"""Labelled answers: rates, Wilson intervals, exact McNemar tests, groups; and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render import terminal
from retrieval_bench_answers.outcomes import (
    OutcomeRecords,
    OutcomeReport,
    Rate,
    mcnemar,
    outcome_report,
    read_outcomes,
)
from retrieval_bench_answers.tables.outcome import outcome_brief, outcome_tables
from tests.builders.files import json_lines, save
from tests.lazily import Lazily

contingency_tables: Any = Lazily("statsmodels.stats.contingency_tables")
proportion: Any = Lazily("statsmodels.stats.proportion")

WORDS = {"c": "correct", "h": "hallucinated", "r": "rejected"}


def write(folder: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    return save(folder / "records.jsonl", json_lines(records))


def labelled(folder: Path, sources: Mapping[str, Mapping[str, str]]) -> OutcomeRecords:
    """``{"drop": {"one": "cch", "two": "rrc"}}``: a letter for each item."""
    records: list[dict[str, Any]] = []
    for source, systems in sources.items():
        for at, letters in enumerate(zip(*systems.values(), strict=True)):
            outcomes = {
                name: WORDS[letter]
                for name, letter in zip(systems, letters, strict=True)
                if letter in WORDS
            }
            records.append({"id": f"{source}-{at}", "source": source, "outcomes": outcomes})
    return read_outcomes(write(folder, records))


@pytest.fixture
def report(tmp_path: Path) -> OutcomeReport:
    return outcome_report(
        labelled(
            tmp_path,
            {
                "drop": {"one": "cchhr" * 4, "two": "ccccc" * 4},
                "covid": {"one": "ccrrrrrrrr", "two": "ccrrrrrrrh"},
            },
        )
    )


# -- statistics ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("count", "n"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 49), (299, 299)])
def test_intervals_are_those_of_statsmodels(count: int, n: int) -> None:
    expected = proportion.proportion_confint(count, n, alpha=0.05, method="beta")
    assert Rate(count, n).ci95 == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [(0, 0), (0, 1), (5, 0), (3, 9), (7, 7), (140, 26), (600, 590)]
)
def test_mcnemar_is_exact_as_in_statsmodels(a: int, b: int) -> None:
    assert mcnemar(a, b) == mcnemar(b, a)
    if a + b:
        expected = contingency_tables.mcnemar([[0, a], [b, 0]], exact=True).pvalue
        assert mcnemar(a, b) == pytest.approx(min(1.0, expected), rel=1e-9)
        assert mcnemar(a, b) == pytest.approx(stats.binomtest(a, a + b).pvalue, rel=1e-9)
    else:
        assert mcnemar(a, b) == 1


# -- figures -------------------------------------------------------------------------------------


def test_rates_are_shares_of_all_labelled_answers_and_of_the_items_of_a_group(
    report: OutcomeReport,
) -> None:
    one = report.all.systems[0]
    assert (one.name, one.n) == ("one", 30)
    assert one.counts == {"correct": 10, "hallucinated": 8, "rejected": 12}
    rates = {name: rate.value for name, rate in one.rates.items()}
    assert rates["accuracy"] == pytest.approx(10 / 30)
    assert rates["hallucination_rate"] == pytest.approx(8 / 30)
    assert rates["rejection_rate"] == pytest.approx(12 / 30)
    assert rates["adjusted_accuracy"] == pytest.approx(10 / 18)
    (by_source,) = report.by
    assert [(group.label, group.n) for group in by_source.groups] == [("drop", 20), ("covid", 10)]
    assert by_source.groups[1].systems[0].rates["accuracy"].value == pytest.approx(0.2)
    means = by_source.means()
    assert means["one"]["accuracy"] == pytest.approx((8 / 20 + 2 / 10) / 2)
    assert means["two"]["hallucination_rate"] == pytest.approx((0 + 1 / 10) / 2)
    for system in report.all.systems:
        shares = list(system.rates.values())[:3]
        assert math.fsum(rate.value or 0 for rate in shares) == pytest.approx(1)


def test_pairs_are_compared_on_the_items_that_differ_and_holm_looks_at_all_of_a_table(
    report: OutcomeReport,
) -> None:
    accuracy = report.all.comparisons[0]
    assert (accuracy.rate, accuracy.a, accuracy.b) == ("accuracy", "one", "two")
    assert (accuracy.only_a, accuracy.only_b, accuracy.n) == (0, 12, 30)
    assert accuracy.difference == pytest.approx(12 / 30)
    assert accuracy.p == pytest.approx(2 / 2**12)
    assert accuracy.verdict is Verdict.BETTER
    ordered = sorted(pair.p or 0 for pair in report.all.comparisons)
    adjusted = sorted(pair.p_adjusted or 0 for pair in report.all.comparisons)
    assert adjusted[0] == pytest.approx(3 * ordered[0])
    in_groups = [pair for group in report.by[0].groups for pair in group.comparisons]
    smallest = min(pair.p or 1 for pair in in_groups)
    assert min(pair.p_adjusted or 1 for pair in in_groups) == pytest.approx(6 * smallest)


def test_fewer_hallucinations_are_better_and_fewer_rejections_are_neither(tmp_path: Path) -> None:
    records = labelled(tmp_path, {"s": {"one": "h" * 20, "two": "c" * 10 + "r" * 10}})
    accuracy, hallucination, rejection = outcome_report(records).all.comparisons
    assert accuracy.verdict is Verdict.BETTER
    assert hallucination.difference == -1
    assert hallucination.verdict is Verdict.BETTER
    assert rejection.verdict is None
    back = labelled(tmp_path, {"s": {"two": "c" * 10 + "r" * 10, "one": "h" * 20}})
    assert outcome_report(back).all.comparisons[1].verdict is Verdict.WORSE


def test_a_small_difference_is_undecided(tmp_path: Path) -> None:
    records = labelled(tmp_path, {"s": {"one": "cch", "two": "ccc"}})
    assert outcome_report(records).all.comparisons[0].verdict is Verdict.UNDECIDED


def test_items_without_a_label_are_counted_and_left_out_of_that_system(tmp_path: Path) -> None:
    records = labelled(tmp_path, {"s": {"one": "cc-", "two": "-ch"}})
    assert records.items[0].outcomes == {"one": "correct"}
    report = outcome_report(records)
    assert [system.n for system in report.all.systems] == [2, 2]
    assert report.all.comparisons[0].n == 1
    assert any(
        "items without an outcome of one, not in its figures: 1" in w for w in report.warnings
    )
    assert any(
        "items without an outcome of two, not in its figures: 1" in w for w in report.warnings
    )


def test_a_group_without_answers_of_a_system_has_no_rate_and_no_mean(tmp_path: Path) -> None:
    records = labelled(tmp_path, {"s": {"one": "c", "two": "c"}, "t": {"one": "-", "two": "r"}})
    report = outcome_report(records)
    assert report.by[0].groups[1].systems[0].rates["accuracy"].value is None
    assert report.by[0].means()["one"]["accuracy"] is None
    assert report.by[0].groups[1].comparisons[0].verdict is Verdict.MISSING
    assert report.by[0].groups[1].systems[1].rates["adjusted_accuracy"].value is None
    text = terminal.plain(outcome_tables(report))
    assert "nan" not in text.lower()


def test_groups_are_by_any_field_and_without_a_source_there_are_none(tmp_path: Path) -> None:
    records = [
        {"id": 1, "source": "s", "label": "PASS", "one": {"outcome": "correct"}},
        {"id": 2, "source": "s", "one": {"outcome": "correct"}},
    ]
    read = read_outcomes(write(tmp_path, records))
    labels = [group.label for group in outcome_report(read, ["label"]).by[0].groups]
    assert labels == ["PASS", "(none)"]
    assert outcome_report(read, []).by == ()
    with pytest.raises(ConfigError, match="did you mean label"):
        outcome_report(read, ["lable"])
    read = read_outcomes(write(tmp_path, [{"id": "q", "outcomes": {"one": "correct"}}]))
    assert outcome_report(read).by == ()


def test_tables_show_percent_tests_and_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = labelled(tmp_path, {"시험": {"one": "cchh-", "two": "ccccc"}})
    tables = outcome_tables(outcome_report(records), "mine.jsonl")
    text = terminal.plain(tables)
    brief = terminal.plain(outcome_brief(outcome_report(records), "mine.jsonl"))
    assert set(brief.splitlines()) - set(text.splitlines()) == {
        "  more:  -v (by source, all notes)"
    }
    assert "By source" not in brief
    assert "50.00" in text
    assert "시험" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["two", "-", "one", "+50.00", "1", "-50.00", "1", "0.00", "1"] in lines
    assert "!  items without an outcome of one" in text
    monkeypatch.setattr(terminal, "PLAIN_WIDTH", 80)
    without_notes = terminal.plain([replace(table, notes=()) for table in tables])
    assert max(map(len, without_notes.splitlines())) <= 80


# -- what is in a file ---------------------------------------------------------------------------


def test_the_authors_codes_and_words_in_any_case_are_read(tmp_path: Path) -> None:
    record = {
        "id": "q",
        "label": "PASS",
        "context": None,
        "bm25": {"retrieved": ["x"], "prediction": "y", "human_score": 1},
        "semantic": {"human_score": 0},
        "hybrid": {"human_score": 2.0},
        "notes": {"nothing": 1},
    }
    read = read_outcomes(write(tmp_path, [record]))
    assert read.systems == ("bm25", "semantic", "hybrid")
    assert list(read.items[0].outcomes.values()) == ["correct", "hallucinated", "rejected"]
    read = read_outcomes(write(tmp_path, [{"id": "q", "outcomes": {"a": " Correct "}}]))
    assert read.items[0].outcomes == {"a": "correct"}


@pytest.mark.parametrize("bad", ["right", 3, -1, True, 0.5, ["correct"], ""])
def test_a_label_that_is_none_is_told_with_its_line(tmp_path: Path, bad: Any) -> None:
    records = [{"id": "p", "outcomes": {"a": "correct"}}, {"id": "q", "outcomes": {"a": bad}}]
    with pytest.raises(DataError) as raised:
        read_outcomes(write(tmp_path, records))
    (fault,) = raised.value.faults
    assert "records.jsonl:2: outcome of 'a' is" in fault
    assert "correct, hallucinated, rejected" in fault


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": "p", "outcomes": {"a": "correct"}},
        {"id": "p", "outcomes": {"a": "rejected"}},
        {"outcomes": {"a": "correct"}},
        {"id": "r", "outcomes": "correct"},
    ]
    with pytest.raises(DataError) as raised:
        read_outcomes(write(tmp_path, records))
    assert len(raised.value.faults) == 3
    assert "id 'p' again, first at" in raised.value.faults[0]


def test_a_file_without_labels_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no outcome of any system"):
        read_outcomes(write(tmp_path, [{"id": "q", "label": "PASS"}]))
    with pytest.raises(DataError, match="no such file"):
        read_outcomes(tmp_path / "missing.jsonl")


def test_a_label_that_is_empty_is_none_and_two_that_differ_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "1", "bm25": {"outcome": null, "human_score": 1}}\n', encoding="utf-8")
    assert read_outcomes(path).items[0].outcomes == {"bm25": "correct"}
    twice = '{"id": "1", "outcomes": {"bm25": "correct"}, "bm25": {"human_score": 0}}\n'
    path.write_text(twice, encoding="utf-8")
    with pytest.raises(DataError, match="two outcomes"):
        read_outcomes(path)
