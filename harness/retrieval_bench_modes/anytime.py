"""Pairs of systems that are looked at after every query: differences with verdicts that hold at
every look, so that asking may end at any of them.

A difference is b minus a. Its interval is a betting confidence sequence
(:mod:`retrieval_bench_modes.sequential`); those of all pairs of a metric hold together with 95 %
(each at ``alpha`` / pairs). A pair is decided when a verdict stands twice: over all queries, a
failed one counting 0 as ever, and with the queries that either side failed on taken as ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.both_answered import Answered
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, Pair
from retrieval_bench.comparison.pairs.verdicts import held_against
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.stats.intervals import Floats, Scale
from retrieval_bench.stats.randomization import ROUNDING
from retrieval_bench_modes.sequential import Betting, anytime_intervals, verdicts

Bools = NDArray[np.bool_]


class PairWatch:
    """Differences of pairs in one metric, query by query.

    Args:
        pairs: places of a and b among the systems.
        scale: what a value of the metric can be.
        total: queries of the split whose mean is meant; None = the mean of queries like these.
        alpha: chance of error of all pairs together.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        scale: Scale,
        margin: float,
        total: int | None,
        alpha: float = QUALITY_ALPHA,
    ) -> None:
        self._a, self._b = np.array(pairs).T
        self._betting = Betting(
            [-margin, 0.0, margin],
            scale.of_differences,
            streams=2 * len(pairs),
            alpha=alpha / len(pairs),
            total=total,
        )

    def add(self, values: Floats, answered: Bools) -> bool:
        """Look at one query, values and who answered (systems,); whether every pair is decided."""
        difference = values[self._b] - values[self._a]
        difference[np.abs(difference) <= ROUNDING] = 0.0
        both = answered[self._a] & answered[self._b]
        self._betting.add(np.concatenate([difference, np.where(both, difference, 0.0)]))
        return not any(decided.open or decided is not other for decided, other in self.verdicts())

    def verdicts(self) -> list[tuple[Verdict, Verdict]]:
        """Return the verdicts of each pair, over all queries, and with failures as ties."""
        decided = verdicts(self._betting)
        half = len(decided) // 2
        return list(zip(decided[:half], decided[half:], strict=True))

    def within_margin(self, at: int) -> bool:
        """Return whether the pair is shown to differ by less than the margin."""
        return bool(self._betting.too_low[at, 0] and self._betting.too_high[at, 2])


def scale_to_bet_on(metric: Metric, *, where: str = "--metrics") -> Scale:
    """Return the range of a value of ``metric``.

    Raises:
        ConfigError: it has no known range; the metric is named in ``where``.
    """
    if metric.scale is None:
        raise ConfigError(
            f"metric {metric} with --until-decided",
            where=where,
            accepted="a metric whose values have a known range, such as nDCG@10",
            fix="name another one, or measure without --until-decided",
        )
    return metric.scale


def deltas_in_order(
    names: Sequence[str],
    values: Floats,
    answered: Bools,
    pairs: Sequence[Pair],
    scale: Scale,
    *,
    margin: float,
    total: int | None = None,
    alpha: float = QUALITY_ALPHA,
) -> list[Delta]:
    """Differences of ``pairs`` after a look at each query, without metric and dataset.

    Args:
        names: of the systems.
        values, answered: (systems, queries), in the order asked; at least one query.
        scale, margin, total, alpha: as of :class:`PairWatch`.
    """
    watch = PairWatch(pairs, scale, margin, total, alpha)
    for of_query, ok in zip(values.T, answered.T, strict=True):
        watch.add(of_query, ok)
    a, b = np.array(pairs).T
    differences = (values[b] - values[a]).T
    differences[np.abs(differences) <= ROUNDING] = 0.0
    each = alpha / len(pairs)
    ends = anytime_intervals(differences, scale.of_differences, alpha=each, total=total)
    n = len(differences)
    spread = differences.std(axis=0, ddof=1) if n > 1 else np.zeros(len(pairs))
    deltas = []
    for at, pair in enumerate(pairs):
        of_pair = differences[:, at]
        verdict, tied = watch.verdicts()[at]
        delta = Delta(
            "",
            names[pair[0]],
            names[pair[1]],
            verdict,
            n=n,
            difference=float(of_pair.mean()),
            ci=(float(ends[at, 0]), float(ends[at, 1])),
            level=1 - each,
            effect_size=float(of_pair.mean() / spread[at]) if spread[at] > 0 else None,
            wins=int(np.count_nonzero(of_pair > 0)),
            ties=int(np.count_nonzero(of_pair == 0)),
            losses=int(np.count_nonzero(of_pair < 0)),
            within_margin=watch.within_margin(at),
            anytime=True,
        )
        both = answered[a[at]] & answered[b[at]]
        deltas.append(_second_look(delta, of_pair, both, (answered[a[at]], answered[b[at]]), tied))
    return deltas


def _second_look(
    delta: Delta, differences: Floats, both: Bools, answered: tuple[Bools, Bools], tied: Verdict
) -> Delta:
    """Hold a verdict against what it is with failures as ties."""
    if both.all():
        return delta
    failed = [int(np.count_nonzero(~item)) for item in answered]
    there = Answered(int(np.count_nonzero(both)), failed[0], failed[1])
    if not both.any():
        reason = there.reason(delta.a, delta.b)
        return Delta("", "", "", Verdict.MISSING, n=delta.n, reason=reason)
    there = replace(there, difference=float(differences[both].mean()), verdict=tied)
    return held_against(delta, there)
