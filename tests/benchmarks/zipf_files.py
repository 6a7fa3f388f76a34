"""A large synthetic corpus as files, written chunk by chunk so that its size costs no memory.

Documents of 30 to 150 words (uniform) and queries of three to eight (uniform), all words from one
law: Zipf's with exponent 1.05 over 500,000 words. The seed is :data:`SEED`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

SEED = 20_261_127
VOCABULARY = 500_000
EXPONENT = 1.05
WORDS = (30, 150)
QUERY_WORDS = (3, 8)
QUERIES = 1_000

_CHUNK = 10_000
_CONSONANTS = np.array(list("bcdfghjklmnpqrstvwxyz"))
_VOWELS = np.array(list("aeiou"))


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Documents that are read from their file at every walk, as those of a dataset are."""

    path: Path
    n: int

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Document]:
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                yield Document(record["_id"], record["text"])


def documents(folder: Path, n: int) -> JsonLines:
    """The first ``n`` documents, written where they are not there yet; ids are decimal numbers, so
    that they do not come in their own order, as those of MS MARCO do not."""
    path = folder / f"documents-{SEED}-{n}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".part")
        with aside.open("w", encoding="ascii") as file:
            for at, text in enumerate(_texts(n, WORDS, stream=1)):
                file.write(f'{{"_id": "{at}", "text": "{text}"}}\n')
        aside.rename(path)
    return JsonLines(path, n)


def queries(n: int = QUERIES) -> list[Query]:
    """The first ``n`` queries."""
    return [Query(f"q{at}", text) for at, text in enumerate(_texts(n, QUERY_WORDS, stream=2))]


def _texts(n: int, words: tuple[int, int], stream: int) -> Iterator[str]:
    """Texts of words by the law; each chunk has a seed of its own, so a corpus begins as a larger
    one does."""
    known = np.array(_words(), dtype=object)
    chances = np.arange(1.0, VOCABULARY + 1) ** -EXPONENT
    law = np.cumsum(chances) / chances.sum()
    for chunk in range(-(-n // _CHUNK)):
        rng = np.random.default_rng((SEED, stream, chunk))
        ends = np.cumsum(rng.integers(words[0], words[1] + 1, _CHUNK))
        numbers = np.searchsorted(law, rng.random(ends[-1]))
        drawn = known[np.minimum(numbers, VOCABULARY - 1)].tolist()
        starts = [0, *ends.tolist()]
        for at in range(min(_CHUNK, n - chunk * _CHUNK)):
            yield " ".join(drawn[starts[at] : starts[at + 1]])


def _words() -> list[str]:
    """Distinct words, the frequent ones shorter (4.8 letters in running text, as in English), each
    one term of its own after stemming."""
    rng = np.random.default_rng((SEED, 0))
    tokenize = make_tokenizer("auto")
    shortest = np.round(1.0 + 1.4 * np.log10(np.arange(1, VOCABULARY + 1))).astype(np.int64)
    words = [""] * VOCABULARY
    taken: set[str] = set()
    missing = np.arange(VOCABULARY)
    while len(missing):
        made = _syllables(rng, shortest[missing])
        for at, word in zip(missing.tolist(), made, strict=True):
            terms = tokenize(word)
            if len(terms) == 1 and terms[0] not in taken:
                taken.add(terms[0])
                words[at] = word
        missing = np.array([at for at in missing.tolist() if not words[at]])
    return words


def _syllables(rng: np.random.Generator, shortest: NDArray[np.int64]) -> list[str]:
    """A word for each of ``shortest``, of so many letters or up to two more: consonants and vowels
    in turns."""
    lengths = shortest + rng.integers(0, 3, len(shortest))
    shape = (len(shortest), int(lengths.max()))
    letters = np.arange(shape[1])
    vowel = (letters + rng.integers(0, 2, (len(shortest), 1))) % 2 == 1
    drawn = rng.integers(0, 105, shape)  # 105 = 21 x 5: each letter of its kind is equally likely
    made = np.where(vowel, _VOWELS[drawn % 5], _CONSONANTS[drawn % 21])
    made[letters >= lengths[:, None]] = ""
    joined: list[str] = made.view(f"U{shape[1]}")[:, 0].tolist()
    return joined
