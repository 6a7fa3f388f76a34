"""What a chunker adds to indexing 100,000 chunks, beside indexing them ready-made; and scoring.

Processor time of this process and of those that tokenize for it: it is not changed by whatever else
the machine does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.metrics import Judgements, default_metrics, judge_lists
from retrieval_bench_chunks import chunked
from retrieval_bench_chunks.chunked import Chunks, Cut, in_front
from retrieval_bench_chunks.judging import decide
from retrieval_bench_retrievers.lexical.bm25 import BM25
from tests.benchmarks.corpus import make_corpus
from tests.benchmarks.report import Group, Options, Row

CUTS = {"characters": 800, "sentences": 800, "paragraphs": 800, "recursive": 800, "tokens": 200}
AT_MOST = {"tokens": 1.5}
_AT_MOST_BESIDE_DENSE, _ENCODED = 1.03, 1_000
_SENTENCES, _PARAGRAPH = 40, 4


def measure(options: Options) -> Group:
    """Rows for each chunker, and for the metrics of 500 questions."""
    n_chunks, turns = (300, 1) if options.quick else (100_000, 3)
    rows = [_added(by, size, n_chunks, turns) for by, size in CUTS.items()]
    rows.append(_beside_encoding(30 if options.quick else _ENCODED))
    return Group(
        f"Chunks: bm25's index of about {n_chunks:,} chunks",
        [*rows, _scored(50 if options.quick else 500)],
        [
            "processor time, least of some turns; ours: documents are cut as they are indexed",
            "beside it: the same chunks, ready in memory; dense-light: its index, and with cutting",
            "scoring: alignment, all metrics that are shown and recall over tokens, 20 hits each",
        ],
    )


def _added(by: str, size: int, n_chunks: int, turns: int) -> Row:
    documents = list(_documents(n_chunks, size if by != "tokens" else 3 * size))
    front = in_front(BM25(), {"by": by, "size": size, "overlap": size // 10}, "benchmark", None)
    ready = list(Chunks(documents, Cut(front.chunker)))
    ours, theirs = list[float](), list[float]()
    for _ in range(turns):
        chunked._cuts.clear()
        ours.append(_processor(lambda: front.index(documents)))
        theirs.append(_processor(lambda: BM25().index(ready)))
    what = f"{by} of {size}, {len(ready):,} chunks"
    at_most = AT_MOST.get(by, 1.15)
    return Row(what, min(ours), "s", min(theirs), "ready-made", at_most=at_most)


def _beside_encoding(n_chunks: int) -> Row:
    """Cutting by tokens beside encoding what comes of it: both grow with the number of chunks, and
    encoding 100,000 takes hours of processor time."""
    documents = list(_documents(n_chunks, 600))
    front = in_front(BM25(), {"by": "tokens", "size": 200, "overlap": 20}, "benchmark", None)
    ready = list(Chunks(documents, Cut(front.chunker)))
    dense = load_retriever_config("dense-light", ["cache=false"]).build()
    dense.prepare()
    theirs = _processor(lambda: dense.index(ready))
    cut = min(_processor(lambda: list(Chunks(documents, Cut(front.chunker)))) for _ in range(3))
    what = f"tokens of 200, {len(ready):,} chunks, dense-light"
    return Row(what, theirs + cut, "s", theirs, "ready-made", at_most=_AT_MOST_BESIDE_DENSE)


def _documents(n_chunks: int, size: int) -> Iterator[Document]:
    """Documents of sentences and paragraphs, about as many characters as the chunks have."""
    words = " ".join(document.text for document in make_corpus(2_000, 0).documents).split(" ")
    chance, left, n = np.random.default_rng(11), n_chunks * size, 0
    while left > 0:
        lengths = chance.integers(6, 30, _SENTENCES)
        starts = chance.integers(0, len(words) - 30, _SENTENCES)
        both = zip(starts.tolist(), lengths.tolist(), strict=True)
        sentences = [" ".join(words[start : start + m]).capitalize() + "." for start, m in both]
        parts = (sentences[at : at + _PARAGRAPH] for at in range(0, _SENTENCES, _PARAGRAPH))
        text = "\n\n".join(map(" ".join, parts))
        yield Document(f"d{n:06d}", text)
        n, left = n + 1, left - len(text)


def _scored(n: int) -> Row:
    documents: Any = list(_documents(n * 20, 800))
    chance = np.random.default_rng(12)
    front = in_front(BM25(), {"by": "sentences", "size": 800}, "benchmark", None)
    ids = [chunk.id for chunk in Chunks(documents, Cut(front.chunker))]
    lists = [[ids[at] for at in chance.integers(0, len(ids), 20)] for _ in range(n)]
    lists = [list(dict.fromkeys(of)) for of in lists]
    queries = []
    for number, hits in enumerate(lists):
        truth = [{"document": hits[3].partition("#")[0], "start": 100, "end": 400}]
        queries.append(Query(f"q{number}", "?", metadata={"spans": truth}))
    data = build_dataset("made", documents, queries, None)
    query_ids = [query.id for query in queries]
    rankings = list(map(Ranking, lists))

    def score() -> None:
        decided = decide(data.qrels, query_ids, rankings, range(n), 20).qrels
        run = judge_lists(dict(zip(query_ids, lists, strict=True)), query_ids, Judgements(decided))
        for metric in default_metrics(20, decided):
            metric.compute(run)

    score()
    seconds = min(_processor(score) for _ in range(3))
    return Row(f"scoring {n} questions", seconds, "s", at_most=1.0, absolute=True)


def _processor(work: Callable[[], object]) -> float:
    """Seconds of processor time, of other processes, too, once they have ended."""
    before = os.times()
    work()
    return sum(os.times()[:4]) - sum(before[:4])
