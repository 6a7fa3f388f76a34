"""``load`` and what is made of saved loads, as a user types it; the servers are made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench_load.engine.generator import Level, LevelCalls
from tests.builders.queued import Queued
from tests.cli.project import Command

SHORT = ("load", "bm25", "--dataset", "data", "--duration", "30", "--rate", "100", "250")


@pytest.fixture(autouse=True)
def queued(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Queued().instead(monkeypatch)


def test_two_loads_are_compared_by_their_names(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(*SHORT, "--out", "first") == 0
    Queued(1.5).instead(monkeypatch)
    assert run(*SHORT) == 0
    assert run("compare", "first", "bm25@load") == 0
    assert run.out.startswith("b is slower at")
    levels = run.json("compare first @load")["levels"]
    assert levels[2]["percentiles"][0]["verdict"] == "slower"


def test_a_kept_load_fails_what_is_slower(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(*SHORT, "--out", "kept") == 0
    regress = ("regress", "bm25", "--dataset", "data", "--load", "kept")
    Queued(1.6).instead(monkeypatch)
    assert run(*regress) == 1
    assert run.out.startswith("FAIL")


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "PARTIAL"),
        (
            HarnessError("a broken answer", where="query q1", fix="mend it"),
            4,
            "(query q1); mend it",
        ),
    ],
)
def test_a_load_that_ended_early_says_why(
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    trouble: BaseException,
    code: int,
    words: str,
) -> None:
    server = Queued().instead(monkeypatch)
    whole = server.run

    def broken(level: Level, spec: Mapping[str, Any]) -> LevelCalls:
        if server.made == 2:
            raise trouble
        return whole(level, spec)

    monkeypatch.setattr(server, "run", broken)
    assert run(*SHORT) == code
    assert words in " ".join(run.out.split())


def test_a_search_of_which_nothing_was_measured_is_not_measured(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Queued().instead(monkeypatch)
    whole = server.run

    def lost(level: Level, spec: Mapping[str, Any]) -> LevelCalls:
        made = whole(level, spec)
        gone = replace(made, processes=[None], lost=["ended with code -9"])
        return gone if level.pace is not None else made

    monkeypatch.setattr(server, "run", lost)
    search = (*SHORT[:6], "--slo")
    assert run(*search, "p95<100ms") == 4
    assert "no level at a rate was measured" in run.out
    assert run(*search, "p95<0.01ms") == 0
    assert "one call at a time breaks it" in run.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "first", "@load", "--margin", "0.1"), "--margin for saved loads"),
        (("compare", "first", "@load", "--margin", "0.01"), "--margin for saved loads"),
        (("compare", "first", "bm25@latest"), "no load.json in the folder"),
        (("compare", "@load"), "1 loads"),
        (("compare", "nowhere@load", "@load"), "no saved load of 'nowhere'"),
        (("regress", "bm25", "--load", "first", "--duet", "always"), "--duet with --load"),
        (("regress", "bm25", "--load", "first", "--baselines", "b"), "--baselines with --load"),
        (("regress", "bm25", "--load", "no-such"), "no load.json in the folder"),
    ],
)
def test_bad_input_has_one_clear_message(
    run: Command, words: tuple[str, ...], message: str
) -> None:
    assert run(*SHORT, "--out", "first") == 0
    assert message in run.refused(*words)
