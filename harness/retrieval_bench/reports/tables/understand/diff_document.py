"""The JSON document of ``diff``: means, ceilings, groups, values of all queries, some in full."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.comparison.explain.diff import Explanation, Placed, QueryDetail
from retrieval_bench.comparison.explain.winners import Ceiling, Partition, QueryGroup


def diff_document(
    explanation: Explanation,
    ceilings: Mapping[str, Sequence[Ceiling]],
    details: Sequence[QueryDetail],
    *,
    texts: bool = True,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """``values`` has every query; ``queries`` those of ``details``, with all their documents.

    Args:
        texts: False = neither query texts nor titles.
    """
    names = [system.name for system in explanation.systems]
    minuend, subtrahend = explanation.subtracted
    data = explanation.runs[0].summary.dataset
    return {
        "metric": str(explanation.metric),
        "k": explanation.k,
        "dataset": {"name": data.name, "split": data.split, "fingerprint": data.fingerprint},
        "difference": f"{minuend} - {subtrahend}",
        "systems": [
            {
                "name": system.name,
                "leg": system.leg or None,
                "leg_of": [names[run] for run in system.of],
                **mean.as_dict(),
            }
            for system, mean in zip(explanation.systems, explanation.means, strict=True)
        ],
        "ceilings": [
            {"of": of, "metrics": {str(each.metric): each.as_dict() for each in found}}
            for of, found in ceilings.items()
        ],
        "partitions": [_partition(explanation, one) for one in explanation.partitions],
        "values": _values(explanation, names),
        "queries": [_query(one, names, texts=texts) for one in details],
        "warnings": list(warnings),
    }


def _partition(explanation: Explanation, partition: Partition) -> dict[str, Any]:
    def entry(group: QueryGroup) -> dict[str, Any]:
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


def _values(explanation: Explanation, names: Sequence[str]) -> dict[str, Any]:
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


def _query(detail: QueryDetail, names: Sequence[str], *, texts: bool) -> dict[str, Any]:
    text = {"text": detail.query.text} if texts else {}
    return {
        "id": detail.query.id,
        **text,
        "tags": list(detail.query.tags),
        "values": dict(zip(names, detail.values, strict=True)),
        "difference": detail.difference,
        "groups": list(detail.groups),
        "status": dict(zip(names, detail.status, strict=False)),
        "documents": [_document(one, names, texts=texts) for one in detail.documents],
    }


def _document(one: Placed, names: Sequence[str], *, texts: bool) -> dict[str, Any]:
    title = {"title": one.title} if texts else {}
    return {
        "id": one.doc_id,
        **title,
        "grade": one.grade,
        "ranks": {name: rank or None for name, rank in zip(names, one.ranks, strict=True)},
        "fusion": dict(one.fates),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
