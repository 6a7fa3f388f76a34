"""Searches are timed under a limit of threads: what is set, and what libraries make of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from retrieval_bench import Document, Query, Ranking, Retriever, bench
from retrieval_bench.data import build_dataset
from retrieval_bench.measure import threads as subject
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.threads import (
    apply_to_this_thread,
    environment_faults,
    imported_before,
    prepare_environment,
    search_threads,
)
from tests.builders.processes import python, several_cores

SEVERAL = pytest.mark.skipif(not several_cores(), reason="one core: no limit can be seen")


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
    result = bench(retriever, data, protocol=Protocol(rounds=1, warm_up_s=0, threads=threads))
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


class Counting(ModuleType):
    """A library with threads of its own; ``obeys`` says whether a limit has an effect."""

    def __init__(self, name: str, count: int, *, obeys: bool = True) -> None:
        super().__init__(name)
        self.count = count

        def put(n: int) -> None:
            self.count = n if obeys else self.count

        self.set_num_threads = put
        self.get_num_threads = lambda: self.count
        put.__module__ = self.get_num_threads.__module__ = name


def test_a_library_with_a_count_of_its_own_is_limited_and_freed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Counting("numexpr", 8)
    monkeypatch.setitem(sys.modules, "numexpr", library)
    with search_threads(1) as complaints:
        assert library.count == 1
    assert library.count == 8
    assert not [text for text in complaints if "numexpr" in text]


def test_what_a_library_really_uses_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numexpr", Counting("numexpr", 8, obeys=False))
    with search_threads(1) as complaints:
        pass
    assert [text for text in complaints if "numexpr uses 8 threads instead of 1" in text]


def test_a_library_that_came_with_the_first_search_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with search_threads(1) as complaints:
        assert not [text for text in complaints if "numexpr" in text]
        monkeypatch.setitem(sys.modules, "numexpr", Counting("numexpr", 8))
    [told] = [text for text in complaints if "numexpr" in text]
    assert "import it before the measurement" in told


# Variables


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process in which nothing was prepared, set or loaded."""
    for name in [*os.environ]:
        if name.endswith("_NUM_THREADS") or name in {
            "TOKENIZERS_PARALLELISM",
            "VECLIB_MAXIMUM_THREADS",
        }:
            monkeypatch.delenv(name)
    # set and deleted, so that what a test sets is taken back
    for name in ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name in subject.HEAVY:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(subject, "_ours", {})
    monkeypatch.setattr(subject, "_first", None)
    monkeypatch.setattr(subject, "_late_pool", False)
    monkeypatch.setattr(subject, "numpy_blas", lambda: {"name": "openblas", "version": "1"})
    return monkeypatch


def load(patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setitem(sys.modules, name, ModuleType(name))


def test_only_what_cannot_be_limited_later_is_set(fresh: pytest.MonkeyPatch) -> None:
    before = set(os.environ)
    prepare_environment(3)
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert os.environ["RAYON_NUM_THREADS"] == "3"
    assert set(os.environ) - before == {"TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS"}


def test_one_thread_is_the_default_and_a_later_call_without_a_number_keeps_it(
    fresh: pytest.MonkeyPatch,
) -> None:
    prepare_environment()
    assert os.environ["RAYON_NUM_THREADS"] == "1"
    prepare_environment(4)
    prepare_environment()
    assert os.environ["RAYON_NUM_THREADS"] == "4"


def test_what_the_user_set_stays(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("RAYON_NUM_THREADS", "7")
    fresh.setenv("TOKENIZERS_PARALLELISM", "true")
    prepare_environment(1)
    assert os.environ["RAYON_NUM_THREADS"] == "7"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


@pytest.mark.parametrize("user", [None, "false"])
def test_libraries_that_came_before_are_a_fact_and_no_fault(
    fresh: pytest.MonkeyPatch, user: str | None
) -> None:
    if user:
        fresh.setenv("TOKENIZERS_PARALLELISM", user)
        fresh.setenv("RAYON_NUM_THREADS", "1")
    load(fresh, "torch")
    load(fresh, "tokenizers")
    prepare_environment(1)
    load(fresh, "faiss")
    prepare_environment(1)
    assert imported_before() == ["torch", "tokenizers"]
    assert environment_faults(1) == []


def test_tokenizers_that_the_user_made_parallel_before_are_told(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("TOKENIZERS_PARALLELISM", "true")
    load(fresh, "tokenizers")
    prepare_environment(1)
    [told] = environment_faults(1)
    assert "TOKENIZERS_PARALLELISM=true is set, and tokenizers was imported before" in told
    assert "unset it, or import retrieval_bench and run it first" in told


def test_parallel_tokenizers_are_told_when_their_threads_are_others(
    fresh: pytest.MonkeyPatch,
) -> None:
    fresh.setenv("TOKENIZERS_PARALLELISM", "1")
    fresh.setenv("RAYON_NUM_THREADS", "8")
    prepare_environment(2)
    assert environment_faults(2) == [], "nothing that reads it is loaded"
    load(fresh, "tokenizers")
    [told] = environment_faults(2)
    assert "tokenizers may use 8 threads in a timed call instead of 2; unset it" in told
    assert environment_faults(8) == []


@pytest.mark.parametrize(("value", "faults"), [("1", 1), ("64000", 0), ("", 0), ("a", 0)])
def test_a_limit_of_the_users_that_slows_indexing_is_told(
    fresh: pytest.MonkeyPatch, value: str, faults: int
) -> None:
    if hasattr(os, "sched_getaffinity"):
        fresh.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    fresh.setattr(os, "cpu_count", lambda: 4)
    fresh.setenv("OMP_NUM_THREADS", value)
    assert environment_faults(1) == [], "nothing encodes"
    load(fresh, "torch")
    found = environment_faults(1)
    assert len(found) == faults
    for told in found:
        assert told.startswith("OMP_NUM_THREADS=1 is set: encoding uses 1 of 4 cores; unset it")


def test_accelerate_can_only_be_limited_by_the_user(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(subject, "numpy_blas", lambda: {"name": "accelerate", "version": "1"})
    [told] = environment_faults(2)
    assert "set VECLIB_MAXIMUM_THREADS=2" in told
    fresh.setenv("VECLIB_MAXIMUM_THREADS", "2")
    assert environment_faults(2) == []


PARALLEL = """
import os
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers
from retrieval_bench.measure.threads import prepare_environment
prepare_environment()
words = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
before = len(os.listdir("/proc/self/task"))
words.encode_batch(["a b c " * 50] * 500)
print(len(os.listdir("/proc/self/task")) - before)
"""


@SEVERAL
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.needs("tokenizers")
@pytest.mark.parametrize("user", [None, "true"])
def test_tokenizers_obey_also_when_they_were_imported_before(
    monkeypatch: pytest.MonkeyPatch, user: str | None
) -> None:
    ours: dict[str, Any] = {"TOKENIZERS_PARALLELISM": user} if user else {}
    for name in ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert int(python(PARALLEL, PYTHONPATH=os.pathsep.join(sys.path), **ours)) == bool(user)
