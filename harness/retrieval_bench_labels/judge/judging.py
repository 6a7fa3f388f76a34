"""What a person is shown and what is kept of their answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import RLock

from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.figures import DIRECTIONS
from retrieval_bench.core.types import Document
from retrieval_bench_labels.decide.deciding import decide
from retrieval_bench_labels.decide.population import of_population
from retrieval_bench_labels.grades import by_people, settled
from retrieval_bench_labels.label import Kind, Label, Pair, Pool, PooledQuery
from retrieval_bench_labels.queue import Progress, next_task, progress
from retrieval_bench_labels.store import EDITION, Store

LONGEST_NAME = 80
"""Characters of a name."""

LONGEST_NOTE = 2_000
"""Characters of a note."""

_NO_NAME = {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"}
_DIRECTIONS = DIRECTIONS | {"\u200e", "\u200f"}


class ChangedPoolError(ConfigError):
    """An answer to a question that is no longer asked: the pool or a text of it is another one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A document to be judged.

    Attributes:
        query, document: with their texts.
        digest: of what is read.
        place, of: which of the documents of this query, from 1.
        again: whether two others differ on it.
    """

    query: PooledQuery
    document: Document
    digest: str
    place: int
    of: int
    again: bool = False

    @property
    def pair(self) -> Pair:
        """The pair that is judged."""
        return Pair(self.query.id, self.document.id)


@dataclass(frozen=True, slots=True)
class Undone:
    """An answer that was taken back.

    Attributes:
        label: the answer.
        question: what it answered; None where the pool no longer asks that.
    """

    label: Label
    question: Question | None


@dataclass(frozen=True)
class _Loaded:
    """A pool, and what follows from it alone."""

    edition: object
    pool: Pool
    queries: Mapping[str, PooledQuery]
    digests: Mapping[Pair, str]


class Judging:
    """The pool of a file as it is now, and the answers of people; threads may share it.

    Args:
        store: the file.

    Raises:
        ConfigError: there is no pool in the file.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = RLock()
        self._kept = self._load()
        self._worth: tuple[object, int | None] | None = None

    @property
    def pool(self) -> Pool:
        """All that is asked; another one as soon as the file has another one."""
        return self._current().pool

    def next(self, who: str) -> Question | None:
        """Choose the next question for ``who``; None where nothing is left for them.

        Raises:
            ConfigError: the name cannot be used (:func:`checked_name`).
        """
        self.check_person(who)
        kept = self._current()
        task = next_task(kept.pool, self.store, who)
        if task is None:
            return None
        return _question(kept, Pair(task.query.id, task.left[0]), task.documents, task.again)

    def answer(self, label: Label) -> int:
        """Keep an answer; it is on disk when this returns. The same answer twice in a row, as when
        its receipt was lost, is one answer.

        Returns:
            its number, by which it can be taken back.

        Raises:
            ChangedPoolError: it answers what is no longer asked.
            ConfigError: a name, grade, note or span that cannot be.
            RecordError: it cannot be written.
        """
        kept = self._current()
        self.check_person(label.who)
        _check_label(label, kept)
        with self._lock:
            last = self.store.last(label.who)
            if last is not None and replace(last[1], at="") == replace(label, at=""):
                return last[0]
            return self.store.add(label)

    def undo(self, who: str, number: int | None = None) -> Undone | None:
        """Take back the last answer of ``who``, only if it has this ``number`` where one is given;
        None where nothing was taken back."""
        with self._lock:
            label = self.store.undo(who, number)
        if label is None:
            return None
        kept, pair = self._current(), label.pair
        if pair not in kept.digests:
            return Undone(label, None)
        return Undone(label, _question(kept, pair, kept.queries[pair.query_id].documents))

    def last(self, who: str) -> int | None:
        """Number of the answer that can be taken back."""
        last = self.store.last(who)
        return None if last is None else last[0]

    def progress(self, who: str = "") -> Progress:
        """Return how far it is, and how far ``who`` is; once that can be told, only as many queries
        are worth asking as it may take to tell the systems apart."""
        kept = self._current()
        so_far = progress(kept.pool, self.store, who)
        state = (kept.edition, so_far.finished)
        with self._lock:
            if self._worth is None or self._worth[0] != state:
                self._worth = (state, self._still_worth(kept.pool))
            worth = self._worth[1]
        return so_far if worth is None else replace(so_far, worth=min(so_far.worth, worth))

    def _still_worth(self, pool: Pool) -> int | None:
        """About how many queries it may take; None = not known yet, or nothing is compared."""
        if len(pool.systems) < 2:
            return None
        grades = settled(by_people(self.store.labels()))
        population = of_population(pool, grades)
        if population is not None:
            return 0 if population.done else None
        return decide(pool, grades).worth

    def check_person(self, who: str) -> None:
        """Refuse the name of a model or a dataset, whose labels would be taken for this person's.

        Raises:
            ConfigError: it is one.
        """
        others = self.store.kinds(who) - {Kind.PERSON}
        if others:
            raise ConfigError(
                f"{who!r} is the name of a {others.pop().value} whose labels are in the file",
                accepted="the name of a person",
                fix="take another name",
            )

    def _current(self) -> _Loaded:
        with self._lock:
            if self.store.fact(EDITION) != self._kept.edition:
                self._kept = self._load()
            return self._kept

    def _load(self) -> _Loaded:
        edition = self.store.fact(EDITION)
        pool = self.store.pool()
        return _Loaded(edition, pool, {query.id: query for query in pool.queries}, pool.digests())


def checked_name(given: str) -> str:
    """The name of a person, without blanks around it, so that one person is not two.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    name = unicodedata.normalize("NFC", re.sub(" +", " ", given).strip(" "))
    hidden = any(unicodedata.category(c) in _NO_NAME or c in _DIRECTIONS for c in name)
    if not name or len(name) > LONGEST_NAME or hidden:
        raise ConfigError(
            "no name" if not name else f"the name {given[:LONGEST_NAME]!r} cannot be used",
            accepted=f"1 to {LONGEST_NAME} characters that can be seen",
            fix="take another name" if name else "enter your name",
        )
    return name


def _check_label(label: Label, kept: _Loaded) -> None:
    """Raises:
    ChangedPoolError: it answers what is not asked.
    ConfigError: its note or span cannot be; its grade is looked at by the file.
    """
    if kept.digests.get(label.pair) != label.digest:
        raise ChangedPoolError(
            "the pool has changed: this document, or its text, is no longer asked",
            accepted="an answer to what is asked now",
            fix="reload the page",
        )
    if len(label.note) > LONGEST_NOTE:
        raise ConfigError(
            f"a note of {counted(len(label.note), 'character')}",
            accepted=f"up to {LONGEST_NOTE:,}",
            fix="shorten the note",
        )
    size = len(kept.pool.documents[label.pair.doc_id].text)
    if label.span is not None and not 0 <= label.span[0] < label.span[1] <= size:
        raise ConfigError(
            f"an answer marked from {label.span[0]} to {label.span[1]}",
            accepted=f"a part of the text, which has {counted(size, 'character')}",
            fix="mark it again",
        )


def _question(
    kept: _Loaded, pair: Pair, documents: tuple[str, ...], again: bool = False
) -> Question:
    return Question(
        kept.queries[pair.query_id],
        kept.pool.documents[pair.doc_id],
        kept.digests[pair],
        documents.index(pair.doc_id) + 1,
        len(documents),
        again,
    )


def progress_sentence(progress: Progress) -> str:
    """Such as "12 of 50 questions and 143 of 612 documents are judged; ..."."""
    worth = (
        f"about {counted(progress.worth, 'more question')} "
        f"{'is' if progress.worth == 1 else 'are'} worth judging"
        if progress.worth
        else "no more question is worth judging"
    )
    return (
        f"{progress.finished:,} of {counted(progress.queries, 'question')} and "
        f"{progress.judged:,} of "
        f"{counted(progress.pairs, 'document')} are judged; {worth}."
    )
