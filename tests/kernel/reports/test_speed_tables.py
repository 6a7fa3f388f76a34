from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.pairs.speed import LatencyDelta
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import cell_of
from retrieval_bench.reports.render.table import Table, text_of
from retrieval_bench.reports.tables.understand.speed import PAIRS_SHOWN, ratio_cell, speed_tables
from tests.builders.runs import sample_run

ALONE = LatencyDelta(
    "bm25",
    "dense",
    "typical",
    Verdict.WORSE,
    1.234,
    (1.2, 1.27),
    1,
    over="7 rounds",
    pairs=1_162,
    beyond=0.1,
    p=0.0001,
)
NO_TAIL = LatencyDelta(
    "bm25", "dense", "p95", Verdict.UNDECIDED, reason="judged from 5 launches on: --launches 5"
)
LAUNCHED = replace(ALONE, launches=5, over="5 launches", beyond=0.01, p_equivalence=1.0)
TAIL = replace(LAUNCHED, what="p95", verdict=Verdict.UNDECIDED, beyond=0.03, reason="noisy")


def with_ratio(ratio: float, low: float, high: float) -> LatencyDelta:
    return replace(ALONE, ratio=ratio, ci98=(low, high))


@pytest.mark.parametrize(
    ("delta", "ratio", "interval"),
    [
        (with_ratio(1.0, 0.9951, 1.00493), "1.00x slower", "[1.00, 1.00]"),
        (with_ratio(0.5, 0.4, 0.6), "2.00x faster", "[1.67, 2.50]"),
        (with_ratio(1 / 135, 1 / 140, 1 / 130), "135x faster", "[130, 140]"),
        (with_ratio(3.456, 3.4, 3.5), "3.46x slower", "[3.40, 3.50]"),
        (with_ratio(12_345, 12_000, 13_000), "12,345x slower", "[12,000, 13,000]"),
        (replace(ALONE, ci98=None), "1.23x slower", ""),
        (NO_TAIL, "-", ""),
    ],
)
def test_a_ratio_is_written_so_that_it_can_be_said(
    delta: LatencyDelta, ratio: str, interval: str
) -> None:
    assert (ratio_cell(delta).text, ratio_cell(delta).more) == (ratio, interval)


def speed(deltas: list[LatencyDelta]) -> Table:
    names = tuple(dict.fromkeys(name for delta in deltas for name in (delta.a, delta.b)))
    runs = tuple(sample_run(name, at, calls=40) for at, name in enumerate(names))
    (group,) = compare_runs(runs).groups
    (table,) = speed_tables(replace(group, names=names, latency=tuple(deltas)))
    return table


def texts(table: Table) -> list[list[str]]:
    return [[cell_of(cell).text for cell in row] for row in table.rows]


def test_one_process_says_that_it_shows_only_large_differences() -> None:
    table = speed([ALONE, NO_TAIL])
    assert texts(table) == [["dense / bm25", "typical", "1.23x slower", "slower"]]
    assert "interval over 7 rounds" in text_of(table.notes[1])
    assert "shown to differ by more than 10 %" in text_of(table.notes[2])
    assert "equally fast" not in " ".join(map(text_of, table.notes))
    assert table.notes[3] == "p95: judged from 5 launches on: --launches 5"


def test_the_tail_stands_below_the_typical_times() -> None:
    table = speed([LAUNCHED, TAIL])
    assert [row[:2] for row in table.rows] == [["dense / bm25", "typical"], ["dense / bm25", "p95"]]
    assert table.rules == (1,)
    assert "interval over 5 launches" in text_of(table.notes[1])
    assert '1 % (p95: 3 %); "equally fast": by less than 5 %' in text_of(table.notes[2])
    assert "Holm-corrected over 2 tests" in text_of(table.notes[2])
    assert table.notes[3] == "p95: noisy"


def test_a_pair_without_times_says_why_once() -> None:
    apart = replace(NO_TAIL, what="typical", verdict=Verdict.NOT_COMPARABLE, reason="other machine")
    table = speed([apart, replace(apart, what="p95")])
    assert texts(table) == [["dense / bm25", "typical", "-", "not comparable"]]
    assert table.notes == ["other machine"]


def test_a_reason_of_some_pairs_names_them() -> None:
    other = replace(
        ALONE, b="trec", ratio=None, ci98=None, p=None, verdict=Verdict.MISSING, reason="no times"
    )
    table = speed([ALONE, other])
    assert [cell_of(row[3]).text for row in table.rows] == ["slower", "no times"]
    assert table.notes[-1] == "trec / bm25: no times"


@pytest.mark.slow
def test_of_very_many_pairs_those_of_the_best_system_are_shown() -> None:
    names = [f"s{at:02}" for at in range(17)]
    deltas = [replace(ALONE, a=a, b=b) for a, b in combinations(names, 2)]
    table = speed(deltas)
    assert len(deltas) > 2 * PAIRS_SHOWN
    assert len(table.rows) == len(names) - 1
    assert len({name for row in table.rows for name in str(row[0]).split(" / ")}) == len(names)
    assert "Holm-corrected over 136 tests" in text_of(table.notes[2])


def test_without_pairs_there_is_no_table() -> None:
    (group,) = compare_runs([sample_run("a", 0, calls=40), sample_run("b", 1, calls=40)]).groups
    assert speed_tables(replace(group, latency=())) == []
