from __future__ import annotations

import threading

import pytest

from retrieval_bench.core.calls import waiting
from retrieval_bench.core.calls.waiting import waited_for, waits_told


def test_a_call_that_takes_long_is_told_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.001)
    monkeypatch.setattr(waiting, "_THEN_S", 0.001)
    heard, often = list[str](), threading.Event()

    def tell(text: str) -> None:
        heard.append(text)
        if len(heard) == 3:
            often.set()

    with waits_told(tell), waited_for("building mine"):
        assert often.wait(30)
    assert "building mine takes" in heard[0]


def test_a_call_that_ends_soon_is_not_told_and_nobody_hears_outside() -> None:
    heard = list[str]()
    with waits_told(heard.append), waited_for("building mine"):
        pass
    before = threading.active_count()
    with waited_for("building mine"):
        assert threading.active_count() == before
    with waits_told(None), waited_for("building mine"):
        assert threading.active_count() == before
    assert heard == []


def test_where_no_thread_can_be_started_the_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    made = list[str]()
    with waits_told(made.append), waited_for("building mine"):
        made.append("made")
    assert made == ["made"]
