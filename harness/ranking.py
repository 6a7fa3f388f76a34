"""The one place where rankings are ordered and checked.

Order is (score descending, document id ascending). Built-in retrievers keep their documents sorted
by id, so that a lower position is a lower id and :func:`top_k` applies the rule on bare arrays.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import ContractError
from harness.types import Hit, LegTrace, Ranking

TIE_RULE = "score desc, id asc"

_BLOCK = 256


def top_k(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Positions of the ``k`` highest scores, highest first, ties by lower position.

    Args:
        scores: shape (n,), no NaN; position i must be the i-th document in ascending id order.
        k: at least 1; fewer than k positions come back when n < k.

    Exact, and much cheaper than a full partition when k is far below n: the k-th largest of the
    maxima of 256-wide blocks is a lower bound of the k-th largest score (k different blocks reach
    it), so only scores at or above the bound, ties included, are sorted.
    """
    n = scores.shape[0]
    if n == 0:
        return np.empty(0, dtype=np.intp)
    if k < n:
        n_blocks = n // _BLOCK
        if n_blocks > k:
            maxima = scores[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK).max(axis=1)
            bound = np.partition(maxima, n_blocks - k)[n_blocks - k]
        else:
            bound = np.partition(scores, n - k)[n - k]
        candidates = np.flatnonzero(scores >= bound)
    else:
        candidates = np.arange(n)
    order = np.argsort(-scores[candidates], kind="stable")[:k]
    return candidates[order]


def order_hits(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` by the tie rule; for adapters whose engine returns its own order of ties."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))


def checked_ranking(
    raw: Any, k: int, known_ids: Container[str] | None = None, *, has_scores: bool = True
) -> Ranking:
    """What a retriever returned, as a :class:`Ranking` that keeps the contract.

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
    _check_ids(ranking.doc_ids, k, known_ids)
    _check_legs(ranking)
    if ranking.scores is None or not has_scores:
        return ranking if ranking.scores is None else _replace_scores(ranking)
    scores = _checked_scores(ranking)
    if (np.diff(scores) == 0).any():
        return _break_ties(ranking, scores)
    return Ranking(ranking.doc_ids, scores, ranking.stages, ranking.legs, ranking.collapsed)


def _check_ids(ids: Sequence[str], k: int, known_ids: Container[str] | None) -> None:
    n = len(ids)
    if n > k:
        raise ContractError(f"{n} hits returned", accepted=f"at most k = {k}", fix="cut at k")
    if not set(map(type, ids)) <= {str}:
        other = next(doc_id for doc_id in ids if type(doc_id) is not str)
        raise ContractError(
            f"document id {other!r} of type {type(other).__name__}",
            accepted="ids as text",
            fix="convert ids with str() in the retriever",
        )
    if known_ids is not None and not all(map(known_ids.__contains__, ids)):
        unknown = next(doc_id for doc_id in ids if doc_id not in known_ids)
        raise ContractError(
            f"document id {unknown!r} is not in the corpus",
            accepted="ids of the documents that were indexed",
            fix="check the id mapping of the retriever, or use a dataset without a corpus for "
            "an external index",
        )
    if len(set(ids)) != n:
        repeated = next(doc_id for i, doc_id in enumerate(ids) if doc_id in ids[:i])
        raise ContractError(
            f"document id {repeated!r} returned twice in one ranking",
            accepted="each document at most once",
            fix="return distinct ids; chunks of one document need an id each, or a unit key that "
            "collapses them",
        )


def _check_legs(ranking: Ranking) -> None:
    n = len(ranking)
    for name, leg in ranking.legs.items():
        ranks, scores = len(leg.ranks), len(leg.scores)
        if ranks != n or scores != n:
            raise ContractError(
                f"leg {name!r} has {ranks} ranks and {scores} scores for {n} hits",
                accepted="one of each per hit",
            )


def _checked_scores(ranking: Ranking) -> NDArray[np.float64]:
    ids = ranking.doc_ids
    try:
        scores = np.asarray(ranking.scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise ContractError(
            f"scores {ranking.scores!r}", accepted="one finite number per document id"
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
            doc_id, score = pair
            scores.append(float(score))
        except (TypeError, ValueError):
            raise ContractError(
                f"search returned {pair!r} at rank {position + 1}",
                accepted="(doc_id, score) pairs; Ranking(doc_ids) when there are no scores",
            ) from None
        ids.append(doc_id)
    return Ranking(ids, scores)


def _replace_scores(ranking: Ranking) -> Ranking:
    return Ranking(ranking.doc_ids, None, ranking.stages, ranking.legs, ranking.collapsed)


def _break_ties(ranking: Ranking, scores: NDArray[np.float64]) -> Ranking:
    ids, legs = ranking.doc_ids, ranking.legs
    tied = np.flatnonzero(scores[1:] == scores[:-1]).tolist()
    if any(ids[i] > ids[i + 1] for i in tied):
        order = sorted(range(len(ids)), key=ids.__getitem__)
        order.sort(key=scores.tolist().__getitem__, reverse=True)  # stable: ids stay in order
        legs = {
            name: LegTrace(np.asarray(leg.ranks)[order], np.asarray(leg.scores)[order])
            for name, leg in legs.items()
        }
        ids = [ids[i] for i in order]
    return Ranking(ids, scores, ranking.stages, legs, ranking.collapsed)
