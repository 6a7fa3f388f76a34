"""One side of a duet, in a process of its own: builds a retriever, then makes the calls it is told.

The file is run by its path, so that both sides are timed by the same code whatever revision their
retriever comes from. Of that revision it uses only :func:`.prepare`, the methods
of a retriever, the limit on threads and what a manifest says of the surroundings, and it imports
nothing of this package.

It is told what to build by one line of JSON on stdin. Its answers go to the pipe whose number is
its argument: lines of JSON until it is ready, or why it cannot be. After that both carry whole
numbers of 8 bytes: how many calls, their queries; back come the nanoseconds of each call,
``FAILED`` for one that raised. In place of a number of calls ``REST`` collects garbage and is
answered by 0, ``DIGEST`` and a query by a number that is equal where the ranking is, ``CPU`` by the
processor's time of the thread that searches and of all others since it was ready, ``CORE`` and a
core (``ANY``: all that there are) by 0, once that thread keeps to it, ``LAST`` by a line of JSON,
which is the last answer; ``END`` ends.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import struct
import sys
import threading
import time
import traceback
from array import array
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

_MODULES: Mapping[str, str] = {
    "preparation": "retrieval_bench.experiment.preparation",
    "protocol": "retrieval_bench.measure.protocol",
    "threads": "retrieval_bench.measure.threads",
    "environment": "retrieval_bench.measure.environment",
    "errors": "retrieval_bench.core.errors",
    "secrets": "retrieval_bench.core.secrets",
}
"""Where a revision has what is used of it."""

FAILED = ANY = -1
REST, DIGEST, LAST, END, CPU, CORE = -1, -2, -3, -4, -5, -6

_NUMBER = struct.Struct("=q")


def main() -> int:
    """Build what the first line says, then answer until told to end; gives the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _take_small_pages()
    told, answers = sys.stdin.buffer, os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    os.set_inheritable(answers.fileno(), False)
    spec = json.loads(told.readline())
    sys.path[:] = spec["sys_path"]
    try:
        side = _Side(spec)
        _say(answers, _filled())
        side.index()
    except BaseException as problem:  # also SystemExit: whoever asked wants an answer
        _say(answers, _described(problem) | _filled())
        return 1
    try:
        _answer(side, told, answers)
    finally:
        with suppress(BaseException):  # what it measured is handed over
            side.retriever.close()
    return 0


def _answer(side: _Side, stream: BinaryIO, answers: BinaryIO) -> None:
    with side.threads() as complaints:
        _say(answers, side.facts())
        gc.collect()
        gc.freeze()
        gc.disable()
        environment = side.environment() if side.answer(stream, answers) == LAST else None
    if environment is not None:  # by now it is known whether a library came late, and resisted
        files = [*_files(), *side.programs()]
        last = {"files": files, "environment": environment, "complaints": complaints}
        _say(answers, last)


def _take_small_pages() -> None:
    """Keep Linux from giving this process huge pages: whether it gets them, and where they lie, is
    a matter of chance that makes equal processes differ by several per cent."""
    if sys.platform == "linux":
        import ctypes

        disable_huge_pages = 41  # PR_SET_THP_DISABLE
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(disable_huge_pages, 1, 0, 0, 0)


def _end_with_parent() -> None:
    """Wait until nobody can tell anything any more, then end with all that was started here: a long
    build of an index does not look at its orders."""
    orders = select.poll()
    orders.register(0, 0)  # nothing but the end of it
    orders.poll()
    try:
        os.killpg(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


class _Side:
    """The retriever of this side, indexed, and the queries."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        prepare = self._from("preparation", "prepare")
        protocol = self._from("protocol", "Protocol")
        self.experiment = prepare(
            [spec["retriever"]],
            spec["dataset"],
            split=spec["split"],
            k=spec["k"],
            overrides=spec["overrides"],
            protocol=protocol(threads=spec["threads"]),
            save=False,
        )
        self.candidate = self.experiment.candidates[0]
        self.retriever = self.candidate.retriever
        self.queries = self.experiment.queries
        self.k = spec["k"]
        self.n_threads = spec["threads"]

    def _from(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(_MODULES[module]), name)

    def index(self) -> None:
        """Make the retriever ready to search."""
        data = self.experiment.dataset
        self.retriever.use_k(self.k)
        if not self.retriever.capabilities.external and data.documents is not None:
            self.retriever.use_language(data.language)
            if fields := getattr(data, "filter_fields", ()):  # a revision may know no filters
                self.retriever.use_filters(fields)
            # No saved index: one side may have it and the other not, and what is mapped from a file
            # is not read as fast as what was made in memory.
            self.retriever.index(data.documents)

    def facts(self) -> dict[str, Any]:
        """Collect what the other side must have, too, and what was loaded so far."""
        data = self.experiment.dataset
        return {
            "name": self.candidate.name,
            "queries": [query.id for query in self.queries],
            "dataset": data.name,
            "fingerprint": data.fingerprint,
            "files": [*_files(), *self.programs()],
            "config": json.loads(json.dumps(self.candidate.config, default=str)),
        }

    def programs(self) -> list[str]:
        """Files of programs that the retriever asks: code of this side, though nothing loads it."""
        with suppress(Exception):
            return list(self.retriever.describe().get("program_files", ()))
        return []

    def threads(self) -> Any:
        """The limit on the threads of numerical libraries, as a context."""
        return self._from("threads", "search_threads")(self.n_threads)

    def environment(self) -> Any:
        """Describe this process as a manifest does."""
        environment = self._from("environment", "environment")(self.n_threads)
        return json.loads(json.dumps(environment, default=str))

    def answer(self, stream: BinaryIO, answers: BinaryIO) -> int:
        """Do what comes in until :data:`LAST` or :data:`END`, and give that."""
        begin = _cpu_ns()
        while True:
            (n,) = _NUMBER.unpack(_exactly(stream, 8))
            if n in (LAST, END):
                return int(n)
            if n == REST:
                gc.collect()
                answers.write(_NUMBER.pack(0))
            elif n == DIGEST:
                (number,) = _NUMBER.unpack(_exactly(stream, 8))
                answers.write(_NUMBER.pack(self._digest(number)))
            elif n == CPU:
                spent = (now - then for now, then in zip(_cpu_ns(), begin, strict=True))
                answers.write(array("q", spent).tobytes())
            elif n == CORE:
                (core,) = _NUMBER.unpack(_exactly(stream, 8))
                answers.write(_NUMBER.pack(_keep_to(core)))
            else:
                numbers = array("q", _exactly(stream, 8 * n))
                answers.write(self._times(numbers).tobytes())

    def _times(self, numbers: array[int]) -> array[int]:
        clock, search, k = time.perf_counter_ns, self.retriever.search, self.k
        queries = [self.queries[number] for number in numbers]
        times = array("q", bytes(8 * len(numbers)))
        for at, query in enumerate(queries):
            try:
                start = clock()
                search(query, k)
                stop = clock()
            except BaseException:  # also SystemExit: it must not end the measurement
                times[at] = FAILED
            else:
                times[at] = stop - start
        return times

    def _digest(self, number: int) -> int:
        """Return a number of the answer to a query, equal where the answers are."""
        try:
            ranking = self.retriever.search(self.queries[number], self.k)
            text = "\n".join(str(doc_id) for doc_id in getattr(ranking, "doc_ids", ranking))
        except BaseException as problem:
            text = f"failed\n{type(problem).__name__}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _cpu_ns() -> tuple[int, int]:
    """Processor's time of this thread, and of all others and processes that it waited for."""
    own, children = time.thread_time_ns(), resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = int((children.ru_utime + children.ru_stime) * 1e9)
    return own, time.process_time_ns() - own + theirs


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _keep_to(core: int) -> int:
    """Let this thread, and those that it starts from now on, run on ``core`` only."""
    try:
        os.sched_setaffinity(0, _CORES if core == ANY else {core})
    except OSError:
        return FAILED
    return 0


def _files() -> list[str]:
    """Return where the code was loaded from: a file of each package or module outside of Python's
    library, and every file of packages that have none of their own."""
    tops: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for name, module in list(sys.modules.items()):
        top, _, rest = name.partition(".")
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and top not in sys.stdlib_module_names and file != __file__:
            if rest:
                parts.setdefault(top, []).append(file)
            else:
                tops[top] = file
    return sorted({*tops.values(), *(f for top in parts.keys() - tops.keys() for f in parts[top])})


def _described(problem: BaseException) -> dict[str, Any]:
    """An error in words, without secrets."""
    known = type(problem).__module__ == _MODULES["errors"]
    text = str(problem) if known else "".join(traceback.format_exception_only(problem)).strip()
    message = {"error": text, "traceback": "".join(traceback.format_exception(problem))}
    secrets = _secrets()
    return message if secrets is None else dict(secrets.redact(message))


def _filled() -> dict[str, Any]:
    """Names of variables whose values are not to be shown."""
    secrets = _secrets()
    return {"filled": [] if secrets is None else secrets.filled()}


def _secrets() -> Any:
    """The module that hides values, of whatever revision; None before it is loaded."""
    return sys.modules.get(_MODULES["secrets"])


def _say(answers: BinaryIO, message: Mapping[str, Any]) -> None:
    answers.write((json.dumps(message) + "\n").encode())


def _exactly(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise SystemExit(0)  # whoever asked is gone
    return content


if __name__ == "__main__":
    sys.exit(main())
