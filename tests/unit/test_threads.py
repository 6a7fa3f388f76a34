"""Searches are timed under a limit of threads: seen from inside a search."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from harness import Document, Query, Ranking, Retriever, bench
from harness.data import build_dataset
from harness.measure.protocol import Protocol
from harness.measure.threads import apply_to_this_thread, search_threads

SEVERAL = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: no limit can be seen")


def most_threads() -> int:
    np.ones((2, 2)) @ np.ones((2, 2))  # loads the library of numpy
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


class Looking(Retriever):
    def __init__(self) -> None:
        self.while_indexing: list[int] = []
        self.while_searching: list[int] = []

    def index(self, documents: Iterable[Document]) -> None:
        self.while_indexing.append(most_threads())

    def search(self, query: Query, k: int) -> Ranking:
        self.while_searching.append(most_threads())
        return Ranking(["d"], [1.0])


@SEVERAL
@pytest.mark.parametrize("threads", [1, 2])
def test_all_cores_index_and_the_stated_number_searches(threads: int) -> None:
    data = build_dataset(
        "one", [Document("d", "x")], [Query("q", "x")], {"q": {"d": 1}}, split="test", language=None
    )
    retriever = Looking()
    result = bench(retriever, data, protocol=Protocol(rounds=1, threads=threads))
    assert max(retriever.while_indexing) > 1
    assert set(retriever.while_searching) == {threads}
    assert result.run.manifest["environment"]["threads"] == threads
    assert most_threads() > 1, "the limit is lifted again"


@SEVERAL
def test_a_thread_of_a_retriever_gets_the_limit_too() -> None:
    seen: list[int] = []

    def work() -> None:
        apply_to_this_thread()
        seen.append(most_threads())

    with search_threads(1):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert seen == [1]


def test_a_library_that_cannot_use_that_many_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn:
        @staticmethod
        def set_num_threads(n: int) -> None:
            if n > 2:
                raise ValueError("between 1 and 2")

        @staticmethod
        def get_num_threads() -> int:
            return 2

    stubborn: Any = Stubborn
    monkeypatch.setitem(sys.modules, "numba", stubborn)
    with search_threads(4) as complaints:
        pass
    assert any("does not use 4 threads: between 1 and 2" in text for text in complaints)
