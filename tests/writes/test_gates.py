"""``visible_p95`` and ``zombies``: what fails, what passes, and what cannot be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval_bench.core.errors import RecordError
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.records import to_json
from retrieval_bench_writes.freshness import Freshness
from retrieval_bench_writes.gates import gates_of, read_record, record_of
from retrieval_bench_writes.pictures.visible import visible_over_time
from tests.builders.fresh_engine import FreshEngine, VirtualClock, fresh_of, studied


def record(lag: float = 1.0, n: int = 200, zombies: int = 0) -> Freshness:
    loses: Callable[[str, int], bool] = lambda kind, at: kind == "delete" and at < zombies  # noqa: E731
    engine = FreshEngine(VirtualClock(), lambda now: now + lag, loses=loses)
    return fresh_of(studied(n, engine, limit_s=5.0, rate=4.0))


LIMITS = {"visible_p95": 0.25, "zombies": 0.0}


def verdicts(then: Freshness, now: Freshness, **limits: float) -> dict[str, Verdict]:
    return {gate.gate: gate.verdict for gate in gates_of(then, now, limits or LIMITS)}


@pytest.fixture(scope="module")
def usual() -> Freshness:
    return record()


def test_the_same_passes(usual: Freshness) -> None:
    assert set(verdicts(usual, usual).values()) == {Verdict.EQUIVALENT}


def test_twice_the_time_to_visible_fails(usual: Freshness) -> None:
    assert verdicts(usual, record(2.0))["visible_p95"] is Verdict.WORSE
    assert verdicts(record(2.0), usual)["visible_p95"] is Verdict.EQUIVALENT


def test_the_policy_says_how_much_more_is_too_much(usual: Freshness) -> None:
    assert verdicts(usual, record(2.0), visible_p95=1.5) == {"visible_p95": Verdict.EQUIVALENT}
    none, some = record(0.0), record(0.0, zombies=8)
    assert verdicts(none, some, zombies=0.03) == {"zombies": Verdict.WORSE}
    assert verdicts(none, some, zombies=0.05) == {"zombies": Verdict.EQUIVALENT}


def test_a_time_about_the_limit_is_not_decided(usual: Freshness) -> None:
    assert verdicts(usual, record(1.3))["visible_p95"] is Verdict.UNDECIDED


def test_too_few_writes_are_not_judged(usual: Freshness) -> None:
    gates = list(gates_of(usual, record(n=50), LIMITS))
    assert gates[0].verdict is Verdict.MISSING
    assert "50 writes, p95 needs 200" in gates[0].reason


def test_more_zombies_fail() -> None:
    """All deletions of an engine that lags are zombies for a while: of one that does not lag they
    are those that stay."""
    none, some = record(0.0), record(0.0, zombies=8)
    assert verdicts(none, some)["zombies"] is Verdict.WORSE
    assert verdicts(some, none)["zombies"] is Verdict.EQUIVALENT
    assert verdicts(none, record(0.0, zombies=1))["zombies"] is Verdict.EQUIVALENT


def test_a_record_is_read_back_as_it_was(usual: Freshness, tmp_path: Path) -> None:
    path = tmp_path / "fresh.json"
    path.write_text(record_of(usual), encoding="utf-8")
    assert read_record(path).as_dict() == usual.as_dict()
    told = to_json({"schema_version": 1, **usual.as_dict(), "while_writing": {"verdict": "PASS"}})
    path.write_text(told, encoding="utf-8")
    assert read_record(path).as_dict() == usual.as_dict()
    path.write_text('{"schema_version": 1, "retriever": "x"}', encoding="utf-8")
    with pytest.raises(RecordError, match="it lacks something"):
        read_record(path)


def test_the_picture_has_the_share_over_time(usual: Freshness) -> None:
    shares = [point.share for point in usual.visible.course]
    assert shares == sorted(shares)
    assert (len(shares), shares[-1]) == (20, 1.0)
    assert all(point.not_before_s <= (point.by_s or 9) for point in usual.visible.course)
    assert "Visible over time" in str(visible_over_time(usual))
