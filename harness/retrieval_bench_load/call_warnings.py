"""Answers of calls that other processes made, with the warnings that ``bench`` has of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import offered
from retrieval_bench.core.notices import Code, says
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.experiment.warnings import of_answers, of_data, remembers

_ENOUGH = 1_000
"""Calls whose times say what calls take."""

_FEW = 5
"""Queries that were first asked in a level and again, below which nothing is said of a cache."""


class Answers:
    """Answers of calls that were made otherwise than by ``bench``, with the warnings that it has.

    The first answer to each query counts, and how long the first calls of queries took.

    Attributes:
        took: by the calls of the first level, in nanoseconds, or by as many of them as are enough.
        ratio: of the first call of a query to its later ones in the same level, the median, of the
            level where it is largest; None where no level has enough queries.
    """

    def __init__(self, data: Dataset, queries: Sequence[Query], can: Capabilities, k: int) -> None:
        self.data, self.queries, self.can, self.k = data, queries, can, k
        self.ratio: float | None = None
        self._rankings: list[Ranking | None] = [None] * len(queries)
        self._asked: set[int] = set()
        self._calls = self._again = 0
        self.took: list[int] = []

    @property
    def repeated(self) -> float:
        """Share of the calls whose query had been asked before."""
        return self._again / max(1, self._calls)

    def add(
        self,
        query: NDArray[np.int64],
        took: NDArray[np.int64],
        answers: Iterable[tuple[int, Sequence[str]]],
    ) -> None:
        """The answered calls of a level, in their order.

        Args:
            query: number of the query of each.
            took: how long it took.
            answers: number of a query, and its hits.
        """
        for at, ids in answers:
            self._rankings[at] = self._rankings[at] or Ranking(list(ids), None)
        self.took = self.took or took[:_ENOUGH].tolist()
        ratios = []
        for at in np.unique(query).tolist():
            takes = took[query == at]
            new = at not in self._asked
            self._calls += len(takes)
            self._again += len(takes) - new
            if new and len(takes) > 1:
                ratios.append(float(takes[0]) / max(1.0, float(np.median(takes[1:]))))
            self._asked.add(at)
        if len(ratios) >= _FEW:
            self.ratio = max(self.ratio or 0.0, float(np.median(ratios)))

    def warnings(
        self, health: Sequence[str], corpus: Collection[str] | None, texts: Sequence[str] = ()
    ) -> list[str]:
        """Those of the data, of the answers, of caches, and what the retriever says.

        Args:
            health: of the retriever, and what was switched on beside it.
            corpus: see :func:`foreign_ids`.
            texts: what there is of texts, in which the languages are looked for.
        """
        data = self.data
        rows = [at for at, q in enumerate(self.queries) if q.answerable and q.id in data.qrels]
        told = of_answers(
            data, self.queries, self._rankings, self.can, health, rows=rows, corpus=corpus, k=self.k
        )
        cache = [] if says(told, Code.NOTHING_FOUND) else remembers(self.ratio)
        languages = tell(data, texts) if (tell := offered("tell languages")) else []
        return [*of_data(data, self.k), *languages, *told, *cache]
