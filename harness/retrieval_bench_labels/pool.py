"""Pool of documents to judge: all that any system put among its first documents, blind.

A pool is the union of lists to a depth. Nothing in it says which system found a document, or where:
the documents of a query are shuffled by the seed. What was judged already is remembered.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrieval_bench.core.errors import ConfigError, DataError, counted
from retrieval_bench.core.types import Dataset, Document
from retrieval_bench.data.fingerprint import texts_fingerprint
from retrieval_bench.experiment.until import Target
from retrieval_bench.metrics import one_metric
from retrieval_bench.runs.dataset import labels_of
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.power import check_margin
from retrieval_bench_labels.decide.draws import all_bounds, drawn_order, weights
from retrieval_bench_labels.grades import Settled, by_people, settled
from retrieval_bench_labels.label import GUIDELINES, Kind, Label, Pair, Pool, PooledQuery, digest
from retrieval_bench_labels.store import Store

DEPTH = 10
"""To which lists are pooled, unless something else is said."""

Lists = Mapping[str, Sequence[str]]
"""Query id -> documents, best first."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings of a pool.

    Attributes:
        depth: of each list.
        metric: what the systems are compared by; None = nDCG at the depth, at most 10.
        margin: the largest difference that does not matter.
        seed: of every order.
        guidelines: what each grade means.
        target: whose mean is meant: of queries like these, drawn in plain random order, or of these
            queries, drawn by how much their lists differ.
    """

    depth: int = DEPTH
    metric: str | None = None
    margin: float = MARGIN
    seed: int = 0
    guidelines: Mapping[int, str] | None = None
    target: Target = Target.POPULATION

    def checked(self) -> str:
        """The metric, as it prints itself.

        Raises:
            ConfigError: a depth, a margin or a metric that cannot be used.
        """
        if self.depth < 1:
            raise ConfigError(
                f"--depth {self.depth}", accepted="a whole number from 1", fix=f"such as {DEPTH}"
            )
        check_margin(self.margin)
        if self.seed < 0:
            raise ConfigError(
                f"--seed {self.seed}", accepted="a whole number from 0", fix="such as 0"
            )
        metric = one_metric(self.metric or f"nDCG@{min(self.depth, 10)}")
        if metric.cut is None or metric.cut > self.depth or metric.scale is None:
            raise ConfigError(
                f"metric {metric} of a pool of depth {self.depth}",
                where="--metric",
                accepted=f"a metric with a cut-off up to {self.depth} and a known range, such as "
                f"nDCG@{min(self.depth, 10)}: what lies deeper is not judged",
                fix="name another metric, or raise --depth",
            )
        return str(metric)


def make_pool(
    store: Store,
    dataset: Dataset,
    systems: Mapping[str, Lists],
    wanted: Wanted | None = None,
    *,
    source: str | None = None,
    failed: Mapping[str, Sequence[str]] | None = None,
) -> Pool:
    """Pool ``systems`` and keep the pool in ``store``, whose labels go on counting.

    The order of the queries stays where the same lists are pooled again. A plain random order stays
    in any case as long as the queries do; one by differences is drawn anew of those that are not
    judged yet. Judgements of the dataset come along.

    Args:
        systems: name -> lists; a query that a system lacks has an empty one. A document that
            stands in a list twice counts once.
        source: where the dataset was found.
        failed: name -> queries that a system failed on.

    Raises:
        ConfigError: no system, no query in common with the dataset, or what :class:`Wanted`
            refuses.
        DataError: lists with documents that the dataset does not have.
    """
    wanted = wanted or Wanted()
    metric = wanted.checked()
    lists = {
        name: {q: list(dict.fromkeys(docs))[: wanted.depth] for q, docs in given.items()}
        for name, given in systems.items()
    }
    _check(dataset, lists)
    unions = _unions(dataset, lists, wanted.seed)
    if not unions:
        raise ConfigError(
            f"no query of dataset {dataset.name!r} to judge",
            accepted="a query that is not flagged as unanswerable",
            fix="look at the queries of the dataset",
        )
    pooled = {doc for union in unions.values() for doc in union}
    said = {label.pair for label in store.history()}
    read = texts_of(dataset, pooled | {pair.doc_id for pair in said})
    documents = {doc: read[doc] for doc in sorted(pooled)}
    texts = {query.id: query.text for query in dataset.queries}
    _remember(store, dataset, texts, documents)
    before = store.pool() if store.fact("systems") is not None else None
    grades = settled(by_people(_counting(store, texts, documents, unions)))
    facts = {
        "dataset": dataset.name,
        "source": source,
        "split": dataset.split,
        "fingerprint": texts_fingerprint(dataset),
        "depth": wanted.depth,
        "seed": wanted.seed,
        "metric": metric,
        "margin": wanted.margin,
        "target": wanted.target,
    }
    labels = labels_of(dataset, [query for query in dataset.queries if query.id in unions])
    generation = _generation(before, facts, lists, store)
    origins = {query.id: str(query.metadata.get("origin", "")) for query in dataset.queries}
    queries = [
        PooledQuery(id_, texts[id_], union, origin=origins[id_]) for id_, union in unions.items()
    ]
    if before is not None and generation == before.generation and _same(before, facts, lists):
        ordered = _as_before(queries, before)
    else:
        ordered = _drawn(queries, lists, metric, grades, wanted, generation=generation)
    pool = Pool(
        **facts,  # type: ignore[arg-type]
        systems=tuple(lists),
        lists=lists,
        queries=tuple(ordered),
        documents=documents,
        guidelines=wanted.guidelines or (before.guidelines if before else GUIDELINES),
        generation=generation,
        failed={name: tuple(ids) for name, ids in (failed or {}).items()},
        cluster_key=dataset.cluster_key,
        clusters=dict(zip(unions, labels, strict=False)),
    )
    inside = set(pool.pairs)
    others = {
        pair: digest(texts[pair.query_id], read[pair.doc_id]) if pair.query_id in texts else GONE
        for pair in said - inside
    }
    store.put_pool(pool, others)
    return pool


GONE = "gone"
"""In the place of a digest: the dataset does not have the query."""


def _check(dataset: Dataset, lists: Mapping[str, Lists]) -> None:
    if not lists:
        raise ConfigError(
            "no system to pool",
            accepted="runs, retrievers, or files of runs",
            fix="name some, such as @last",
        )
    known = {query.id for query in dataset.queries}
    asked = {query for of in lists.values() for query in of}
    if not known & asked:
        raise DataError(
            f"no query of the runs is in dataset {dataset.name!r}",
            where=f"queries such as {', '.join(sorted(asked)[:3])}",
            accepted=f"ids such as {', '.join(sorted(known)[:3])}",
            fix="name the dataset that the runs were made on, with --dataset",
        )
    if dataset.documents is None:
        return
    gone = {doc for of in lists.values() for docs in of.values() for doc in docs} - ids_of(dataset)
    if gone:
        raise DataError(
            f"{counted(len(gone), 'document')} of the runs are not in dataset {dataset.name!r}",
            where=f"such as {', '.join(sorted(gone)[:3])}",
            accepted="runs on the documents that the dataset has now",
            fix="measure again, or name the version of the dataset that the runs were made on",
        )


def _unions(dataset: Dataset, lists: Mapping[str, Lists], seed: int) -> dict[str, tuple[str, ...]]:
    """Query id -> what any system found for it, in an order that says nothing."""
    unions: dict[str, tuple[str, ...]] = {}
    for query in dataset.queries:
        if not query.answerable or not any(query.id in of for of in lists.values()):
            continue
        union = sorted({doc for of in lists.values() for doc in of.get(query.id, ())})
        rng = np.random.default_rng([seed, 3, zlib.crc32(query.id.encode())])
        unions[query.id] = tuple(union[at] for at in rng.permutation(len(union)))
    return unions


def ids_of(dataset: Dataset) -> set[str]:
    """Ids of what is judged: of documents, or of the units that they belong to."""
    return set(dataset.unit_of.values()) or {document.id for document in dataset.documents or ()}


def texts_of(dataset: Dataset, wanted: Collection[str]) -> dict[str, Document]:
    """The documents as judges read them, in one walk; of a relevance unit all of its documents as
    one text. Those that are not there have no text."""
    documents: dict[str, Document] = {}
    for document in dataset.documents or ():
        doc_id = dataset.unit_of.get(document.id, document.id)
        if doc_id not in wanted:
            continue
        before = documents.get(doc_id)
        text = document.text if before is None else f"{before.text}\n\n{document.text}"
        documents[doc_id] = Document(
            doc_id, text, document.title if before is None else before.title
        )
    return {doc_id: documents.get(doc_id, Document(doc_id, "")) for doc_id in sorted(wanted)}


def _remember(
    store: Store, dataset: Dataset, texts: Mapping[str, str], documents: Mapping[str, Document]
) -> None:
    """Take over judgements of the dataset that the store does not have yet, and take back those
    that are no longer in it. What somebody judged here, and was exported, is no second judgement;
    a grade below 0 is none."""
    known_here = [
        label for label in (*store.labels(), *store.outdated()) if label.kind is Kind.DATASET
    ]
    store.withdraw(
        label
        for label in known_here
        if label.source == "dataset"
        and (
            (label.grade or 0) < 0
            or dataset.qrels.get(label.pair.query_id, {}).get(label.pair.doc_id) != label.grade
        )
    )
    own = {(label.pair, label.grade) for label in store.labels() if label.who in dataset.judges}
    there = {(label.pair, label.grade, label.digest) for label in known_here}
    new = []
    for query_id, grades in dataset.qrels.items():
        for doc_id, grade in grades.items():
            known = query_id in texts and doc_id in documents
            read = digest(texts[query_id], documents[doc_id]) if known else ""
            pair = Pair(query_id, doc_id)
            taken = (pair, grade) in own or {(pair, grade, read), (pair, grade, "")} & there
            if grade >= 0 and not taken:
                new.append(Label(pair, dataset.name, grade, Kind.DATASET, read, source="dataset"))
    store.add_all(new)


def _counting(
    store: Store,
    texts: Mapping[str, str],
    documents: Mapping[str, Document],
    unions: Mapping[str, Sequence[str]],
) -> Iterable[Label]:
    """Labels that will count once the pool is there: those of its texts."""
    pairs = {Pair(query, doc) for query, docs in unions.items() for doc in docs}
    for label in (*store.labels(), *store.outdated()):
        if label.pair not in pairs:
            continue
        query_id, doc_id = label.pair
        if not label.digest or label.digest == digest(texts[query_id], documents[doc_id]):
            yield label


def _same(before: Pool, facts: Mapping[str, object], lists: Mapping[str, Lists]) -> bool:
    """Return whether the pool is the one that is there."""
    kept = {name: {q: list(d) for q, d in of.items()} for name, of in before.lists.items()}
    named = {name: value for name, value in facts.items() if name != "source"}
    return kept == lists and all(getattr(before, name) == value for name, value in named.items())


def _generation(
    before: Pool | None, facts: Mapping[str, object], lists: Mapping[str, Lists], store: Store
) -> int:
    """The next one, where there was another pool of which anything was judged here."""
    if before is None:
        return 1
    judged = any(label.kind is not Kind.DATASET for label in store.history())
    return before.generation + int(judged and not _same(before, facts, lists))


def _as_before(queries: Sequence[PooledQuery], before: Pool) -> list[PooledQuery]:
    places = {query.id: place for place, query in enumerate(before.queries)}
    kept = {query.id: query for query in before.queries}
    return [kept[query.id] for query in sorted(queries, key=lambda q: places[q.id])]


def _drawn(
    queries: Sequence[PooledQuery],
    lists: Mapping[str, Lists],
    metric: str,
    grades: Mapping[Pair, Settled],
    wanted: Wanted,
    *,
    generation: int,
) -> list[PooledQuery]:
    """Draw the queries: with weights, in the order drawn. In a pool by differences what is judged
    comes first, what cannot change a difference last; a plain one depends on nothing but the ids
    and the seed."""
    parsed = one_metric(metric)
    drawn = weights(all_bounds(parsed, list(lists.values()), [query.id for query in queries]))
    if len(lists) == 1:  # nothing to compare: every query counts the same
        drawn = np.ones(len(queries))
    judged = np.array([query.finished(grades) for query in queries])
    if plain := wanted.target is Target.POPULATION:
        drawn = np.where(drawn > 0, 1.0, 0.0)
    made = [
        PooledQuery(q.id, q.text, q.documents, float(weight), bool(known), q.origin)
        for q, weight, known in zip(queries, drawn, judged, strict=True)
    ]
    if plain:
        made.sort(key=lambda query: query.id)
        return [made[at] for at in drawn_order(np.ones(len(made)), wanted.seed)]
    order = drawn_order(np.where(judged, 0.0, drawn), wanted.seed, generation)
    ordered = [made[at] for at in order]
    return [*(q for q in ordered if q.known), *(q for q in ordered if not q.known)]


def default_file(dataset: str, folder: Path) -> Path:
    """Return where the labels of a dataset lie, unless something else is said."""
    from retrieval_bench.runs.records import slug

    return folder / f"{slug(dataset)}.sqlite"
