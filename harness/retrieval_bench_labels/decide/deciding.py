"""Decision which system is better on the queries of a pool: what those judged so far say of each
pair of systems, in words that hold whenever one looks, and how many more it may take.

What is meant is the mean over these very queries; :mod:`.population` speaks of queries like these.
Queries count in the order in which they were drawn (:mod:`.draws`), as far as all of their
documents have a grade; queries whose lists cannot differ, and those that were judged before the
order was drawn, are known. The pairs of
systems hold together at 95 %. When other systems come into a pool, its order is drawn anew; all of
these orders share the 5 %, most of which the first one has (:func:`level`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.metrics import Judgements, Metric, judge_lists, one_metric
from retrieval_bench.stats.intervals import ALPHA, SHARE, Floats
from retrieval_bench.stats.percentiles import quantiles
from retrieval_bench.stats.randomization import ROUNDING
from retrieval_bench_labels.decide.draws import all_bounds, estimate
from retrieval_bench_labels.grades import Settled
from retrieval_bench_labels.label import Pair, Pool
from retrieval_bench_modes.sequential import Betting, Draw, anytime_intervals, verdicts

_FUTURES = 40
"""Continuations that are played to tell how many more queries it may take."""

FEW = 5
"""Below so many drawn queries nothing is said of how many more."""

_FIRST = 0.8
"""Part of the chance of error that the first pool has."""


def level(generation: int, together: float = ALPHA) -> float:
    """The chance of error of a pool, from 1; those of all that follow each other are
    ``together``."""
    if generation <= 1:
        return together * _FIRST
    return together * (1 - _FIRST) / (generation * (generation - 1))


@dataclass(frozen=True, slots=True)
class Decided:
    """One pair of systems.

    Attributes:
        a, b: names.
        verdict: of b, compared with a.
        difference: estimate of mean of b minus mean of a, over all queries of the pool.
        ci95: its interval, which holds at every look, with those of all pairs together; None
            before the first query.
        exact: whether the difference is known, not estimated.
        more: queries that it may still take to a verdict, (as few as, about, as many as); None
            where there is one, or too little is known.
    """

    a: str
    b: str
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
    exact: bool = False
    more: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Decision(Documented):
    """All pairs, and how far the labels go.

    Attributes:
        metric, margin, target: of the pool.
        queries: of the pool.
        unchanging: queries on which no two systems can differ.
        known: queries that were judged before the order was drawn.
        drawn: queries that count, in the order drawn.
        out_of_turn: judged, but behind one that is not: they count when it is.
        waiting: the first query drawn that is not finished; None where none is left.
        pairs: each with what is shown.
    """

    KEYS = (
        "metric margin target queries unchanging known drawn out_of_turn waiting pairs done worth"
    )

    metric: str
    margin: float
    target: Target
    queries: int
    unchanging: int
    known: int
    drawn: int
    out_of_turn: int
    waiting: str | None
    pairs: tuple[Decided, ...]

    @property
    def done(self) -> bool:
        """True if every pair has a verdict."""
        return all(not pair.verdict.open for pair in self.pairs)

    @property
    def left(self) -> int:
        """Queries that could still change something and are not judged."""
        return self.queries - self.unchanging - self.known - self.drawn - self.out_of_turn

    @property
    def worth(self) -> int | None:
        """About how many queries are still worth judging; None = not known yet."""
        if self.done:
            return 0
        about = [pair.more[1] for pair in self.pairs if pair.more is not None]
        if len(about) < sum(pair.verdict.open for pair in self.pairs):
            return None
        return max(about, default=0)


def decide(pool: Pool, grades: Mapping[Pair, Settled], *, futures: bool = True) -> Decision:
    """Judge the systems of ``pool`` by ``grades`` of its pairs; those of other documents change no
    value: whoever could add some later could move what was drawn already.

    Args:
        futures: also tell how many more queries it may take, which takes a moment.
    """
    state = _Judged.of(pool, grades)
    pairs = list(combinations(pool.systems, 2))
    facts: dict[str, Any] = {
        "metric": pool.metric,
        "margin": pool.margin,
        "target": pool.target,
        "queries": len(pool.queries),
        "unchanging": int(np.count_nonzero(state.free & ~state.known)),
        "known": int(np.count_nonzero(state.known)),
        "drawn": state.n,
        "out_of_turn": state.out_of_turn,
        "waiting": state.waiting,
    }
    if not pairs:
        return Decision(**facts, pairs=())
    betting = state.betting()
    decided_pairs = verdicts(betting)
    exact = state.n == len(state.order)
    ends = state.intervals()
    more = state.futures(betting) if futures and not exact else [None] * len(pairs)
    decided = tuple(
        Decided(
            a,
            b,
            decided_pairs[at],
            float(np.clip(state.estimate(at), *ends[at])) if exact or state.n else None,
            None if not exact and not state.n else (float(ends[at, 0]), float(ends[at, 1])),
            exact,
            more[at] if decided_pairs[at].open else None,
        )
        for at, (a, b) in enumerate(pairs)
    )
    return Decision(**facts, pairs=decided)


@dataclass(frozen=True, eq=False)
class _Judged:
    """The queries of a pool as arrays, in its order.

    Attributes:
        differences: (pairs, queries), 0 where not all is judged.
        limits: (pairs, queries, 2), what they can be.
        chances: (queries,), of being drawn, in proportion; 0 for what is known.
        known: bool (queries,), judged before the order was drawn.
        order: places of the queries that are drawn, in their order.
        n: how many of these count.
        out_of_turn, waiting: as of :class:`Decision`.
        margin: of the pool.
        alpha: of each pair.
    """

    differences: Floats
    limits: Floats
    chances: Floats
    known: NDArray[np.bool_]
    order: NDArray[np.int64]
    n: int
    out_of_turn: int
    waiting: str | None
    margin: float
    alpha: float

    @classmethod
    def of(cls, pool: Pool, grades: Mapping[Pair, Settled]) -> _Judged:
        metric = one_metric(pool.metric)
        lists = [pool.lists[name] for name in pool.systems]
        ids = [query.id for query in pool.queries]
        done = [query.finished(grades) for query in pool.queries]
        known = np.array(
            [q.known and ok for q, ok in zip(pool.queries, done, strict=True)], dtype=bool
        )
        weights = np.array([query.weight for query in pool.queries])
        chances = np.where(known, 0.0, weights)
        order = np.flatnonzero(chances > 0)
        open_ = [at for at, place in enumerate(order) if not done[place]]
        n = open_[0] if open_ else len(order)
        pooled = set(pool.pairs)
        inside = {pair: grade for pair, grade in grades.items() if pair in pooled}
        counting = {ids[at] for at in (*np.flatnonzero(known), *order[:n])}
        values = values_by_grades(metric, lists, ids, inside, counting)
        pairs = list(combinations(range(len(lists)), 2))
        differences = np.array([values[b] - values[a] for a, b in pairs]).reshape(
            len(pairs), len(ids)
        )
        differences[np.abs(differences) <= ROUNDING] = 0.0
        return cls(
            differences,
            all_bounds(metric, lists, ids),
            chances,
            known,
            order,
            n,
            sum(done[place] for place in order[n:]),
            ids[order[n]] if n < len(order) else None,
            pool.margin,
            level(pool.generation) / max(len(pairs), 1),
        )

    @property
    def free(self) -> NDArray[np.bool_]:
        """Queries that need no drawing."""
        return self.chances <= 0

    def draws(self, order: NDArray[np.int64]) -> list[Draw]:
        """The chance of each of ``order`` at its turn, and what was left."""
        low, high = self.limits[..., 0], self.limits[..., 1]
        drawn = self.chances > 0
        ratio_low = (low[:, drawn] / self.chances[drawn]).min(axis=1, initial=0.0)
        ratio_high = (high[:, drawn] / self.chances[drawn]).max(axis=1, initial=0.0)
        left = self.chances[self.order].sum()
        left_low, left_high = low[:, self.order].sum(axis=1), high[:, self.order].sum(axis=1)
        draws = []
        for at, place in enumerate(order, start=1):
            chance = np.full(len(low), self.chances[place] / left)
            bottom, top = ratio_low * left, ratio_high * left
            left -= self.chances[place]
            left_low, left_high = left_low - low[:, place], left_high - high[:, place]
            if at == len(self.order):  # nothing is left: no rounding error either
                left_low, left_high = np.zeros_like(left_low), np.zeros_like(left_high)
            draws.append(Draw(chance, bottom, top, left_low, left_high))
        return draws

    def betting(self) -> Betting:
        """The bets after all queries that count."""
        betting = Betting(
            [-self.margin, 0.0, self.margin],
            SHARE.of_differences,
            streams=len(self.differences),
            alpha=self.alpha,
            total=len(self.chances),
            known=self._known_sum,
        )
        counting = self.order[: self.n]
        for place, draw in zip(counting, self.draws(counting), strict=True):
            betting.add(self.differences[:, place], draw)
        if not self.n:
            limits = self.limits[:, self.order].sum(axis=1)
            betting.settle(limits[:, 0], limits[:, 1])
        return betting

    @property
    def _known_sum(self) -> Floats:
        return np.asarray(self.differences[:, self.free].sum(axis=1))

    def estimate(self, pair: int) -> float:
        """Return the estimate of the mean over all queries."""
        return estimate(self.differences[pair], self.chances, self.order, self.n)

    def intervals(self) -> Floats:
        """(pairs, 2)."""
        if self.n == len(self.order):
            return np.repeat(self.differences.mean(axis=1)[:, None], 2, axis=1)
        counting = self.order[: self.n]
        return anytime_intervals(
            self.differences[:, counting].T,
            SHARE.of_differences,
            alpha=self.alpha,
            total=len(self.chances),
            draws=self.draws(counting),
            known=self._known_sum,
        )

    def futures(self, betting: Betting) -> Sequence[tuple[int, int, int] | None]:
        """Return how many more queries each open pair may take: the order goes on as it was drawn,
        and each difference is the share of its bound that a query judged so far had, drawn anew.

        How often which share comes is not known: each future has weights of its own (Rubin's
        Bayesian bootstrap), in which one query without a difference is added to those seen.
        """
        if self.n < FEW:
            return [None] * len(self.differences)
        before = verdicts(betting)
        most = np.abs(self.limits).max(axis=2)
        seen, later = self.order[: self.n], self.order[self.n :]
        shares = np.divide(
            self.differences[:, seen],
            most[:, seen],
            out=np.zeros((len(most), len(seen))),
            where=most[:, seen] > 0,
        )
        shares = np.hstack([shares, np.zeros((len(most), 1))])
        rng = np.random.default_rng(0)
        taken = np.full((_FUTURES, len(most)), len(later))
        draws = self.draws(self.order)
        for future in range(_FUTURES):
            played = self.betting()
            often = rng.dirichlet(np.ones(shares.shape[1]))
            chosen = shares[:, rng.choice(shares.shape[1], size=len(later), p=often)]
            for step, place in enumerate(later, start=1):
                low, high = self.limits[:, place, 0], self.limits[:, place, 1]
                value = np.clip(chosen[:, step - 1] * most[:, place], low, high)
                played.add(value, draws[self.n + step - 1])
                now = verdicts(played)
                for pair, verdict in enumerate(now):
                    if not verdict.open and taken[future, pair] == len(later):
                        taken[future, pair] = step
                if all(not verdict.open for verdict in now):
                    break
        left = len(later) - self.out_of_turn
        spans = quantiles(taken, [0.1, 0.5, 0.9], axis=0).round().astype(int).T
        return [
            (min(int(few), left), min(int(about), left), min(int(many), left))
            if verdict.open
            else None
            for verdict, (few, about, many) in zip(before, spans, strict=True)
        ]


def values_by_grades(
    metric: Metric,
    lists: Sequence[Mapping[str, Sequence[str]]],
    query_ids: Sequence[str],
    grades: Mapping[Pair, Settled],
    counting: Collection[str],
) -> Floats:
    """(systems, queries); 0 for queries that do not count, and for those without a grade.

    Args:
        lists: of each system, by query; a query that it lacks has an empty list.
        counting: ids of the queries that count.
    """
    qrels: dict[str, dict[str, int]] = {}
    for pair, settled in grades.items():
        if pair.query_id in counting:
            qrels.setdefault(pair.query_id, {})[pair.doc_id] = settled.grade
    values = np.zeros((len(lists), len(query_ids)))
    judged = [place for place, query_id in enumerate(query_ids) if query_id in qrels]
    ids = [query_ids[place] for place in judged]
    judgements = Judgements(qrels)
    for row, of in enumerate(lists):
        run = judge_lists(
            {query_id: list(of.get(query_id, ())) for query_id in ids}, ids, judgements
        )
        values[row, judged] = metric.compute(run)
    return values


def _size(decision: Decision, pair: Decided) -> str:
    """Return how large a difference is: before all is judged only its interval, for whoever stops
    as soon as it leaves 0 stops at a large estimate."""
    if pair.ci95 is None:
        return "whatever else is judged"
    if pair.exact:
        return f"by {abs(pair.difference or 0.0):.3f} in {decision.metric}"
    return f"by {between(pair.ci95)} in {decision.metric}"


def between(ends: tuple[float, float]) -> str:
    """Return how large a difference is, such as "0.006 to 0.160"."""
    small, large = sorted(abs(end) for end in ends)
    return f"{small:.3f} to {large:.3f}"


def sentence(decision: Decision, pair: Decided) -> str:
    """Say in words how a pair compares on these very questions; that the mean of one is higher,
    never that it is better."""
    those = f"On these {counted(decision.queries, 'question')} themselves"
    if pair.exact and not pair.difference:
        return f"{those} {pair.a} and {pair.b} score the same."
    if pair.verdict in (Verdict.BETTER, Verdict.WORSE):
        higher, lower = (pair.b, pair.a) if pair.verdict is Verdict.BETTER else (pair.a, pair.b)
        return f"{those} {higher} scores higher than {lower}, {_size(decision, pair)}."
    if pair.verdict is Verdict.EQUIVALENT:
        both = f"{pair.a} and {pair.b} are equal"
        return f"{those} {both} within {decision.margin:g} in {decision.metric}."
    either = f"{pair.a} or {pair.b} on these {counted(decision.queries, 'question')} themselves"
    return f"{either}: can't tell yet.{_more(decision, pair)}"


def _more(decision: Decision, pair: Decided) -> str:
    """Return how many more queries of the pool it may take, where that is worked out."""
    if decision.target is not Target.SPLIT:
        return ""
    if pair.more is None:
        few = counted(max(min(FEW - decision.drawn, decision.left), 1), "more query")
        return f" Judge {few} to learn how many it may take."
    low, about, high = pair.more
    return f" It may take about {counted(about, 'more query')} ({low:,} to {high:,})."
