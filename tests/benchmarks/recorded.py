"""Memory for a million recorded calls, in a process of its own: prints it as JSON."""

from __future__ import annotations

import json
import sys

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.measure.calls import System
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.runner import measure
from tests.benchmarks import memory

QUERIES = 1_000
STAGES = ("tokenize", "sparse")


class _Staged(Retriever):
    """Answers at once, and reports two stages."""

    _answer = Ranking(("a",), (1.0,), stages=dict.fromkeys(STAGES, 1_000))

    def search(self, query: Query, k: int) -> Ranking:
        return self._answer


def main(n_calls: int) -> None:
    """Record ``n_calls`` calls."""
    queries = [Query(f"q{i}", "text") for i in range(QUERIES)]
    measure([System("staged", _Staged())], queries, 10, Protocol(rounds=1))  # everything is loaded
    protocol = Protocol(rounds=n_calls // QUERIES, warm_up_s=0.0, timeout_s=None)
    (found,), grown = memory.grown(
        lambda: measure([System("staged", _Staged())], queries, 10, protocol)
    )
    print(json.dumps({"calls": len(found.timings.wall_ns), "bytes": grown}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
