"""Equal scores of a retriever: what they decide, and whether equal texts are the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.notices import Notice
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Document
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.metrics.tied import (
    FROM_ELSEWHERE,
    FROM_FUSION,
    FROM_RETRIEVER,
    TieEffect,
    is_constant,
)
from retrieval_bench.metrics.ties import TiedHits, ties_of
from retrieval_bench.runs.evaluation import Evaluation
from retrieval_bench.runs.run import Rankings

COPIES = 0.5
"""From this share of the hits in ties on that have the text of another hit, texts are the cause."""

_WORD = re.compile(r"\w+")


def tie_keys(rankings: Rankings, can: Capabilities) -> NDArray[np.floating[Any]]:
    """(queries, width): scores, equal where hits are tied. A run that is replayed has its own order
    of ties, kept by differences that single precision, in which it was ordered, does not have."""
    return rankings.scores.astype(np.float32) if can.replays else rankings.scores


def effect_of_ties(
    evaluation: Evaluation, rankings: Rankings, data: Dataset, can: Capabilities
) -> TieEffect | None:
    """Measure the effect of equal scores; where nothing is judged, only that they are constant, if
    they are."""
    if data.judged:
        return evaluation.ties
    ties = _ties(rankings, can)
    if ties is None or not is_constant(ties):
        return None
    return TieEffect(None, None, ties.share(), constant=True)


def tie_warnings(
    effect: TieEffect | None, rankings: Rankings, data: Dataset, can: Capabilities
) -> list[Notice]:
    """Warn where equal scores decide, with what to do about it."""
    if effect is None:
        return []
    if _copies(rankings, data, can) >= COPIES:
        n = "Most of them are documents of equal text, which no search can tell apart: take copies "
        n += "out of the corpus, or judge them alike."
        return [replace(effect, constant=False).notice(n)]
    if rankings.leg_ranks:
        return [effect.notice(FROM_FUSION)]
    return [effect.notice(FROM_ELSEWHERE if can.replays else FROM_RETRIEVER)]


def _ties(rankings: Rankings, can: Capabilities) -> TiedHits | None:
    held = rankings.ranking != NONE
    return ties_of(tie_keys(rankings, can)[held], np.count_nonzero(held, axis=1))


def _copies(rankings: Rankings, data: Dataset, can: Capabilities) -> float:
    """The share of the hits in ties that have the text of another hit of their tie."""
    ties = _ties(rankings, can)
    if ties is None or data.documents is None or data.unit_of:
        return 0.0
    hits = rankings.ranking[rankings.ranking != NONE]
    tied = [
        [rankings.doc_ids[at] for at in hits[start:end].tolist()]
        for start, end in zip(ties.bounds[:-1].tolist(), ties.bounds[1:].tolist(), strict=True)
        if end - start > 1
    ]
    text_of = _texts(data.documents, {doc_id for ids in tied for doc_id in ids})
    copies = 0
    for ids in tied:
        texts = [text_of.get(doc_id) for doc_id in ids]
        copies += sum(text is not None and texts.count(text) > 1 for text in texts)
    return copies / sum(map(len, tied))


def _texts(documents: Iterable[Document], ids: set[str]) -> dict[str, int]:
    """Hashes of the words of these documents."""
    return {
        document.id: hash(tuple(_WORD.findall(document.contents.casefold())))
        for document in documents
        if document.id in ids
    }
