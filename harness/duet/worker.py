"""One side of a duet, in a process of its own: builds a retriever, then makes the calls it is told.

The file is run by its path, so that both sides are timed by the same code whatever revision their
retriever comes from. Of that revision it uses only :func:`harness.preparation.prepare`, the methods
of a retriever and the limit on threads, and it imports nothing of this package.

It is told what to build by one line of JSON on stdin and answers with one line. After that stdin
and stdout carry whole numbers of 8 bytes: how many calls, their queries; back come the nanoseconds
of each call, ``FAILED`` for one that raised. ``REST`` in place of a number of calls collects
garbage and is answered by 0, ``DIGESTS`` is answered by one number for each query, ``END`` ends.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import struct
import sys
import time
import traceback
from array import array
from collections.abc import Mapping
from typing import Any, BinaryIO

FAILED = -1
REST, DIGESTS, END = -1, -2, -3

_NUMBER = struct.Struct("=q")


def main() -> int:
    """Build what the first line says, then answer until told to end; gives the exit code."""
    told, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a retriever prints must not end up among the answers
    spec = json.loads(told.readline())
    sys.path[:] = spec["sys_path"]
    try:
        side = _Side(spec)
    except Exception as problem:
        _say(answers, {"error": str(problem), "kind": type(problem).__name__,
                       "traceback": traceback.format_exc()})  # fmt: skip
        return 1
    with side.threads():
        _say(answers, side.facts)
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            side.answer(told, answers)
        finally:
            side.retriever.close()
    return 0


class _Side:
    """The retriever of this side, indexed, and the queries."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        from harness.measure.protocol import Protocol
        from harness.preparation import prepare

        begin = time.perf_counter()
        experiment = prepare(
            [spec["retriever"]],
            spec["dataset"],
            split=spec["split"],
            k=spec["k"],
            overrides=spec["overrides"],
            protocol=Protocol(threads=spec["threads"]),
            save=False,
        )
        candidate = experiment.candidates[0]
        self.retriever = candidate.retriever
        self.queries = experiment.queries
        self.k = spec["k"]
        self.n_threads = spec["threads"]
        data = experiment.dataset
        self.retriever.use_k(self.k)
        if not self.retriever.capabilities.external and data.documents is not None:
            self.retriever.use_language(data.language)
            self.retriever.index(data.documents)
        self.facts = {
            "name": candidate.name,
            "queries": [query.id for query in self.queries],
            "dataset": data.name,
            "fingerprint": data.fingerprint,
            "files": _files(),
            "config": json.loads(json.dumps(candidate.config, default=str)),
            "seconds": time.perf_counter() - begin,
        }

    def threads(self) -> Any:
        """The limit on the threads of numerical libraries, as a context."""
        from harness.measure.threads import search_threads

        return search_threads(self.n_threads)

    def answer(self, told: BinaryIO, answers: BinaryIO) -> None:
        """Do what comes in until it ends."""
        while True:
            (n,) = _NUMBER.unpack(_exactly(told, 8))
            if n == END:
                return
            if n == REST:
                gc.collect()
                answers.write(_NUMBER.pack(0))
            elif n == DIGESTS:
                answers.write(array("q", map(self._digest, range(len(self.queries)))).tobytes())
            else:
                numbers = array("q", _exactly(told, 8 * n))
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
            except Exception:
                times[at] = FAILED
            else:
                times[at] = stop - start
        return times

    def _digest(self, number: int) -> int:
        """What is returned for a query, in a number that is equal where that is."""
        try:
            found = self.retriever.search(self.queries[number], self.k)
            text = "\n".join(str(doc_id) for doc_id in getattr(found, "doc_ids", found))
        except Exception as problem:
            text = f"failed\n{type(problem).__name__}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _files() -> list[str]:
    """Where the code was loaded from: a file of each package or module outside of Python's library,
    and every file of packages that have none of their own."""
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


def _say(answers: BinaryIO, message: Mapping[str, Any]) -> None:
    answers.write((json.dumps(message) + "\n").encode())


def _exactly(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise SystemExit(0)  # whoever asked is gone
    return content


if __name__ == "__main__":
    sys.exit(main())
