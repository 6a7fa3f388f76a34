"""Two faults of a judge that turn verdicts round: it follows one system, or it follows words.

A model that was in a system's training or reads its hits first calls relevant what that system
alone returned; one that is easily taken in calls relevant what is near in words. Both are looked
for in the documents that people graded as not relevant. Of such a group of documents, query by
query,

    T = sum over the group of (x - mean x), x = 1 where the model calls the document relevant,

where the mean is over all documents of that query that people find not relevant. A judge that errs
by chance, in some queries more than in others, errs in the group as anywhere else: which documents
of a query are in the group says nothing. So, of K errors in a query's N documents, those in a group
of n are hypergeometric, and p is the chance of as many as there are, or more, in all queries
together (Fisher's exact test, stratified by query, one-sided; Mantel & Haenszel 1959, J. Natl.
Cancer Inst. 22). Systems that return nearly the same count as one; all groups of a table are
corrected together (Holm).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.scripts import tokens
from retrieval_bench.stats.resampling import holm
from retrieval_bench_judges.evidence import Evidence
from retrieval_bench_labels.decide.completeness import RELEVANT
from retrieval_bench_labels.label import Pair

ALPHA = 0.05
"""Of all alarms of a table together."""
TWINS = 0.7
"""Systems that share so much of what both return (Jaccard) count as one."""

Sets = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A group of documents, and whether a judge overrates it.

    Attributes:
        kind: "circular" (only one system returned them) or "lexical" (near in words).
        systems: names of that system and its twins; empty of words.
        rate: share that it calls relevant of those documents that people do not; None of none.
        elsewhere: the same of the other documents.
        documents: of the group, that people find not relevant.
        p: after Holm, one-sided; None where no query has documents in the group and beside it, and
            one that the judge does not call relevant.
        rings: whether p is below 5 %.
    """

    kind: str
    systems: tuple[str, ...]
    rate: float | None
    elsewhere: float | None
    documents: int
    p: float | None
    rings: bool


def alarms(evidence: Evidence) -> list[Alarm]:
    """Look for both faults on the queries that people and model judged."""
    labels = evidence.labels
    queries = [q for q, of in zip(evidence.query_ids, evidence.both, strict=True) if of]
    errors = {
        q: {
            doc: labels.model[Pair(q, doc)] >= RELEVANT
            for doc in evidence.documents[q]
            if labels.people[Pair(q, doc)] < RELEVANT
        }
        for q in queries
    }
    systems = evidence.systems
    lists = [{q: set(systems.lists[at][q]) for q in queries} for at in evidence.covered]
    names = [systems.names[at] for at in evidence.covered]
    groups: list[tuple[tuple[str, ...], Sets]] = [
        (tuple(names[at] for at in twins), _alone(lists, twins)) for twins in _twins(lists)
    ]
    near = _near({query.id: query.text for query in labels.pool.queries}, evidence, errors)
    return rung(errors, groups if len(groups) > 1 else [], near)


def rung(
    errors: Mapping[str, Mapping[str, bool]],
    groups: Sequence[tuple[tuple[str, ...], Sets]],
    near: Sets,
) -> list[Alarm]:
    """Test each group of documents.

    Args:
        errors: query -> document that people find not relevant -> whether the model calls it so.
        groups: names of systems that count as one, with what they alone returned, by query.
        near: what is near in words, by query.
    """
    named = [*groups, ((), near)]
    tables = [_counts(errors, of) for _, of in named]
    adjusted = holm(np.array([overrated_p(table) for table in tables]))
    made = []
    for (names, _), table, p in zip(named, tables, adjusted, strict=True):
        wrong, inside, wrongs, whole = table.sum(axis=0).tolist()
        rate = wrong / inside if inside else None
        elsewhere = (wrongs - wrong) / (whole - inside) if whole > inside else None
        told = any(0 < own < of and errs < of for _, own, errs, of in table.tolist())
        known, kind = float(p) if told else None, "circular" if names else "lexical"
        made.append(Alarm(kind, names, rate, elsewhere, inside, known, bool(p < ALPHA)))
    return made


def overrated_p(table: NDArray[np.int64]) -> float:
    """One-sided p that no group has more errors than chance gives it.

    Args:
        table: a row a query: errors in the group, documents of it, errors in all, all documents.
    """
    chances = np.ones(1)
    for _, inside, wrongs, whole in table.tolist():
        ways = [comb(wrongs, x) * comb(whole - wrongs, inside - x) for x in range(inside + 1)]
        chances = np.convolve(chances, [way / comb(whole, inside) for way in ways])
    return min(1.0, float(chances[table[:, 0].sum() :].sum()))


def _counts(errors: Mapping[str, Mapping[str, bool]], of: Sets) -> NDArray[np.int64]:
    """The table of a group."""
    rows = [
        (sum(said[doc] for doc in group), len(group), sum(said.values()), len(said))
        for query, said in errors.items()
        for group in [said.keys() & {*of.get(query, ())}]
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _twins(lists: Sequence[Mapping[str, set[str]]]) -> list[list[int]]:
    """Places of the systems, those together that return nearly the same."""
    groups: list[list[int]] = []
    for at, own in enumerate(lists):
        like = [group for group in groups if any(_overlap(own, lists[b]) >= TWINS for b in group)]
        groups = [group for group in groups if group not in like]
        groups.append(sorted([at, *(b for group in like for b in group)]))
    return sorted(groups)


def _overlap(a: Mapping[str, set[str]], b: Mapping[str, set[str]]) -> float:
    shared = sum(len(docs & b[q]) for q, docs in a.items())
    return shared / max(1, sum(len(docs | b[q]) for q, docs in a.items()))


def _alone(lists: Sequence[Mapping[str, set[str]]], twins: Sequence[int]) -> Sets:
    """Find what only ``twins`` returned, by query."""
    others = [of for at, of in enumerate(lists) if at not in twins]
    own = [lists[at] for at in twins]
    return {
        q: set.union(*(of[q] for of in own)) - set().union(*(of[q] for of in others))
        for q in own[0]
    }


def _near(
    texts: Mapping[str, str], evidence: Evidence, errors: Mapping[str, Mapping[str, bool]]
) -> Sets:
    """Select the documents that people find not relevant and that share more of the query's words
    than the middle one of these does; ties are not near."""
    documents = evidence.labels.pool.documents
    words = {
        doc: set(tokens(documents[doc].contents))
        for of in errors.values()
        for doc in of
        if doc in documents
    }
    near: dict[str, set[str]] = {}
    for query, of in errors.items():
        asked = set(tokens(texts[query]))
        shared = {doc: len(asked & words.get(doc, set())) for doc in of}
        middle = float(np.median([*shared.values()])) if shared else 0.0
        near[query] = {doc for doc, n in shared.items() if n > middle}
    return near


def told(judge: str, looked_for: Sequence[Alarm]) -> str:
    """The alarms that ring, as one sentence; empty where none does."""
    rings = [(" and ".join(alarm.systems), alarm) for alarm in looked_for if alarm.rings]
    if not rings:
        return ""
    whom = ", and ".join(names or "words" for names, _ in rings)
    of = "; ".join(
        f"{100 * (alarm.rate or 0):.0f} % of what "
        f"{f'only {names} returned' if names else 'shares most words with the query'}, "
        f"{100 * (alarm.elsewhere or 0):.0f} % of the rest"
        for names, alarm in rings
    )
    return (
        f"{judge} follows {whom}: of documents that people find not relevant it calls relevant "
        f"{of}. Its own labels can name the wrong winner."
    )


def untested(looked_for: Sequence[Alarm]) -> str:
    """What no document tells, as words: no group of a kind has a p; empty where all was tested."""
    told_by = {alarm.kind for alarm in looked_for if alarm.p is not None}
    of = {"circular": "one system", "lexical": "words"}
    return " or ".join(words for kind, words in of.items() if kind not in told_by)
