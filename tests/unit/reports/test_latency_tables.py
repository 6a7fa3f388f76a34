from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from retrieval_bench.comparison.speed import LatencyDelta
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.render import plain
from retrieval_bench.reports.tables.latency import latency_tables, ratio_interval, ratio_text

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
        (with_ratio(1.0, 0.9951, 1.00493), "x 1.000", "[0.995, 1.005]"),
        (with_ratio(0.5, 0.4, 0.6), "x 0.500", "[0.400, 0.600]"),
        (with_ratio(1 / 135, 1 / 140, 1 / 130), "135 x faster", "[130, 140]"),
        (with_ratio(3.456, 3.4, 3.5), "3.46 x slower", "[3.4, 3.5]"),
        (with_ratio(12_345, 12_000, 13_000), "12,345 x slower", "[12,000, 13,000]"),
        (replace(ALONE, ci98=None), "x 1.234", ""),
        (NO_TAIL, "", ""),
    ],
)
def test_a_ratio_is_written_so_that_it_can_be_said(
    delta: LatencyDelta, ratio: str, interval: str
) -> None:
    assert (ratio_text(delta), ratio_interval(delta)) == (ratio, interval)


def test_one_process_says_that_it_shows_only_large_differences() -> None:
    (table,) = latency_tables([ALONE, NO_TAIL])
    assert table.rows == [["dense / bm25", "x 1.234", "[1.200, 1.270]", "slower"]]
    assert (
        "interval: over 7 rounds; faster, slower: shown to differ by more than 10 %"
        in table.notes[1]
    )
    assert "equivalent" not in " ".join(table.notes)
    assert table.notes[2] == "p95: judged from 5 launches on: --launches 5"


def test_the_tail_stands_below_the_typical_times() -> None:
    (table,) = latency_tables([LAUNCHED, TAIL])
    assert [row[0] for row in table.rows] == ["dense / bm25", "p95 dense / bm25"]
    assert table.rules == (1,)
    assert "over 5 launches" in table.notes[1]
    assert "1 % (p95: 3 %); equivalent: by less than 5 %" in table.notes[1]
    assert "Holm over 2 tests" in table.notes[1]
    assert table.notes[2] == "p95: noisy"


def test_a_pair_without_times_says_why_once() -> None:
    apart = replace(NO_TAIL, what="typical", verdict=Verdict.NOT_COMPARABLE, reason="other machine")
    (table,) = latency_tables([apart, replace(apart, what="p95")])
    assert table.rows == [["dense / bm25", "-", "-", "not comparable"]]
    assert table.notes == ["other machine"]


def test_a_reason_of_some_pairs_names_them() -> None:
    other = replace(
        ALONE, b="trec", ratio=None, ci98=None, p=None, verdict=Verdict.MISSING, reason="no times"
    )
    (table,) = latency_tables([ALONE, other])
    assert [row[3] for row in table.rows] == ["slower", "no times"]
    assert table.notes[-1] == "trec / bm25: no times"


def test_of_many_pairs_those_of_the_first_system_are_shown() -> None:
    names = ["one", "two", "three", "four", "five"]
    deltas = [replace(ALONE, a=a, b=b) for a, b in combinations(names, 2)]
    (table,) = latency_tables(deltas)
    assert [row[0] for row in table.rows] == [f"{name} / one" for name in names[1:]]
    assert table.notes[-1] == "6 more pairs: --format json has all"
    assert "Holm over 10 tests" in table.notes[1]
    assert len(latency_tables(deltas[:6])[0].rows) == 6


def test_it_fits_eighty_columns_also_with_long_names() -> None:
    long = replace(
        LAUNCHED,
        a="hybrid-of-everything",
        b="reranker-on-the-top",
        ratio=1 / 12_345,
        ci98=(1 / 13_333, 1 / 11_111),
        verdict=Verdict.NOT_COMPARABLE,
    )
    (table,) = latency_tables([long, replace(long, what="p95")])
    shown = plain([replace(table, notes=())])
    assert max(map(len, shown.splitlines())) <= 80
    assert "/ hybrid-of-everything" in shown
    assert table.rules == (2,)


def test_without_pairs_there_is_no_table() -> None:
    assert latency_tables([]) == []
