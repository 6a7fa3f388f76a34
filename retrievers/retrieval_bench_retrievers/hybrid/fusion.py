"""Several rankings of one query become one: reciprocal rank fusion and convex combination.

Pure functions on arrays of ranks and scores, one row per leg, and the models of the parameter
``fusion`` of a hybrid. A document's parts from the legs are added from the smallest to the largest:
the sum does not depend on which leg a part is from, so documents with the same parts tie exactly
and the tie rule decides between them.

Sources: Cormack, Clarke, Buettcher, SIGIR 2009 (reciprocal rank fusion); Bruch, Gai, Ingber, TOIS
2023 (convex combination of min-max-normalised scores).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from retrieval_bench.core.errors import ContractError, near_names
from retrieval_bench.core.types import Ranking

Floats = NDArray[np.float64]

_HUGE = np.finfo(np.float64).max / 4
"""Scores beyond have differences that double precision cannot hold."""
_CONSTANTS = (2, 10, 30, 60, 100)
"""Of reciprocal rank fusion, worth trying."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All documents that any leg returned for one query, and where.

    Attributes:
        doc_ids: ascending, as :func:`retrieval_bench.core.ranking.top_k` needs them; n of them.
        ranks: shape (legs, n); 1 is a leg's first hit, 0 means that it did not return the document.
        scores: shape (legs, n); NaN where the leg gave none.
    """

    doc_ids: list[str]
    ranks: NDArray[np.int32]
    scores: Floats

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Pool:
        """The pool of checked rankings, one per leg."""
        doc_ids = sorted({doc_id for ranking in rankings for doc_id in ranking.doc_ids})
        column_of = {doc_id: i for i, doc_id in enumerate(doc_ids)}
        ranks = np.zeros((len(rankings), len(doc_ids)), dtype=np.int32)
        scores = np.full(ranks.shape, np.nan)
        for leg, ranking in enumerate(rankings):
            columns = np.array([column_of[doc_id] for doc_id in ranking.doc_ids], dtype=np.intp)
            ranks[leg][columns] = np.arange(1, len(columns) + 1)
            if ranking.scores is not None:
                scores[leg][columns] = ranking.scores
        return cls(doc_ids, ranks, scores)


def with_texts(fused: Ranking, rankings: Sequence[Ranking]) -> Ranking:
    """``fused`` with the texts and sources of its hits, each from the first leg that has it."""
    if all(ranking.texts is None and ranking.sources is None for ranking in rankings):
        return fused
    texts, sources = (_carried(fused.doc_ids, rankings, name) for name in ("texts", "sources"))
    return replace(fused, texts=texts, sources=sources)


def _carried(
    ids: Sequence[str], rankings: Sequence[Ranking], name: str
) -> Sequence[str | None] | None:
    came: dict[str, str] = {}
    for ranking in reversed(rankings):
        pairs = zip(ranking.doc_ids, getattr(ranking, name) or (), strict=False)
        came |= {doc_id: value for doc_id, value in pairs if value is not None}
    return [came.get(doc_id) for doc_id in ids] if came else None


def rrf(
    ranks: ArrayLike, *, k: int = 60, base: int = 1, weights: Sequence[float] | None = None
) -> Floats:
    """Reciprocal rank fusion: sum of weight / (k + rank) over the legs that have the document.

    Args:
        ranks: shape (legs, n), as in :class:`Pool`: 1 is a leg's first hit whatever the base.
        k: the constant; not the cut-off.
        base: what a leg's first hit counts as, 1 or 0. "RRF" means k = 60 from 1 in most engines,
            but 60 from 0 and 2 from 0 are in use too.
        weights: one per leg, 1 each when None.

    Returns:
        Shape (n,); -inf for a document that only legs of weight 0 have.
    """
    ranks = np.asarray(ranks)
    weight = np.ones(len(ranks)) if weights is None else np.asarray(weights, dtype=np.float64)
    parts = np.zeros(ranks.shape)
    np.divide(weight[:, None], ranks + (k + base - 1), out=parts, where=ranks > 0)
    return _total(parts, ranks, weight)


def convex(ranks: ArrayLike, scores: ArrayLike, *, weights: Sequence[float]) -> Floats:
    """Convex combination: sum of weight times :func:`min_max` score over the legs.

    Scores are normalised over all hits that the leg returned. A document that it did not return
    gets 0 from it, as its last hit does.

    Args:
        ranks: shape (legs, n), as in :class:`Pool`; only 0 or not matters.
        scores: shape (legs, n).
        weights: one per leg, summing to 1.

    Returns:
        Shape (n,), from 0 to 1; -inf for a document that only legs of weight 0 have.

    Raises:
        ContractError: a leg has hits without scores.
    """
    ranks, scores = np.asarray(ranks), np.asarray(scores, dtype=np.float64)
    parts = np.zeros(ranks.shape)
    for leg, weight in enumerate(weights):
        hits = ranks[leg] > 0
        given = scores[leg, hits]
        if np.isnan(given).any():
            raise ContractError(
                "a ranking without scores cannot be combined convexly",
                where=f"leg {leg + 1} of {len(ranks)}",
                accepted="rankings with scores",
                fix="use fusion {method: rrf}, which needs ranks only",
            )
        parts[leg, hits] = weight * min_max(given)
    return _total(parts, ranks, np.asarray(weights, dtype=np.float64))


def min_max(scores: ArrayLike) -> Floats:
    """``scores`` moved linearly so that the lowest is 0 and the highest 1; shape kept.

    Where all scores are equal, a single one included, each is 1: the leg put them all first.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        return values
    if np.abs(values).max() > _HUGE:
        values = values / 4  # exact, and the span of what is left is a number
    lowest = values.min()
    span = values.max() - lowest
    if span == 0:
        return np.ones_like(values)
    normalised: Floats = (values - lowest) / span
    return normalised


def _total(parts: Floats, ranks: NDArray[Any], weights: Floats) -> Floats:
    ordered = np.sort(parts, axis=0)
    total: Floats = ordered[0]
    for row in ordered[1:]:
        total = total + row
    if weights.all():
        return total
    return np.where((ranks[weights > 0] > 0).any(axis=0), total, -np.inf)


class _Fusion(BaseModel):
    """Fields that both methods share: weights, matched to the legs named in the validation
    context."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    NORMALISED: ClassVar[bool] = False
    STEPS: ClassVar[int] = 10
    """Into how many parts weights of two legs are cut when they are searched."""

    weights: tuple[float, ...] = Field(default=None, validate_default=True)

    @field_validator("weights", mode="plain")
    @classmethod
    def _match(cls, given: Any, info: ValidationInfo) -> tuple[float, ...]:
        weights = _matched(given, (info.context or {})["legs"])
        return tuple(w / math.fsum(weights) for w in weights) if cls.NORMALISED else weights

    def of(self, legs: Sequence[int]) -> Self:
        """The same over some of the legs, by their places; where all their weights are 0, they get
        equal ones."""
        weights = [self.weights[at] for at in legs]
        if not any(weights):
            weights = [1.0] * len(weights)
        whole = math.fsum(weights) if self.NORMALISED else 1.0
        return self.model_copy(update={"weights": tuple(weight / whole for weight in weights)})

    def search_space(self) -> dict[str, list[Any]]:
        """Parameter -> values worth trying, its own first; weights sum to 1, only their proportions
        matter."""
        own = [round(weight / math.fsum(self.weights), 6) for weight in self.weights]
        others = [w for w in _shared_out(len(own), self.STEPS) if not np.allclose(w, own)]
        return {"weights": [own, *others]}

    def _weights_text(self, legs: Sequence[str]) -> str:
        pairs = zip(legs, self.weights, strict=True)
        return "weights " + ", ".join(f"{leg} {weight:g}" for leg, weight in pairs)


class RRF(_Fusion):
    """``{method: rrf, k, base, weights}``; see :func:`rrf`."""

    method: Literal["rrf"]
    k: int = Field(default=60, ge=0, strict=True)
    base: int = Field(default=1, ge=0, le=1, strict=True)

    @model_validator(mode="after")
    def _first_rank_counts(self) -> RRF:
        if self.k + self.base == 0:
            raise _fault("k = 0 with ranks from 0 divides by zero; take k of at least 1, or base 1")
        return self

    def fuse(self, pool: Pool) -> Floats:
        """Fused score of every document of the pool."""
        return rrf(pool.ranks, k=self.k, base=self.base, weights=self.weights)

    def search_space(self) -> dict[str, list[Any]]:
        """Constant and weights; not the base, which does what a change of the constant does."""
        constants = [self.k, *(k for k in _CONSTANTS if k != self.k)]
        return {"k": constants, **super().search_space()}

    def text(self, legs: Sequence[str]) -> str:
        """For people: the method with its constant, base and, unless all are 1, weights."""
        formula = f"rrf k={self.k}, ranks from {self.base}"
        if all(weight == 1 for weight in self.weights):
            return formula
        return f"{formula}, {self._weights_text(legs)}"


class Convex(_Fusion):
    """``{method: convex, normalize, weights}``; weights are divided by their sum; see
    :func:`convex`."""

    NORMALISED: ClassVar[bool] = True
    STEPS: ClassVar[int] = 20

    method: Literal["convex"]
    normalize: Literal["min-max"] = "min-max"

    def fuse(self, pool: Pool) -> Floats:
        """Fused score of every document of the pool."""
        return convex(pool.ranks, pool.scores, weights=self.weights)

    def text(self, legs: Sequence[str]) -> str:
        """For people: the method with its normalisation and weights."""
        return f"convex {self.normalize}, {self._weights_text(legs)}"


def _shared_out(n: int, steps: int) -> list[list[float]]:
    """Weights of ``n`` legs that sum to 1, evenly spread: in ``steps`` for two legs, in fewer for
    more of them."""
    steps = {2: steps, 3: steps // 2}.get(n, 4)
    bars = combinations(range(steps + n - 1), n - 1)
    counts = [np.diff([-1, *bar, steps + n - 1]) - 1 for bar in bars]
    return [[round(int(count) / steps, 6) for count in row] for row in counts]


def with_method(given: Any) -> dict[str, Any]:
    """``given`` with its method spelt out, ``rrf`` when there is none; for a before-validator."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise _fault("give a mapping such as {method: rrf, k: 60}")
    method = given.get("method", "rrf")
    if method not in ("rrf", "convex"):
        raise _fault(f"unknown method {method!r}; {near_names(str(method), ['rrf', 'convex'])}")
    return {**given, "method": method}


def _matched(given: Any, legs: Sequence[str]) -> tuple[float, ...]:
    """One weight per leg, in the order of the legs; 1 each when ``given`` is None."""
    if given is None:
        return (1.0,) * len(legs)
    faults: list[str] = []
    if isinstance(given, Mapping):
        unknown = [str(leg) for leg in given if leg not in legs]
        faults += [f"no leg {leg!r} ({near_names(leg, legs)})" for leg in unknown]
        faults += [f"no weight for leg {leg!r}" for leg in legs if leg not in given]
        by_leg = {leg: given[leg] for leg in legs if leg in given}
    elif isinstance(given, list | tuple):
        if len(given) != len(legs):
            faults.append(f"{len(given)} weights for {len(legs)} legs ({', '.join(legs)})")
        by_leg = dict(zip(legs, given, strict=False))
    else:
        raise _fault("give a list with one number per leg, or a mapping of leg to number")
    for leg, weight in by_leg.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            faults.append(f"the weight of {leg!r} is no number")
        elif not (math.isfinite(weight) and weight >= 0):
            faults.append(f"the weight of {leg!r} is {weight}, not a finite number of 0 or more")
    if not faults and not any(by_leg.values()):
        faults.append("all weights are 0")
    if faults:
        raise _fault("; ".join(faults))
    return tuple(float(weight) for weight in by_leg.values())


def _fault(message: str) -> PydanticCustomError:
    # As a value, so that braces in the message are not read as a template.
    return PydanticCustomError("fusion", "{message}", {"message": message})
