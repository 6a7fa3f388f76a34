"""Calls of a server that spend most of their time outside of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.figures import short_ms
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.measure.calls import Timings

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


def outside_server(timings: Timings, facts: Mapping[str, Any]) -> list[str]:
    """Warn where a server says that most of the time of its calls is not its own.

    Args:
        facts: what the retriever says of itself: ``sql`` asks its server afterwards.
    """
    warnings: list[str] = []
    for leg, call, server, client in _asked(timings.stages, facts):
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
    stages: Mapping[str, NDArray[np.int64]], facts: Mapping[str, Any]
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
