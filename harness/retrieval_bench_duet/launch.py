"""One launch of a duet: both sides in fresh processes, the same queries to both, by turns.

A side's process is started, told what to do, and never waited for in vain; what it does itself is
in :mod:`.duets.worker`.
"""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.call_pairs import Pairs, trimmed_mean
from retrieval_bench.core import secrets
from retrieval_bench.core.calls.foreign import how_ended
from retrieval_bench.measure.steady import SteadyState
from retrieval_bench_duet import worker
from retrieval_bench_duet.sides import Side
from retrieval_bench_launches import child

START_S = 1800.0
"""Longest time in seconds until a side has built its index."""

_TURN_S = 0.1
"""What all but one call of a turn may take together: only short calls share one."""

_BESIDES = 0.05
"""Share of the processor's time that other threads may take of a search that uses one."""

_LAST_S = 60.0
_LOOK_S = 1.0
_SLACK_NS = 20_000_000
_END_S = 2.0
_NUMBER = struct.Struct("=q")


class LostError(Exception):
    """A side's process died, hung, or said something impossible; the text says which and why."""

    def __init__(self, text: str, process: object) -> None:
        super().__init__(text)
        self.process = process


class BrokenSideError(Exception):
    """A side cannot be built: it would fail in the next process, too."""


class SideProcess:
    """A process that holds the retriever of one side.

    Args:
        spec: what is measured, the same for both sides.
        hash_seed: PYTHONHASHSEED, the same for both sides.
        call_s: longest time of one call in seconds.

    Raises:
        BrokenSideError: no process can be started.
    """

    def __init__(
        self, side: Side, spec: Mapping[str, Any], *, hash_seed: int, call_s: float
    ) -> None:
        self.side = side
        self.call_s = call_s
        self.facts: dict[str, Any] = {}
        self._buffer = b""
        place = side.place
        command = [str(place.python), "-P", str(Path(worker.__file__).resolve())]
        retriever = side.retriever if isinstance(side.retriever, str) else dict(side.retriever)
        message = dict(spec) | {
            "retriever": retriever,
            "overrides": list(side.overrides),
            "sys_path": list(place.sys_path),
        }
        with ExitStack() as opened:
            self._answers, theirs = os.pipe()
            opened.callback(os.close, self._answers)
            try:
                with os.fdopen(theirs, "wb"):
                    self._child = opened.enter_context(
                        child.launched(
                            [*command, str(theirs)],
                            message,
                            variables={"PYTHONHASHSEED": str(hash_seed)},
                            folder=place.folder,
                            answers=theirs,
                        )
                    )
            except OSError as problem:
                raise BrokenSideError(f"cannot start {place.python}: {problem.strerror}") from None
            self._process = self._child.process
            self._opened = opened.pop_all()

    def ready(self) -> dict[str, Any]:
        """Wait until the index is built; what the process says of itself.

        Raises:
            BrokenSideError: it cannot be built.
            LostError: the process ended or took too long.
        """
        end = time.monotonic() + START_S
        while "queries" not in self.facts:
            self.facts |= self._line(end)
            secrets.remember(self.facts["filled"])
            if "error" in self.facts:
                raise BrokenSideError(secrets.redact(self.facts["error"])) from RuntimeError(
                    secrets.redact(self.facts["traceback"])
                )
        return self.facts

    def times(self, queries: Sequence[int]) -> array[int]:
        """Nanoseconds of a call of each query, in this order; ``worker.FAILED`` where it raised.

        Raises:
            LostError: no answer in time, or times that cannot be.
        """
        start = time.monotonic_ns()
        self._send(_NUMBER.pack(len(queries)) + array("q", queries).tobytes())
        answer = self._numbers(len(queries))
        took = time.monotonic_ns() - start
        inside = sum(value for value in answer if value > 0)
        if 0 in answer:
            raise self._lost("its clock stood still: a call took no time", kill=True)
        if min(answer) < worker.FAILED or inside > took + _SLACK_NS:
            raise self._lost(
                f"its clock jumped: {inside / 1e9:.3f} s within {took / 1e9:.3f} s", kill=True
            )
        return answer

    def rest(self) -> None:
        """Let it collect its garbage now."""
        self._send(_NUMBER.pack(worker.REST))
        self._numbers(1)

    def one_threaded(self) -> bool:
        """Return whether its searches so far were the work of one thread.

        Raises:
            LostError: it ended.
        """
        self._send(_NUMBER.pack(worker.CPU))
        own, others = self._numbers(2)
        return others <= _BESIDES * (own + others)

    def keep_to(self, core: int | None) -> bool:
        """Search on this core only, None: on any; whether the system lets it. Threads that it has
        already go where they like.

        Raises:
            LostError: it ended.
        """
        self._send(_NUMBER.pack(worker.CORE) + _NUMBER.pack(worker.ANY if core is None else core))
        return self._numbers(1)[0] != worker.FAILED

    def digests(self, queries: Sequence[int]) -> list[int]:
        """One number for each query, equal where the ranking is.

        Raises:
            LostError: a search took too long, or ended the process.
        """
        digests: list[int] = []
        for query in queries:
            self._send(_NUMBER.pack(worker.DIGEST) + _NUMBER.pack(query))
            digests += self._numbers(1)
        return digests

    def last(self) -> dict[str, Any]:
        """Ask the process about itself after its searches: ``files``, ``environment`` and
        ``complaints`` about threads; it can be asked nothing more.

        Raises:
            LostError: it ended without.
        """
        self._send(_NUMBER.pack(worker.LAST))
        self.facts |= self._line(time.monotonic() + _LAST_S)
        return self.facts

    def close(self) -> None:
        """End it, and whatever it started."""
        with self._opened, suppress(OSError, subprocess.TimeoutExpired):
            self._child.write(_NUMBER.pack(worker.END))
            self._process.wait(_END_S)

    def _send(self, content: bytes) -> None:
        try:
            self._child.write(content)
        except OSError:
            raise self._lost("it ended") from None

    def _line(self, end: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._buffer += self._read(1 << 16, end)
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _numbers(self, n: int) -> array[int]:
        end = time.monotonic() + self.call_s + (_TURN_S if n > 1 else 0)
        while len(self._buffer) < 8 * n:
            self._buffer += self._read(8 * n - len(self._buffer), end)
        numbers = array("q", self._buffer[: 8 * n])
        self._buffer = self._buffer[8 * n :]
        return numbers

    def _read(self, size: int, end: float) -> bytes:
        """Read up to ``size`` bytes, once anything is there.

        What it has started may hold the pipe open when it is gone: so it is looked after itself.
        """
        while not self._readable(min(_LOOK_S, end - time.monotonic())):
            if self._process.poll() is not None and not self._readable(0.0):
                raise self._lost("it ended")
            if time.monotonic() >= end:
                raise self._lost("it gave no answer in time", kill=True)
        chunk = os.read(self._answers, size)
        if not chunk:
            raise self._lost("it ended")
        return chunk

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], max(0.0, seconds))[0])

    def _lost(self, what: str, *, kill: bool = False) -> LostError:
        if kill:
            self._child.kill()
        else:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        code = self._process.poll()
        how = f" ({how_ended(code)})" if code and not kill else ""
        return LostError(f"{self.side.name}: {what}{how}{self._child.last_words()}", self)


TURN_NS = 250_000
"""A side keeps its turn until about so much time is measured: where calls are shorter, one turn has
several of them, since a process that has just been woken is slow for a while. Longer turns let the
machine change between the two sides: decision record 0033."""

MOST_CALLS = 64
"""Calls of one turn, at most."""

_SETTLING = 4
"""Calls of either side that are not measured, once they keep to one core."""

WARM_UP_CALLS = 50
_WARM_UP_TURN = 8


@dataclass(frozen=True, slots=True)
class Share:
    """Share of the time that one launch measures.

    Attributes:
        seconds: of both sides together; one round is made in any case.
        warm_up_s: the warm-up ends after so many seconds, steady or not.
        queries: numbers of the queries, or None for all.
        lead: for each of these who goes first in the first round, 0 or 1; None = a random half.
        core: both sides search on this one, if a search is the work of one thread on both; None =
            wherever the system has them run.
    """

    seconds: float
    warm_up_s: float = 0.5
    queries: Sequence[int] | None = None
    lead: Sequence[int] | NDArray[np.int64] | None = None
    core: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a launch.

    Attributes:
        wall_ns: int64 (2, calls): side a, side b; -1 where the call failed.
        query, round: int32 (calls): of each pair of calls.
        first: int8 (calls), which side had its turn first: 0 or 1.
        seconds: of measuring.
        core: that both sides searched on; None where they were not kept to one.
    """

    wall_ns: NDArray[np.int64]
    query: NDArray[np.int32]
    round: NDArray[np.int32]
    first: NDArray[np.int8]
    seconds: float
    core: int | None = None

    def pairs(self, launch: int) -> Pairs:
        """Return the pairs as :func:`.log_ratios` gives them, without the order effect: whoever
        goes first finds other caches than whoever follows, by several per cent."""
        fine = (self.wall_ns >= 0).all(axis=0)
        logs = np.log(np.maximum(self.wall_ns[:, fine], 1))
        a_first = self.first[fine] == 0
        later = _order_effect(logs[1] - logs[0], a_first)
        n = len(a_first)
        return Pairs(
            logs[0] - np.where(a_first, 0.0, later),
            logs[1] - np.where(a_first, later, 0.0),
            np.full(n, launch, dtype=np.int32),
            self.round[fine],
            np.flatnonzero(fine).astype(np.int32),
            self.query[fine],
            int((~fine).sum()),
        )


def _order_effect(log_ratio: NDArray[np.float64], a_first: NDArray[np.bool_]) -> float:
    """The log ratio of the later call of a pair over the earlier one. Each side is first in half of
    the pairs, so that what differs between the sides cancels."""
    halves = (log_ratio[a_first], -log_ratio[~a_first])
    if not all(len(half) for half in halves):
        return 0.0
    return sum(trimmed_mean(half) for half in halves) / 2


def measure(
    processes: Sequence[SideProcess], n_queries: int, share: Share, rng: np.random.Generator
) -> Measured:
    """Warm both sides up, then give each query to both, one right after the other.

    Either side goes first for a random half of the queries, and the other one for the same queries
    in the next round; queries come in a fresh random order in every round.

    Raises:
        LostError: a process died or hung.
    """
    chosen = np.arange(n_queries) if share.queries is None else np.asarray(share.queries)
    lead = _halves(len(chosen), rng) if share.lead is None else np.asarray(share.lead)
    usual_ns = _warmed_up(processes, chosen, share.warm_up_s, rng)
    core = share.core if _on_one_core(processes, share.core, chosen[:_SETTLING].tolist()) else None
    walls: list[list[array[int]]] = [[], []]
    order: list[NDArray[np.int64]] = []
    rounds: list[int] = []
    firsts: list[int] = []
    begin = time.monotonic()
    round_ = 0
    while True:
        for process in processes:
            process.rest()
        for first, turn in _turns(lead ^ (round_ % 2), usual_ns, rng):
            queries = chosen[turn]
            asked = queries.tolist()
            for side in (first, 1 - first):
                walls[side].append(processes[side].times(asked))
            order.append(queries)
            rounds += [round_] * len(asked)
            firsts += [first] * len(asked)
        round_ += 1
        spent = time.monotonic() - begin
        # One round, or an even number of them.
        if (round_ == 1 or round_ % 2 == 0) and spent / round_ * (round_ + 1) > share.seconds:
            break
    return Measured(
        np.array([np.concatenate(side) for side in walls], dtype=np.int64),
        np.concatenate(order).astype(np.int32),
        np.array(rounds, dtype=np.int32),
        np.array(firsts, dtype=np.int8),
        seconds=time.monotonic() - begin,
        core=core,
    )


def _on_one_core(
    processes: Sequence[SideProcess], core: int | None, settling: Sequence[int]
) -> bool:
    """Have both sides search on ``core``, where that changes nothing but who is disturbed: not when
    a search is spread over threads.

    The system leaves each process on the core that it was on. What else runs on one of two then
    happens to one of the sides, for the whole of a launch: decision record 0037.
    """
    if core is None or not all(process.one_threaded() for process in processes):
        return False
    if not all(process.keep_to(core) for process in processes):
        for process in processes:
            process.keep_to(None)
        return False
    for query in settling:
        for process in processes:
            process.times([query])
    return True


def leads(n_queries: int, launch: int, seed: int) -> NDArray[np.int64]:
    """Return who goes first for each query in the first round of a launch, 0 or 1: a random half,
    and in the next launch the other one."""
    rng = np.random.default_rng([seed, launch // 2, 1])
    return _halves(n_queries, rng) ^ (launch % 2)


def _halves(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    # By chance: queries may lie by turns, short and long ones, or of two languages.
    return rng.permutation(n) % 2


def _turns(
    lead: NDArray[np.int64], usual_ns: NDArray[np.int64], rng: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Return who goes first, and places of the queries of a turn, in random order."""
    short = usual_ns < TURN_NS
    usual = np.median(usual_ns[short]) if short.any() else TURN_NS
    size = int(np.clip(TURN_NS // max(1, usual), 1, MOST_CALLS))
    turns = [
        (first, places)
        for first in (0, 1)
        for places in _shared(rng.permutation(np.flatnonzero(lead == first)), short, size)
    ]
    for at in rng.permutation(len(turns)):
        yield turns[at]


def _shared(
    places: NDArray[np.int64], short: NDArray[np.bool_], size: int
) -> list[NDArray[np.int64]]:
    """``places`` in turns of ``size`` calls. A deadline is that of one call, so that only those
    which were seen to be short share one."""
    together, alone = places[short[places]], places[~short[places]]
    turns = [together[at : at + size] for at in range(0, len(together), size)]
    return [*turns, *alone.reshape(-1, 1)]


def _warmed_up(
    processes: Sequence[SideProcess],
    chosen: NDArray[np.int64],
    seconds: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Call both sides until they are steady, or for ``seconds``, but each query once in any case;
    nanoseconds of the last call of each on the side that took longer, :data:`TURN_NS` where it
    failed."""
    states = [SteadyState() for _ in processes]
    begin, calls = time.monotonic(), 0
    usual = np.full(len(chosen), TURN_NS)
    order = rng.permutation(len(chosen))
    late = False
    while not late:
        seen = calls >= len(order)
        for turn in _shared(order, usual < TURN_NS, _WARM_UP_TURN):
            asked = chosen[turn].tolist()
            walls = np.array([process.times(asked) for process in processes])
            for state, of_side in zip(states, walls.tolist(), strict=True):
                for query, wall in zip(asked, of_side, strict=True):
                    state.add(query, wall)
            usual[turn] = np.where((walls >= 0).all(axis=0), walls.max(axis=0), TURN_NS)
            calls += len(asked)
            late = time.monotonic() - begin > seconds
            if late and seen:
                break
        if seen and calls >= WARM_UP_CALLS and all(state.steady for state in states):
            break
    return usual
