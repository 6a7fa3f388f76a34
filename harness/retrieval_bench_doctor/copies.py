"""What the texts of documents say of judgements: copied queries, twins that are judged differently,
and copies of relevant documents that are not judged.

A text is a sequence of :func:`~retrieval_bench.core.scripts.tokens`. So a copy is found in any
script, whatever stands between its words.

The corpus is walked once. Of all its tokens only hashes of a few in a row are looked up, in a table
of those of the queries; of texts hashes are kept: of whole ones, and of the parts of judged ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.scripts import BLANKLESS_CHARACTERS, tokens
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.experiment.tie_warnings import signed_words

WORDS = 8
"""So many words in a row are hardly shared by chance; of characters it takes :data:`CHARACTERS`."""
CHARACTERS = 13

LONG = 5.0
"""Words from which on a whole query is looked for: a shorter one is a phrase that texts have
anyway. A character of a script without blanks counts as :data:`_OF_A_WORD`."""
_OF_A_WORD = 0.4
_LETTERS = 20
"""A query in words has so many letters at least, too."""

READ = 200_000
"""Documents in which copies are looked for, and the judged ones of a larger corpus besides."""

NEAR = 0.9
"""Share of common shingles (Jaccard) from which on two documents have nearly the same text."""

_SHINGLE = 5
_KEPT = 20_000
"""Judged documents whose shingles are kept, about 2 KB each."""
_BATCH = 100_000
"""Tokens that are looked up at once."""
_BITS = 20

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Place:
    """A query and a document.

    Attributes:
        query: its id.
        document: its id.
    """

    query: str
    document: str


@dataclass(frozen=True, slots=True)
class Copies:
    """Queries whose words stand in documents.

    Attributes:
        checked: evaluated queries that are long enough to look for.
        relevant: those of them that stand, as a whole, in a document that is relevant to them.
        elsewhere: those that stand in one that is not, and is not the query itself.
        long: evaluated queries that are longer than a few words in a row (8 words, 13 characters
            of a script without blanks).
        shared: those of them that share so many in a row with a document relevant to them.
        documents: in which they were looked for.
        in_relevant: an example; None where there is none.
        in_other: likewise.
    """

    checked: int
    relevant: int
    elsewhere: int
    long: int
    shared: int
    documents: int
    in_relevant: Place | None = None
    in_other: Place | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """Two documents with nearly the same text, one of which is relevant to a query.

    Attributes:
        query: id of the query.
        relevant: id of the document that is.
        other: id of the one that is not, or is not judged.
        similarity: share of their shingles that both have.
    """

    query: str
    relevant: str
    other: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Twins:
    """Documents with nearly the same text that are judged differently, or documents with the same
    text of which one is relevant and the other is not judged.

    Attributes:
        pairs: of documents, for one query each.
        queries: that have such a pair.
        documents: whose texts were compared.
        example: the most similar pair; None where there is none.
    """

    pairs: int
    queries: int
    documents: int
    example: Twin | None = None


@cache
def _alone() -> re.Pattern[str]:
    return re.compile(f"[{BLANKLESS_CHARACTERS}]")


def look_into(dataset: Dataset) -> tuple[Copies, Twins, Twins] | None:
    """Copied queries, twins among judged documents, and unjudged copies of relevant documents, in
    one walk; None without a corpus.

    The first :data:`READ` documents are looked at, and all judged ones. Where judgements are on
    units that several documents make up, neither twins nor such copies are looked for.
    """
    if dataset.documents is None:
        return None
    copies, twins, equals = _Copied(dataset), _Judged(dataset), _Equals(dataset)
    judged = {doc_id for query in dataset.evaluated for doc_id in dataset.qrels[query.id]}
    unit_of = dataset.unit_of
    read = 0
    for at, document in enumerate(dataset.documents):
        unit = unit_of.get(document.id, document.id)
        if at >= READ and unit not in judged:
            continue
        read += 1
        words = tokens(document.contents)
        copies.add(document.id, unit, words)
        # A+ and A-, or C and C++, are the same words, and not the same text.
        text = [*words, *signed_words(document.contents)] if words else words
        if document.id in twins.wanted:
            twins.add(document.id, text)
        equals.add(document.id, text)
    return copies.result(read), twins.result(), equals.result()


class _Copied:
    """Queries, and in which documents they were found."""

    def __init__(self, dataset: Dataset) -> None:
        queries = dataset.evaluated
        self._ids = [query.id for query in queries]
        self._selves = dataset.selves
        self._qrels = dataset.qrels
        texts = [tokens(query.text) for query in queries]
        vocabulary = dict.fromkeys(chain.from_iterable(texts))
        self._number = {token: at for at, token in enumerate(vocabulary, start=1)}
        # 0 is every token that no query has, and stands between documents.
        self._value = np.random.default_rng(0).integers(
            1, 2**63, size=len(self._number) + 1, dtype=np.uint64
        )
        self._rows = [self._numbers(text) for text in texts]
        self._checked = [at for at, text in enumerate(texts) if _is_long(text)]
        starts: dict[int, list[int]] = {}
        for at in self._checked:
            (first,) = self._hashes(self._rows[at][:_SHINGLE], _SHINGLE)
            starts.setdefault(int(first), []).append(at)
        self._starts = _Table(_SHINGLE, starts)
        self._phrases, self._long = self._of_queries(texts)
        self._relevant: dict[int, Place] = {}
        self._elsewhere: dict[int, Place] = {}
        self._shared: set[int] = set()
        self._batch: list[str] = []
        self._begins: list[int] = []
        self._documents: list[tuple[str, str]] = []

    def _of_queries(self, texts: Sequence[Sequence[str]]) -> tuple[list[_Table], int]:
        tables: dict[int, dict[int, list[int]]] = {WORDS: {}, CHARACTERS: {}}
        long = 0
        for at, text in enumerate(texts):
            n = CHARACTERS if 2 * _n_alone(text) > len(text) else WORDS
            hashes = self._hashes(self._rows[at], n).tolist()
            long += bool(hashes)
            for item in set(hashes):
                tables[n].setdefault(item, []).append(at)
        return [_Table(n, rows) for n, rows in tables.items() if rows], long

    def _numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self._number.get, words, repeat(0)), np.int64, len(words))

    def _hashes(self, numbers: NDArray[np.int64], n: int) -> Hashes:
        """A hash of each ``n`` tokens in a row."""
        values = self._value[numbers]
        total = np.zeros(max(0, len(values) - n + 1), dtype=np.uint64)
        if not len(total):
            return total
        weight = np.uint64(1)
        with np.errstate(over="ignore"):
            for shift in range(n):
                total += values[shift : shift + len(total)] * weight
                weight *= _MULTIPLIER
        return total

    def add(self, doc_id: str, unit: str, words: Sequence[str]) -> None:
        """Look for the queries in a document."""
        if not self._long and not self._checked:
            return
        self._begins.append(len(self._batch))
        self._documents.append((doc_id, unit))
        self._batch += words
        self._batch.append("")
        if len(self._batch) >= _BATCH:
            self._look_up()

    def _look_up(self) -> None:
        numbers = self._numbers(self._batch)
        begins = np.asarray(self._begins)
        for position, row in self._starts.found(self._hashes(numbers, _SHINGLE)):
            query = self._rows[row]
            if np.array_equal(numbers[position : position + len(query)], query):
                doc_id, unit = self._documents[self._at(begins, position)]
                if self._is_self(row, unit):
                    continue
                kept = self._relevant if self._is_relevant(row, unit) else self._elsewhere
                kept.setdefault(row, Place(self._ids[row], doc_id))
        for table in self._phrases:
            for position, row in table.found(self._hashes(numbers, table.n)):
                if row not in self._shared:
                    _, unit = self._documents[self._at(begins, position)]
                    if self._is_relevant(row, unit):
                        self._shared.add(row)
        self._batch, self._begins, self._documents = [], [], []

    def _is_self(self, row: int, unit: str) -> bool:
        """Return whether a document is the query itself, of which more is told elsewhere."""
        query_id, selves = self._ids[row], self._selves
        own = query_id if query_id in selves.same else selves.copies.get(query_id)
        return unit == own

    @staticmethod
    def _at(begins: NDArray[np.int64], position: int) -> int:
        return int(np.searchsorted(begins, position, side="right")) - 1

    def _is_relevant(self, row: int, unit: str) -> bool:
        return self._qrels[self._ids[row]].get(unit, 0) > 0

    def result(self, read: int) -> Copies:
        """Summarise the copies found in ``read`` documents."""
        if self._batch:
            self._look_up()
        relevant, elsewhere = self._relevant, self._elsewhere
        return Copies(
            len(self._checked),
            len(relevant),
            len(elsewhere),
            self._long,
            len(self._shared),
            read,
            relevant[min(relevant)] if relevant else None,
            elsewhere[min(elsewhere)] if elsewhere else None,
        )


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, odd."""


@dataclass(slots=True)
class _Table:
    """Hashes of ``n`` tokens in a row, and the queries that have them."""

    n: int
    rows: Mapping[int, Sequence[int]]
    _maybe: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self._maybe = np.zeros(1 << _BITS, dtype=np.bool_)
        keys = np.fromiter(self.rows, np.uint64, len(self.rows))
        self._maybe[keys >> np.uint64(64 - _BITS)] = True

    def found(self, hashes: Hashes) -> Iterator[tuple[int, int]]:
        """Places of ``hashes`` that queries have, with each of these queries."""
        places = np.flatnonzero(self._maybe[hashes >> np.uint64(64 - _BITS)])
        for place, hash_ in zip(places.tolist(), hashes[places].tolist(), strict=True):
            for row in self.rows.get(hash_, ()):
                yield place, row


class _Judged:
    """Judged documents of queries that have both relevant and other ones, as sets of shingles."""

    def __init__(self, dataset: Dataset) -> None:
        self._qrels = dataset.qrels
        self._queries: list[Query] = []
        self.wanted: set[str] = set()
        self._shingles: dict[str, Hashes] = {}
        for query in () if dataset.unit_of else dataset.evaluated:
            grades = _graded(self._qrels[query.id])
            if len({grade > 0 for grade in grades.values()}) == 2:
                if len(self.wanted) + len(grades) > _KEPT:
                    break
                self._queries.append(query)
                self.wanted.update(grades)

    def add(self, doc_id: str, words: Sequence[str]) -> None:
        """Keep the shingles of a document; of one without a word there is nothing to compare."""
        if words:
            # A text that is shorter than a shingle is one.
            rows = zip(*(words[shift:] for shift in range(min(_SHINGLE, len(words)))), strict=False)
            numbers = np.fromiter(map(hash, rows), np.int64)
            self._shingles[doc_id] = np.unique(numbers.view(np.uint64))

    def result(self) -> Twins:
        """All pairs of each query."""
        copied = list(chain.from_iterable(map(self._of_query, self._queries)))
        order = sorted(copied, key=lambda twin: (-twin.similarity, twin.query, twin.relevant))
        n_queries = len({twin.query for twin in copied})
        return Twins(len(copied), n_queries, len(self._shingles), order[0] if order else None)

    def _of_query(self, query: Query) -> Iterator[Twin]:
        grades = _graded(self._qrels[query.id])
        known = [doc_id for doc_id in grades if doc_id in self._shingles]
        relevant_with: dict[int, list[str]] = {}
        for doc_id in known:
            if grades[doc_id] > 0:
                for item in self._first(doc_id):
                    relevant_with.setdefault(item, []).append(doc_id)
        for doc_id in known:
            if grades[doc_id] <= 0:
                near = chain.from_iterable(relevant_with.get(o, ()) for o in self._first(doc_id))
                for relevant in dict.fromkeys(near):
                    similarity = _jaccard(self._shingles[doc_id], self._shingles[relevant])
                    if similarity >= NEAR:
                        yield Twin(query.id, relevant, doc_id, similarity)

    def _first(self, doc_id: str) -> Iterable[int]:
        """So many of the sorted shingles that two documents that are near share one of them."""
        shingles = self._shingles[doc_id]
        n = len(shingles) - int(np.ceil(NEAR * len(shingles))) + 1
        first: list[int] = shingles[:n].tolist()
        return first


def _graded(grades: Mapping[str, int]) -> dict[str, int]:
    """Those that say something: a grade below 0 is that of a document that is not judged."""
    return {doc_id: grade for doc_id, grade in grades.items() if grade >= 0}


class _Equals:
    """All documents by what their whole text is."""

    def __init__(self, dataset: Dataset) -> None:
        self._qrels = dataset.qrels
        self._queries = () if dataset.unit_of else dataset.evaluated
        self._ids: dict[int, list[str]] = {}
        self._text_of: dict[str, int] = {}

    def add(self, doc_id: str, words: Sequence[str]) -> None:
        """Keep a document; those without a word are no copies of each other."""
        if words and self._queries:
            self._text_of[doc_id] = text = hash(tuple(words))
            self._ids.setdefault(text, []).append(doc_id)

    def result(self) -> Twins:
        """Each relevant document with each copy that is not judged for the query."""
        pairs, queries, example = 0, 0, None
        for query in self._queries:
            before, grades = pairs, _graded(self._qrels[query.id])
            judged = Counter(self._text_of.get(doc_id) for doc_id in grades)
            for doc_id in (doc_id for doc_id, grade in grades.items() if grade > 0):
                text = self._text_of.get(doc_id)
                same = [] if text is None else self._ids[text]
                copies = len(same) - judged[text]
                if copies > 0 and example is None:
                    other = next(item for item in same if item not in grades)
                    example = Twin(query.id, doc_id, other, 1.0)
                pairs += max(copies, 0)
            queries += pairs > before
        return Twins(pairs, queries, len(self._text_of), example)


def _jaccard(hashes: Hashes, other: Hashes) -> float:
    common = len(np.intersect1d(hashes, other, assume_unique=True))
    return common / (len(hashes) + len(other) - common)


def _n_alone(words: Sequence[str]) -> int:
    return sum(len(word) == 1 and _alone().match(word) is not None for word in words)


def _is_long(words: Sequence[str]) -> bool:
    """Return whether a text of these tokens that stands in another one was copied from it."""
    alone = _n_alone(words)
    n = len(words) - alone + _OF_A_WORD * alone
    letters = sum(map(len, words)) if not alone else _LETTERS
    return len(words) >= _SHINGLE and n >= LONG and letters >= _LETTERS
