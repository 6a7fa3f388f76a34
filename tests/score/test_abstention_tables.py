"""The exact text of the tables on unanswerable queries; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench.reports.render import terminal
from retrieval_bench_score.outcomes import outcomes
from retrieval_bench_score.tables.abstention import abstention_tables
from retrieval_bench_score.thresholds import AbstentionReport, abstention_report
from tests.builders.golden import golden
from tests.builders.tables import rows_in


def make_report(n: int, *, helps: bool = True) -> AbstentionReport:
    """Of ``n`` queries every second is answerable; its top score is the higher one, or not."""
    place = np.arange(n)
    answerable = place % 2 == 0
    score = (place * 37 % 101) / 10 + np.where(answerable == helps, 4.0, 0.0)
    if not helps:
        answerable = place % 8 != 1
    returned = np.where(place % 20 == 1, 0, 10)
    ap = np.where(place % 6 == 0, 0.5, 1.0)
    return abstention_report(
        outcomes([f"q{i:05d}" for i in range(n)], answerable, returned, score, ap)
    )


@pytest.mark.slow
def test_the_tables_of_a_run_that_a_threshold_helps() -> None:
    golden("abstention.txt", terminal.plain(abstention_tables(make_report(4000))))


def test_the_tables_of_a_run_that_no_threshold_helps() -> None:
    golden("abstention_none.txt", terminal.plain(abstention_tables(make_report(400, helps=False))))


def test_the_table_of_a_run_without_scores() -> None:
    report = abstention_report(outcomes(["a", "b"], [True, False], [3, 3], [np.nan] * 2, [1.0, 0]))
    golden("abstention_unscored.txt", terminal.plain(abstention_tables(report)))


@pytest.mark.slow
def test_eighty_columns_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in abstention_tables(make_report(12_000)):
        assert rows_in(80, table, monkeypatch) == rows_in(300, table, monkeypatch)
