"""BM25 with the model of rank-bm25 and the speed of an inverted index.

The library counts the corpus and computes its term weights; its scores are taken apart into one
contribution for each posting, once, instead of being computed from dictionaries at every query.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.index_files import code_hash
from retrieval_bench_retrievers.lexical.corpus import (
    LexicalRetriever,
    TokenizedCorpus,
    checked_number,
)
from retrieval_bench_retrievers.lexical.inverted_index import CHUNK, InvertedIndex, Postings
from retrieval_bench_retrievers.text import tokenizers
from retrieval_bench_retrievers.text.tokenizers import TokenizerSpec

Variant = Literal["okapi", "l", "plus"]

_RUN = 1 << 23
"""Tokens that are counted at a time, at least."""


class BM25(LexicalRetriever):
    """BM25 in the formulas of rank-bm25: Okapi, L or Plus.

    Scores are those of the library's ``get_scores`` to 1e-5 relative; documents that share no term
    with the query are not returned, though Plus gives them a score.

    Args:
        variant: formula of the library: ``okapi`` (BM25Okapi), ``l`` (BM25L), ``plus`` (BM25Plus).
        k1: how soon more occurrences of a term stop counting, at least 0.
        b: how much long documents are held back, 0 to 1.
        delta: lower bound of a term's part, for ``l`` and ``plus``; the library's own when None.
        epsilon: weight of terms in more than half of the documents as a share of the average
            weight, for ``okapi``; the library's own when None.
        tokenizer: how texts become terms:
    """

    variants = get_args(Variant)
    _variant: Variant

    def __init__(
        self,
        *,
        variant: Variant = "okapi",
        k1: float = 0.9,
        b: float = 0.4,
        delta: float | None = None,
        epsilon: float | None = None,
        tokenizer: TokenizerSpec = "auto",
    ) -> None:
        super().__init__(tokenizer, variant, k1, b)
        taken = "epsilon" if variant == "okapi" else "delta"
        for name, value in (("delta", delta), ("epsilon", epsilon)):
            if value is None:
                continue
            if name != taken:
                raise ConfigError(f"variant {variant!r} has no {name}", accepted=f"k1, b, {taken}")
            self._params[name] = checked_number(name, value)
        self._index: InvertedIndex | None = None
        self._background: NDArray[np.float64] = np.empty(0)

    def describe(self) -> Mapping[str, Any]:
        """See :meth:`retrieval_bench.core.retriever.Retriever.describe`."""
        from importlib.metadata import version

        return {"library": f"rank-bm25 {version('rank-bm25')}", **super().describe()}

    def index_identity(self) -> Mapping[str, Any] | None:
        """Parameters and tokenizer, with the code and the libraries behind both; None of a class of
        a user's, whose code is not known."""
        from importlib.metadata import version

        if type(self) is not BM25:
            return None
        return {
            "kind": "bm25",
            "variant": self._variant,
            **self._params,
            "tokenizer": self._tokenize.describe(),
            "fields": list(self._fields),
            "versions": {name: version(name) for name in ("rank-bm25", "PyStemmer")},
            "code": code_hash(__file__, tokenizers.__file__),
        }

    def save(self, folder: Path) -> None:
        """See :meth:`retrieval_bench.core.retriever.Retriever.save`."""
        self._save_corpus(folder)
        np.save(folder / "background.npy", self._background)
        if self._index is not None:
            self._index.save(folder)

    def load(self, folder: Path) -> None:
        """Load what :meth:`save` wrote: arrays are mapped into memory."""
        self._background = np.load(folder / "background.npy")
        self._index = InvertedIndex.load(folder) if len(self._background) else None
        self._load_corpus(folder)

    def _build(self, corpus: TokenizedCorpus) -> None:
        self._index = None
        n_terms = len(corpus.vocabulary)
        self._background = np.zeros(n_terms)
        if not n_terms:
            return  # the library divides by the number of documents and of terms
        frequencies = _by_term(corpus)
        model = _model(self._variant, corpus, frequencies, self._params)
        idf = np.empty(n_terms)
        idf[np.fromiter(model.idf, np.intp)] = np.fromiter(model.idf.values(), np.float64)
        weigh = _weighing(self._variant, model, idf, frequencies)
        if self._variant == "plus":
            # Every query term adds this to every document, also to those without it.
            self._background = idf * model.delta
        self._index = InvertedIndex(
            Postings(len(corpus.ids), frequencies.starts, frequencies.positions, weigh)
        )

    def _rank(
        self, counts: Mapping[int, int], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        if self._index is None:
            return np.empty(0, dtype=np.intp), np.empty(0)
        positions, scores = self._index.search(counts, k, allowed)
        if self._variant == "plus":
            scores += sum(self._background[term] * count for term, count in counts.items())
        return positions, scores

    def _index_bytes(self) -> int:
        return self._background.nbytes + (self._index.nbytes if self._index else 0)


class _Frequencies(NamedTuple):
    """Occurrences by term: postings of term t are those from starts[t] to starts[t + 1]; ``order``
    is that in which terms come first, which is the order of the library's sums."""

    starts: NDArray[np.int64]
    positions: NDArray[np.int32]
    frequencies: NDArray[np.unsignedinteger[Any]]
    order: NDArray[np.intp]


def _by_term(corpus: TokenizedCorpus) -> _Frequencies:
    """Count the tokens by term instead of by document, in runs that are merged when the tokens are
    gone; the corpus then holds them no more."""
    tokens, corpus.tokens = corpus.tokens, np.empty(0, dtype=np.int32)
    order = _first_order(tokens, len(corpus.vocabulary))
    runs = deque(_runs(tokens, corpus.lengths, len(corpus.vocabulary)))
    del tokens
    starts = np.append(0, np.cumsum(sum(np.diff(run.indptr) for run in runs), dtype=np.int64))
    positions = np.empty(starts[-1], np.int32)
    frequencies = np.empty(starts[-1], runs[0].dtype)
    first, free = 0, starts[:-1]
    while runs:
        run = runs.popleft()
        held = np.diff(run.indptr)
        places = np.repeat(free - run.indptr[:-1], held) + np.arange(run.nnz)
        positions[places], frequencies[places] = run.indices + first, run.data
        first, free = first + run.shape[0], free + held
    return _Frequencies(starts, positions, frequencies, order)


def _runs(tokens: NDArray[np.int32], lengths: NDArray[np.int64], n_terms: int) -> Iterator[Any]:
    """Arrays of scipy by term, each of the next documents: of all at once, its temporary arrays
    would take more memory than the index."""
    from scipy.sparse import csr_array

    most = np.min_scalar_type(int(lengths.max()))
    bounds = np.append(0, np.cumsum(lengths))
    size = max(_RUN, 4 * n_terms)  # the bounds of all runs together stay smaller than the tokens
    cuts = np.searchsorted(bounds, range(0, len(tokens), size)).tolist()
    for first, last in pairwise(dict.fromkeys([*cuts, len(lengths)])):
        own = bounds[first : last + 1]
        # Bounds of 64 bits would make scipy take them everywhere.
        part, ends = tokens[own[0] : own[-1]], (own - own[0]).astype(np.int32)
        ones = np.ones(len(part), dtype=most)
        run = csr_array((ones, part, ends), (last - first, n_terms)).tocsc()
        run.sum_duplicates()
        yield run


def _model(
    variant: Variant,
    corpus: TokenizedCorpus,
    frequencies: _Frequencies,
    params: Mapping[str, float],
) -> Any:
    """The library's own model of ``corpus``, whose weights of terms it computes; the counts, which
    it makes of dictionaries, are given to it."""
    import rank_bm25

    library = getattr(rank_bm25, f"BM25{variant.capitalize()}")

    def counted(model: Any, _: object) -> dict[int, int]:
        model.corpus_size, model.doc_len = len(corpus.ids), corpus.lengths
        model.avgdl = int(corpus.lengths.sum()) / len(corpus.ids)
        documents = np.diff(frequencies.starts)[frequencies.order]
        return dict(zip(frequencies.order.tolist(), documents.tolist(), strict=True))

    return type(library.__name__, (library,), {"_initialize": counted})((), **params)


def _first_order(tokens: NDArray[np.int32], n_terms: int) -> NDArray[np.intp]:
    """Terms in the order in which they come first."""
    first = np.empty(n_terms, dtype=np.int64)
    for start in reversed(range(0, len(tokens), CHUNK)):
        part = tokens[start : start + CHUNK]
        first[part[::-1]] = np.arange(start + len(part) - 1, start - 1, -1)
    return np.argsort(first)


def _weighing(
    variant: Variant, model: Any, idf: NDArray[np.float64], frequencies: _Frequencies
) -> Callable[[slice], NDArray[Any]]:
    """A function that computes the contribution of each posting to the score of its document.

    In single precision, unless a term counts negatively: sums of mixed signs may cancel, and then
    an error of 6e-8 in a part can be any error in the sum.
    """
    starts, positions, counts, _ = frequencies
    dtype = np.float64 if (idf < 0).any() else np.float32
    formula = _l_weights if variant == "l" else _okapi_weights
    lengths = model.doc_len / model.avgdl

    def weigh(part: slice) -> NDArray[Any]:
        first, last = np.searchsorted(starts, (part.start, part.stop - 1), "right") - 1
        edges: NDArray[np.int64] = np.clip(starts[first : last + 2], part.start, part.stop)
        idfs = np.repeat(idf[first : last + 1], np.diff(edges))
        return formula(model, idfs, counts[part], lengths[positions[part]]).astype(dtype)

    return weigh


def _okapi_weights(
    model: Any,
    idf: NDArray[np.float64],
    frequency: NDArray[np.unsignedinteger[Any]],
    length: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The formula of BM25Okapi; that of BM25Plus without the part that every document gets."""
    saturation = model.k1 * (1 - model.b + model.b * length)
    weights: NDArray[np.float64] = idf * frequency * (model.k1 + 1) / (frequency + saturation)
    return weights


def _l_weights(
    model: Any,
    idf: NDArray[np.float64],
    frequency: NDArray[np.unsignedinteger[Any]],
    length: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The formula of BM25L as the library has it: the raw frequency is one more factor."""
    normed = frequency / (1 - model.b + model.b * length) + model.delta
    weights: NDArray[np.float64] = idf * frequency * (model.k1 + 1) * normed / (model.k1 + normed)
    return weights
