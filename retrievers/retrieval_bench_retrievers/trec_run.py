"""A saved TREC run as a retriever: the rankings of any system, replayed by query id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.data.formats.trec_runs import read_run
from retrieval_bench.runs import records
from retrieval_bench.runs.arrays import RANKINGS
from retrieval_bench.runs.imported import ordered
from retrieval_bench.runs.records import TREC_RUN


class TrecRun(Retriever):
    """Answers each query with its ranking in a run file; no hits for a query that is not in it.

    The order is that of trec_eval, as in ``score run``, whatever the rank column says: by score in
    single precision, equal ones by document id descending. Runs written by the harness have no
    ties.

    Args:
        path: a run file (``.gz`` too), or the folder of a saved run: its exact scores and all of
            its queries, or its ``run.trec`` where that is all there is.

    Raises:
        DataError: the file cannot be read, or has faults; see :func:`.read_run`.
        RecordError: the folder of the run is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        place = plugins.beside_config(path)
        self.path = place
        if place.is_dir():
            exact = place / RANKINGS
            self.path = exact if exact.exists() else place / TREC_RUN
        self._rankings = _saved(place) if self.path.name == RANKINGS else {}
        self._reordered: set[str] = set()
        for query_id, hits in {} if self._rankings else read_run(self.path).items():
            given = Ranking([hit.doc_id for hit in hits], [hit.score for hit in hits])
            self._rankings[query_id] = _untied(ordered(given, "trec"))
            if any(after.score > before.score for before, after in pairwise(hits)):
                self._reordered.add(query_id)
        self._has_scores = all(
            ranking.scores is not None for ranking in self._rankings.values() if len(ranking)
        )
        self._sha256 = hashlib.sha256(self.path.read_bytes()).hexdigest()

    @property
    def capabilities(self) -> Capabilities:
        """External: the system that made the run held the corpus. Only a saved run was measured
        with the filters of its queries, if any."""
        saved = self.path.name == RANKINGS
        return Capabilities(external=True, has_scores=self._has_scores, replays=True, filters=saved)

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` hits that the run has for ``query.id``; its text is not looked at."""
        require_k(k)
        saved = self._rankings.get(query.id)
        if saved is None:
            return Ranking([])
        return Ranking(saved.doc_ids[:k], None if saved.scores is None else saved.scores[:k])

    def describe(self) -> Mapping[str, Any]:
        """Hash and size of the run."""
        return {"sha256": self._sha256, "queries": len(self._rankings)}

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Queries that the run lacks, and those whose lines are not in the order of the scores."""
        warnings = []
        missing = sum(query.id not in self._rankings for query in queries)
        if missing:
            warnings.append(f"{missing} of {len(queries)} queries are not in {self.path.name}")
        reordered = sum(query.id in self._reordered for query in queries)
        if reordered:
            warnings.append(
                f"for {reordered} of {len(queries)} queries the lines of {self.path.name} do not "
                "follow the scores; the scores decide, as in trec_eval"
            )
        return warnings


def _saved(folder: Path) -> dict[str, Ranking]:
    rankings = records.read_run(folder).rankings
    return {query_id: rankings.row(at) for at, query_id in enumerate(rankings.query_ids)}


def _untied(ranking: Ranking) -> Ranking:
    """``ranking`` with scores that fall, so that no other rule for ties changes its order: of those
    that are equal in single precision each is lowered by less than that can tell apart."""
    scores = np.array(ranking.scores, dtype=np.float64)
    limit = np.finfo(np.float32).max
    single = np.clip(scores, -limit, limit).astype(np.float32)
    tied = np.flatnonzero(single[1:] == single[:-1]) + 1
    scores[tied - 1] = single[tied - 1]
    for at in tied:
        scores[at] = np.nextafter(scores[at - 1], -np.inf)
    return Ranking(ranking.doc_ids, scores)
