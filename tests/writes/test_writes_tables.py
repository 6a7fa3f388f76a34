"""The exact text of ``bench --writes``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from retrieval_bench.reports.render import terminal
from retrieval_bench_writes.delays import Share
from retrieval_bench_writes.kills import Kills
from retrieval_bench_writes.probes import probes
from retrieval_bench_writes.study import Kind, Seen, Write
from retrieval_bench_writes.tables.writes import _percent, answer, span, writes_tables
from tests.builders.fresh_engine import FreshEngine, VirtualClock, fresh_of, studied
from tests.builders.golden import golden


def lossy(kind: str, n: int) -> bool:
    return (kind == "add" and n % 50 == 1) or (kind == "delete" and n % 40 == 3)


def test_an_engine_that_lags_and_loses_is_told_in_one_sentence_and_a_table() -> None:
    engine = FreshEngine(VirtualClock(), lambda now: now + 0.8, loses=lossy)
    text = terminal.plain(writes_tables(fresh_of(studied(200, engine, limit_s=5.0))))
    golden("writes.txt", text)


def test_an_engine_that_shows_all_at_once_has_no_zombie_and_bounds_their_share() -> None:
    text = answer(fresh_of(studied(200, FreshEngine(VirtualClock()))))
    assert text.startswith(
        "articles on science-mini: visible within 1 ms [0 ms, 1 ms] in the median, 95 % within 1.05"
    )
    assert text.endswith(
        "; no zombie in 200 deletions, at most 1.5 % (one-sided 95 %); "
        "no stale version in 200 updates, at most 1.5 % (one-sided 95 %)"
    )


def test_more_than_half_that_never_show_leave_the_median_over_the_limit() -> None:
    engine = FreshEngine(VirtualClock(), loses=lambda kind, n: kind == "add" and n % 3 > 0)
    text = answer(fresh_of(studied(60, engine, limit_s=2.0), 2.0))
    assert "visible not before 2 s in the median" in text
    assert "40 of 60 never within 2 s" in text


def test_too_few_writes_say_so_in_place_of_a_figure() -> None:
    text = answer(fresh_of(studied(5, FreshEngine(VirtualClock()))))
    assert (
        "not enough writes to say when they show (5 writes, p50 needs 30: 25 more writes)" in text
    )


def test_times_have_their_unit() -> None:
    assert (span(0.00042), span(0.25), span(1.0), span(12.34)) == (
        "0.42 ms",
        "250 ms",
        "1 s",
        "12.3 s",
    )


def test_half_that_never_show_say_when_the_others_did() -> None:
    engine = FreshEngine(
        VirtualClock(), lambda now: now + 0.5, loses=lambda kind, n: kind == "add" and n % 2 > 0
    )
    text = answer(fresh_of(studied(60, engine, limit_s=2.0), 2.0))
    assert "visible not before 4" in text  # milliseconds
    assert "30 of 60 never within 2 s" in text


def test_all_are_100_percent() -> None:
    assert (_percent(1.0), _percent(0.996), _percent(0.015)) == ("100 %", "100 %", "1.5 %")


def test_the_median_of_all_deletions_is_not_called_that_of_the_zombies() -> None:
    engine = FreshEngine(VirtualClock(), loses=lambda kind, n: kind != "add" and n < 3)
    text = answer(fresh_of(studied(200, engine, limit_s=5.0)))
    assert "3 zombies in 200 deletions, deletions gone within" in text
    assert "3 stale versions in 200 updates, updates complete within 2 ms" in text


def test_a_write_that_nobody_waited_for_is_not_said_never_to_show() -> None:
    probe = probes(1, ["a b"], "cafe", np.random.default_rng(0))[0]
    usual: Any = {"kind": Kind.ADD, "probe": probe, "polls": 1}
    ends = [(0.01, math.inf, False)] * 20 + [(0.0, 0.002, True)] * 180
    writes = [
        Write(before=low, after=high, decided=known, acknowledged_s=float(at), **usual)
        for at, (low, high, known) in enumerate(ends)
    ]
    assert "over 10 ms" in terminal.plain(writes_tables(fresh_of(Seen(writes=writes))))


@pytest.mark.parametrize(
    ("tried", "title"),
    [
        (10, "Killed 10 times: no acknowledged write undone; at most 26 % of kills undo one"),
        (6, "Killed 10 times, 6 times after an acknowledged write: no acknowledged write undone"),
        (0, "Killed 10 times, 0 times after an acknowledged write"),
    ],
)
def test_a_kill_with_nothing_at_stake_is_no_evidence(tried: int, title: str) -> None:
    kills = Kills(10, 0, 0, 0, 0, Share.of(0, tried), 0.1)
    fresh = dataclasses.replace(fresh_of(studied(5, FreshEngine(VirtualClock()))), kills=kills)
    told = writes_tables(fresh)[-1].title
    assert told.startswith(title)
    assert ("at most" in told) is bool(tried)
