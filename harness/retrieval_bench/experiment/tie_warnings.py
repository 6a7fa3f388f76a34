"""Equal scores of a retriever: what they decide, and whether equal texts are the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
_SIGNS = "[-+\u2212#%&@^~$\u20ac\u00a3\u00b1]+"
_SIGNED = re.compile(rf"\w+{_SIGNS}(?!\w)|(?<!\w){_SIGNS}\w+")
"""A word with signs at one of its ends, which tell A+ from A-, C++ from C, and -5 from 5."""


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


def signed_words(text: str) -> list[str]:
    """Return the words of a text that have signs, without case."""
    return _SIGNED.findall(text.casefold())


def tie_warnings(
    effect: TieEffect | None,
    rankings: Rankings,
    data: Dataset,
    can: Capabilities,
    facts: Mapping[str, Any],
) -> list[Notice]:
    """Warn where equal scores decide, with what to do about it; ``facts`` name the tokenizer."""
    if effect is None:
        return []
    copies, signs, apart = _copies(rankings, data, can)
    if copies >= COPIES:
        n = "Most of them are documents of equal text, which no search can tell apart: take copies "
        n += "out of the corpus, or judge them alike."
        return [replace(effect, constant=False).notice(n)]
    if copies + signs >= COPIES:
        name = dict(facts.get("tokenizer") or {}).get("name")
        dropping = f"tokenizer {name!r} drops" if name else "this retriever does not look at"
        n = f"Most of them are documents that differ in signs only, such as {' and '.join(apart)}, "
        n += f"which {dropping}: `tokenizer: whitespace` tells them apart."
        return [replace(effect, constant=False).notice(n)]
    if rankings.leg_ranks:
        return [effect.notice(FROM_FUSION)]
    return [effect.notice(FROM_ELSEWHERE if can.replays else FROM_RETRIEVER)]


def _ties(rankings: Rankings, can: Capabilities) -> TiedHits | None:
    held = rankings.ranking != NONE
    return ties_of(tie_keys(rankings, can)[held], np.count_nonzero(held, axis=1))


def _copies(
    rankings: Rankings, data: Dataset, can: Capabilities
) -> tuple[float, float, Sequence[str]]:
    """The share of the hits in ties that have the text of another hit of their tie; the share of
    those that have its words, and other signs; and two of these."""
    ties = _ties(rankings, can)
    if ties is None or data.documents is None or data.unit_of:
        return 0.0, 0.0, ()
    hits = rankings.ranking[rankings.ranking != NONE]
    tied = [
        [rankings.doc_ids[at] for at in hits[start:end].tolist()]
        for start, end in zip(ties.bounds[:-1].tolist(), ties.bounds[1:].tolist(), strict=True)
        if end - start > 1
    ]
    text_of = _texts(data.documents, {doc_id for ids in tied for doc_id in ids})
    copies, signs, example = 0, 0, list[str]()
    for ids in tied:
        known = {doc_id: text_of[doc_id] for doc_id in ids if doc_id in text_of}
        whole = Counter(known.values())
        words = Counter(text[0] for text in known.values())
        copies += sum(whole[text] > 1 for text in known.values())
        apart = [id_ for id_, text in known.items() if words[text[0]] > 1 == whole[text]]
        signs += len(apart)
        if apart and not example:
            alike = known[apart[0]][0]
            example = [id_ for id_, text in known.items() if text[0] == alike][:2]
    n = sum(map(len, tied))
    return copies / n, signs / n, example


def _texts(documents: Iterable[Document], ids: set[str]) -> dict[str, tuple[int, int]]:
    """Hashes of the words of these documents, and of those that have signs."""
    return {
        document.id: (
            hash(tuple(_WORD.findall(document.contents.casefold()))),
            hash(tuple(signed_words(document.contents))),
        )
        for document in documents
        if document.id in ids
    }
