"""How complete a pool is: how much of it is judged, what each system brings alone, and how many
relevant documents no system found.

The last is an estimate as in ecology: two catches that share many animals have seen most of them.
Of two systems it is Chapman's, of more Chao's lower bound from documents that one or two systems
found. Systems find similar documents, so that both say "at least": what no system can find is not
in it.

Sources: Chapman (1951), Some properties of the hypergeometric distribution, Univ. California Publ.
Stat. 1; Chao (1987), Estimating the population size for capture-recapture data with unequal
catchability, Biometrics 43, bias-corrected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench_labels.grades import Settled
from retrieval_bench_labels.label import Pair, Pool

RELEVANT = 1
"""The lowest grade that is."""


@dataclass(frozen=True, slots=True)
class Brought:
    """Share of one system in a pool.

    Attributes:
        system: its name.
        documents: pairs of a query and a document among its first ones.
        alone: those that no other system has.
        judged: of its pairs, those with a grade.
        relevant: of these, those that are relevant.
        relevant_alone: relevant ones that no other system has.
    """

    system: str
    documents: int
    alone: int
    judged: int
    relevant: int
    relevant_alone: int


@dataclass(frozen=True, slots=True)
class Completeness(Documented):
    """A pool and its judgements.

    Attributes:
        queries: of the pool.
        finished: queries whose documents all have a grade.
        pairs, judged, relevant: of the pool.
        brought: by each system.
        estimated: relevant documents of the finished queries, with those that no system found; None
            with one system, or where nothing relevant was found by two.
        relevant_finished: relevant documents found for the finished queries.
    """

    KEYS = (
        "queries finished pairs judged relevant brought estimated relevant_finished "
        "share_judged share_found"
    )

    queries: int
    finished: int
    pairs: int
    judged: int
    relevant: int
    brought: tuple[Brought, ...]
    estimated: float | None
    relevant_finished: int

    @property
    def share_judged(self) -> float:
        """The judged share of the pairs; 1 of none."""
        return self.judged / self.pairs if self.pairs else 1.0

    @property
    def share_found(self) -> float | None:
        """The share of the relevant documents of finished queries, at most."""
        return None if not self.estimated else min(1.0, self.relevant_finished / self.estimated)


def completeness(pool: Pool, grades: Mapping[Pair, Settled]) -> Completeness:
    """Return the completeness of ``pool``, judged by ``grades``."""
    pairs = pool.pairs
    finders: Counter[Pair] = Counter()
    of_systems = {
        name: [Pair(query.id, doc) for query in pool.queries for doc in lists.get(query.id, ())]
        for name, lists in pool.lists.items()
    }
    for own in of_systems.values():
        finders.update(own)

    def relevant(pair: Pair) -> bool:
        return pair in grades and grades[pair].grade >= RELEVANT

    brought = tuple(
        Brought(
            name,
            len(own),
            sum(finders[pair] == 1 for pair in own),
            sum(pair in grades for pair in own),
            sum(map(relevant, own)),
            sum(finders[pair] == 1 and relevant(pair) for pair in own),
        )
        for name, own in of_systems.items()
    )
    finished = {query.id for query in pool.queries if query.finished(grades)}
    seen = [pair for pair in pairs if pair.query_id in finished and relevant(pair)]
    caught = [set(own) for own in of_systems.values()]
    return Completeness(
        len(pool.queries),
        len(finished),
        len(pairs),
        sum(pair in grades for pair in pairs),
        sum(map(relevant, pairs)),
        brought,
        _estimated([[pair in own for own in caught] for pair in seen]) if len(caught) > 1 else None,
        len(seen),
    )


def _estimated(caught: Sequence[Sequence[bool]]) -> float | None:
    """Estimate how many there are, from which systems caught each one that was caught."""
    if not caught:
        return None
    systems = len(caught[0])
    if systems == 2:
        first = sum(item[0] for item in caught)
        second = sum(item[1] for item in caught)
        both = sum(all(item) for item in caught)
        return (first + 1) * (second + 1) / (both + 1) - 1 if both else None
    times = Counter(map(sum, caught))
    once, twice = times[1], times[2]
    if not any(times[n] for n in range(2, systems + 1)):
        return None
    return len(caught) + (systems - 1) / systems * once * (once - 1) / (2 * (twice + 1))
