"""The one place where rankings are ordered and checked.

Order is (score descending, document id ascending). Built-in retrievers keep their documents sorted
by id, so that a lower position is a lower id and :func:`top_k` applies the rule on bare arrays. A
stage that gets a list, such as a reranker, keeps its order where scores are equal: that list says
which hit is better, an id does not (:attr:`.Ranking.order`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import LegTrace, Ranking, StepTrace, Usage

TIE_RULE = "score desc, id asc"
OF_STAGES = "score desc, then as the stage before had it, id asc"

_BLOCK = 256

_UNWRITABLE = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def top_k(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Positions of the ``k`` highest scores, highest first, ties by lower position.

    Args:
        scores: shape (n,), no NaN; position i must be the i-th document in ascending id order.
        k: at least 1; fewer than k positions come back when n < k.

    Exact, and much cheaper than a full partition when k is far below n: the k-th largest of the
    maxima of blocks of 256 is a lower bound of the k-th largest score (k different blocks reach
    it), so only scores at or above the bound, ties included, are sorted. Which positions form a
    block does not matter: those far from each other, as here, are compared many at a time.
    """
    n = scores.shape[0]
    if n == 0:
        return np.empty(0, dtype=np.intp)
    if k < n:
        n_blocks = n // _BLOCK
        if n_blocks > k:
            columns = scores[: n_blocks * _BLOCK].reshape(_BLOCK, n_blocks)
            maxima = columns.max(axis=0)
            bound = np.partition(maxima, n_blocks - k)[n_blocks - k]
            high = np.flatnonzero(maxima >= bound)
            rows, at = np.nonzero(columns[:, high] >= bound)
            rest = np.flatnonzero(scores[n_blocks * _BLOCK :] >= bound) + n_blocks * _BLOCK
            candidates = np.concatenate((rows * n_blocks + high[at], rest))
        else:
            bound = np.partition(scores, n - k)[n - k]
            candidates = np.flatnonzero(scores >= bound)
    else:
        candidates = np.arange(n)
    order = np.argsort(-scores[candidates], kind="stable")[:k]
    return candidates[order]


def checked_ranking(
    raw: Any, k: int, known_ids: Container[str] | None = None, *, has_scores: bool = True
) -> Ranking:
    """Check the answer of a retriever, and return it as a :class:`Ranking` that keeps the contract.

    Ties come out in the order of the tie rule. Anything else that breaks the contract is an error,
    never repaired: a repaired ranking would hide a defect of the retriever from its author.

    Args:
        raw: a :class:`Ranking` or a sequence of (doc_id, score).
        k: what was asked for.
        known_ids: ids of the corpus, None when they cannot be known (external index).
        has_scores: False = scores in ``raw`` are ignored, the list order counts.

    Raises:
        ContractError: too many hits, a repeated or unknown or non-text id, a score that is not
            finite or that rises.
    """
    ranking = raw if isinstance(raw, Ranking) else _from_pairs(raw)
    # Copies throughout: a retriever may fill the same lists again in its next call.
    ids = _checked_ids(ranking.doc_ids, k, known_ids)
    _check_stages(ranking)
    legs = {name: _checked_leg(name, leg, len(ids)) for name, leg in ranking.legs.items()}
    texts, sources = _each(ids, ranking.texts, "texts"), _each(ids, ranking.sources, "sources")
    scores = order = None
    if ranking.scores is not None and has_scores:
        scores = _checked_scores(ids, ranking.scores)
        tied = np.flatnonzero(scores[1:] == scores[:-1]).tolist()
        order = None if ranking.order is None else _checked_order(ids, ranking.order)
        keys: list[Any] = ids if order is None else list(zip(order.tolist(), ids, strict=True))
        if any(keys[i] > keys[i + 1] for i in tied):
            places = _sorted_ties(keys, scores)
            ids, legs = _turned(places, ids, legs)
            order = None if order is None else order[places]
            texts = None if texts is None else [texts[i] for i in places]
            sources = None if sources is None else [sources[i] for i in places]
    steps = {name: _checked_step(name, step) for name, step in ranking.steps.items()}
    usage = _checked_usage(ranking.usage)
    stages, before = dict(ranking.stages), ranking.collapsed_from
    own = ranking.self_hits
    counted = ranking.collapsed
    return Ranking(
        ids, scores, stages, legs, counted, steps, usage, before, own, order, texts, sources
    )


def hits_at(ranking: Ranking, places: list[int]) -> Ranking:
    """The hits at ``places``, in that order, without what is kept of the way to them."""
    scores = None if ranking.scores is None else np.asarray(ranking.scores, np.float64)[places]
    order = None if ranking.order is None else np.asarray(ranking.order)[places]
    texts, sources = (of and [of[at] for at in places] for of in (ranking.texts, ranking.sources))
    ids = [ranking.doc_ids[at] for at in places]
    return Ranking(ids, scores, order=order, texts=texts, sources=sources)


def levels(ranking: Ranking) -> NDArray[np.int64]:
    """Numbers (hits,) that rise down a checked list, and are equal where only ids decide between
    two hits."""
    n = len(ranking)
    if ranking.scores is None:
        return np.arange(n)
    scores = np.asarray(ranking.scores, dtype=np.float64)
    rises = scores[1:] != scores[:-1]
    if ranking.order is not None:
        order = np.asarray(ranking.order)
        rises |= order[1:] != order[:-1]
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rises)])[:n]


def _check_stages(ranking: Ranking) -> None:
    stages: dict[str, object] = dict(ranking.stages)
    for stage, nanoseconds in stages.items():
        if not isinstance(nanoseconds, Integral) or nanoseconds < 0:
            raise ContractError(
                f"stage {stage!r} of {nanoseconds!r}",
                accepted="a whole number of nanoseconds",
                fix="report stages with time.perf_counter_ns, or not at all",
            )


def _checked_ids(given: Sequence[str], k: int, known_ids: Container[str] | None) -> list[str]:
    ids = list(islice(given, k + 1))  # whatever its length says, no more of it is read
    if len(ids) > k:
        raise ContractError(
            f"{len(given)} hits returned", accepted=f"at most k = {k}", fix="cut at k"
        )
    if not set(map(type, ids)) <= {str}:
        ids = [_as_text(doc_id) for doc_id in ids]
    if known_ids is None:
        _check_writable(ids)
    elif not all(map(known_ids.__contains__, ids)):
        unknown = next(doc_id for doc_id in ids if doc_id not in known_ids)
        raise ContractError(
            f"document id {unknown!r} is not in the corpus",
            accepted="ids of the documents that were indexed",
            fix="check the id mapping of the retriever, or use a dataset without a corpus for "
            "an external index",
        )
    if len(set(ids)) != len(ids):
        repeated = next(doc_id for i, doc_id in enumerate(ids) if doc_id in ids[:i])
        raise ContractError(
            f"document id {repeated!r} returned twice in one ranking",
            accepted="each document at most once",
            fix="return distinct ids; chunks of one document need an id each, or a unit key that "
            "collapses them",
        )
    return ids


def _as_text(doc_id: object) -> str:
    if not isinstance(doc_id, str):
        raise ContractError(
            f"document id {doc_id!r} of type {type(doc_id).__name__}",
            accepted="ids as text",
            fix="convert ids with str() in the retriever",
        )
    return str(doc_id)  # text of numpy is text


def can_be_written(doc_id: str) -> bool:
    """Return whether an id can stand in a file."""
    return doc_id != "" and not _UNWRITABLE.search(doc_id)


def _check_writable(ids: Sequence[str]) -> None:
    """Ids of a corpus were checked when it was read; those of an external index are not known."""
    for doc_id in ids:
        if not can_be_written(doc_id):
            raise ContractError(
                f"document id {doc_id!r}",
                accepted="text without tabs, line breaks and other control characters, not empty",
                fix="return ids that can stand in a file",
            )


def _each(ids: Sequence[str], given: Any, what: str) -> list[str | None] | None:
    if given is None:
        return None
    items = list(islice(given, len(ids) + 1))
    if len(items) != len(ids) or not set(map(type, items)) <= {str, type(None)}:
        raise ContractError(
            f"{what} of {len(ids)} hits: {items!r:.200}", accepted="a text or None for each hit"
        )
    return items


def _checked_leg(name: str, leg: LegTrace, n: int) -> LegTrace:
    ranks, scores = np.array(leg.ranks), np.array(leg.scores)
    if len(ranks) != n or len(scores) != n:
        raise ContractError(
            f"leg {name!r} has {len(ranks)} ranks and {len(scores)} scores for {n} hits",
            accepted="one of each per hit",
        )
    if leg.doc_ids is None:
        return LegTrace(ranks, scores)
    return LegTrace(ranks, scores, *_checked_list(f"leg {name!r}", leg))


def _checked_step(name: str, step: StepTrace) -> StepTrace:
    if step.doc_ids is None:
        return StepTrace(texts=list(step.texts))
    return StepTrace(*_checked_list(f"step {name!r}", step), list(step.texts), step.order)


def _checked_usage(given: Any) -> dict[str, Usage]:
    """Usage by stage; usage of the whole call counts as the stage ``call``."""
    if not given:
        return {}
    from retrieval_bench.core.calls.usage import FIELDS, usage_of

    whole = isinstance(given, Usage) or set(given) <= set(FIELDS)
    by_stage = {}
    for stage, given_usage in ({"call": given} if whole else given).items():
        usage = usage_of(given_usage)
        if usage is None:
            raise ContractError(
                f"usage {given_usage!r} of {stage!r}",
                accepted=f"a Usage, or a mapping with some of {', '.join(FIELDS)}",
            )
        by_stage[stage] = usage
    return by_stage


def _checked_list(
    what: str, trace: LegTrace | StepTrace
) -> tuple[list[str], NDArray[np.float64] | None]:
    ids = list(trace.doc_ids or ())
    listed = None if trace.doc_scores is None else np.array(trace.doc_scores, dtype=np.float64)
    # Every question asked of each id costs microseconds, in every call: only this one matters, for
    # a document that counts twice makes a metric wrong.
    n_distinct = len(set(ids))
    if n_distinct != len(ids) or (listed is not None and len(listed) != len(ids)):
        given = "no" if listed is None else len(listed)
        raise ContractError(
            f"{what} lists {len(ids)} ids, {n_distinct} of them distinct, and {given} scores",
            accepted="distinct ids, and one score for each or none at all",
        )
    return ids, listed


def _checked_scores(ids: Sequence[str], given: Any) -> NDArray[np.float64]:
    try:
        scores = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ContractError(
            f"scores {given!r}", accepted="one finite number per document id"
        ) from None
    if scores.shape != (len(ids),):
        raise ContractError(
            f"{scores.size} scores for {len(ids)} document ids", accepted="one score per id"
        )
    finite = np.isfinite(scores)
    if not finite.all():
        at = int(np.flatnonzero(~finite)[0])
        raise ContractError(
            f"score {scores[at]} of document {ids[at]!r} at rank {at + 1}",
            accepted="finite numbers",
            fix="leave documents without a score out of the ranking",
        )
    rises = np.flatnonzero(scores[1:] > scores[:-1])
    if len(rises):
        at = int(rises[0]) + 1
        raise ContractError(
            f"score rises from {scores[at - 1]:.6g} to {scores[at]:.6g} at rank {at + 1}",
            accepted="best first: scores never rise",
            fix="sort by score, or return negated distances",
        )
    return scores


def _checked_order(ids: Sequence[str], given: Any) -> NDArray[np.int64]:
    order = np.asarray(given)
    if order.shape != (len(ids),) or (len(ids) and order.dtype.kind not in "iu"):
        raise ContractError(
            f"order {given!r}",
            accepted=f"a whole number for each of the {len(ids)} hits, or None",
        )
    return order.astype(np.int64)


def _sorted_ties(keys: Sequence[Any], scores: NDArray[np.float64]) -> list[int]:
    """Return the places of hits in the order of scores, equal ones by ``keys``."""
    places = sorted(range(len(keys)), key=keys.__getitem__)
    places.sort(key=scores.tolist().__getitem__, reverse=True)  # stable: keys stay in order
    return places


def _turned(
    places: list[int], ids: list[str], legs: dict[str, LegTrace]
) -> tuple[list[str], dict[str, LegTrace]]:
    turned = {
        name: replace(
            leg, ranks=np.asarray(leg.ranks)[places], scores=np.asarray(leg.scores)[places]
        )
        for name, leg in legs.items()
    }
    return [ids[i] for i in places], turned


def _from_pairs(raw: Any) -> Ranking:
    if isinstance(raw, str) or not isinstance(raw, Sequence):
        raise ContractError(
            f"search returned {type(raw).__name__}",
            accepted="a Ranking, or a sequence of (doc_id, score) pairs",
        )
    ids: list[str] = []
    scores: list[float] = []
    for position, pair in enumerate(raw):
        try:
            if isinstance(pair, str):
                raise TypeError
            doc_id, score = pair
            scores.append(float(score))
        except (TypeError, ValueError, OverflowError):
            raise ContractError(
                f"search returned {pair!r} at rank {position + 1}",
                accepted="(doc_id, score) pairs; Ranking(doc_ids) when there are no scores",
            ) from None
        ids.append(doc_id)
    return Ranking(ids, scores)
