"""The rules of the study, on a clock that nobody waits for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench_writes.delays import Shown
from retrieval_bench_writes.executors import Beside
from retrieval_bench_writes.freshness import polling_of, shown_of, warnings_of
from retrieval_bench_writes.probes import PREFIX, probes
from retrieval_bench_writes.study import Kind, Study, Write
from tests.builders.fresh_engine import FreshEngine, RealClock, VirtualClock, every, studied, study

CALL = 0.001


@pytest.mark.slow
@pytest.mark.parametrize("period", [0.2, 1.0, 5.0])
def test_an_engine_that_refreshes_shows_half_a_period_later_on_average(period: float) -> None:
    seen = studied(400, FreshEngine(VirtualClock(), every(period), call_s=CALL))
    for kind in Kind:
        shown = shown_of(seen, kind)
        assert (shown.n, shown.never.count) == (400, 0)
        assert shown.mean_s == pytest.approx(period / 2, rel=0.1)
        calls = 3 * CALL if kind is Kind.REPLACE else 2 * CALL
        assert shown.longest_s is not None
        assert 0.9 * period <= shown.longest_s <= 1.1 * period + calls


@pytest.mark.parametrize("lag", [0.05, 2.0])
def test_a_constant_lag_is_found_within_a_tenth(lag: float) -> None:
    seen = studied(60, FreshEngine(VirtualClock(), lambda now: now + lag, call_s=0.0))
    for write in seen.writes:
        assert write.before <= lag <= write.after <= 1.1 * lag
    median = shown_of(seen, Kind.ADD).at(50.0)
    assert median.agrees
    assert median.at_least_s == pytest.approx(lag, rel=0.1)


def test_what_shows_at_once_has_a_lower_end_of_nothing() -> None:
    seen = studied(40, FreshEngine(VirtualClock(), call_s=CALL))
    assert {write.polls for write in seen.writes} == {2}  # one of them at the end of the round
    shown = shown_of(seen, Kind.ADD)
    assert (shown.at(50.0).at_least_s, shown.outdated.count) == (0.0, 0)
    assert shown.at(50.0).at_most_s == pytest.approx(CALL)
    assert not shown.at(50.0).agrees


def test_polls_begin_at_once_then_come_after_a_millisecond_and_in_steps_of_a_tenth() -> None:
    clock, asked = VirtualClock(), list[float]()

    class Listening(FreshEngine):
        def search(self, query: Query, k: int) -> Ranking:
            asked.append(self.clock.now)
            return super().search(query, k)

    seen = studied(1, Listening(clock, lambda now: now + 1.0, call_s=0.0))
    acknowledged = seen.writes[0].acknowledged_s or 0.0
    first = [when - acknowledged for when in asked[: seen.writes[0].polls - 1]]
    assert first[:3] == pytest.approx([0.0, 0.001, 0.0011])
    assert np.diff(first)[1:] == pytest.approx(0.1 * np.array(first[1:-1]))


@pytest.mark.slow
def test_a_hundredth_that_never_shows_is_found_within_its_binomial_interval() -> None:
    engine = FreshEngine(VirtualClock(), loses=lambda kind, n: kind == "add" and n % 100 == 7)
    shown = shown_of(studied(400, engine, limit_s=5.0), Kind.ADD)
    assert (shown.never.count, shown.never.n) == (4, 400)
    low, high = clopper_pearson(4, 400)
    assert shown.never.ci95 == (low, high)
    assert low < 0.01 < high
    assert (shown.mean_s, shown.longest_s) == (None, None)


def test_zombies_and_stale_versions_are_counted_exactly() -> None:
    def lost(kind: str, n: int) -> bool:
        return (kind == "delete" and n % 10 == 3) or (kind == "replace" and n % 20 == 5)

    seen = studied(60, FreshEngine(VirtualClock(), loses=lost), limit_s=2.0)
    replaced, deleted = shown_of(seen, Kind.REPLACE), shown_of(seen, Kind.DELETE)
    assert (replaced.outdated.count, replaced.never.count, replaced.n) == (3, 3, 60)
    assert (deleted.outdated.count, deleted.never.count, deleted.n) == (6, 6, 60)
    assert shown_of(seen, Kind.ADD).outdated.count == 0


def test_a_version_that_is_gone_before_the_new_one_is_there_is_not_stale_and_not_shown() -> None:
    engine = FreshEngine(VirtualClock())

    class Gap(FreshEngine):
        def _write(self, kind: str, doc_id: str, text: str | None) -> None:
            if kind == "replace":
                super()._write("delete", doc_id, None)
                self.versions[doc_id].append((self.clock.now + 0.5, text))
            else:
                super()._write(kind, doc_id, text)

    seen = studied(30, Gap(engine.clock))
    replaced = shown_of(seen, Kind.REPLACE)
    assert (replaced.outdated.count, replaced.never.count) == (0, 0)
    assert replaced.at(50.0).at_least_s == pytest.approx(0.5, rel=0.1)


def test_texts_of_an_answer_decide_which_version_it_is() -> None:
    probe = probes(1, ["a b c"], "cafe", np.random.default_rng(0))[0]
    write = Write(kind=Kind.REPLACE, probe=probe)
    old = Ranking(["x", probe.id], [2.0, 1.0], texts=["", probe.texts[0]])
    new = Ranking(["x", probe.id], [2.0, 1.0], texts=["", probe.texts[1]])
    assert write.seen_in([old, old]) == (False, True)
    assert write.seen_in([new, new]) == (True, False)


def test_without_texts_the_version_is_what_comes_first() -> None:
    probe = probes(1, ["a b c"], "cafe", np.random.default_rng(0))[0]
    first, second = Ranking([probe.id, "x"], [2.0, 1.0]), Ranking(["x", probe.id], [2.0, 1.0])
    write = Write(kind=Kind.REPLACE, probe=probe)
    assert write.seen_in([first, second]) == (True, False)
    assert write.seen_in([first, first]) == (False, True)
    assert write.seen_in([second, second]) == (False, False)


def test_a_document_that_a_probe_was_made_of_may_come_before_it() -> None:
    probe = probes(1, ["a b c"], "cafe", np.random.default_rng(0))[0]
    none, second, third = (Ranking(ids) for ids in (["x"], ["x", probe.id], ["x", "y", probe.id]))
    write = Write(kind=Kind.REPLACE, probe=probe)
    assert write.seen_in([second, none]) == write.seen_in([second, third]) == (True, False)
    assert write.seen_in([none, second]) == write.seen_in([third, second]) == (False, True)


@pytest.mark.parametrize("texts", [False, True])
def test_engines_with_and_without_texts_give_the_same_figures(texts: bool) -> None:
    seen = studied(30, FreshEngine(VirtualClock(), every(0.5), texts=texts))
    other = studied(30, FreshEngine(VirtualClock(), every(0.5)))
    assert [write.after for write in seen.writes] == [write.after for write in other.writes]


def test_times_are_those_of_a_poisson_process_whatever_the_engine_takes() -> None:
    def times(engine: FreshEngine) -> list[float]:
        studied(200, engine, rate=50.0)
        return [when - 1_000.0 for when, kind in engine.sent if kind == "add"]

    quick = times(FreshEngine(VirtualClock(), call_s=0.0))
    slow = times(FreshEngine(VirtualClock(), lambda now: now + 0.01, call_s=0.0))
    assert quick == pytest.approx(slow)
    gaps = np.diff(quick)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.2)
    assert gaps.std() == pytest.approx(1 / 50, rel=0.3)


def test_several_writes_are_under_way_at_once() -> None:
    engine = FreshEngine(VirtualClock(), lambda now: now + 3.0)
    seen = studied(60, engine)
    added = [write for write in seen.writes if write.kind is Kind.ADD]
    first_shown = min((write.acknowledged_s or 0) + write.after for write in added)
    assert sum((write.acknowledged_s or 0) < first_shown for write in added) > 30


def test_where_threads_may_call_it_several_writes_are_made_at_once() -> None:
    """Each call comes back when three are under way."""
    clock, together = RealClock(), threading.Barrier(3, timeout=20)

    class Meeting(FreshEngine):
        def _called(self, kind: str) -> int:
            if kind != "search":
                together.wait()
            return super()._called(kind)

    with Beside(3) as pool:
        seen = studied(3, Meeting(clock, call_s=0.0), rate=500.0, beside=pool)
    assert [shown_of(seen, kind).n for kind in Kind] == [3, 3, 3]
    assert (seen.problems, seen.left, together.broken) == ({}, {}, False)


def test_a_write_beside_others_that_fails_is_in_no_figure() -> None:
    engine = FreshEngine(RealClock(), call_s=0.0, fails=lambda kind, n: kind == "add" and n == 2)
    with Beside(3) as pool:
        shown = shown_of(studied(9, engine, rate=500.0, beside=pool), Kind.ADD)
    assert (shown.n, shown.unacknowledged) == (8, 1)


def test_how_late_writes_were_and_how_much_of_the_time_calls_took_is_told() -> None:
    seen = studied(60, FreshEngine(VirtualClock(), call_s=0.2))
    polling = polling_of(seen)
    assert polling.late_max_s is not None
    assert polling.late_max_s > 1.0
    assert polling.busy is not None
    assert polling.busy > 0.9
    assert "Ask for fewer writes a second." in warnings_of(seen, polling)[0]


def test_a_failed_poll_says_nothing_of_the_write() -> None:
    engine = FreshEngine(
        VirtualClock(), lambda now: now + 0.5, fails=lambda kind, n: kind == "search" and n % 2 == 0
    )
    seen = studied(30, engine)
    for write in seen.writes:
        if write.kind is Kind.ADD:
            assert write.before <= 0.5 <= write.after
    assert sum(seen.problems.values()) > 30
    assert "failed: ConnectionError: the line broke" in warnings_of(seen, polling_of(seen))[0]


def test_a_write_that_is_not_acknowledged_is_in_no_figure() -> None:
    engine = FreshEngine(VirtualClock(), fails=lambda kind, n: kind == "add" and n in (3, 4))
    shown = shown_of(studied(30, engine), Kind.ADD)
    assert (shown.n, shown.unacknowledged, shown.never.count) == (28, 2, 0)


def test_an_engine_that_refuses_the_first_write_ends_the_study() -> None:
    engine = FreshEngine(VirtualClock(), fails=lambda kind, n: kind == "add")
    with pytest.raises(ConnectionError, match="the line broke"):
        studied(30, engine)


def test_an_answer_that_breaks_the_contract_ends_the_study_and_probes_are_taken_out() -> None:
    class Twice(FreshEngine):
        def search(self, query: Query, k: int) -> Ranking:
            return Ranking(["a", "a"], [2.0, 1.0])

    engine = Twice(VirtualClock())
    with pytest.raises(ContractError):
        studied(5, engine)
    assert [engine.text_of(name) for name in engine.versions] == [None]


def test_nothing_that_was_written_is_left() -> None:
    engine = FreshEngine(VirtualClock(), fails=lambda kind, n: kind == "delete" and n < 10)
    seen = studied(30, engine)
    engine.clock.sleep(1.0)
    assert not seen.left
    assert not any(engine.text_of(name) for name in engine.versions)


def test_what_is_acknowledged_and_not_deleted_is_left_and_told() -> None:
    seen = studied(5, FreshEngine(VirtualClock(), loses=lambda kind, n: kind == "delete"))
    assert len(seen.left) == 5
    assert "5 probes could not be deleted" in warnings_of(seen, polling_of(seen))[-1]


def test_an_id_that_is_refused_keeps_no_other() -> None:
    class Strict(FreshEngine):
        def delete(self, ids: Sequence[str]) -> None:
            if "gone" in ids:
                raise KeyError("no such id")
            super().delete(ids)

    engine = Strict(VirtualClock())
    made = study(1, engine)
    made.keep(Document("gone", "gone long ago"))
    for number in range(3):
        document = Document(f"p{number}", f"p{number} text")
        made.keep(document)
        engine.add([document])
    made.clean()
    assert list(made.seen.left) == ["gone"]
    made.clean(settled=True)
    assert made.seen.left == {}
    assert not any(map(engine.text_of, engine.versions))


def test_what_is_back_after_it_was_gone_is_counted_and_left() -> None:
    """It came from another copy of the collection."""

    class Back(FreshEngine):
        def delete(self, ids: Sequence[str]) -> None:
            for name in ids:
                text = self.versions[name][-1][1]
                super().delete([name])
                self.versions[name].append((self.clock.now + 0.5, text))

    seen = studied(20, Back(VirtualClock()), limit_s=3.0)
    shown = shown_of(seen, Kind.DELETE)
    assert shown.never.count == 0
    assert shown.back.count >= 10  # the last ones are not back when the round ends
    assert shown_of(seen, Kind.ADD).back.count == 0


def test_what_the_last_answer_did_not_hold_is_not_deleted() -> None:
    class Losing(FreshEngine):
        def _write(self, kind: str, doc_id: str, text: str | None) -> None:
            super()._write(kind, doc_id, text)
            if kind == "replace":  # the old version goes on for a while, and then there is none
                self.versions[doc_id][-1:] = [(self.clock.now + 0.3, None)]

    seen = studied(10, Losing(VirtualClock()), limit_s=1.0)
    assert shown_of(seen, Kind.REPLACE).outdated.count == 10
    assert shown_of(seen, Kind.DELETE).n == 0


def test_a_version_before_that_comes_back_when_it_is_deleted_is_a_zombie() -> None:
    class Uncovering(FreshEngine):
        def delete(self, ids: Sequence[str]) -> None:
            for name in ids:
                self._called("delete")
                self.versions[name] = self.versions[name][:1]

    shown = shown_of(studied(10, Uncovering(VirtualClock()), limit_s=1.0), Kind.DELETE)
    assert (shown.outdated.count, shown.never.count) == (10, 10)


def test_what_is_found_behind_the_limit_is_never() -> None:
    engine = FreshEngine(VirtualClock(), lambda now: now + 1.2, call_s=0.0)
    shown = shown_of(studied(40, engine, limit_s=1.0), Kind.ADD)
    assert (shown.never.count, shown.at(50.0).at_most_s) == (40, None)
    slow = FreshEngine(VirtualClock(), call_s=0.7)
    assert shown_of(studied(1, slow, limit_s=0.6), Kind.ADD).never.count == 1


def test_polls_that_fail_make_no_never() -> None:
    engine = FreshEngine(VirtualClock(), fails=lambda kind, n: kind == "search")
    shown = shown_of(studied(10, engine, limit_s=1.0), Kind.ADD)
    assert (shown.n, shown.unanswered, shown.never.n) == (0, 10, 0)
    late = FreshEngine(
        VirtualClock(), lambda now: now + 9.0, fails=lambda kind, n: kind == "search" and n > 300
    )
    shown = shown_of(studied(10, late, limit_s=2.0), Kind.ADD)
    assert shown.never.n == shown.never.count < shown.n


def test_stopping_it_sends_no_write_that_has_not_begun() -> None:
    """One thread makes them, and its first write lasts until it is stopped."""
    going = threading.Event()

    class Stopping(FreshEngine):
        def add(self, documents: Sequence[Document]) -> None:
            super().add(documents)
            if self.calls["add"] == 1:
                going.wait(20)

        def search(self, query: Query, k: int) -> Ranking:
            threading.Timer(0.1, going.set).start()
            raise KeyboardInterrupt

    engine = Stopping(RealClock(), call_s=0.0)
    with Beside(1) as pool:
        stopped = study(9, engine, rate=1e4, beside=pool)
        with pytest.raises(KeyboardInterrupt):
            stopped.run()
    assert engine.calls["add"] <= 1


def test_a_write_that_never_returns_is_not_acknowledged() -> None:
    never = threading.Event()

    class Hanging(FreshEngine):
        def add(self, documents: Sequence[Document]) -> None:
            if self.calls.get("add") == 3:
                self.calls["add"] += 1
                never.wait()
            super().add(documents)

    with Beside(2) as pool:
        engine = Hanging(RealClock(), call_s=0.0)
        seen = studied(9, engine, rate=500.0, beside=pool, timeout_s=0.5)
    never.set()
    shown = shown_of(seen, Kind.ADD)
    assert (shown.n, shown.unacknowledged) == (8, 1)
    assert "no answer to writing retrieval-bench-probe-cafe-00000" in next(iter(seen.problems))


def test_what_cannot_be_taken_out_is_named() -> None:
    engine = FreshEngine(VirtualClock(), fails=lambda kind, n: kind == "delete")
    seen = studied(3, engine)
    assert len(seen.left) == 3
    told = warnings_of(seen, polling_of(seen))[-1]
    assert "3 probes could not be deleted" in told
    assert f"{PREFIX}-cafe-000000" in told


def test_stopping_it_takes_the_probes_out_and_keeps_what_was_seen() -> None:
    engine = stopping("replace", 5)
    stopped = stop(study(20, engine))
    assert not stopped.seen.complete
    assert shown_of(stopped.seen, Kind.ADD).n == 20
    stopped.clean()
    assert (stopped.seen.left, any(map(engine.text_of, engine.versions))) == ({}, False)


def stopping(kind: str, n: int, **how: Any) -> FreshEngine:
    """An engine whose user stops it once, with the first search behind the n-th write of a kind."""

    class Stopping(FreshEngine):
        stopped = False

        def search(self, query: Query, k: int) -> Ranking:
            if self.calls.get(kind, 0) == n and not self.stopped:
                self.stopped = True
                raise KeyboardInterrupt
            return super().search(query, k)

    return Stopping(VirtualClock(), **how)


def stop(stopped: Study) -> Study:
    began = stopped.clock()
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    assert stopped.seen.seconds == pytest.approx(stopped.clock() - began)
    return stopped


def test_what_was_not_decided_when_it_was_stopped_is_not_never_and_in_the_last_ranks() -> None:
    engine = stopping("add", 35, loses=lambda kind, n: kind == "add" and n % 5 == 0)
    shown = shown_of(stop(study(60, engine)).seen, Kind.ADD)
    assert (shown.n, shown.never.count, shown.never.n) == (35, 0, 28)
    assert shown.mean_s is None
    assert shown.course[-1].by_s is None


def test_zombies_that_were_there_when_it_was_stopped_are_counted() -> None:
    engine = stopping("delete", 20, loses=lambda kind, n: kind == "delete" and n % 2 == 0)
    shown = shown_of(stop(study(40, engine)).seen, Kind.DELETE)
    assert shown.outdated.count == 10


def test_a_probe_that_never_showed_is_neither_replaced_nor_counted_as_deleted() -> None:
    engine = FreshEngine(VirtualClock(), loses=lambda kind, n: kind == "add" and n == 2)
    seen = studied(10, engine, limit_s=1.0)
    assert shown_of(seen, Kind.REPLACE).n == shown_of(seen, Kind.DELETE).n == 9
    assert not seen.left


def test_progress_counts_every_write_that_is_decided() -> None:
    told: list[tuple[int, int]] = []
    studied(5, FreshEngine(VirtualClock()), progress=lambda done, of: told.append((done, of)))
    assert told == [(done, 15) for done in range(1, 16)]


def test_probes_are_of_the_texts_of_the_collection_in_any_script() -> None:
    sources = ["달은 지구를 돈다", "月亮绕着地球转"]
    made = probes(50, sources, "cafe", np.random.default_rng(1))
    assert len({probe.id for probe in made}) == 50
    assert len({word for probe in made for word in probe.words}) == 100
    for probe in made:
        for word, text in zip(probe.words, probe.texts, strict=True):
            assert text.startswith(word)
            assert any(source in text for source in sources)


def test_no_writes_give_no_figures() -> None:
    shown = Shown.of([])
    assert (shown.n, shown.mean_s, shown.outdated.at_most) == (0, None, None)
