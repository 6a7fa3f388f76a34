"""Amounts that answers used up: tokens, calls and money, for a query, for a thousand, and by
stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import document
from retrieval_bench.core.calls.usage import FIELDS
from retrieval_bench.core.types import Usage
from retrieval_bench.measure.calls import Timings

PER = 1_000
"""Queries that money is told for."""

Rows = NDArray[np.float64]


def usage_document(timings: Timings, spent: Usage | None) -> dict[str, Any]:
    """``usage`` of a summary; nothing where no answer says what it used up.

    Means are over the answered calls that were measured; one that says nothing counts as nothing. A
    kind of which nothing is known is None.

    Args:
        spent: by all calls, those of the warm-up included; None = not known.
    """
    if not timings.usage:
        return {}
    answered = ~timings.failed
    stages = {name: rows[answered] for name, rows in timings.usage.items()}
    mask = np.any([~np.isnan(rows).all(axis=1) for rows in stages.values()], axis=0)
    each = total(stages)
    used: dict[str, Any] = {
        "n": int(np.count_nonzero(answered)),
        "silent": int(np.count_nonzero(~mask)),
        "per_query": means(each),
        "money_per_1000_queries": per_thousand(each),
        "stages": {name: means(rows) for name, rows in stages.items()},
    }
    if spent is not None:
        used["spent"] = document(spent)
    return {"usage": used}


def total(stages: Mapping[str, Rows]) -> Rows:
    """Sum the usage of each call over all stages, (calls, 4); NaN where no stage says it."""
    rows = np.stack(list(stages.values()))
    return np.where(np.isnan(rows).all(axis=0), np.nan, np.nansum(rows, axis=0))


def means(rows: Rows) -> dict[str, float | None]:
    """The mean of each field over calls, of which those that do not say count as nothing; None
    where none says."""
    known = np.logical_not(np.isnan(rows).all(axis=0)).tolist()
    sums = np.nansum(rows, axis=0) / max(1, len(rows))
    return {
        name: float(value) if there else None
        for name, value, there in zip(FIELDS, sums.tolist(), known, strict=True)
    }


def per_thousand(rows: Rows) -> float | None:
    """Money for a thousand queries; None where it is not known."""
    money = means(rows)["money"]
    return None if money is None else PER * money
