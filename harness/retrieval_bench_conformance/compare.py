"""Test of when two rankings are the same, and what the core would see in a raw result.

A retriever computes in floating point, so "the same" needs a rule. It is stated at
:func:`difference`, and for approximate indexes at :func:`too_little_in_common`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Ranking


def fail(message: str) -> NoReturn:
    """Raise AssertionError; unlike ``assert``, also under ``python -O``."""
    __tracebackhide__ = True
    raise AssertionError(message)


def require(kept: bool, message: str) -> None:
    """Raise AssertionError with ``message`` unless ``kept``."""
    __tracebackhide__ = True
    if not kept:
        fail(message)


def unpack(raw: Any) -> tuple[list[Any], list[float] | None]:
    """Ids and scores as the retriever gave them, unchecked; None when there are no scores.

    Raises:
        AssertionError: neither a Ranking nor a list of pairs, or a score that is no number.
    """
    if isinstance(raw, Ranking):
        scores = None if raw.scores is None else [float(score) for score in raw.scores]
        return list(raw.doc_ids), scores
    try:
        pairs = [(doc_id, float(score)) for doc_id, score in raw]
    except (TypeError, ValueError) as problem:
        raise AssertionError(
            f"search returned {shorten(raw)}; accepted: a Ranking, or (doc_id, score) pairs"
        ) from problem
    return [doc_id for doc_id, _ in pairs], [score for _, score in pairs]


def as_the_core_sees_it(raw: Any, k: int, *, has_scores: bool) -> Ranking:
    """``raw`` after the core's check, ties in the order of the tie rule.

    What the core refuses is taken as it stands, cut at ``k``: the fault is reported by the check
    that is named after it, and the other checks should not repeat it.
    """
    try:
        return checked_ranking(raw, k, has_scores=has_scores)
    except ContractError:
        ids, scores = unpack(raw)
        if not has_scores or scores is None or len(scores) != len(ids):
            return Ranking(ids[:k])
        return Ranking(ids[:k], scores[:k])


def difference(got: Ranking, full: Ranking, k: int, tolerance: float) -> str | None:
    """Return why ``got`` is not the first ``k`` hits of ``full``; None when it is.

    * The number of hits is the same.
    * Scores at one rank differ by at most ``tolerance`` times the largest absolute score of both
      lists. (Relative to each score by itself, a cosine near zero would never be the same.)
    * Ids at one rank are the same; two documents may only trade places where their scores lie
      within that margin without being equal. Equal scores are ordered by id, also at the cut.

    Without scores the lists must be the same.
    """
    expected = list(full.doc_ids)[:k]
    ids = list(got.doc_ids)
    if len(ids) != len(expected):
        return f"{len(ids)} hits instead of {len(expected)}: {shorten(ids)} and {shorten(expected)}"
    if got.scores is None or full.scores is None:
        return None if ids == expected else f"{shorten(ids)} instead of {shorten(expected)}"
    ours = dict(zip(ids, map(float, got.scores), strict=False))
    theirs = dict(zip(full.doc_ids, map(float, full.scores), strict=False))
    scale = max((abs(s) for s in (*ours.values(), *theirs.values())), default=0.0)
    margin = tolerance * scale
    pairs = zip(ids, expected, strict=True)
    for rank, (mine, other) in enumerate(pairs, start=1):
        if not _near(ours[mine], theirs[other], margin):
            return f"score {ours[mine]!r} instead of {theirs[other]!r} at rank {rank}"
        if mine == other:
            continue
        if mine not in theirs or not _near(theirs[mine], theirs[other], margin):
            return f"{mine!r} instead of {other!r} at rank {rank}"
        tied_here = ours[mine] == ours.get(other, theirs[other])
        if tied_here and theirs[mine] == theirs[other]:
            return (
                f"{mine!r} instead of {other!r} at rank {rank}: both score {ours[mine]!r}, "
                "and ties go by id"
            )
    return None


def too_little_in_common(got: Ranking, full: Ranking, k: int, tolerance: float) -> str | None:
    """The rule for retrievers that declare ``exact = False``: of ``got`` and the first ``k`` hits
    of ``full``, at least half of the longer list are in common, where a document counts as in
    common too when its score in ``full`` ties with the k-th within the tolerance. None when so."""
    expected = set(list(full.doc_ids)[:k])
    longer = max(len(expected), len(got))
    if full.scores is not None and expected:
        scores = [float(score) for score in full.scores]
        margin = tolerance * max(map(abs, scores))
        last = scores[len(expected) - 1]
        pairs = zip(full.doc_ids, scores, strict=True)
        expected |= {doc_id for doc_id, score in pairs if _near(score, last, margin)}
    shared = len(expected & set(got.doc_ids))
    if 2 * shared >= longer:
        return None
    return f"only {shared} of {longer} documents in common (approximate: at least half)"


def _near(a: float, b: float, margin: float) -> bool:
    # `not >` instead of `<=`: a NaN is reported by its own check, here it equals everything.
    return not abs(a - b) > margin


def shorten(value: Any) -> str:
    """``repr`` cut to what fits in a message."""
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:150]}... ({len(text)} characters)"
