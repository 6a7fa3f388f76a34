"""Would a threshold on the top score tell the queries that no document answers?

A threshold is chosen on some of the queries and reported on all others; no query is ever in both.
Everything is a function of the queries' ids and figures and of one seed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.metrics.abstention import Abstention
from retrieval_bench.stats.intervals import SHARE, mean_intervals
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_score.outcomes import CRITERION, Figures, Outcomes, auroc, figures

POINTS = 100
"""Of the threshold curve in a JSON document; the object holds all."""

_TIE = 1e-9
"""Means closer than this are the same: it is above rounding and below one query's weight."""


def split_dev(
    query_ids: Sequence[str], answerable: ArrayLike, *, seed: int = SEED
) -> frozenset[str]:
    """Draw the ids on which a threshold may be chosen: half of each kind of query.

    Of two or more queries of a kind, at least one is drawn and one is left. The order of the
    queries does not matter, only their ids.
    """
    rng = np.random.default_rng(seed)
    kind = np.asarray(answerable, dtype=bool).tolist()
    drawn: set[str] = set()
    for wanted in (True, False):
        ids = sorted(q for q, is_answerable in zip(query_ids, kind, strict=True)
                     if is_answerable is wanted)  # fmt: skip
        size = min((len(ids) + 1) // 2, len(ids) - 1)
        drawn.update(ids[i] for i in rng.permutation(len(ids))[: max(0, size)])
    return frozenset(drawn)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of a :class:`ThresholdCurve`.

    Attributes:
        threshold: the top score below which nothing is returned.
        true_empty, false_empty, false_return: counts of lists.
        precision, recall, f1: of empty lists; None where not defined.
        scienceqa_map: mean over all queries.
    """

    threshold: float | None
    true_empty: int
    false_empty: int
    false_return: int
    precision: float | None
    recall: float | None
    f1: float | None
    scienceqa_map: float | None


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdCurve:
    """Abstention figures at each threshold; all arrays have one entry for each, ascending.

    The rule is "return nothing when the top score is below the threshold". The first threshold is
    the lowest top score, where nothing changes; the last one lies just above the highest, where
    every list is empty.

    Attributes:
        threshold: the top score below which nothing is returned.
        true_empty: unanswerable queries with an empty list.
        false_empty: answerable queries with an empty list.
        scienceqa_map: mean over all queries.
        n_answerable, n_unanswerable: queries of either kind.
    """

    threshold: NDArray[np.float64]
    true_empty: NDArray[np.int64]
    false_empty: NDArray[np.int64]
    scienceqa_map: NDArray[np.float64]
    n_answerable: int
    n_unanswerable: int

    def __len__(self) -> int:
        return len(self.threshold)

    def thinned(self, points: int, keep: int) -> NDArray[np.int64]:
        """Return at most ``points`` (3 or more) indices, ascending: the first, the last, ``keep``,
        and between them those that empty about equally many more lists from one to the next."""
        if len(self) <= points:
            return np.arange(len(self))
        empty = self.true_empty + self.false_empty
        steps = np.linspace(empty[0], empty[-1], points - 1)
        return np.union1d(np.searchsorted(empty, steps).clip(max=len(self) - 1), [keep])

    def lists(self, i: int) -> Abstention:
        """Count the lists under one threshold."""
        true_empty, false_empty = int(self.true_empty[i]), int(self.false_empty[i])
        false_return = self.n_unanswerable - true_empty
        return Abstention(true_empty, false_empty, false_return, self.n_answerable - false_empty)

    def point(self, i: int) -> CurvePoint:
        """All figures of one threshold, for JSON."""
        counts = self.lists(i)
        of_lists = {field.name: getattr(counts, field.name) for field in fields(CurvePoint)[1:-1]}
        at, mean = _number(self.threshold[i]), _number(self.scienceqa_map[i])
        return CurvePoint(threshold=at, scienceqa_map=mean, **of_lists)


def threshold_curve(known: Outcomes) -> ThresholdCurve:
    """Every distinct top score as threshold, and one just above the highest.

    All figures are cumulative counts over the sorted scores. Lists that are empty already stay
    empty. The curve has no points when no query has a score.
    """
    score = np.where(known.returned > 0, known.top_score, -np.inf)
    order = np.argsort(score, kind="stable")
    score, is_answerable, ap = score[order], known.answerable[order], known.ap[order]
    distinct = np.unique(score[np.isfinite(score)])
    end = [np.nextafter(distinct[-1], np.inf)] if len(distinct) else []
    threshold = np.concatenate([distinct, end])
    below = np.searchsorted(score, threshold, "left")
    false_empty = _before(is_answerable.astype(np.int64))[below]
    true_empty = below - false_empty
    lost = _before(ap)
    means = (true_empty + (lost[-1] - lost[below])) / max(1, len(score))
    n_answerable = int(np.count_nonzero(is_answerable))
    n_unanswerable = len(score) - n_answerable
    return ThresholdCurve(threshold, true_empty, false_empty, means, n_answerable, n_unanswerable)


def choose_threshold(curve: ThresholdCurve) -> int:
    """The index of the threshold with the highest :data:`CRITERION`; among equals the lowest
    threshold, which takes the fewest hits away. 0, where nothing changes, means "no threshold"."""
    best = curve.scienceqa_map.max()
    return int(np.argmax(curve.scienceqa_map >= best - _TIE))


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """Some queries.

    Attributes:
        before, after: as they are, and with the threshold.
    """

    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True)
class HeldOut(BeforeAndAfter):
    """Queries on which it was not chosen.

    Attributes:
        before, after: as they are, and with the threshold.
        difference, ci95: of the means, with its interval.
    """

    difference: float
    ci95: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdReport(Documented):
    """A threshold, the queries on which it was chosen, and its effect on all others.

    Attributes:
        threshold: None when no threshold has a higher mean on the dev queries than none at all.
        chosen: index in ``curve``.
        curve: on the dev queries.
        dev_ids: the dev queries; the others are the held-out ones.
        dev_before, dev_after: the dev queries as they are, and with the threshold.
        rest_before, rest_after: the same for the held-out queries.
        difference: of the held-out means, with the threshold minus without.
        ci95: its interval over held-out queries, the threshold held fixed.
        criterion: by which it was chosen.
        rule: what it does.
    """

    KEYS = (
        "criterion rule threshold=known_threshold n_dev=dev_before.n n_rest=rest_before.n dev "
        "rest optimism curve_on_dev"
    )

    criterion: ClassVar[str] = CRITERION
    rule: ClassVar[str] = "return nothing when the top score is below the threshold"
    threshold: float | None
    chosen: int
    curve: ThresholdCurve
    dev_ids: tuple[str, ...]
    dev_before: Figures
    dev_after: Figures
    rest_before: Figures
    rest_after: Figures
    difference: float
    ci95: tuple[float, float]

    @property
    def gain_dev(self) -> float:
        """The gain of the threshold on the queries on which it was chosen."""
        return (self.dev_after.scienceqa_map or 0.0) - (self.dev_before.scienceqa_map or 0.0)

    @property
    def optimism(self) -> float:
        """Gain on the dev queries minus gain on the held-out ones: how much too good the dev
        figure looks. Gains, not means, so that one half being easier does not count."""
        return self.gain_dev - self.difference

    @property
    def known_threshold(self) -> float | None:
        """The threshold; None when none is better than none at all."""
        return None if self.threshold is None else _number(self.threshold)

    @property
    def dev(self) -> BeforeAndAfter:
        """The dev queries."""
        return BeforeAndAfter(self.dev_before, self.dev_after)

    @property
    def rest(self) -> HeldOut:
        """The held-out queries."""
        return HeldOut(self.rest_before, self.rest_after, self.difference, self.ci95)

    @property
    def curve_on_dev(self) -> list[CurvePoint]:
        """The curve thinned to :data:`POINTS`."""
        return [self.curve.point(i) for i in self.curve.thinned(POINTS, self.chosen).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class AbstentionReport(Documented):
    """A run as it is, over all known queries, and what a threshold would change.

    Attributes:
        run: the figures as it is.
        auroc: of the top score over all known queries; None when there are no scores or only one
            kind of query.
        threshold: what a threshold would change; None where none can be chosen.
        reason: why ``threshold`` is None.
    """

    run: Figures
    auroc: float | None
    threshold: ThresholdReport | None
    reason: str | None


def abstention_report(
    known: Outcomes, *, dev_ids: Collection[str] | None = None
) -> AbstentionReport:
    """Everything about the empty lists of one run.

    Args:
        known: all answerable and unanswerable queries that count in the mean.
        dev_ids: the queries to choose the threshold on; None draws half of each kind. The figures
            are reported on all others.

    Raises:
        DataError: ``dev_ids`` with an id that is not known.
    """
    run = figures(known)
    unscored = int(np.count_nonzero((known.returned > 0) & np.isnan(known.top_score)))
    if unscored:
        reason = f"{counted(unscored, 'query')} with hits but without scores"
        return AbstentionReport(run, None, None, reason)
    area = auroc(known.top_score, known.answerable)
    if dev_ids is None:
        dev_ids = split_dev(known.query_ids, known.answerable)
    # One mask and its complement: no query can be on both sides.
    in_dev = _mask(known.query_ids, frozenset(dev_ids))
    dev, rest = known.only(in_dev), known.only(~in_dev)
    missing = _why_no_threshold(dev, rest)
    if missing:
        return AbstentionReport(run, area, None, missing)
    return AbstentionReport(run, area, _threshold_report(dev, rest), None)


def _threshold_report(dev: Outcomes, rest: Outcomes) -> ThresholdReport:
    curve = threshold_curve(dev)
    chosen = choose_threshold(curve)
    threshold = float(curve.threshold[chosen]) if chosen else None
    after = rest.under(threshold)
    change = after.values() - rest.values()
    low, high = mean_intervals(change[:, None], [SHARE.of_differences])[0]
    return ThresholdReport(
        threshold=threshold,
        chosen=chosen,
        curve=curve,
        dev_ids=dev.query_ids,
        dev_before=figures(dev),
        dev_after=figures(dev.under(threshold)),
        rest_before=figures(rest),
        rest_after=figures(after),
        difference=float(change.mean()),
        ci95=(float(low), float(high)),
    )


def _why_no_threshold(dev: Outcomes, rest: Outcomes) -> str | None:
    """None when a threshold can be chosen on ``dev`` and reported on ``rest``."""
    for wanted, kind in ((True, "answerable"), (False, "unanswerable")):
        n_dev, n_rest = (int(np.count_nonzero(q.answerable == wanted)) for q in (dev, rest))
        if not n_dev or not n_rest:
            return (
                f"{n_dev + n_rest:,} {kind} {'query' if n_dev + n_rest == 1 else 'queries'}, "
                f"{n_dev:,} to choose a threshold on and {n_rest:,} to report it on: "
                "it takes at least one of each kind on both sides"
            )
    if not dev.returned.any():
        return "no query that a threshold could be chosen on has hits"
    return None


def _mask(query_ids: Sequence[str], dev_ids: frozenset[str]) -> NDArray[np.bool_]:
    unknown = sorted(dev_ids - set(query_ids))
    if unknown:
        raise DataError(
            f"{counted(len(unknown), 'dev query')} that this run does not know: "
            + ", ".join(unknown[:5]),
            accepted="ids of queries that are evaluated or unanswerable",
            fix="leave the others out",
        )
    return np.fromiter((q in dev_ids for q in query_ids), dtype=bool, count=len(query_ids))


def _before(values: NDArray[Any]) -> NDArray[Any]:
    """Sums of the first 0, 1, ... n values."""
    return np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(values)])


def _number(value: Any) -> Any:
    plain: float | int = value.item() if isinstance(value, np.generic) else value
    return plain if np.isfinite(plain) else None
