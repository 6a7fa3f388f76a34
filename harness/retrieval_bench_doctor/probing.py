"""A few real answers before anything is measured: to be read, or only to see that there are any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.until import asking_once
from retrieval_bench.measure.calls import OK


@dataclass(frozen=True, slots=True)
class ProbedHit:
    """One hit of an answer.

    Attributes:
        doc_id: the document, or its unit.
        score: None where there is none.
        grade: None where it is not judged.
        text: title and text, None where the documents are not here.
        fits: whether the query's filter allows it; None without a filter, or without documents.
    """

    doc_id: str
    score: float | None
    grade: int | None
    text: str | None
    fits: bool | None


@dataclass(frozen=True, slots=True)
class ProbedQuery(Documented):
    """One query and its answer.

    Attributes:
        query: what was asked.
        status: "ok", or why it failed.
        ms: of the one call, which nothing was warmed up for.
        hits: best first.
    """

    KEYS = "query_id=query.id text=query.text filter=filtered status ms hits"

    query: Query
    status: str
    ms: float
    hits: tuple[ProbedHit, ...]

    @property
    def filtered(self) -> dict[str, Any] | None:
        """The filter of the query as it was given; None without one."""
        return None if self.query.filter is None else dict(self.query.filter.source)


@dataclass(frozen=True, slots=True)
class Probe(Documented):
    """Answers of one retriever to the first queries; nothing was evaluated or saved.

    Attributes:
        retriever, dataset, k: what was asked for.
        queries: with their answers.
        warnings: of the data and the retriever.
    """

    KEYS = "retriever dataset k warnings queries"

    retriever: str
    dataset: str
    k: int
    queries: tuple[ProbedQuery, ...]
    warnings: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """True if any query was."""
        return any(query.status == OK for query in self.queries)


def probe(experiment: Experiment, n: int, reporter: Reporter | None = None) -> Probe:
    """The answers of the first retriever to the first ``n`` queries."""
    data, queries = experiment.dataset, experiment.queries[:n]
    once = replace(experiment, protocol=asking_once(experiment.protocol))
    searched = once.search(reporter, first=n)
    wanted = {doc_id for ranking in searched.rankings if ranking for doc_id in ranking.doc_ids}
    texts: dict[str, str] = {}
    for document in data.documents or ():
        unit = data.unit_of.get(document.id, document.id)
        if unit in wanted:
            texts.setdefault(unit, document.contents)
    answers = tuple(
        ProbedQuery(
            query,
            status,
            float(searched.timings.wall_ns[searched.timings.query == at][0]) / 1e6,
            tuple(_hits(experiment, query, ranking, texts)),
        )
        for at, (query, status, ranking) in enumerate(
            zip(queries, searched.status, searched.rankings, strict=True)
        )
    )
    return Probe(searched.name, data.name, experiment.k, answers, searched.warnings)


def _hits(
    experiment: Experiment, query: Query, ranking: Ranking | None, texts: Mapping[str, str]
) -> Iterator[ProbedHit]:
    if ranking is None:
        return
    grades, filtering = experiment.dataset.qrels.get(query.id, {}), experiment.dataset.filtering
    fits: list[Any] = [None] * len(ranking)
    if query.filter is not None and filtering is not None:
        fits = filtering.fits(query.filter, ranking.doc_ids)
    for hit, fit in zip(ranking, fits, strict=True):
        score = None if hit.score != hit.score else hit.score
        yield ProbedHit(hit.doc_id, score, grades.get(hit.doc_id), texts.get(hit.doc_id), fit)
