"""bm25, one query at a time, beside rank-bm25 and bm25s on the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrieval_bench.core.types import Query
from retrieval_bench.measure.threads import search_threads
from retrieval_bench_retrievers.lexical.bm25 import BM25
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer
from tests.benchmarks.corpus import Corpus, make_corpus
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle, race

K1, B = 0.9, 0.4


def measure(options: Options) -> Group:
    """Rows for k = 10 and k = 100."""
    n_documents, n_queries = (1_000, 20) if options.quick else (100_000, 500)
    every = 10 if options.quick else 20
    corpus = make_corpus(n_documents, n_queries)
    sides = _Sides(corpus)
    difference = sides.largest_difference(5)
    rows = [row for k in (10, 100) for row in _rows(sides, k, n_queries, every)]
    return Group(
        f"bm25: p50 of a search in {n_documents:,} documents",
        rows,
        [
            (
                f"{n_queries} queries of six terms, one thread; rank-bm25 on every {every}th of "
                "them (it walks all documents for any query)"
            ),
            (
                "ours is all of search(), tokenizing and ids included; the others get tokens and "
                "give positions: get_scores + argpartition, retrieve() compiled by numba"
            ),
            (
                f"documents of 30-150 words ({corpus.raw_bytes / 1e6:.0f} MB), 50,000 words by "
                f"Zipf s = 1.05; Okapi k1 {K1}, b {B} (bm25s: its variant lucene)"
            ),
            f"largest relative difference of our top 100 to rank-bm25's scores: {difference:.1e}",
        ],
    )


class _Sides:
    """Three indexes over one corpus, searched by the number of a query."""

    def __init__(self, corpus: Corpus) -> None:
        import bm25s
        import rank_bm25

        tokenize = make_tokenizer("auto")
        self.queries: list[Query] = corpus.queries
        self.tokens = [tokenize(query.text) for query in corpus.queries]
        documents = [tokenize(document.text) for document in corpus.documents]
        self._ours = BM25(k1=K1, b=B)
        self._ours.index(corpus.documents)
        self._rank_bm25: Any = rank_bm25.BM25Okapi(documents, k1=K1, b=B)
        self._bm25s: Any = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
        self._bm25s.index(documents, show_progress=False)

    def ours(self, k: int, tokenizing: list[int]) -> Callable[[int], object]:
        def search(turn: int) -> None:
            ranking = self._ours.search(self.queries[turn], k)
            tokenizing.append(ranking.stages["tokenize"])

        return search

    def rank_bm25(self, k: int) -> Callable[[int], object]:
        def search(turn: int) -> Any:
            scores = self._rank_bm25.get_scores(self.tokens[turn])
            best = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
            return best[np.argsort(-scores[best])]

        return search

    def bm25s(self, k: int) -> Callable[[int], object]:
        def search(turn: int) -> Any:
            return self._bm25s.retrieve([self.tokens[turn]], k=k, n_threads=0, show_progress=False)

        return search

    def largest_difference(self, n_queries: int) -> float:
        """Ours to rank-bm25's, relative, over the best 100 of some queries: a race between
        different answers would mean nothing."""
        largest = 0.0
        for query, tokens in list(zip(self.queries, self.tokens, strict=True))[:n_queries]:
            expected = np.sort(self._rank_bm25.get_scores(tokens))[::-1]
            scores = np.asarray(self._ours.search(query, 100).scores)
            theirs = expected[: len(scores)]
            largest = max(largest, float(np.max(np.abs(scores - theirs) / theirs, initial=0.0)))
        return largest


def _rows(sides: _Sides, k: int, n_queries: int, every: int) -> list[Row]:
    tokenizing: list[int] = []
    ours, bm25s = sides.ours(k, tokenizing), sides.bm25s(k)
    for turn in range(min(20, n_queries)):  # bm25s compiles at its first search
        ours(turn), bm25s(turn)
    tokenizing.clear()
    with search_threads(1):
        walls = race(
            {"ours": ours, "bm25s": bm25s, "rank-bm25": sides.rank_bm25(k)},
            n_queries,
            {"rank-bm25": every},
        )
    whole, slow, fast = (middle(walls[name]) for name in ("ours", "rank-bm25", "bm25s"))
    on_tokens = middle(walls["ours"] - np.array(tokenizing) / 1e9)
    return [
        Row(f"k = {k}", whole, "s", slow, "rank-bm25", at_most=1 / 300),
        Row(f"k = {k}", whole, "s", fast, "bm25s", at_most=2),
        Row(f"k = {k}, without tokenizing", on_tokens, "s", slow, "rank-bm25"),
        Row(f"k = {k}, without tokenizing", on_tokens, "s", fast, "bm25s"),
    ]
