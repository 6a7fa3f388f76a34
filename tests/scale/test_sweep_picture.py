"""A sweep as tables and as a picture; its figures are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retrieval_bench.reports.render.table import Table, text_of
from retrieval_bench_scale.approximate.swept import (
    Reach,
    Sweep,
    SweptLevel,
    SweptValue,
    cheapest,
    reach_of,
    undecided,
)
from retrieval_bench_scale.pictures.sweep import sweep_curve
from retrieval_bench_scale.tables.sweep import sweep_tables

WANTED = 0.95


def value(at: float, recall: float, half: float, ms: float) -> SweptValue:
    ci95 = (recall - half, min(1.0, recall + half))
    return SweptValue(
        at,
        recall,
        ci95,
        0.9,
        (0.85, 0.93),
        reach_of(ci95, WANTED),
        ms,
        (ms, ms),
        None,
        None,
        0,
        None,
        (),
    )


VALUES = (
    value(16, 0.81, 0.02, 0.11),
    value(32, 0.95, 0.02, 0.16),
    value(64, 0.98, 0.01, 0.25),
    value(128, 0.99, 0.005, 0.41),
)


def level(values: tuple[SweptValue, ...] = VALUES, name: str = "as asked") -> SweptLevel:
    chosen = cheapest(values)
    share = None if name == "as asked" else 0.1
    at = chosen.value if chosen else None
    return SweptLevel(name, share, 300, 2.5, None, values, at, undecided(values, chosen))


def found(*levels: SweptLevel) -> Sweep:
    return Sweep(
        "hnsw", "made", "0" * 32, "test", 10, "ef_search", WANTED, 0.9, "recall", "complete", (),
        levels or (level(),),
    )  # fmt: skip


def said(table: Table) -> list[str]:
    return [table.title, *map(text_of, table.lead)]


def test_the_cheapest_value_is_the_first_thing_said() -> None:
    (table,) = sweep_tables(found())
    title, exact, open_ = said(table)
    assert title == (
        "hnsw on made: ef_search 64 is the cheapest that finds 0.95 of the exact top 10: "
        "0.980 [0.970, 0.990], p50 0.250 ms"
    )
    assert exact == "An exhaustive search takes 2.50 ms, 10x as much."
    assert open_ == "ef_search 32 may do, too: more queries would tell."
    assert [row[3] for row in table.rows] == ["below", "can't tell", "cheapest", "reached", ""]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (VALUES[:1], "no value finds 0.95 of the exact top 10; ef_search 16 finds 0.810"),
        (VALUES[:2], "no value is shown to find 0.95 of the exact top 10; ef_search 32 finds"),
    ],
)
def test_what_is_not_reached_is_not_named(values: tuple[SweptValue, ...], words: str) -> None:
    (table,) = sweep_tables(found(level(values)))
    assert words in table.title


def test_what_is_open_is_beside_others_only_where_one_is_chosen() -> None:
    (table,) = sweep_tables(found(level((*VALUES[:2], value(48, 0.955, 0.02, 0.2)))))
    assert said(table)[1] == "ef_search 32, 48 may do: more queries would tell."


def test_with_a_tail_a_level_shows_the_value_that_is_best_by_it() -> None:
    first = replace(VALUES[0], tail=0.97)
    under = level((first, VALUES[1]), "10 %")
    by_tail = replace(found(level(), under), decided_by="tail")
    assert [sweep_tables(one)[0].rows[1][2] for one in (by_tail, found(level(), under))] == [
        "none; 16",
        "none; 32",
    ]


def test_an_exhaustive_search_that_is_faster_is_told() -> None:
    (table,) = sweep_tables(found(replace(level(), exact_p50_ms=0.1)))
    assert "An exhaustive search takes 0.100 ms: it is faster." in said(table)


def test_many_values_are_shown_around_the_chosen_one() -> None:
    many = tuple(value(16 + at, 0.5 + at / 100, 0.01, 0.1 + at / 100) for at in range(50))
    short, full = sweep_tables(found(level(many))), sweep_tables(found(level(many)), full=True)
    assert len(short[0].rows) == 11
    assert len(full[0].rows) == 51
    chosen = next(row for row in short[0].rows if row[3] == "cheapest")
    assert chosen in full[0].rows
    assert "40 more values: -v" in map(text_of, short[0].notes)


def test_levels_have_a_row_each_and_their_values_behind_more() -> None:
    two = found(level(), level(VALUES[:2], "10 %"))
    (short,) = sweep_tables(two)
    assert [(row[0], row[2]) for row in short.rows] == [("as asked", "64"), ("10 %", "none; 32")]
    assert len(sweep_tables(two, full=True)) == 3


def filter_settings(spec: dict[str, Any], kind: str) -> list[list[dict[str, Any]]]:
    return [one["data"]["values"] for one in spec["layer"] if one["mark"]["type"] == kind]


def test_the_picture_has_a_line_for_each_level_and_marks_what_is_chosen() -> None:
    spec = sweep_curve(found(level(), level(VALUES[:2], "10 %")))
    (line,) = filter_settings(spec, "line")
    assert [(row["system"], row["value"]) for row in line] == [
        ("as asked", "16"), ("as asked", "32"), ("as asked", "64"), ("as asked", "128"),
        ("10 %", "16"), ("10 %", "32"),
    ]  # fmt: skip
    _, exact, chosen = filter_settings(spec, "point")
    assert [row["ms"] for row in exact] == [2.5, 2.5]
    assert [(row["system"], row["value"]) for row in chosen] == [("as asked", "64")]
    assert filter_settings(spec, "rule") == [[{"recall": WANTED}]]
    assert "ef_search 64 finds 0.980 in 0.250 ms" in spec["description"]


def test_values_without_a_time_are_left_out_and_counted() -> None:
    lost = replace(VALUES[0], p50_ms=None, p50_ci95=None)
    spec = sweep_curve(found(level((lost, *VALUES[1:]))))
    assert len(filter_settings(spec, "line")[0]) == 3
    assert "Left out: 1 value without" in str(spec["title"]["subtitle"])


def test_nothing_to_draw_is_a_picture_all_the_same() -> None:
    empty = SweptValue(1, None, None, None, None, Reach.OPEN, None, None, None, None, 0, None, ())
    spec = sweep_curve(found(replace(level((empty,)), exact_p50_ms=None)))
    assert filter_settings(spec, "line") == [[]]
