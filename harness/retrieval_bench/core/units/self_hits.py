"""Rankings without the query itself, where the query is a document of the corpus."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from retrieval_bench.core.ranking import checked_ranking, hits_at
from retrieval_bench.core.retriever import RankingLike, Retriever, require_k
from retrieval_bench.core.types import (
    DROP,
    Dataset,
    LegTrace,
    Query,
    Ranking,
    StepTrace,
    hits_are_ranges,
)
from retrieval_bench.core.units.collapsing import UnitRetriever
from retrieval_bench.core.units.wrapped import Wrapped

Trace = TypeVar("Trace", LegTrace, StepTrace)


def without_self(ranking: Ranking, query_id: str, k: int | None = None) -> Ranking:
    """The first ``k`` hits of ``ranking`` (None = all) that are not the query itself.

    Kept lists of legs and steps lose the query, too, so that they are judged alike; ranks in a leg
    are those in its list without it.
    """
    n = len(ranking)
    own = ranking.doc_ids.index(query_id) if query_id in ranking.doc_ids else n
    kept = [at for at in range(n) if at != own][:k]
    before = ranking if ranking.legs or ranking.steps else None
    return replace(
        hits_at(ranking, kept),
        stages=ranking.stages,
        legs={name: _leg(leg, kept, query_id) for name, leg in ranking.legs.items()},
        collapsed=ranking.collapsed,
        steps={name: _list(step, query_id) for name, step in ranking.steps.items()},
        usage=ranking.usage,
        # Lists without the query do not tell what was made of lists with it.
        collapsed_from=ranking.collapsed_from or before,
        self_hits=int(own < (n if k is None else k)),
    )


def _leg(leg: LegTrace, kept: Sequence[int], query_id: str) -> LegTrace:
    ranks = np.asarray(leg.ranks, dtype=np.int32)[kept]
    if leg.doc_ids is not None and query_id in leg.doc_ids:
        ranks = ranks - (ranks > leg.doc_ids.index(query_id) + 1)
    scores = np.asarray(leg.scores, dtype=np.float64)[kept]
    return _list(replace(leg, ranks=ranks, scores=scores), query_id)


def _list(trace: Trace, query_id: str) -> Trace:
    if trace.doc_ids is None or query_id not in trace.doc_ids:
        return trace
    kept = [at for at, doc_id in enumerate(trace.doc_ids) if doc_id != query_id]
    scores = None if trace.doc_scores is None else np.asarray(trace.doc_scores)[kept]
    ids = [trace.doc_ids[at] for at in kept]
    if isinstance(trace, StepTrace):  # lists are in units by now, which have no use for its order
        return replace(trace, doc_ids=ids, doc_scores=scores, order=None)
    return replace(trace, doc_ids=ids, doc_scores=scores)


class WithoutSelf(Wrapped):
    """A retriever whose rankings never hold the query itself.

    Where there is a document of the query's id the inner retriever is asked for one hit more, so
    that ``k`` are left.

    Args:
        inner: the retriever to wrap.
        ids: queries that have such a document; None = any may, which is so of an index whose
            documents are not known.
    """

    def __init__(self, inner: Retriever, ids: Collection[str] | None) -> None:
        super().__init__(inner)
        self.ids = ids

    def around(self, inner: Retriever) -> WithoutSelf:
        """The same around another retriever."""
        return WithoutSelf(inner, self.ids)

    def use_k(self, k: int) -> None:
        """The inner retriever may be asked for one more."""
        self.inner.use_k(k if self.ids is not None and not self.ids else k + 1)

    def search(self, query: Query, k: int) -> RankingLike:
        """Return at most ``k`` hits, none of them the query itself."""
        if self.ids is not None and query.id not in self.ids:
            return self.inner.search(query, k)
        require_k(k)
        ranking = self.inner.search(query, k + 1)
        has_scores = self.inner.capabilities.has_scores
        return without_self(checked_ranking(ranking, k + 1, has_scores=has_scores), query.id, k)


def as_judged(retriever: Retriever, dataset: Dataset) -> Retriever:
    """``retriever`` as ``dataset`` judges it: over the units that judgements are on, and without
    the query itself where such hits are dropped.

    Raises:
        HarnessError: it replays answers that do not fit.
    """
    retriever.use_corpus(dataset.documents, dataset.unit_of)
    unit_of = dataset.unit_of
    if not hits_are_ranges(dataset.qrels):
        unit_of = retriever.units(unit_of)
    if unit_of:
        retriever = UnitRetriever(retriever, unit_of)
    if dataset.self_hits == DROP:
        unknown = dataset.documents is None or retriever.capabilities.external
        retriever = WithoutSelf(retriever, None if unknown else dataset.selves.ids)
    return retriever
