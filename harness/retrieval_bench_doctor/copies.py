"""What the texts of documents say of judgements: copied queries, and copies of relevant documents
that are judged otherwise, or not at all.

A text is a sequence of :func:`~retrieval_bench.core.scripts.tokens`. So a copy is found in any
script, whatever stands between its words. The corpus is walked once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from retrieval_bench.core.scripts import BLANKLESS_CHARACTERS, tokens
from retrieval_bench.core.types import Dataset
from retrieval_bench.experiment.tie_warnings import signed_words

LONG = 5.0
"""Words from which on a whole query is looked for: a shorter one is a phrase that texts have
anyway. A character of a script without blanks counts as :data:`_OF_A_WORD`."""
_OF_A_WORD = 0.4
_LETTERS = 20
"""A query in words has so many letters at least, too."""

READ = 200_000
"""Documents in which copies are looked for, and the judged ones of a larger corpus besides."""

_BEGIN = 5
"""Tokens by which a query is found."""


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
    """Queries that stand, as a whole, in documents.

    Attributes:
        checked: evaluated queries that are long enough to look for.
        relevant: those of them that stand in a document that is relevant to them.
        elsewhere: those that stand in one that is not, and is not the query itself.
        documents: in which they were looked for.
        in_relevant: an example; None where there is none.
        in_other: likewise.
    """

    checked: int
    relevant: int
    elsewhere: int
    documents: int
    in_relevant: Place | None = None
    in_other: Place | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """Two documents with the same text, one of which is relevant to a query.

    Attributes:
        query: id of the query.
        relevant: id of the document that is.
        other: id of the one that is not, or is not judged.
    """

    query: str
    relevant: str
    other: str


@dataclass(frozen=True, slots=True)
class Twins:
    """Relevant documents, each with each document of the same text that counts as not relevant.

    Attributes:
        pairs: of documents, for one query each.
        queries: that have such a pair.
        documents: whose texts were compared.
        example: the first pair; None where there is none.
    """

    pairs: int
    queries: int
    documents: int
    example: Twin | None = None


def look_into(dataset: Dataset) -> tuple[Copies, Twins, Twins] | None:
    """Copied queries, and copies of relevant documents: judged not relevant, and not judged; None
    without a corpus.

    The first :data:`READ` documents are looked at, and all judged ones. Where judgements are on
    units that several documents make up, copies of documents are not looked for.
    """
    if dataset.documents is None:
        return None
    copied, equals = _Copied(dataset), _Equals(dataset)
    judged = {doc_id for query in dataset.evaluated for doc_id in dataset.qrels[query.id]}
    read = 0
    for at, document in enumerate(dataset.documents):
        unit = dataset.unit_of.get(document.id, document.id)
        if at >= READ and unit not in judged:
            continue
        read += 1
        words = tokens(document.contents)
        copied.add(document.id, unit, words)
        if words:  # those without a word are no copies of each other
            # A+ and A-, or C and C++, are the same words, and not the same text.
            equals.add(document.id, (*words, *signed_words(document.contents)))
    return copied.result(read), *equals.result()


class _Copied:
    """Queries, and in which documents they were found."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._begins: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
        for query in dataset.evaluated:
            words = tokens(query.text)
            if _is_long(words):
                self._begins.setdefault(tuple(words[:_BEGIN]), []).append((query.id, words))
        self._relevant: dict[str, str] = {}
        self._elsewhere: dict[str, str] = {}

    def add(self, doc_id: str, unit: str, words: Sequence[str]) -> None:
        """Look for the queries in a document."""
        shifted = [words[shift:] for shift in range(_BEGIN)]
        if not self._begins or self._begins.keys().isdisjoint(zip(*shifted, strict=False)):
            return
        for at, begin in enumerate(zip(*shifted, strict=False)):
            for query_id, text in self._begins.get(begin, ()):
                if words[at : at + len(text)] == text and not self._is_self(query_id, unit):
                    grade = self._dataset.qrels[query_id].get(unit, 0)
                    kept = self._relevant if grade > 0 else self._elsewhere
                    kept.setdefault(query_id, doc_id)

    def _is_self(self, query_id: str, unit: str) -> bool:
        """Return whether a document is the query itself, of which more is told elsewhere."""
        selves = self._dataset.selves
        return unit == (query_id if query_id in selves.same else selves.copies.get(query_id))

    def result(self, read: int) -> Copies:
        """Summarise the copies found in ``read`` documents."""
        checked = sum(map(len, self._begins.values()))
        relevant, elsewhere = self._relevant, self._elsewhere
        examples = self._first(relevant), self._first(elsewhere)
        return Copies(checked, len(relevant), len(elsewhere), read, *examples)

    def _first(self, kept: Mapping[str, str]) -> Place | None:
        in_order = (query.id for query in self._dataset.evaluated)
        query_id = next(filter(kept.__contains__, in_order), None)
        return None if query_id is None else Place(query_id, kept[query_id])


class _Equals:
    """All documents by what their whole text is."""

    def __init__(self, dataset: Dataset) -> None:
        self._qrels = dataset.qrels
        self._queries = () if dataset.unit_of else dataset.evaluated
        self._ids: dict[int, list[str]] = {}
        self._text_of: dict[str, int] = {}

    def add(self, doc_id: str, words: tuple[str, ...]) -> None:
        """Keep a document."""
        if self._queries:
            self._text_of[doc_id] = text = hash(words)
            self._ids.setdefault(text, []).append(doc_id)

    def result(self) -> tuple[Twins, Twins]:
        """Each relevant document with each copy that is not, and with each that is not judged."""
        differently, unjudged = _Pairs(), _Pairs()
        for query in self._queries:
            # A grade below 0 is that of a document that is not judged.
            grades = {key: grade for key, grade in self._qrels[query.id].items() if grade >= 0}
            relevant = [key for key, grade in grades.items() if grade > 0]
            judged, right = (Counter(map(self._text_of.get, ids)) for ids in (grades, relevant))
            for doc_id in relevant:
                if (text := self._text_of.get(doc_id)) is not None:
                    same = self._ids[text]
                    of = query.id, doc_id
                    wrong = (key for key in same if grades.get(key) == 0)
                    differently.add(*of, judged[text] - right[text], wrong)
                    unknown = (key for key in same if key not in grades)
                    unjudged.add(*of, len(same) - judged[text], unknown)
        n = len(self._text_of)
        return differently.result(n), unjudged.result(n)


class _Pairs:
    """Pairs of one kind, counted."""

    def __init__(self) -> None:
        self._pairs = 0
        self._queries: set[str] = set()
        self._example: Twin | None = None

    def add(self, query: str, relevant: str, n: int, others: Iterator[str]) -> None:
        """Count a document with its ``n`` copies."""
        if n > 0:
            self._example = self._example or Twin(query, relevant, next(others))
            self._pairs += n
            self._queries.add(query)

    def result(self, documents: int) -> Twins:
        """Summarise the pairs among so many documents."""
        return Twins(self._pairs, len(self._queries), documents, self._example)


@cache
def _alone() -> re.Pattern[str]:
    return re.compile(f"[{BLANKLESS_CHARACTERS}]")


def _is_long(words: Sequence[str]) -> bool:
    """Return whether a text of these tokens that stands in another one was copied from it."""
    alone = sum(len(word) == 1 and _alone().match(word) is not None for word in words)
    n = len(words) - alone + _OF_A_WORD * alone
    letters = sum(map(len, words)) if not alone else _LETTERS
    return len(words) >= _BEGIN and n >= LONG and letters >= _LETTERS
