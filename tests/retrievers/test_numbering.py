from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.scripts import ScriptSample
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.lexical import corpus, numbering
from retrieval_bench_retrievers.lexical.bm25 import BM25
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer
from tests.builders.processes import completed

WORDS = [
    *("search", "searching", "Études", "naïve", "Straße", "1,000.5", "don't", "e\u0301t\u00e9"),
    *("검색은", "성능을", "数据库", "検索エンジン", "ภาษาไทย", "поиск", "🚀", "हिन्दी"),
]


def _documents(n: int, seed: int = 3) -> list[Document]:
    """Ids that do not come in their order; some documents are empty."""
    rng = random.Random(seed)
    return [
        Document(str(at), " ".join(rng.choices([*WORDS, f"w{at}"], k=rng.randint(0, 12))))
        for at in range(n)
    ]


def _rankings(retriever: BM25) -> list[list[tuple[str, float]]]:
    texts = ["searching études", "검", "数据 поиск", "🚀 1,000.5 w7", "naive search don't"]
    return [[*retriever.search(Query("q", text), 50)] for text in texts]


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> list[numbering.OtherProcess]:
    """Other processes help from the second block on; those that were started."""
    started: list[numbering.OtherProcess] = []

    class Seen(numbering.OtherProcess):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            started.append(self)

    monkeypatch.setattr(numbering, "OtherProcess", Seen)
    monkeypatch.setattr(numbering, "_ALONE", 1)
    monkeypatch.setattr(numbering, "usable_cores", lambda: 3)
    monkeypatch.setattr(corpus, "_BLOCK", 7)
    return started


def test_an_index_is_the_same_whoever_numbered_its_terms(
    others: list[numbering.OtherProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = _documents(300)
    helped, alone = BM25(), BM25()
    helped.index(documents)
    assert len(others) == 2
    monkeypatch.setattr(numbering, "usable_cores", lambda: 1)
    alone.index(documents)
    assert len(others) == 2
    assert list(helped._vocabulary) == list(alone._vocabulary)
    assert _rankings(helped) == _rankings(alone)
    assert helped.describe() == alone.describe()


def test_what_a_process_numbers_is_what_this_one_does() -> None:
    texts = [document.text for document in _documents(20)]
    other = numbering.OtherProcess(("auto", "fr"))
    try:
        first, second = other.number(texts[:10]).result(), other.number(texts[5:]).result()
    finally:
        other.end()
    own = numbering.Numbering(make_tokenizer("auto", "fr"))
    assert (first, second) == (own.of(texts[:10]), own.of(texts[5:]))
    assert not set(first.new) & set(second.new)


def test_terms_have_the_order_in_which_they_come_first_and_documents_that_of_their_ids() -> None:
    texts = {"b": "two one", "a": "three two", "c": "", "B": "one four one"}
    retriever = BM25(tokenizer="whitespace")
    read = retriever._read([Document(*item) for item in texts.items()], ScriptSample())
    assert list(read.vocabulary) == ["two", "one", "three", "four"]
    assert read.ids == ["B", "a", "b", "c"]
    assert [numbers.tolist() for numbers in read] == [[1, 3, 1], [2, 0], [0, 1], []]
    assert read.tokens.dtype == np.int32


def test_a_killed_process_is_told(others: list[numbering.OtherProcess]) -> None:
    def documents() -> Iterator[Document]:
        for document in _documents(500):
            if document.id == "30":
                others[0]._process.kill()
            yield document

    retriever = BM25()
    with pytest.raises(ConfigError, match="tokenizes ended by signal 9") as told:
        retriever.index(documents())
    assert "nothing of the index was kept" in str(told.value)
    assert all(other._process.poll() is not None for other in others)


def test_a_process_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_START", "import nothing_of_this_name  # {}")
    other = numbering.OtherProcess(("auto", None))
    try:
        with pytest.raises(ConfigError, match=r"with status 1: ModuleNotFoundError.*this_name"):
            other.number(["text"]).result()
    finally:
        other.end()


def test_ctrl_c_ends_all_processes(others: list[numbering.OtherProcess]) -> None:
    def documents() -> Iterator[Document]:
        yield from _documents(100)
        others[0].number(["it has begun"]).result()
        os.kill(others[0]._process.pid, signal.SIGINT)  # a terminal sends it to all of them
        assert others[0].number(["still there"]).result().new
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BM25().index(documents())
    assert all(other._process.poll() is not None for other in others)


_SCRIPT = """
from retrieval_bench.core.scripts import ScriptSample
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.lexical import corpus, numbering
from retrieval_bench_retrievers.lexical.bm25 import BM25
corpus._BLOCK, numbering._ALONE, numbering.usable_cores = 5, 1, lambda: 2
BM25().index([Document(str(at), f"text {at}") for at in range(100)])
print("once")
"""


def test_the_script_of_whoever_builds_an_index_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    done = completed(sys.executable, str(script), cwd=tmp_path)
    assert done.stdout.split() == ["once"]
