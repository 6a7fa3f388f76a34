"""How many threads numerical libraries may use while searches are timed.

Indexing uses all cores; timed searches use one by default, so that a figure does not depend on
how many cores happened to be idle. Some limits hold for the calling thread only: a retriever that
starts threads of its own calls :func:`apply_to_this_thread` in each of them.

====================================  ==================================================
variable                              what is done, and why
====================================  ==================================================
``TOKENIZERS_PARALLELISM``            set to false; tokenizers read it at every call, so that
                                      it also reaches a pool that they have made before
``RAYON_NUM_THREADS``                 set to the number of threads; read once, when a library
                                      in Rust makes its pool, which keeps its size
``OMP_``, ``OPENBLAS_``, ``MKL_``,    not set, since libraries read them once and indexing
``NUMEXPR_``, ``NUMBA_NUM_THREADS``   would lose its cores; their pools are limited while
                                      searches are timed, and looked at again afterwards
``VECLIB_MAXIMUM_THREADS``            not set: numpy is loaded by then; only a user can set it
====================================  ==================================================

What the user has set stays, and is told where it moves a figure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HEAVY = ("torch", "faiss", "numba", "numexpr", "onnxruntime", "tokenizers", "polars")
"""Libraries with threads of their own, of which a manifest says whether they came first."""

_FALSE = frozenset({"", "off", "false", "f", "no", "n", "0"})
"""What tokenizers take as false."""

_ours: dict[str, str] = {}
_first: list[str] | None = None
_late_pool = False
_limit: int | None = None


def prepare_environment(threads: int | None = None) -> None:
    """Set what libraries read once, before they are imported; what the user set is kept.

    Args:
        threads: for timed searches; None: as it was set before, 1 the first time.
    """
    global _first, _late_pool  # noqa: PLW0603 - libraries are imported once in a process
    if _first is None:
        _first = _loaded(*HEAVY)
    rayon = "RAYON_NUM_THREADS"
    _set("TOKENIZERS_PARALLELISM", "false")
    if _set(rayon, str(threads) if threads is not None else _ours.get(rayon, "1")):
        _late_pool = bool(_loaded("tokenizers"))


def imported_before() -> list[str]:
    """Return which of :data:`HEAVY` were there before the environment was prepared (a notebook's).

    A fact, no fault: what they use is looked at when searches are timed.
    """
    return list(_first or ())


def _set(name: str, value: str) -> bool:
    """Return whether the variable was changed: a value that is not ours is the user's."""
    there = os.environ.get(name)
    if there == value or (there is not None and there != _ours.get(name)):
        return False
    os.environ[name] = _ours[name] = value
    return True


def environment_faults(threads: int) -> list[str]:
    """Variables that do not reach the libraries that are loaded now, or that keep them from what
    a measurement is said to do; one sentence each, with what to do."""
    told = []
    parallel = os.environ.get("TOKENIZERS_PARALLELISM", "")
    if parallel.lower() not in _FALSE and _loaded("tokenizers"):
        rayon = os.environ.get("RAYON_NUM_THREADS")
        if _late_pool:
            told.append(
                f"TOKENIZERS_PARALLELISM={parallel} is set, and tokenizers was imported before "
                "its threads could be limited: unset it, or import retrieval_bench and run it first"
            )
        elif rayon != str(threads):
            told.append(
                f"TOKENIZERS_PARALLELISM={parallel} is set: tokenizers may use "
                f"{rayon or 'many'} threads in a timed call instead of {threads}; unset it"
            )
    veclib = os.environ.get("VECLIB_MAXIMUM_THREADS")
    # Apple's library makes threads that nothing here can see.
    if (numpy_blas() or {}).get("name") == "accelerate" and veclib != str(threads):
        told.append(
            "numpy computes with Accelerate, whose threads can only be limited before Python "
            f"starts: set VECLIB_MAXIMUM_THREADS={threads}"
        )
    return told + _slow_indexing()


def _slow_indexing() -> list[str]:
    """Limits of the user's that also hold for encoding a corpus, where torch does that."""
    if not _loaded("torch"):
        return []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        f"{name}={value} is set: encoding uses {value} of {cores} cores; unset it, unless the "
        "index seconds are meant to be those of so few"
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        if (value := os.environ.get(name, "")).isdigit() and int(value) < (cores or 1)
    ]


def _loaded(*names: str) -> list[str]:
    return [name for name in names if sys.modules.get(name) is not None]


def numpy_blas() -> dict[str, str] | None:
    """``name`` and ``version`` of the library that numpy was built with, None where it does not
    say. What runs, with its number of threads, is in ``thread_pools``."""
    import numpy

    try:
        built = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"name": str(built["name"]), "version": str(built["version"])}
    except (KeyError, TypeError):
        return None


@contextmanager
def search_threads(n: int) -> Iterator[list[str]]:
    """Limit all loaded numerical libraries to ``n`` threads; gives warnings where one resists.

    Enter it after the libraries are loaded, that is after indexing. The list grows when it is left:
    by libraries that came only with the first search, and use more threads.
    """
    from threadpoolctl import threadpool_limits

    global _limit  # noqa: PLW0603 - the limit is a property of the process
    before = _limit
    restore = [(put, get()) for put, get in _knobs()]
    with threadpool_limits(limits=n):
        _limit = n
        refused = [complaint for put, _ in restore if (complaint := _try(put, n))]
        complaints = environment_faults(n) + refused
        complaints += [text for text in _too_many(n) if text not in complaints]
        try:
            yield complaints
            complaints += [text for text in thread_faults(n) if text not in complaints]
        finally:
            _limit = before
            for put, old in restore:
                put(old)


def thread_faults(n: int) -> list[str]:
    """Warnings where the environment, or a library that is loaded now, does not keep to ``n``."""
    return environment_faults(n) + _too_many(n)


def _too_many(n: int) -> list[str]:
    """Libraries that say of themselves that they use more than ``n`` threads."""
    from threadpoolctl import threadpool_info

    used = [(pool["internal_api"], pool["num_threads"]) for pool in threadpool_info()]
    used += [(_library(get), get()) for _, get in _knobs()]
    return [
        f"{library} uses {count} threads instead of {n}: its share of the times depends on idle "
        "cores; import it before the measurement, or set its own option"
        for library, count in dict.fromkeys(used)
        if count > n
    ]


def apply_to_this_thread() -> None:
    """Apply the limit that is in force, if any, to the calling thread."""
    if _limit is None:
        return
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=_limit)  # without `with`: it stays for the life of this thread
    for put, _ in _knobs():
        _try(put, _limit)


def thread_limit() -> int:
    """Threads that a call may use now; 1 where nothing is being timed. For libraries whose threads
    nobody can limit from outside."""
    return _limit or 1


def _try(put: Callable[[int], object], n: int) -> str | None:
    """Set the count; what the library says when it cannot use that many."""
    try:
        put(n)
    except ValueError as problem:
        return f"{_library(put)} does not use {n} threads: {problem}"
    return None


def _library(function: Callable[..., object]) -> str:
    return (function.__module__ or "a library").partition(".")[0]


def _knobs() -> list[tuple[Callable[[int], object], Callable[[], int]]]:
    """Setter and getter of libraries that keep a count of their own, where they are loaded."""
    knobs: list[tuple[Callable[[int], object], Callable[[], int]]] = []
    for module, put, get in (
        ("torch", "set_num_threads", "get_num_threads"),
        ("faiss", "omp_set_num_threads", "omp_get_max_threads"),
        ("numba", "set_num_threads", "get_num_threads"),
        ("numexpr", "set_num_threads", "get_num_threads"),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and hasattr(loaded, put) and hasattr(loaded, get):
            knobs.append((getattr(loaded, put), getattr(loaded, get)))
    return knobs
