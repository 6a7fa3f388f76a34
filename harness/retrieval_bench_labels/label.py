"""The records of judging: what is judged, and what was said of it, by whom."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from retrieval_bench.core.types import Document
from retrieval_bench.experiment.until import Target
from retrieval_bench.runs.dataset import n_alike

GRADES = range(4)
"""Grades that a judgement can have."""

GUIDELINES: Mapping[int, str] = {
    0: "Not relevant: nothing in it helps with the question.",
    1: "Related: about the subject, but does not answer.",
    2: "Answers in part, or needs other documents to be understood.",
    3: "Answers the question fully.",
}
"""Meaning of the grades, unless a pool says otherwise."""


class Kind(StrEnum):
    """Maker of a judgement."""

    PERSON = "person"
    MODEL = "model"
    DATASET = "dataset"
    """It came with the dataset, which does not say who made it."""


class Pair(NamedTuple):
    """A query and a document."""

    query_id: str
    doc_id: str


@dataclass(frozen=True, slots=True)
class Label:
    """Judgement of somebody on a document as the answer to a query.

    Attributes:
        pair: of what.
        who: a name.
        kind: what ``who`` is.
        grade: how relevant it is; None = skipped, cannot tell.
        digest: of the texts that were read (:func:`digest`); empty = not known.
        note: anything that was written beside it.
        span: first character of the answer in the text, and the one behind it.
        at: when, in ISO 8601, UTC; empty = not known.
        source: the file that it was imported from; empty = judged here.
    """

    pair: Pair
    who: str
    grade: int | None
    kind: Kind = Kind.PERSON
    digest: str = ""
    note: str = ""
    span: tuple[int, int] | None = None
    at: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class PooledQuery:
    """A query with the documents that are to be judged for it.

    Attributes:
        id, text: of the query.
        documents: ids, in the order in which they are shown; it says nothing of ranks.
        weight: of its being drawn, in proportion, 1 where all chances are equal; 0 = whatever its
            documents are, it changes no difference between systems.
        known: whether all was judged when the order of the queries was drawn.
        origin: where the query came from, such as "known-item"; empty = not told.
    """

    id: str
    text: str
    documents: tuple[str, ...]
    weight: float = 0.0
    known: bool = False
    origin: str = ""

    @property
    def pairs(self) -> list[Pair]:
        """All that is to be judged for it, in the order in which it is shown."""
        return [Pair(self.id, doc) for doc in self.documents]

    def finished(self, grades: Container[Pair]) -> bool:
        """Return whether all of its documents have a grade."""
        return all(pair in grades for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Pool:
    """Documents to judge, and of which systems.

    Attributes:
        dataset: its name.
        source: where it was found, a name or a path; None for an object.
        split: of the dataset.
        fingerprint: of all documents and queries, without judgements.
        depth: of each list that was pooled.
        seed: of every order.
        metric: what the systems are compared by, as text.
        margin: the largest difference that does not matter.
        systems: names, told apart.
        lists: system -> query id -> its first ``depth`` documents, best first.
        queries: in the order in which they were drawn.
        documents: by id, all that stand in a query; their texts are empty where the dataset has no
            corpus.
        guidelines: what each grade means.
        generation: how many pools there were, this one included; each gets its part of the chance
            of error.
        target: whose mean the order was drawn for.
        failed: system -> ids of queries that it failed on; their lists are empty.
        cluster_key: of the dataset: clusters of queries are the unit.
        clusters: query id -> label of its cluster, or, without a key, of what is nearly the same
            question; empty where each is one by itself.
    """

    dataset: str
    source: str | None
    split: str
    fingerprint: str
    depth: int
    seed: int
    metric: str
    margin: float
    systems: tuple[str, ...]
    lists: Mapping[str, Mapping[str, Sequence[str]]]
    queries: tuple[PooledQuery, ...]
    documents: Mapping[str, Document]
    guidelines: Mapping[int, str] = field(default_factory=lambda: GUIDELINES)
    generation: int = 1
    target: Target = Target.SPLIT
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cluster_key: str | None = None
    clusters: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """Number of clusters by ``cluster_key``; 0 where each query is one by itself."""
        return n_alike([*self.clusters.values()]) if self.cluster_key else 0

    @property
    def in_turn(self) -> list[PooledQuery]:
        """The queries in the order in which they are judged: those that change nothing last."""
        return sorted(self.queries, key=lambda query: query.weight <= 0)

    @property
    def pairs(self) -> list[Pair]:
        """All that is to be judged, query by query."""
        return [pair for query in self.queries for pair in query.pairs]

    def digests(self) -> Mapping[Pair, str]:
        """Return for each pair the :func:`digest` of its texts."""
        return {
            pair: digest(query.text, self.documents[pair.doc_id])
            for query in self.queries
            for pair in query.pairs
        }


def digest(query: str, document: Document) -> str:
    """16 hexadecimal digits of what a judge reads: another text is another question."""
    parts = [
        text.encode("utf-8", "surrogatepass") for text in (query, document.title, document.text)
    ]
    framed = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return blake2b(framed, digest_size=8, person=b"label").hexdigest()
