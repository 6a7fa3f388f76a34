"""The JSON document of ``diff``: means, ceilings, groups, values of all queries, some in full."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from retrieval_bench.comparison.explain.diff import Explanation, Placed, QueryDetail
from retrieval_bench.comparison.explain.winners import Ceiling, Partition, QueryGroup
from retrieval_bench.core.as_json.document import Documented


class DiffDataset(TypedDict):
    """A dataset."""

    name: str
    split: str
    fingerprint: str


class DiffSystem(TypedDict):
    """A run, or a leg of one, with its mean.

    Attributes:
        name: as shown.
        leg: its name as a leg; null where it is none.
        leg_of: runs that it is a leg of.
        mean, ci95, n: of the metric, over all evaluated queries.
    """

    name: str
    leg: str | None
    leg_of: list[str]
    mean: float | None
    ci95: tuple[float, float] | None
    n: int


class DiffCeilings(TypedDict):
    """Ceilings of fusion.

    Attributes:
        of: the hybrid; "both" for two runs without legs.
        metrics: by name, all that the runs have in common.
    """

    of: str
    metrics: dict[str, Ceiling]


class ShownGroup(TypedDict):
    """Queries with the same label.

    Attributes:
        group: the label.
        n: queries.
        means: by system; null of none.
        difference: mean of it; null of none.
    """

    group: str
    n: int
    means: dict[str, float | None]
    difference: float | None


class ShownPartition(TypedDict):
    """Queries in groups.

    Attributes:
        kind: ``outcome``, ``best leg`` or ``fusion``.
        of: the run.
        groups: each with its means.
    """

    kind: str
    of: str
    groups: list[ShownGroup]


class ShownValues(TypedDict):
    """The values of a query by system, their difference, and its group in each partition."""

    values: dict[str, float]
    difference: float
    groups: list[str]


class ShownDocument(TypedDict):
    """A document of a query.

    Attributes:
        id: of it.
        title: or the beginning of its text; missing where texts were left out.
        grade: null where it is not judged.
        ranks: by system; null where it is not in the list. Of a leg also behind k.
        fusion: what it did to a relevant document, by run.
    """

    id: str
    title: NotRequired[str]
    grade: int | None
    ranks: dict[str, int | None]
    fusion: dict[str, str]


class ShownQuery(TypedDict):
    """A query in full.

    Attributes:
        id: of it.
        text: missing where texts were left out.
        tags: of it.
        values: by system.
        difference: of the two.
        groups: its label in each partition.
        status: by run: "ok", or why it failed.
        documents: in the first k of any system, and all relevant ones.
    """

    id: str
    text: NotRequired[str]
    tags: list[str]
    values: dict[str, float]
    difference: float
    groups: list[str]
    status: dict[str, str]
    documents: list[ShownDocument]


@dataclass(frozen=True, slots=True)
class DiffDocument(Documented):
    """Document of ``explain --format json``.

    Attributes:
        metric, k, dataset: by what, how deep and on what.
        difference: what is subtracted from what, in words.
        systems: runs and legs.
        ceilings: of each hybrid.
        partitions: groups of queries.
        values: of every evaluated query.
        queries: those that are shown, in full.
        warnings: what a reader of the figures should know.
    """

    metric: str
    k: int
    dataset: DiffDataset
    difference: str
    systems: list[DiffSystem]
    ceilings: list[DiffCeilings]
    partitions: list[ShownPartition]
    values: dict[str, ShownValues]
    queries: list[ShownQuery]
    warnings: list[str]


def diff_document(
    explanation: Explanation,
    ceilings: Mapping[str, Sequence[Ceiling]],
    details: Sequence[QueryDetail],
    *,
    texts: bool = True,
    warnings: Sequence[str] = (),
) -> DiffDocument:
    """``values`` has every query; ``queries`` those of ``details``, with all their documents.

    Args:
        texts: False = neither query texts nor titles.
    """
    names = [system.name for system in explanation.systems]
    minuend, subtrahend = explanation.subtracted
    data = explanation.runs[0].summary.dataset
    return DiffDocument(
        metric=str(explanation.metric),
        k=explanation.k,
        dataset={"name": data.name, "split": data.split, "fingerprint": data.fingerprint},
        difference=f"{minuend} - {subtrahend}",
        systems=[
            {
                "name": system.name,
                "leg": system.leg or None,
                "leg_of": [names[run] for run in system.of],
                "mean": mean.known,
                "ci95": mean.ci95,
                "n": mean.n,
            }
            for system, mean in zip(explanation.systems, explanation.means, strict=True)
        ],
        ceilings=[
            {"of": of, "metrics": {str(each.metric): each for each in ceiling}}
            for of, ceiling in ceilings.items()
        ],
        partitions=[_partition(explanation, partition) for partition in explanation.partitions],
        values=_values(explanation, names),
        queries=[_query(detail, names, texts=texts) for detail in details],
        warnings=list(warnings),
    )


def _partition(explanation: Explanation, partition: Partition) -> ShownPartition:
    def entry(group: QueryGroup) -> ShownGroup:
        means = zip(partition.columns, map(_known, group.means), strict=True)
        return {
            "group": group.label,
            "n": group.n,
            "means": dict(means),
            "difference": _known(group.gain),
        }

    return {
        "kind": partition.kind,
        "of": partition.of,
        "groups": [entry(group) for group in partition.groups(explanation.metric)],
    }


def _values(explanation: Explanation, names: Sequence[str]) -> dict[str, ShownValues]:
    labels = zip(
        *([p.labels[at] for at in p.member.tolist()] for p in explanation.partitions), strict=True
    )
    rows = zip(
        explanation.query_ids,
        explanation.values.tolist(),
        explanation.difference.tolist(),
        labels,
        strict=True,
    )
    return {
        query_id: {
            "values": dict(zip(names, values, strict=True)),
            "difference": difference,
            "groups": list(groups),
        }
        for query_id, values, difference, groups in rows
    }


def _query(detail: QueryDetail, names: Sequence[str], *, texts: bool) -> ShownQuery:
    shown: ShownQuery = {
        "id": detail.query.id,
        "text": detail.query.text,
        "tags": list(detail.query.tags),
        "values": dict(zip(names, detail.values, strict=True)),
        "difference": detail.difference,
        "groups": list(detail.groups),
        "status": dict(zip(names, detail.status, strict=False)),
        "documents": [_document(document, names, texts=texts) for document in detail.documents],
    }
    if not texts:
        del shown["text"]
    return shown


def _document(placed: Placed, names: Sequence[str], *, texts: bool) -> ShownDocument:
    shown: ShownDocument = {
        "id": placed.doc_id,
        "title": placed.title,
        "grade": placed.grade,
        "ranks": {name: rank or None for name, rank in zip(names, placed.ranks, strict=True)},
        "fusion": dict(placed.fates),
    }
    if not texts:
        del shown["title"]
    return shown


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
