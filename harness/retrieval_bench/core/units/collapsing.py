"""Relevance units: judgements on documents while a retriever returns their chunks.

Hits of one unit collapse to the first of them, the list is filled up from deeper hits, and how many
were dropped is reported. A hit without a unit is a unit of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.usage import report
from retrieval_bench.core.ranking import checked_ranking, hits_at, levels
from retrieval_bench.core.retriever import Retriever, require_k
from retrieval_bench.core.types import LegTrace, Query, Ranking, StepTrace, Usage
from retrieval_bench.core.units.wrapped import Wrapped


def collapse(ranking: Ranking, unit_of: Mapping[str, str], k: int) -> Ranking:
    """The first ``k`` units of ``ranking``, each with the score of its best hit.

    Args:
        ranking: hits best first; an id may stand in it more than once. Not changed.
        unit_of: document id -> unit id; an id that is missing here is its own unit.
        k: at least 1.

    Returns:
        Unit ids in the order of their first hits, ties by their order, then by unit id, with the
        scores and leg traces of those hits. The whole list of a leg becomes one of units, in the
        same order. ``collapsed`` counts the hits that were dropped on the way to the last unit,
        added to what ``ranking`` says itself.
    """
    n = len(ranking)
    if not unit_of and ranking.scores is None and n <= k and len(set(ranking.doc_ids)) == n:
        return ranking
    scores = None if ranking.scores is None else np.asarray(ranking.scores, np.float64).tolist()
    first: dict[str, int] = {}
    walked = 0
    lowest = -math.inf
    for at, doc_id in enumerate(ranking.doc_ids):
        # Units that tie with the last one must be seen before the list is cut.
        if len(first) >= k and (scores is None or scores[at] < lowest):
            break
        walked += 1
        if first.setdefault(unit_of.get(doc_id, doc_id), at) == at and len(first) == k and scores:
            lowest = scores[at]
    units = list(first)
    if scores is not None:
        level = levels(ranking)
        units.sort(key=lambda unit: (level[first[unit]], unit))
    units = units[:k]
    kept = [first[unit] for unit in units]
    return replace(
        hits_at(ranking, kept),
        doc_ids=units,
        stages=ranking.stages,
        legs={name: _leg_of_units(leg, kept, unit_of) for name, leg in ranking.legs.items()},
        collapsed=ranking.collapsed + walked - len(first),
        steps={name: _step_of_units(step, unit_of) for name, step in ranking.steps.items()},
        usage=ranking.usage,
    )


def _leg_of_units(leg: LegTrace, kept: Sequence[int], unit_of: Mapping[str, str]) -> LegTrace:
    """``leg`` at the hits that were kept, and its whole list as one of units."""
    ranks, scores = [leg.ranks[at] for at in kept], [leg.scores[at] for at in kept]
    if leg.doc_ids is None:
        return LegTrace(ranks, scores)
    units = _list_of_units(Ranking(leg.doc_ids, leg.doc_scores), unit_of)
    return LegTrace(ranks, scores, *units)


def _step_of_units(step: StepTrace, unit_of: Mapping[str, str]) -> StepTrace:
    if step.doc_ids is None:
        return step
    told = Ranking(step.doc_ids, step.doc_scores, order=step.order)
    units, scores = _list_of_units(told, unit_of)
    return StepTrace(units, scores, step.texts)


def _list_of_units(
    ranking: Ranking, unit_of: Mapping[str, str]
) -> tuple[list[str], NDArray[np.float64] | None]:
    """A whole list as one of units, each with the score of its best hit."""
    first: dict[str, int] = {}
    for at, doc_id in enumerate(ranking.doc_ids):
        first.setdefault(unit_of.get(doc_id, doc_id), at)
    if ranking.scores is None:
        return list(first), None
    level = levels(ranking)
    units = sorted(first, key=lambda unit: (level[first[unit]], unit))
    return units, np.asarray(ranking.scores, np.float64)[[first[unit] for unit in units]]


class UnitRetriever(Wrapped):
    """A retriever over chunks, seen as a retriever over the units that judgements are on.

    The inner retriever indexes and returns documents (chunks). It is asked for twice as many until
    ``k`` units are together and none that ties with the last one can be missing, or it has no more.

    Args:
        inner: the retriever to wrap; closed together with this one.
        unit_of: document id -> unit id; an id that is missing here is its own unit.
    """

    def __init__(self, inner: Retriever, unit_of: Mapping[str, str]) -> None:
        super().__init__(inner)
        self.unit_of = unit_of

    def around(self, inner: Retriever) -> UnitRetriever:
        """The same around another retriever."""
        return UnitRetriever(inner, self.unit_of)

    def use_k(self, k: int) -> None:
        """The inner retriever is first asked for one more, to see whether a tie goes on."""
        self.inner.use_k(k + 1 if self.inner.capabilities.has_scores else k)

    def search(self, query: Query, k: int) -> Ranking:
        """Return at most ``k`` units, best first, ties by unit id; ``stages`` are summed over all
        inner calls.

        Raises:
            ContractError: ``k`` below 1, no index yet, or the inner ranking breaks the contract.
        """
        require_k(k)
        has_scores = self.inner.capabilities.has_scores
        stages: dict[str, int] = {}
        usage: dict[str, Usage] = {}
        # One more than k shows in the first call whether a tie goes on behind the cut.
        depth = k + 1 if has_scores else k
        while True:
            try:
                raw = self.inner.search(query, depth)
            except Exception:  # what the calls before used up is paid for
                for used in usage.values():
                    report(used)
                raise
            hits = checked_ranking(raw, depth, has_scores=has_scores)
            for stage, nanoseconds in hits.stages.items():
                stages[stage] = stages.get(stage, 0) + nanoseconds
            for stage, used in hits.usage.items():
                usage[stage] = usage[stage] + used if stage in usage else used
            units = collapse(hits, self.unit_of, k)
            if len(hits) < depth or (len(units) == k and not self._tie_goes_on(hits, units)):
                # Lists of units do not tell what was made of lists of hits.
                before = hits if hits.legs or hits.steps else None
                return replace(units, stages=stages, usage=usage, collapsed_from=before)
            depth *= 2

    def _tie_goes_on(self, hits: Ranking, units: Ranking) -> bool:
        if hits.scores is None:
            return False
        of_hits = [self.unit_of.get(doc_id, doc_id) for doc_id in hits.doc_ids]
        level = levels(hits)
        return bool(level[-1] == level[of_hits.index(units.doc_ids[-1])])
