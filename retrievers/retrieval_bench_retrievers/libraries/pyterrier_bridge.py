"""What needs PyTerrier to be defined; loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query


class HarnessTransformer(pt.Transformer):  # type: ignore[misc]
    """See :func:`retrieval_bench_retrievers.libraries.pyterrier.as_pyterrier`."""

    def __init__(
        self, retriever: Retriever, k: int, documents: Mapping[str, Document] | None
    ) -> None:
        self.retriever = retriever
        self.k = k
        self.documents = documents

    def __repr__(self) -> str:
        return f"HarnessTransformer({type(self.retriever).__name__}, k={self.k})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search each row of ``inp``; what the retriever raises is passed through."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        rows: list[int] = []
        hits: dict[str, list[Any]] = {"docno": [], "score": [], "rank": []}
        has_scores = self.retriever.capabilities.has_scores
        for at, (query_id, text) in enumerate(zip(inp["qid"], inp["query"], strict=True)):
            raw = self.retriever.search(Query(str(query_id), str(text)), self.k)
            ranking = checked_ranking(raw, self.k, has_scores=has_scores)
            ranks = range(pt.model.FIRST_RANK, pt.model.FIRST_RANK + len(ranking))
            scores = ranking.scores if ranking.scores is not None else [-rank for rank in ranks]
            rows += [at] * len(ranking)
            hits["docno"] += ranking.doc_ids
            hits["score"] += map(float, scores)
            hits["rank"] += ranks
        queries = inp.iloc[np.asarray(rows, dtype=np.intp)].reset_index(drop=True)
        frame = queries.assign(
            docno=pd.Series(hits["docno"], dtype=object),
            score=pd.Series(hits["score"], dtype=np.float64),
            rank=pd.Series(hits["rank"], dtype=np.int64),
        )
        if self.documents is None:
            return frame
        unknown = next((item for item in hits["docno"] if item not in self.documents), None)
        if unknown is not None:
            raise ContractError(
                f"document id {unknown!r} is not among the documents",
                accepted="all that the retriever returns, or none",
                fix="hand over the whole corpus to as_pyterrier",
            )
        known = [self.documents[item] for item in hits["docno"]]
        return frame.assign(
            title=pd.Series([document.title for document in known], dtype=object),
            text=pd.Series([document.text for document in known], dtype=object),
        )
