"""A synthetic corpus by Zipf's law, as text: its words go through a real tokenizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

VOCABULARY = 50_000
EXPONENT = 1.05
SHORTEST, LONGEST = 30, 150
QUERY_TERMS = 6

_VOWELS = "aeiou"
_CONSONANTS = "bcdfghjklmnpqrstvwxyz"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts of words that a tokenizer neither drops nor merges."""

    documents: list[Document]
    queries: list[Query]

    @property
    def raw_bytes(self) -> int:
        """UTF-8 bytes of all texts."""
        return sum(len(document.text.encode()) for document in self.documents)


def make_corpus(n_documents: int, n_queries: int, seed: int = 7) -> Corpus:
    """Documents of 30 to 150 words (uniform), queries of six, all words from one law."""
    rng = np.random.default_rng(seed)
    words = np.array(_words(rng), dtype=object)
    chances = np.arange(1.0, VOCABULARY + 1) ** -EXPONENT
    law = np.cumsum(chances) / chances.sum()

    def texts(lengths: NDArray[np.int64]) -> list[str]:
        drawn = words[np.minimum(np.searchsorted(law, rng.random(lengths.sum())), VOCABULARY - 1)]
        ends = np.cumsum(lengths)
        return [" ".join(drawn[start:end]) for start, end in zip(ends - lengths, ends, strict=True)]

    documents = texts(rng.integers(SHORTEST, LONGEST + 1, n_documents))
    queries = texts(np.full(n_queries, QUERY_TERMS))
    return Corpus(
        [Document(f"d{i:06d}", text) for i, text in enumerate(documents)],
        [Query(f"q{i}", text) for i, text in enumerate(queries)],
    )


def _words(rng: np.random.Generator) -> list[str]:
    """Distinct words, the frequent ones shorter; lengths as in English (4.8 letters in running
    text, 8 in a list of words), each one term of its own after stemming."""
    tokenize = make_tokenizer("auto")
    letters = (np.array(list(_CONSONANTS)), np.array(list(_VOWELS)))
    words: list[str] = []
    terms: set[str] = set()
    while len(words) < VOCABULARY:
        length = round(1.0 + 1.4 * np.log10(len(words) + 1)) + int(rng.integers(0, 3))
        start = int(rng.integers(0, 2))
        word = "".join(rng.choice(letters[(start + i) % 2]) for i in range(length))
        made = tokenize(word)
        if len(made) == 1 and made[0] not in terms:
            terms.add(made[0])
            words.append(word)
    return words
