"""What a person judges next: whole queries, in the order in which they were drawn.

Several people share the queries; a share of them (:data:`DOUBLE`) goes to two people, so that their
agreement can be told. Where two people differ, a third is asked. What was skipped comes last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench_labels.grades import Settled, by_people, settled
from retrieval_bench_labels.label import Kind, Label, Pair, Pool, PooledQuery
from retrieval_bench_labels.store import Store

DOUBLE = 0.2
"""Share of the queries that two people judge, once there are two."""

IDLE_S = 1800.0
"""Seconds after which a query that somebody began and left goes to the next person, too."""


@dataclass(frozen=True, slots=True)
class Task:
    """A query for one person.

    Attributes:
        query: the query.
        documents: ids to show, in their order.
        left: those of them that this person has still to answer, at least one.
        again: whether two others differ on these documents.
    """

    query: PooledQuery
    documents: tuple[str, ...]
    left: tuple[str, ...]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """State of the work.

    Attributes:
        pairs, judged: of the pool, and those of them that have a grade.
        mine: pairs that this person answered, skipped ones included.
        queries, finished: of the pool, and those whose documents all have a grade.
        worth: queries that can still change a difference between systems.
        disputed: pairs on which two people differ and no third was asked.
        skipped: pairs that somebody skipped and nobody graded.
    """

    pairs: int
    judged: int
    mine: int
    queries: int
    finished: int
    worth: int
    disputed: int
    skipped: int


@dataclass(frozen=True)
class _State:
    """All that the order of tasks goes by; grades are those of people and the dataset."""

    pool: Pool
    labels: Sequence[Label]
    grades: Mapping[Pair, Settled]

    @classmethod
    def of(cls, pool: Pool, store: Store) -> _State:
        labels = store.labels()
        return cls(pool, labels, settled(by_people(labels)))

    def said(self, who: str) -> set[Pair]:
        return {label.pair for label in self.labels if label.who == who}

    @property
    def people(self) -> set[str]:
        return {label.who for label in self.labels if label.kind is Kind.PERSON}

    def needs_nobody(self, pair: Pair) -> bool:
        """Return whether a person or the dataset graded it; a model's word does not keep people
        away."""
        return pair in self.grades

    def disputed(self, pair: Pair) -> bool:
        """Return whether two people differ on it and no third was asked."""
        grades = self.grades.get(pair)
        return grades is not None and grades.kind is Kind.PERSON and grades.disputed

    def first(self, wanted: Callable[[Pair], bool], *, again: bool = False) -> Task | None:
        """Make a task of the first query with something that is wanted."""
        for query in self.pool.queries:
            if documents := tuple(pair.doc_id for pair in query.pairs if wanted(pair)):
                return Task(query, documents, documents, again)
        return None


def next_task(pool: Pool, store: Store, who: str) -> Task | None:
    """Choose the next task of ``who``, claimed for them; None where nothing is left for them."""
    state = _State.of(pool, store)
    said = state.said(who)
    claims = store.claims()
    for query in pool.in_turn:
        if who in claims.get(query.id, ()):
            left = _left(state, query, said)
            if left:
                if time.time() - claims[query.id][who] > IDLE_S / 2:
                    store.claim(query.id, who, 1)
                return Task(query, query.documents, left)
    open_ = state.first(lambda pair: state.disputed(pair) and pair not in said, again=True)
    if open_ is not None:
        return open_
    doubled = doubled_queries(pool) if len(state.people | {who}) > 1 else frozenset()
    for query in pool.in_turn:
        most = 2 if query.id in doubled else 1
        idle = _idle(state, query, claims.get(query.id, {}))
        people = claims.get(query.id, {}).keys() - idle
        if who in people or len(people) >= most:
            continue
        if not people and all(map(state.needs_nobody, query.pairs)):
            continue
        left = _left(state, query, said)
        if left and store.claim(query.id, who, most, idle):
            return Task(query, query.documents, left)
    # What others skipped and nobody graded comes last.
    skipped = {label.pair for label in state.labels if label.grade is None} - said
    return state.first(lambda pair: pair in skipped and pair not in state.grades)


def _idle(state: _State, query: PooledQuery, claims: Mapping[str, float]) -> set[str]:
    """Return who began with ``query``, did not finish it and has not been seen for a while."""
    since = time.time() - IDLE_S
    return {
        who
        for who, at in claims.items()
        if at < since and not state.said(who).issuperset(query.pairs)
    }


def whole_tasks(pool: Pool, store: Store, who: str) -> list[Task]:
    """All that ``who`` could be asked, for somebody who judges where the file is not: what nobody
    answered yet, the queries that two people judge, and what two others differ on."""
    state = _State.of(pool, store)
    said, doubled = state.said(who), doubled_queries(pool)
    tasks = []
    for query in pool.in_turn:
        left = tuple(
            doc
            for doc in _left(state, query, said)
            if not state.needs_nobody(pair := Pair(query.id, doc))
            or (query.id in doubled and len(state.grades[pair].given) < 2)
        )
        if left:
            tasks.append(Task(query, left, left))
        pairs = [pair for pair in query.pairs if state.disputed(pair) and pair not in said]
        disputed = tuple(pair.doc_id for pair in pairs)
        if disputed:
            tasks.append(Task(query, disputed, disputed, again=True))
    return tasks


def _left(state: _State, query: PooledQuery, said: set[Pair]) -> tuple[str, ...]:
    """Documents that are theirs to judge; what the dataset graded is not asked again."""
    given = state.grades
    asked = [p for p in query.pairs if p not in given or given[p].kind is not Kind.DATASET]
    return tuple(pair.doc_id for pair in asked if pair not in said)


def doubled_queries(pool: Pool) -> frozenset[str]:
    """Queries for two people: by the seed, so that it does not depend on who judges."""
    chosen = np.random.default_rng([pool.seed, 2]).random(len(pool.queries)) < DOUBLE
    return frozenset(q.id for q, two in zip(pool.queries, chosen, strict=True) if two)


def progress(pool: Pool, store: Store, who: str = "") -> Progress:
    """Return how far it is, and how far ``who`` is."""
    state = _State.of(pool, store)
    pairs = pool.pairs
    finished = [query for query in pool.queries if query.finished(state.grades)]
    worth = sum(query.weight > 0 for query in pool.queries)
    said = state.said(who)
    inside = set(pairs)
    missing = {label.pair for label in state.labels if label.grade is None} - state.grades.keys()
    return Progress(
        pairs=len(pairs),
        judged=sum(pair in state.grades for pair in pairs),
        mine=len(said & inside),
        queries=len(pool.queries),
        finished=len(finished),
        worth=worth - sum(query.weight > 0 for query in finished),
        disputed=sum(map(state.disputed, pairs)),
        skipped=len(missing & inside),
    )
