"""How many threads numerical libraries may use while searches are timed.

Indexing uses all cores; timed searches use one by default, so that a figure does not depend on
how many cores happened to be idle. Some limits hold for the calling thread only: a retriever that
starts threads of its own calls :func:`apply_to_this_thread` in each of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

ENVIRONMENT: Mapping[str, str] = {"TOKENIZERS_PARALLELISM": "false"}
"""Set before heavy imports: a tokenizer's own threads cannot be limited later."""

_limit: int | None = None


def prepare_environment() -> None:
    """Set what libraries read once when they are imported; what the user set is kept."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@contextmanager
def search_threads(n: int) -> Iterator[list[str]]:
    """Limit all loaded numerical libraries to ``n`` threads; gives warnings where one resists.

    Enter it after the libraries are loaded, that is after indexing.
    """
    from threadpoolctl import threadpool_info, threadpool_limits

    global _limit  # noqa: PLW0603 - the limit is a property of the process
    before = _limit
    restore = [(put, get()) for put, get in _knobs()]
    with threadpool_limits(limits=n):
        _limit = n
        refused = [complaint for put, _ in restore if (complaint := _try(put, n))]
        try:
            yield refused + [
                f"{pool['internal_api']} uses {pool['num_threads']} threads instead of {n}: "
                "its share of the times depends on idle cores"
                for pool in threadpool_info()
                if pool["num_threads"] > n
            ]
        finally:
            _limit = before
            for put, old in restore:
                put(old)


def apply_to_this_thread() -> None:
    """Apply the limit that is in force, if any, to the calling thread."""
    if _limit is None:
        return
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=_limit)  # without `with`: it stays for the life of this thread
    for put, _ in _knobs():
        _try(put, _limit)


def _try(put: Callable[[int], None], n: int) -> str | None:
    """Set the count; what the library says when it cannot use that many."""
    try:
        put(n)
    except ValueError as problem:
        return f"{put.__module__.partition('.')[0]} does not use {n} threads: {problem}"
    return None


def _knobs() -> list[tuple[Callable[[int], None], Callable[[], int]]]:
    """Setter and getter of libraries that keep a count of their own, where they are loaded."""
    knobs: list[tuple[Callable[[int], None], Callable[[], int]]] = []
    for module, put, get in (
        ("torch", "set_num_threads", "get_num_threads"),
        ("faiss", "omp_set_num_threads", "omp_get_max_threads"),
        ("numba", "set_num_threads", "get_num_threads"),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and hasattr(loaded, put):
            knobs.append((getattr(loaded, put), getattr(loaded, get)))
    return knobs
