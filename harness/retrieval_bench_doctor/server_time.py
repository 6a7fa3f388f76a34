"""Calls of a server that spend most of their time outside of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.figures import short_ms
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Query
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.measure import protocol
from retrieval_bench.measure.calls import System
from retrieval_bench.measure.deadline import deadline
from retrieval_bench.measure.protocol import Plan
from retrieval_bench.measure.recorder import Recorder
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.stats.percentiles import quantiles

SHARE, LEAST_MS = 0.5, 1.0
"""A server that takes less than this share of the median call, and leaves more than this over, is
not what was timed."""

_SERVER, _REQUEST, _WRAPPER, _SQL = "server", "request", "wrapper", "sql"
_NS_PER_MS = 1e6

_LINE = (
    "Look at the connection (kept alive? Nagle's algorithm with delayed acknowledgements adds 40 "
    "ms), at proxies, at the network and at how long the answers are."
)
_CLIENT = "Most of the rest is the client's, which decodes the answers: ask for fewer fields."


Stages = Mapping[str, NDArray[np.int64]]
"""Stage -> nanoseconds of each call, -1 where it did not report it."""


def outside(
    candidate: Candidate,
    asks: Asks,
    stages: Stages,
    facts: Mapping[str, Any],
    took_ns: ArrayLike | None,
) -> list[str]:
    """Warn of both, :func:`outside_server` and, where ``took_ns`` is given, :func:`kept_back`."""
    kept = [] if took_ns is None else kept_back(candidate, asks, took_ns)
    return [*outside_server(stages, facts), *kept]


def outside_server(stages: Stages, facts: Mapping[str, Any]) -> list[str]:
    """Warn where a server says that most of the time of its calls is not its own.

    Args:
        facts: what the retriever says of itself: ``sql`` asks its server afterwards.
    """
    warnings: list[str] = []
    for leg, call, server, client in _asked(stages, facts):
        if not len(call):
            continue
        whole = float(np.median(call)) / _NS_PER_MS
        own = float(np.median(server)) / _NS_PER_MS
        counts_whole = not np.any(server % _NS_PER_MS)  # 1 ms may have been nearly 2
        most = own + counts_whole
        if most >= SHARE * whole or whole - most <= LEAST_MS:
            continue
        own_time = "under 1" if counts_whole and not own else short_ms(own)
        remedy = _CLIENT if 2 * np.median(client) > np.median(call - server) else _LINE
        text = (
            f"{leg}Asking the server takes {short_ms(whole)} ms, of which it says that {own_time} "
            f"ms are its own (medians): most of the time is not the engine's. {remedy}"
        )
        warnings.append(Notice(text, Code.OUTSIDE_SERVER))
    return warnings


def _asked(
    stages: Stages, facts: Mapping[str, Any]
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Return the figures of each server that says what it takes: whose leg it is, and the time
    in ns of the calls that answered, of the server, and of the client around them. Encoding the
    query is in none."""
    for name, server in stages.items():
        leg, _, last = name.rpartition(".")
        before = f"{leg}." if leg else ""
        request, wrapper = (stages.get(f"{before}{item}") for item in (_REQUEST, _WRAPPER))
        if last == _SERVER and request is not None and wrapper is not None:
            told = (server >= 0) & (request >= 0)
            client = np.maximum(wrapper[told], 0)
            yield f"{leg}: " * bool(leg), request[told] + client, server[told], client
    of_sample = facts.get("server_ms", {})
    if _SQL in stages and "execution" in of_sample:
        call = stages[_SQL][stages[_SQL] >= 0]
        own = _NS_PER_MS * (of_sample["execution"] + of_sample["planning"])
        yield "", call, np.full(len(call), own), np.zeros(len(call))


_KEPT_MS, _GAIN_MS, _CALLS = (40.0, 100.0), 30.0, 20
"""Medians of calls that may hold the 40 ms for which a client's kernel keeps back its word on the
first piece of an answer, without which the server sends no second one; what calls are shorter at
least where it is sent at once; and how many are made."""

_CONSTANT_MS, _SPREAD = 48.0, 0.1
"""Calls that take so long at most, and whose quartiles are no farther apart than this share of the
median, may wait for such a word, where nobody can tell."""

_EACH_S, _SOCKETS = 0.001, Path("/proc/self/fd")


class Asks(Protocol):
    """What retrievers are asked, and how: an experiment is."""

    @property
    def queries(self) -> Sequence[Query]: ...
    @property
    def k(self) -> int: ...
    @property
    def protocol(self) -> protocol.Protocol: ...


def kept_back(candidate: Candidate, asks: Asks, took_ns: ArrayLike) -> list[str]:
    """Warn where calls wait for acknowledgements that are kept back, which is proved by calls in
    turn with and without them being sent at once; who takes money, or may be asked only so often,
    is not asked for that.

    Args:
        took_ns: by each call that was measured, or some of them.
    """
    took = np.asarray(took_ns) / _NS_PER_MS
    low, usual, high = quantiles(took, (0.25, 0.5, 0.75)) if took.size else np.zeros(3)
    can, proof = candidate.capabilities, None
    if can.replays or not _KEPT_MS[0] <= usual < _KEPT_MS[1]:
        return []
    if candidate.price is None and candidate.rate_limit is None:
        with candidate.folder.lent(), search_threads(asks.protocol.threads):
            proof = _with_and_without(candidate.system(None), asks)
    if proof is not None and proof[0] - proof[1] >= _GAIN_MS:
        text = (
            f"Calls take {short_ms(proof[0])} ms, and {short_ms(proof[1])} where each "
            "acknowledgement is sent at once (medians): the server sends an answer in pieces, and "
            "waits 40 ms for the client's delayed acknowledgement of the first. Set TCP_NODELAY "
            "there, or send an answer in one piece."
        )
        return [Notice(text, Code.OUTSIDE_SERVER)]
    constant = usual <= _CONSTANT_MS and high - low <= _SPREAD * usual
    if proof is not None or not can.external or not constant:
        return []
    text = (
        f"Calls take {short_ms(usual)} ms, whatever they ask. That may be the 40 ms of a delayed "
        "acknowledgement: look whether the server sets TCP_NODELAY, or sends an answer in pieces."
    )
    return [Notice(text, Code.OUTSIDE_SERVER)]


def _with_and_without(system: System, asks: Asks) -> tuple[float, float] | None:
    """The median of calls in milliseconds as they are, and of as many between them whose
    acknowledgements are sent at once: the same where none is, and none can have been waited for.
    None where nobody can tell, or a call failed."""
    queries = [asks.queries[at % len(asks.queries)] for at in range(_CALLS)]
    recorder = Recorder(system, queries, asks.k, Plan(2 * _CALLS, rounds=1, warm_up=0))
    # In turn, and either first as often: what is asked again may be remembered.
    quick = np.array([(at + turn) % 2 == 0 for at in range(_CALLS) for turn in (0, 1)])
    reached = 0
    with suppress(HarnessError), deadline(asks.protocol.timeout_s) as timer:
        for number, now in enumerate(quick.tolist()):
            with _acknowledging(now) as sockets:
                recorder.call(number // 2, 0, number, timer, perf_counter_ns)
            reached += sockets[0]
    if recorder.n < len(quick) or recorder.failed[: recorder.n].any():
        return None
    ms = recorder.wall[: recorder.n] / _NS_PER_MS
    as_they_are, at_once = float(np.median(ms[~quick])), float(np.median(ms[quick]))
    if not reached:  # nothing is proved, but that calls as short as these wait for nothing
        return (as_they_are,) * 2 if as_they_are < _KEPT_MS[0] else None
    return as_they_are, at_once


@contextmanager
def _acknowledging(at_once: bool) -> Iterator[list[int]]:
    """Send what this process acknowledges at once, again and again, since the kernel falls back;
    gives how many sockets that reached so far: those of any client, encrypted or not."""
    reached, over = [0], threading.Event()

    def go_on() -> None:
        while not over.wait(_EACH_S):
            reached[0] += _acknowledge()

    thread = threading.Thread(target=go_on, daemon=True)
    if at_once:
        thread.start()
    try:
        yield reached
    finally:
        over.set()
        if at_once:
            thread.join()


def _acknowledge() -> int:
    """Have every TCP socket of this process acknowledge at once; how many there are."""
    option, n = getattr(socket, "TCP_QUICKACK", 0), 0  # as the folder, Linux alone has it
    with suppress(OSError):
        for file in _SOCKETS.iterdir():
            with suppress(OSError):  # no socket, or closed by now
                one = socket.socket(fileno=int(file.name))
                try:
                    if one.type is socket.SOCK_STREAM and one.family is not socket.AF_UNIX:
                        one.getpeername()
                        one.setsockopt(socket.IPPROTO_TCP, option, 1)
                        n += 1
                finally:
                    one.detach()  # it is somebody else's
    return n
