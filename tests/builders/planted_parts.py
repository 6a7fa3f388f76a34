"""Retrievers with a part whose worth is known, because it was planted: documents, one relevant for
each query, and lists that say where it stands with the part and without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset

QUERIES, DEPTH = 300, 30
_DISCOUNT = 1 / np.log2(np.arange(2, 2 + DEPTH))

Ranks = NDArray[np.int64]
"""Where the relevant document of each query stands, from 0; DEPTH = nowhere."""


def collection(n: int = QUERIES) -> Dataset:
    """``n`` queries, each with a relevant document of its own, and documents that nobody wants."""
    documents = [Document(f"r{at}", f"answer {at}") for at in range(n)]
    documents += [Document(f"x{at:02}", f"other {at}") for at in range(2 * DEPTH)]
    queries = [Query(f"q{at}", f"question {at}") for at in range(n)]
    return build_dataset(
        "planted", documents, queries, {f"q{at}": {f"r{at}": 1} for at in range(n)}
    )


def listed(at: int, rank: int, n: int = DEPTH, *, first: int = 0) -> list[str]:
    """``n`` documents for query ``at``, the relevant one at ``rank``; the others from the
    ``first``."""
    others = [f"x{first + one:02}" for one in range(n)]
    return others if rank >= n else [*others[:rank], f"r{at}", *others[rank : n - 1]]


class Scripted(Retriever):
    """Answers each text with the list that it was given, and scores that fall by one."""

    def __init__(self, name: str, lists: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self._lists = lists

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> Ranking:
        require_k(k)
        found = list(self._lists[query.text])[:k]
        return Ranking(found, np.arange(len(found), 0, -1, dtype=np.float64))


class Placing:
    """A reranker that puts the relevant document of each query where it was told to."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def __call__(self, text: str, documents: Sequence[Document]) -> list[float]:
        at = int(text.rsplit(maxsplit=1)[-1])
        own = f"r{at}"
        others = [one.id for one in documents if one.id != own]
        order = others
        if len(others) < len(documents):
            rank = min(int(self._ranks[at]), len(others))
            order = [*others[:rank], own, *others[rank:]]
        place = {doc_id: rank for rank, doc_id in enumerate(order)}
        return [-float(place[one.id]) for one in documents]


def ndcg(ranks: Ranks) -> NDArray[np.float64]:
    """nDCG@10 of one relevant document at these ranks."""
    gains = np.append(_DISCOUNT, 0.0)[np.minimum(ranks, DEPTH)]
    return np.where(ranks < 10, gains, 0.0)


def moved(rng: np.random.Generator, base: Ranks, least: float) -> Ranks:
    """``base`` with the relevant document of some queries at another rank, so that nDCG@10 rises by
    at least ``least`` standard deviations of the paired difference, by as little more as so many
    queries allow; a negative ``least`` = falls."""
    better, worse = (-6, 5) if least > 0 else (6, -5)
    order = rng.permutation(len(base))
    ranks = base.copy()
    noise = order[: len(base) // 15]
    ranks[noise] = np.clip(base[noise] + worse, 0, 9)
    for at in order[len(noise) :]:
        ranks[at] = np.clip(base[at] + better, 0, 9)
        d = ndcg(ranks) - ndcg(base)
        if abs(d.mean()) >= abs(least) * d.std(ddof=1) and np.sign(d.mean()) == np.sign(least):
            return ranks
    raise AssertionError("no ranks differ by that much")


@dataclass(frozen=True, slots=True)
class Planted:
    """A retriever and what is known of its parts.

    Attributes:
        make: builds it.
        worth: part -> ``dead``, ``harmful`` or ``helps``.
    """

    make: Callable[[], Retriever]
    worth: Mapping[str, str]


def pipeline(steps: Iterable[Mapping[str, Any]]) -> Retriever:
    """A pipeline of these steps."""
    from retrieval_bench_retrievers.pipeline.pipeline import Pipeline

    return Pipeline(steps=list(steps))


def _of(worth: Mapping[str, str], *steps: Mapping[str, Any]) -> Planted:
    return Planted(lambda: pipeline(steps), worth)


def _finding(lists: Mapping[str, Sequence[str]], depth: int = DEPTH) -> Mapping[str, Any]:
    return {"retrieve": Scripted("base", lists), "depth": depth}


def base_ranks(rng: np.random.Generator, n: int = QUERIES) -> Ranks:
    """The relevant document within the first ten of most queries."""
    return rng.integers(0, 10, n)


def by_query(ranks: Ranks, n: int = DEPTH, *, first: int = 0) -> dict[str, list[str]]:
    """The lists of all queries by their texts."""
    return {
        f"question {at}": listed(at, int(rank), n, first=first) for at, rank in enumerate(ranks)
    }


def planted(kind: str, seed: int) -> Planted:
    """A retriever with one part that is worth what ``kind`` says, and up to three others.

    Args:
        kind: one of :data:`DEAD`, :data:`HARMFUL`, :data:`HELPING`, or :data:`MIXED`.
    """
    return _KINDS[kind](np.random.default_rng([seed, *map(ord, kind)]))


def _twin(rng: np.random.Generator) -> Planted:
    ranks = base_ranks(rng)
    lists = by_query(ranks)
    return Planted(
        lambda: _hybrid(Scripted("one", lists), Scripted("twin", lists)),
        {"one": "dead", "twin": "dead"},
    )


def _contained(rng: np.random.Generator) -> Planted:
    ranks = base_ranks(rng)
    return Planted(
        lambda: _hybrid(Scripted("all", by_query(ranks)), Scripted("some", by_query(ranks, 20))),
        {"some": "dead"},
    )


def _after_the_cut(rng: np.random.Generator) -> Planted:
    ranks = base_ranks(rng)
    better = moved(rng, ranks, 0.25)
    return _of(
        {"again": "dead"},
        _finding(by_query(ranks), 10),
        {"rerank": Placing(better), "name": "helping", "top": 10},
        {"rerank": Placing(better), "name": "again"},
    )


def _depth(rng: np.random.Generator) -> Planted:
    return _of({f"depth {DEPTH}": "dead"}, _finding(by_query(base_ranks(rng))))


def _idle(rng: np.random.Generator) -> Planted:
    lists = by_query(base_ranks(rng))
    return _of({"rewrite": "dead"}, {"rewrite": _other_word}, _finding(lists | _reworded(lists)))


def _other_word(text: str) -> str:
    return text.replace("question", "asked")


def _reworded(lists: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {_other_word(text): found for text, found in lists.items()}


def _reranker(least: float) -> Callable[[np.random.Generator], Planted]:
    def make(rng: np.random.Generator) -> Planted:
        ranks = base_ranks(rng)
        worth = {"rerank": "helps" if least > 0 else "harmful"}
        return _of(worth, _finding(by_query(ranks)), {"rerank": Placing(moved(rng, ranks, least))})

    return make


def _rewriting(least: float) -> Callable[[np.random.Generator], Planted]:
    def make(rng: np.random.Generator) -> Planted:
        ranks = base_ranks(rng)
        lists = by_query(ranks) | _reworded(by_query(moved(rng, ranks, least)))
        worth = {"rewrite": "helps" if least > 0 else "harmful"}
        return _of(worth, {"rewrite": _other_word}, _finding(lists))

    return make


def _leg(least: float) -> Callable[[np.random.Generator], Planted]:
    """The first leg alone is ``base``; the second has another order, and so much weight that the
    fused ranking has its order, in the first ten."""

    def make(rng: np.random.Generator) -> Planted:
        ranks = base_ranks(rng)
        other = moved(rng, ranks, least)
        legs = [Scripted("base", by_query(ranks)), Scripted("other", by_query(other))]
        return Planted(
            lambda: _hybrid(*legs, weights=[0.0, 1.0]),
            {"other": "helps" if least > 0 else "harmful"},
        )

    return make


def _hybrid(*legs: Retriever, weights: Sequence[float] | None = None) -> Retriever:
    from retrieval_bench_retrievers.hybrid.hybrid import Hybrid

    fusion: dict[str, Any] = {"method": "rrf"}
    if weights is not None:
        fusion["weights"] = list(weights)
    return Hybrid(legs=list(legs), fusion=fusion, depth=DEPTH)


def _mixed(rng: np.random.Generator) -> Planted:
    ranks = base_ranks(rng)
    better = moved(rng, ranks, LEAST)
    lists = by_query(ranks)
    lists |= _reworded(lists)
    # A hybrid of its own each time: it has threads and is closed.
    return Planted(
        lambda: pipeline(
            [
                {"rewrite": _other_word},
                {"retrieve": _hybrid(Scripted("one", lists), Scripted("twin", lists)), "depth": 10},
                {"rerank": Placing(better)},
            ]
        ),
        {"rewrite": "dead", "retrieve/one": "dead", "retrieve/twin": "dead", "rerank": "helps"},
    )


LEAST = 0.25
"""Standard deviations of the paired difference."""

_KINDS: Mapping[str, Callable[[np.random.Generator], Planted]] = {
    "twin leg": _twin,
    "contained leg": _contained,
    "after the cut": _after_the_cut,
    "depth": _depth,
    "idle rewriting": _idle,
    "harmful reranker": _reranker(-LEAST),
    "harmful rewriting": _rewriting(-LEAST),
    "harmful leg": _leg(-LEAST),
    "helping reranker": _reranker(LEAST),
    "helping rewriting": _rewriting(LEAST),
    "helping leg": _leg(LEAST),
    "mixed": _mixed,
}

MIXED = "mixed"

DEAD = ("twin leg", "contained leg", "after the cut", "depth", "idle rewriting")
HARMFUL = ("harmful reranker", "harmful rewriting", "harmful leg")
HELPING = ("helping reranker", "helping rewriting", "helping leg")
