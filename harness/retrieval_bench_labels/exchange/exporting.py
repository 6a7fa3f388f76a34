"""Judgements on the way out: the dataset with the grades that were settled, in any format that can
be written, and with whose they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset
from retrieval_bench_exchange.export import Exported, export_dataset
from retrieval_bench_labels.grades import Settled, Whose, settled
from retrieval_bench_labels.label import Kind, Label, Pair, Pool, digest
from retrieval_bench_labels.pool import ids_of, texts_of
from retrieval_bench_labels.store import Store


@dataclass(frozen=True, slots=True)
class ExportedLabels(Documented):
    """Files that were written.

    Attributes:
        exported: the dataset in the format.
        whose: judgements it holds.
        unfinished: queries that are not judged to the end, which were left out.
        gone: judgements on queries or documents that the dataset no longer has, has with another
            text, or says have no answer, left out.
        drawn_from: queries of which only those are judged that came first, by how much the systems
            can differ or until they were told apart; None = all are.
    """

    KEYS = "*exported whose unfinished gone drawn_from"

    exported: Exported
    whose: Whose
    unfinished: int
    gone: int
    drawn_from: int | None


def export_labels(
    store: Store,
    dataset: Dataset,
    to: str,
    folder: str | Path,
    *,
    kinds: Collection[Kind] = tuple(Kind),
    partly: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> ExportedLabels:
    """Write ``dataset`` with the grades of ``store``.

    Args:
        dataset: that of the pool, which may have changed since.
        to, folder, settings: as of :func:`.export_dataset`.
        kinds: whose labels count.
        partly: also queries of which not all documents of the pool are judged.

    Raises:
        DataError: nothing is judged, or nothing of it is in the dataset.
        ConfigError: as :func:`.export_dataset`.
    """
    pool = store.pool()
    labels = [label for label in store.labels() if label.kind in kinds]
    grades, held, gone = _held(dataset, labels)
    finished = {query.id for query in pool.queries if query.finished(grades)}
    pooled = {query.id for query in pool.queries}
    begun = {pair.query_id for pair in grades} & pooled - finished
    kept = {
        pair: judgement
        for pair, judgement in held.items()
        if partly or pair.query_id in finished or pair.query_id not in pooled
    }
    if not kept:
        raise DataError(
            "no judgement to write",
            where=str(store.path),
            accepted="a query whose documents are all judged"
            + ("" if partly else "; --partly also takes those that are judged in part"),
            fix="judge some: retrieval-bench label start",
        )
    qrels: dict[str, dict[str, int]] = {}
    for pair, judgement in kept.items():
        qrels.setdefault(pair.query_id, {})[pair.doc_id] = judgement.grade
    whose, drawn_from = Whose.of(kept.values()), _drawn_from(pool, finished)
    described: dict[str, Any] = {"judges": whose.as_dict()}
    if drawn_from is not None:
        described["drawn_from"] = drawn_from
    whole = all(query.id in finished for query in dataset.queries if query.answerable)
    data = replace(dataset, qrels=qrels, drawn_from=None if whole else dataset.drawn_from)
    made = export_dataset(data, to, folder, settings=settings, described=described)
    return ExportedLabels(made, whose, 0 if partly else len(begun), gone, drawn_from)


def _held(
    dataset: Dataset, labels: Sequence[Label]
) -> tuple[dict[Pair, Settled], dict[Pair, Settled], int]:
    """The grades, without the labels of other texts than the dataset has now; those whose query
    and document are there, and no relevant document of a query without an answer; and how many
    judgements are left out."""
    queries = {query.id: query for query in dataset.queries}
    there, current = {label.pair.doc_id for label in labels}, labels
    if dataset.documents is not None:
        texts = texts_of(dataset, there)
        there = ids_of(dataset)
        current = [
            label
            for label in labels
            if not label.digest
            or label.pair.query_id not in queries
            or label.pair.doc_id not in there
            or label.digest == digest(queries[label.pair.query_id].text, texts[label.pair.doc_id])
        ]
    grades = settled(current)
    held = {
        pair: judgement
        for pair, judgement in grades.items()
        if pair.doc_id in there
        and pair.query_id in queries
        and (queries[pair.query_id].answerable or judgement.grade < 1)
    }
    return grades, held, len(labels) - len(current) + len(grades) - len(held)


def _drawn_from(pool: Pool, finished: Collection[str]) -> int | None:
    """Return how many queries of which some are not finished, so that means over the others
    differ."""
    drawn = len(finished) < len(pool.queries) and len(pool.systems) > 1
    return len(pool.queries) if drawn else None
