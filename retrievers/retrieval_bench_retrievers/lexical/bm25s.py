"""BM25 by the bm25s library with its numba backend, under this project's tie and candidate rules.

The library builds the index and scores; its own selection is not used: it knows no tie rule, fills
up with documents that have no term of the query, and takes no less time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import require
from retrieval_bench_retrievers.lexical.corpus import (
    LexicalRetriever,
    TokenizedCorpus,
    checked_number,
)
from retrieval_bench_retrievers.lexical.inverted_index import best_allowed
from retrieval_bench_retrievers.text.tokenizers import TokenizerSpec

Variant = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]

_WITH_DELTA = ("bm25l", "bm25+")


class BM25S(LexicalRetriever):
    """BM25 in the formulas of bm25s, scores in single precision.

    Args:
        variant: the library's ``method``.
        k1: how soon more occurrences of a term stop counting, at least 0.
        b: how much long documents are held back, 0 to 1.
        delta: for ``bm25l`` and ``bm25+``; the library's own when None.
        tokenizer: how texts become terms:
    """

    variants = get_args(Variant)

    def __init__(
        self,
        *,
        variant: Variant = "lucene",
        k1: float = 0.9,
        b: float = 0.4,
        delta: float | None = None,
        tokenizer: TokenizerSpec = "auto",
    ) -> None:
        for package in ("bm25s", "numba"):
            require(package, "bm25s", "retriever bm25s")
        super().__init__(tokenizer, variant, k1, b)
        if delta is not None:
            if variant not in _WITH_DELTA:
                raise ConfigError(f"variant {variant!r} has no delta", accepted="k1, b")
            self._params["delta"] = checked_number("delta", delta)
        self._model: Any = None

    def describe(self) -> Mapping[str, Any]:
        """See :meth:`retrieval_bench.core.retriever.Retriever.describe`."""
        from importlib.metadata import version

        library = f"bm25s {version('bm25s')}"
        return {"library": library, "backend": "numba", **super().describe()}

    def _build(self, corpus: TokenizedCorpus) -> None:
        self._model = None
        if not corpus.vocabulary:
            return  # the library divides by the average length
        import bm25s

        # One int object for each term: a list of new ones for each document takes four times more.
        numbers = list(range(len(corpus.vocabulary)))
        documents = [list(map(numbers.__getitem__, terms.tolist())) for terms in corpus]
        model = bm25s.BM25(method=self._variant, backend="numba", **self._params)
        model.index((documents, corpus.vocabulary), create_empty_token=False, show_progress=False)
        # In the numba backend only retrieve() is compiled from the start. The compiled scorer is
        # kept: compiling it for each model would cost every index() a third of a second.
        model._compute_relevance_from_scores = _compiled_scorer()
        model.get_scores_from_ids([0])  # compiles now, not in the first query
        self._model = model

    def _rank(
        self, counts: Mapping[int, int], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        terms = [term for term, count in counts.items() for _ in range(count)]
        scores = self._model.get_scores_from_ids(terms)
        best = best_allowed(scores, k, allowed)
        if scores[best[-1]] <= self._score_without_terms(terms):
            candidates = self._with_any(terms)
            candidates &= True if allowed is None else allowed
            best = best_allowed(scores, k, candidates)
        return best, scores[best].astype(np.float64)

    def _with_any(self, terms: list[int]) -> NDArray[np.bool_]:
        """Return which documents have one of ``terms``."""
        index = self._model.scores
        mask = np.zeros(index["num_docs"], dtype=np.bool_)
        for term in terms:
            mask[index["indices"][index["indptr"][term] : index["indptr"][term + 1]]] = True
        return mask

    def _score_without_terms(self, terms: list[int]) -> float:
        """Return the score of a document without any of ``terms``, rounded up a little."""
        background = self._model.nonoccurrence_array
        return 0.0 if background is None else float(background[terms].sum()) * (1 + 1e-5)

    def _index_bytes(self) -> int:
        if self._model is None:
            return 0
        arrays = (self._model.scores[name] for name in ("data", "indices", "indptr"))
        return sum(array.nbytes for array in arrays)


@cache
def _compiled_scorer() -> Any:
    """The library's scorer, compiled by numba at its first call in this process."""
    import bm25s

    model = bm25s.BM25(backend="numba")
    model.activate_numba_scorer()
    return model._compute_relevance_from_scores
