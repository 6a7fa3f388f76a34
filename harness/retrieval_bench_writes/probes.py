"""Probes: documents that nobody else has, made of texts of the collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from retrieval_bench.core.types import Document

PREFIX = "retrieval-bench-probe"
"""Beginning of the id of every probe, so that a killed measurement leaves nothing unknown."""

_LONGEST = 300
"""Characters of a probe that are taken from each of two texts: an encoder reads them all."""

_SYLLABLES = [f"{first}{last}" for first in "bdklmnprst" for last in "aeiou"]
_LENGTH = 6


@dataclass(frozen=True, slots=True)
class Probe:
    """A document in two versions, whose texts share nothing that was made for them.

    Attributes:
        id: distinct, also from those of other measurements.
        words: of each version one word that no other text has.
        texts: of each version; it begins and ends with its word.
    """

    id: str
    words: tuple[str, str]
    texts: tuple[str, str]

    def document(self, version: int) -> Document:
        """The document as it is written."""
        return Document(self.id, self.texts[version])


def probes(n: int, sources: Sequence[str], token: str, rng: Any) -> list[Probe]:
    """The first ``n`` of :func:`endless`."""
    return list(islice(endless(sources, token, rng), n))


def endless(sources: Sequence[str], token: str, rng: Any) -> Iterator[Probe]:
    """Probes of halves of ``sources``, which may be of any script.

    Args:
        token: of this measurement.
        rng: numpy's generator, which decides texts and words.
    """
    used: set[str] = set()
    for number in count():
        words = (_word(rng, used), _word(rng, used))
        texts = []
        for word in words:
            halves = [sources[at][:_LONGEST] for at in rng.integers(len(sources), size=2)]
            texts.append(" ".join((word, *halves, word)))
        yield Probe(f"{PREFIX}-{token}-{number:06}", words, (texts[0], texts[1]))


def _word(rng: Any, used: set[str]) -> str:
    """A word of twelve letters that was not given before: one of 50 ** 6."""
    while True:
        word = "".join(_SYLLABLES[at] for at in rng.integers(len(_SYLLABLES), size=_LENGTH))
        if word not in used:
            used.add(word)
            return word
