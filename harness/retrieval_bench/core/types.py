"""The few records that everything else passes around; all are frozen, none knows a file.

Only the standard library is imported here and below, so that importing :mod:`harness` stays cheap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast, runtime_checkable

from retrieval_bench.core.filters import Filter, fields_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval_bench.core.metadata import Filtering

EMPTY: Mapping[str, Any] = MappingProxyType({})

Qrels = Mapping[str, Mapping[str, int]]
"""Judgements: query id -> document id -> grade. A grade of 1 or more is relevant."""


@runtime_checkable
class Slots(Protocol):
    """Judgements of a query that are no documents: slots that hits fill by what they have. In
    :data:`Qrels` such a query has a mapping without documents that is this, too.

    Attributes:
        kind: of truth, which services are named by: "rules", or "spans" of documents.
        slots: name -> grade: 2 where the hit must come early, 1 for any other, -1 for what must not
            come.
        defined: names of the metrics that mean something for slots.
    """

    @property
    def kind(self) -> str: ...

    @property
    def slots(self) -> Mapping[str, int]: ...

    @property
    def defined(self) -> Collection[str]: ...

    def look_up(self, doc_ids: Iterable[str]) -> None:
        """Get what is to be known of these documents, for all queries at once."""
        ...

    def filled(self, doc_ids: Sequence[str]) -> Iterable[tuple[int, str]]:
        """Ranks, from 1 and rising, with the slots that are filled there: several by one hit."""
        ...


def by_rule(qrels: Qrels) -> Mapping[str, Slots]:
    """The judgements where they are rules or spans; empty where documents are judged."""
    first = next(iter(qrels.values()), None)
    return cast("Mapping[str, Slots]", qrels) if isinstance(first, Slots) else {}


def kind_of_truth(qrels: Qrels) -> str:
    """The kind of slots that ``qrels`` has; empty where documents are judged."""
    return next((of.kind for of in by_rule(qrels).values()), "")


def hits_are_ranges(qrels: Qrels) -> bool:
    """Say whether hits are held against ``qrels`` as ranges of documents, with ids of their own."""
    return kind_of_truth(qrels) == "spans"


SelfHits = Literal["keep", "drop"]
"""What becomes of a hit whose id is that of the query."""

KEEP: SelfHits = "keep"
DROP: SelfHits = "drop"

KNOWN_ITEM = "known-item"
"""``metadata.origin`` of a query that was made from the document that answers it."""


@dataclass(frozen=True, slots=True)
class Document:
    """One entry of a corpus: what is indexed and what a judgement points to.

    Attributes:
        id: distinct in its corpus.
        text: of its body.
        title: empty where there is none.
        metadata: whatever else its line or row holds.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY, hash=False)

    @property
    def contents(self) -> str:
        """Title, one blank, text: the string that built-in retrievers index."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: who speaks, such as "user" or "assistant".
        content: what is said.
    """

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Query:
    """Question to a retriever.

    Attributes:
        id: distinct in its dataset.
        text: never empty of meaning; for a conversation its last user turn.
        messages: all turns of a conversation; empty where it is none.
        metadata: whatever else its line or row holds.
        filter: what a document must meet to be an answer; None = nothing.
    """

    id: str
    text: str
    messages: tuple[Message, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY, hash=False)
    filter: Filter | None = None

    @property
    def answerable(self) -> bool:
        """False when the data says that no document answers this query.

        Read from ``metadata.answerable: false`` or SQuAD's ``metadata.is_impossible: true``.
        """
        return (
            self.metadata.get("answerable", True) is not False
            and self.metadata.get("is_impossible", False) is not True
        )

    @property
    def tags(self) -> tuple[str, ...]:
        """Labels for slicing, from ``metadata.tags``."""
        tags = self.metadata.get("tags")
        several = tags if isinstance(tags, Iterable) and not isinstance(tags, str) else [tags]
        return () if tags is None else tuple(map(str, several))


class Hit(NamedTuple):
    """One entry of a ranking.

    Attributes:
        doc_id: the document.
        score: NaN where the retriever gives no scores.
    """

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class LegTrace:
    """Ranks of the fused hits in one leg of a hybrid, and all that the leg returned.

    Attributes:
        ranks: 1-based rank in the leg, 0 where the leg did not return the document; one per hit.
        scores: the leg's own score, NaN where it has none; one per hit.
        doc_ids: the whole list of the leg as it was fused, best first, so also what fusion left
            behind; distinct ids, as many as the leg had, often more than k. None = not told.
        doc_scores: the leg's scores of ``doc_ids``, one each; None where it has none.
    """

    ranks: Sequence[int] | NDArray[np.int32]
    scores: Sequence[float] | NDArray[np.float64]
    doc_ids: Sequence[str] | None = None
    doc_scores: Sequence[float] | NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Result of one step of a pipeline for a query or a list.

    Attributes:
        doc_ids: its whole list, best first, distinct; None for a step that makes texts.
        doc_scores: one for each of ``doc_ids``; None where it has none.
        texts: of the queries that it made of one.
        order: as of :class:`Ranking`.
    """

    doc_ids: Sequence[str] | None = None
    doc_scores: Sequence[float] | NDArray[np.float64] | None = None
    texts: Sequence[str] = ()
    order: Sequence[int] | NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Amounts that were used up.

    Attributes:
        tokens_in: that a model read.
        tokens_out: that a model wrote.
        calls: of models or services that are paid for.
        money: in the currency of whoever pays; None = not known.
    """

    tokens_in: float = 0
    tokens_out: float = 0
    calls: float = 0
    money: float | None = None

    def __add__(self, other: Usage) -> Usage:
        known = [item.money for item in (self, other) if item.money is not None]
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.calls + other.calls,
            sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer to one query: document ids, best first.

    Attributes:
        doc_ids: at most k distinct ids.
        scores: one finite float per id, never rising; None when the retriever has no scores and
            the order of the list is all there is.
        stages: nanoseconds of parts of this call, by stage name (tokenize, encode, sparse, dense,
            fuse, rerank). Optional.
        legs: for a hybrid, where each leg had each hit. Optional.
        collapsed: hits that were dropped because their relevance unit was already in the list.
        steps: for a pipeline, what each step made, in their order; of what stands inside of a step
            or a leg under its name and a slash, as ``retrieve/bm25``. Optional.
        usage: what the call used up, by stage, or as a whole under ``call``. Optional.
        collapsed_from: where hits collapsed to relevance units, or lost the query itself, the
            ranking of the hits, if it says what it was made of.
        self_hits: 1 where the query itself was among the first k, and dropped.
        order: one number per hit, by which hits of equal scores are ordered before their ids are,
            lower first: a stage keeps the order that it was given. None = ids alone decide.
        texts: of each hit the text that was returned, None where it came without; None = no hit has
            one.
        sources: likewise where it is from: a file, a URL.
    """

    doc_ids: Sequence[str]
    scores: Sequence[float] | NDArray[np.float64] | None = None
    stages: Mapping[str, int] = field(default_factory=lambda: EMPTY)
    legs: Mapping[str, LegTrace] = field(default_factory=lambda: EMPTY)
    collapsed: int = 0
    steps: Mapping[str, StepTrace] = field(default_factory=lambda: EMPTY)
    usage: Mapping[str, Usage] = field(default_factory=lambda: EMPTY)
    collapsed_from: Ranking | None = field(default=None, repr=False)
    self_hits: int = 0
    order: Sequence[int] | NDArray[np.int64] | None = None
    texts: Sequence[str | None] | None = field(default=None, repr=False)
    sources: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.doc_ids)

    def first(self, k: int) -> Ranking:
        """The first ``k`` hits, without what is kept of the way to them."""
        scores = None if self.scores is None else self.scores[:k]
        order = None if self.order is None else self.order[:k]
        texts = None if self.texts is None else self.texts[:k]
        sources = None if self.sources is None else self.sources[:k]
        return Ranking(self.doc_ids[:k], scores, order=order, texts=texts, sources=sources)

    def __iter__(self) -> Iterator[Hit]:
        if self.scores is None:
            return (Hit(doc_id, float("nan")) for doc_id in self.doc_ids)
        return (
            Hit(doc_id, float(score))
            for doc_id, score in zip(self.doc_ids, self.scores, strict=True)
        )


@runtime_checkable
class Documents(Protocol):
    """A corpus that can be walked any number of times without being held in memory."""

    def __iter__(self) -> Iterator[Document]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Selves:
    """Queries that are documents themselves, as in ArguAna and Quora, or units where judgements are
    on these.

    A query that stands in the corpus finds itself first. BEIR leaves such a hit out before it
    scores (``ignore_identical_ids``), and so count its published figures; trec_eval keeps it.

    Attributes:
        same: queries with a document of their id that is the query: it has the same text, and is
            not judged relevant to it.
        unlike: queries with a document of their id that is not, by accident of equal ids.
        copies: query -> a document of another id that has its very text, and is not relevant to it.
    """

    same: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()
    copies: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def ids(self) -> frozenset[str]:
        """Queries that have a document of their id."""
        return self.same | self.unlike

    def accidental(self, query_ids: Collection[str]) -> bool:
        """Return whether equal ids mean nothing for most of ``query_ids`` that have such a
        document."""
        same, unlike = (len(some.intersection(query_ids)) for some in (self.same, self.unlike))
        return unlike > same


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """Documents, queries and judgements of one split, validated.

    Attributes:
        name: for people; results are matched by ``fingerprint``.
        documents: the corpus, or None for a dataset that serves external retrievers only.
        queries: all queries of the source, in the order of the file.
        qrels: the judgements of ``split`` only; empty where nothing is judged yet.
        split: such as "test".
        language: ISO 639-1 code, None when not declared.
        fingerprint: hash of documents, queries and judgements that does not depend on their order.
        unit_key: metadata key of a document that names the unit which judgements are on; None when
            judgements are on the documents themselves.
        unit_of: document id -> unit id, filled when ``unit_key`` is given.
        warnings: faults that do not prevent a run, in plain words.
        filtering: which documents the filters of the queries allow; None where no query has one, or
            there is no corpus.
        judges: who made the judgements -> "person", "model" or "dataset"; empty where that is not
            known.
        drawn_from: queries from which the judged ones were chosen, by how much systems differ on
            them, so that means over them hold for them alone; None = all there are.
        self_hits: whether a hit whose id (or unit) is that of the query counts, or is dropped
            before the first k are scored, as BEIR does.
        selves: which queries are documents.
        cluster_key: metadata key of a query that names the cluster it belongs to, such as its
            conversation; None where each query is independent of all others.
    """

    name: str
    documents: Documents | None
    queries: tuple[Query, ...]
    qrels: Qrels
    split: str
    language: str | None
    fingerprint: str
    unit_key: str | None = None
    unit_of: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    warnings: tuple[str, ...] = ()
    filtering: Filtering | None = field(default=None, compare=False, repr=False)
    judges: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    drawn_from: int | None = None
    self_hits: SelfHits = KEEP
    selves: Selves = field(default_factory=Selves, compare=False, repr=False)
    cluster_key: str | None = None

    def __repr__(self) -> str:
        """One line: a corpus has millions of characters."""
        return (
            f"Dataset({self.name!r}, split {self.split!r}: {self.n_documents:,} documents, "
            f"{len(self.queries):,} queries, {len(self.evaluated):,} of them judged)"
        )

    @property
    def n_documents(self) -> int:
        """Size of the corpus, 0 when there is none."""
        return 0 if self.documents is None else len(self.documents)

    @property
    def filter_fields(self) -> tuple[str, ...]:
        """Metadata fields that filters of the queries name."""
        return fields_of(query.filter for query in self.queries)

    @property
    def judged(self) -> bool:
        """True if anything is judged: a document, or every query as unanswerable. Where nothing is,
        every query is asked and none evaluated."""
        return bool(self.qrels) or not any(query.answerable for query in self.queries)

    @property
    def evaluated(self) -> tuple[Query, ...]:
        """Queries that count: answerable and with at least one judgement in this split."""
        return tuple(q for q in self.queries if q.answerable and q.id in self.qrels)

    @property
    def asked(self) -> tuple[Query, ...]:
        """Queries that a measurement asks: those that count and those that no document answers, or
        all of them where nothing is judged."""
        if not self.judged:
            return self.queries
        return tuple(q for q in self.queries if not q.answerable or q.id in self.qrels)

    @property
    def without_relevant(self) -> tuple[Query, ...]:
        """Evaluated queries with no relevant document: every metric is 0, whatever is returned."""
        if by_rule(self.qrels):
            return ()  # one that only forbids is told by its metrics
        return tuple(q for q in self.evaluated if max(self.qrels[q.id].values(), default=0) < 1)

    @property
    def known_items(self) -> tuple[int, float] | None:
        """The number of evaluated queries that were made from the document that answers them, and
        the mean share of their words that stand in it; None where there are none."""
        made = [q.metadata for q in self.evaluated if q.metadata.get("origin") == KNOWN_ITEM]
        shares = [item.get("copied") for item in made]
        known = [float(share) for share in shares if isinstance(share, int | float)]
        mean = sum(known) / len(known) if known else float("nan")
        return (len(made), mean) if made else None

    @property
    def unanswerable(self) -> tuple[Query, ...]:
        """Queries that say that no document answers them: run, and reported apart."""
        return tuple(q for q in self.queries if not q.answerable)


class Verdict(StrEnum):
    """The one vocabulary of every decision; words on screen map to it.

    Unresolvable is undecided for a reason: so few queries decide nothing, whatever they say.
    """

    BETTER = "better"
    EQUIVALENT = "equivalent"
    WORSE = "worse"
    UNRESOLVABLE = "unresolvable"
    UNDECIDED = "undecided"
    MISSING = "missing"
    NOT_COMPARABLE = "not comparable"

    @property
    def open(self) -> bool:
        """True if something was tested, and nothing shown."""
        return self in (Verdict.UNRESOLVABLE, Verdict.UNDECIDED)
