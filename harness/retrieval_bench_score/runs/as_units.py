"""Rankings of documents as those of the units that judgements are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Ranking
from retrieval_bench_score.runs.imported import RunFile


def in_units(run: RunFile, unit_of: Mapping[str, str]) -> RunFile:
    """``run`` as one of units, each at the place of its best hit; a hit without a unit is one.

    Args:
        unit_of: document id -> the unit that judgements are on; nothing keeps the run as it is.
    """
    if not unit_of:
        return run
    rankings = {query: _ranked_units(ranking, unit_of) for query, ranking in run.rankings.items()}
    dropped = sum(map(len, run.rankings.values())) - sum(map(len, rankings.values()))
    warnings = run.warnings
    if dropped:
        text = f"{counted(dropped, 'further hit')} of a unit that was returned already left out"
        warnings = (*warnings, f"{text}: judgements are on units, and the best hit of each counts")
    return replace(run, rankings=rankings, repeated={}, warnings=warnings)


def _ranked_units(ranking: Ranking, unit_of: Mapping[str, str]) -> Ranking:
    if ranking.scores is None:
        return Ranking(units_in_order(ranking.doc_ids, unit_of))
    scores = np.asarray(ranking.scores).tolist()
    best = units_with_best(zip(ranking.doc_ids, scores, strict=True), unit_of)
    return Ranking(list(best), np.array(list(best.values()), dtype=np.float64))


def units_in_order(doc_ids: Sequence[str], unit_of: Mapping[str, str]) -> list[str]:
    """The units of a list, in the order of their first hits."""
    return list(dict.fromkeys(unit_of.get(doc, doc) for doc in doc_ids))


def units_with_best(
    hits: Iterable[tuple[str, float]], unit_of: Mapping[str, str]
) -> dict[str, float]:
    """The units of scored hits, each with its highest score."""
    best: dict[str, float] = {}
    for doc, score in hits:
        unit = unit_of.get(doc, doc)
        best[unit] = max(score, best.get(unit, score))
    return best
