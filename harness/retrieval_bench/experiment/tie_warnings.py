"""Equal scores of a retriever: what they decide, and whether equal texts are the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrieval_bench.core.notices import Notice
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Document, Ranking
from retrieval_bench.measure.behind_cut import Behind, Cut, tie_levels
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.tied import (
    FROM_ELSEWHERE,
    FROM_FUSION,
    FROM_RETRIEVER,
    TieEffect,
    is_constant,
    tie_effect,
)
from retrieval_bench.metrics.ties import TiedHits, ties_of
from retrieval_bench.runs.run import pack_rankings

COPIES = 0.5
"""From this share of the hits in ties on that have the text of another hit, texts are the cause."""

_WORD = re.compile(r"\w+")
_SIGNS = "[-+\u2212#%&@^~$\u20ac\u00a3\u00b1]+"
_SIGNED = re.compile(rf"\w+{_SIGNS}(?!\w)|(?<!\w){_SIGNS}\w+")
"""A word with signs at one of its ends, which tell A+ from A-, C++ from C, and -5 from 5."""


def effect_of_ties(
    behind: Behind,
    task: Cut,
    metrics: Sequence[Metric],
    can: Capabilities,
    *,
    facts: Mapping[str, Any],
) -> tuple[TieEffect | None, list[Notice]]:
    """Measure the effect of equal scores, and warn of it; where nothing is judged, only of constant
    ones."""
    data, rankings = task.dataset, behind.rankings
    effect, ties = None, _ties(rankings, can)
    if ties is not None and data.judged:
        longest = max(len(ranking) for ranking in rankings if ranking is not None)
        lists = [None if ranking is None else Ranking(ranking.doc_ids) for ranking in rankings]
        packed = pack_rankings(behind.query_ids, lists, longest)
        run = judge(packed.ranking, packed.doc_ids, behind.query_ids, Judgements(data.qrels))
        run = replace(run, ties=ties)
        effect = tie_effect(run, metrics, depth=task.k, unknown=behind.unknown)
    elif ties is not None and is_constant(ties):
        effect = TieEffect(None, None, ties.share(), constant=True)
    return effect, tie_warnings(effect, rankings, data, can, facts)


def signed_words(text: str) -> list[str]:
    """Return the words of a text that have signs, without case."""
    return _SIGNED.findall(text.casefold())


def tie_warnings(
    effect: TieEffect | None,
    rankings: Sequence[Ranking | None],
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
    if any(ranking.legs for ranking in rankings if ranking is not None):
        return [effect.notice(FROM_FUSION)]
    return [effect.notice(FROM_ELSEWHERE if can.replays else FROM_RETRIEVER)]


def _ties(rankings: Sequence[Ranking | None], can: Capabilities) -> TiedHits | None:
    of = [np.zeros(0) if made is None else tie_levels(made, can) for made in rankings]
    return ties_of(np.concatenate([np.zeros(0), *of]), np.array(list(map(len, of)), dtype=np.int64))


def _copies(
    rankings: Sequence[Ranking | None], data: Dataset, can: Capabilities
) -> tuple[float, float, Sequence[str]]:
    """The share of the hits in ties that have the text of another hit of their tie; the share of
    those that have its words, and other signs; and two of these."""
    ties = _ties(rankings, can)
    if ties is None or data.documents is None or data.unit_of:
        return 0.0, 0.0, ()
    hits = [doc_id for made in rankings if made is not None for doc_id in made.doc_ids]
    tied = [
        hits[start:end]
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
