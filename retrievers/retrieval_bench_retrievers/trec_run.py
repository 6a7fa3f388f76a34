"""A saved run as a retriever: the rankings of any system, replayed by query id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Documents, Query, Ranking
from retrieval_bench.runs import records
from retrieval_bench.runs.arrays import RANKINGS
from retrieval_bench.runs.records import TREC_RUN
from retrieval_bench_score.runs.as_units import in_units
from retrieval_bench_score.runs.imported import RUN_FOLDER, RunFile, read_rankings


class TrecRun(Retriever):
    """Answers each query with its ranking in a run file; no hits for a query that is not in it.

    The file is read as ``score run`` reads it, in all of its formats, and ordered as there: by
    score in single precision, equal ones by document id descending, whatever a rank column of TREC
    text says; lists without scores keep their order. Runs written by the harness have no ties.

    Args:
        path: a run file, or the folder of a saved run: its exact scores and all of its queries, or
            its ``run.trec`` where that is all there is.
        repeats: "first" = of a document that stands in a ranking more than once its best hit
            counts; None = that is an error, unless judgements are on units.

    Raises:
        DataError: the file cannot be read, or has faults; see :func:`.read_rankings`.
        RecordError: the folder of the run is damaged.
    """

    def __init__(self, path: str | Path, repeats: Literal["first"] | None = None) -> None:
        place = plugins.beside_config(path)
        self.path = place
        self.repeats = repeats
        if place.is_dir():
            exact = place / RANKINGS
            self.path = exact if exact.exists() else place / TREC_RUN
        saved = self.path.name == RANKINGS
        self._file = _saved(place) if saved else read_rankings(self.path)
        self._take(self._file)
        self._facts: Sequence[str] = ()
        self._sha256 = hashlib.sha256(self.path.read_bytes()).hexdigest()

    def _take(self, file: RunFile) -> None:
        rankings = file.ordered("trec")
        if self.repeats:
            rankings = {query_id: _distinct(of) for query_id, of in rankings.items()}
        self._has_scores = all(of.scores is not None for of in rankings.values() if len(of))
        if not self._has_scores:  # where some have none, the order is all that is common
            rankings = {query_id: Ranking(of.doc_ids) for query_id, of in rankings.items()}
        elif file.format != RUN_FOLDER:
            rankings = {query_id: _untied(of) for query_id, of in rankings.items()}
        self._rankings = rankings

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Retrieved texts become the documents that contain them, and hits the units that are
        judged, as in ``score run``.

        Raises:
            DataError: a document stands more than once in a ranking, and no unit says why.
        """
        if self._file.format == RUN_FOLDER:
            return
        self._file = self._file.within(documents)
        file = in_units(self._file, unit_of)
        if file.repeated and not self.repeats:
            query_id, (doc_id, *_) = next(iter(file.repeated.items()))
            raise DataError(
                f"a document stands more than once in the ranking of "
                f"{counted(len(file.repeated), 'query')}, as {doc_id!r} for query {query_id!r}",
                where=str(self.path),
                accepted="each document once per query",
                fix="keep the best hit of each (`--set repeats=first`, or `repeats: first` under "
                "`params` of a file), or give the documents a `unit_key` if these are their parts",
            )
        self._facts = file.warnings[len(self._file.warnings) :]
        self._take(file)

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
        return saved.first(k)

    def describe(self) -> Mapping[str, Any]:
        """Hash and size of the run."""
        return {"sha256": self._sha256, "queries": len(self._rankings)}

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Queries that the run lacks, and what was remarkable in its file."""
        missing = sum(query.id not in self._rankings for query in queries)
        message = f"{missing} of {len(queries)} queries are not in {self.path.name}"
        return [
            *[message] * bool(missing),
            *(f"{self.path.name}: {warning}" for warning in self._file.warnings),
        ]

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Return how many hits are of a unit that was returned already."""
        return [f"{self.path.name}: {fact}" for fact in self._facts]


def _saved(folder: Path) -> RunFile:
    rankings = records.read_run(folder).rankings
    saved = {query_id: rankings.row(at) for at, query_id in enumerate(rankings.query_ids)}
    return RunFile(folder, RUN_FOLDER, saved, {})


def _distinct(ranking: Ranking) -> Ranking:
    """``ranking`` with the first hit of each document alone."""
    first: dict[str, int] = {}
    for at, doc_id in enumerate(ranking.doc_ids):
        first.setdefault(doc_id, at)
    kept = list(first.values())
    scores = None if ranking.scores is None else np.asarray(ranking.scores)[kept]
    return Ranking(list(first), scores)


def _untied(ranking: Ranking) -> Ranking:
    """``ranking`` with scores that fall, so that no other rule for ties changes its order: of those
    that are equal in single precision each is lowered by less than that can tell apart."""
    if ranking.scores is None:
        return ranking
    scores = np.array(ranking.scores, dtype=np.float64)
    limit = np.finfo(np.float32).max
    single = np.clip(scores, -limit, limit).astype(np.float32)
    tied = np.flatnonzero(single[1:] == single[:-1]) + 1
    scores[tied - 1] = single[tied - 1]
    for at in tied:
        scores[at] = np.nextafter(scores[at - 1], -np.inf)
    return Ranking(ranking.doc_ids, scores)
