"""What the adapter of a program takes of a call, beyond the bare exchange of the same lines."""

from __future__ import annotations

import os
import select
from time import perf_counter_ns
from typing import Any

import numpy as np

from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.programs.command import Command
from retrieval_bench_retrievers.programs.lines import query_line
from tests.benchmarks.report import Group, Options, Row
from tests.builders import faulty_program

LIMIT = 100e-6
K = 10


def measure(options: Options) -> Group:
    """Calls and bare exchanges in turn, of one process of each kind."""
    n = 200 if options.quick else 5_000
    called, bare = command(n)
    beyond = float(np.median(called) - np.median(bare)) / 1e9
    return Group(
        "Calls of programs beyond the bare exchange",
        [
            Row("command, p50 beyond", beyond, "s", at_most=LIMIT, absolute=True),
            Row("command, p50 of the call", float(np.median(called)) / 1e9, "s"),
        ],
        [f"{n:,} calls and as many exchanges of the same bytes in turn, k = {K}, one process"],
    )


def command(n: int) -> tuple[list[int], list[int]]:
    """Nanoseconds of ``n`` calls, and of as many exchanges of the same bytes between them."""
    retriever = Command(command=faulty_program.command())
    query = Query("q1", "six terms of a synthetic query")
    line = query_line(query, K)
    try:
        retriever.search(query, K)
        child: Any = retriever._child
        called, bare = [], []
        for _ in range(n):
            begin = perf_counter_ns()
            retriever.search(query, K)
            called.append(perf_counter_ns() - begin)
            begin = perf_counter_ns()
            _exchange(child._in, child._out, line)
            bare.append(perf_counter_ns() - begin)
    finally:
        retriever.close()
    return called, bare


def _exchange(stdin: int, stdout: int, line: bytes) -> bytes:
    os.write(stdin, line)
    answer = b""
    while not answer.endswith(b"\n"):
        select.select([stdout], [], [])
        answer += os.read(stdout, 1 << 16)
    return answer
