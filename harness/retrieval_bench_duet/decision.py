"""What a duet looks at, when it has seen enough, and what it then says: log ratios to verdicts.

Its gates are three figures, each a log ratio of the two sides in every launch. Which queries are
slow is a matter of all launches that are judged together: in one of them, with a call or two of
each query, those that happened to be interrupted look slowest (decision record 0036).

A duet has two parts. The first looks for a sign: it ends when every gate is shown to be within its
limit, or when one leans towards slower. A sign is no verdict. The second part measures anew, and
only its launches decide whether it was one: so the chance of a false alarm is that of the second
part alone, however often the first one has looked. Within the second part the looks share the
level, and Holm's correction holds for the gates that are looked at.

:func:`visible` plays these rules with chance: which slow-downs they find.

Source: Kalibera & Jones (2013), Rigorous Benchmarking in Reasonable Time, for the launch as the
unit; Holm (1979) for several gates. The two parts are decision record 0033.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.call_pairs import Pairs, tail_thetas, theta
from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.percentiles import medians
from retrieval_bench.stats.resampling import holm, student_p
from retrieval_bench_duet.result import GateResult

SLOWEST = 0.2
"""Share of the queries that are the slow ones."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class Gate:
    """One figure.

    Attributes:
        name: as in a policy.
        about: what it is, in words.
        delta: slower by no more than this counts as no difference.
        limit: slower by less than this is acceptable, where no policy says otherwise.
        queries: fewest queries it can be told from.
        same: these queries are the same ones in every launch.
        of: launches -> the log ratio of each; their mean is the figure.
    """

    name: str
    about: str
    delta: float
    limit: float
    queries: int
    same: bool
    of: Callable[[Sequence[Pairs]], NDArray[np.float64]]


def _typical(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    return np.array([theta(launch.log_ratio, launch.query) for launch in launches])


def _slowest(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    """The typical log ratio of the queries that take longest on both sides together: neither side
    has a say of its own in which they are."""
    slow = slow_queries(launches)
    return _typical([launch.take(np.isin(launch.query, slow)) for launch in launches])


def slow_queries(launches: Sequence[Pairs]) -> NDArray[np.int32]:
    """Numbers of the queries that take longest, of those that every launch has an answer to."""
    whole = Pairs.joined(launches)
    answers = np.concatenate([np.unique(launch.query) for launch in launches])
    queries, in_launches = np.unique(answers, return_counts=True)
    together = medians(whole.log_a + whole.log_b, whole.query)[in_launches == len(launches)]
    queries = queries[in_launches == len(launches)]
    n = max(1, int(SLOWEST * len(queries)))
    return np.asarray(queries[np.argsort(-together, kind="stable")[:n]], dtype=np.int32)


def _tail(launches: Sequence[Pairs]) -> NDArray[np.float64]:
    return tail_thetas(Pairs.joined(launches))


GATES = {
    gate.name: gate
    for gate in (
        Gate("p50", "usual queries", 0.01, 0.05, 10, False, _typical),
        Gate("p95", "95th percentile over queries", 0.03, 0.10, 200, False, _tail),
        Gate("slowest-fifth", "the slowest fifth of the queries", 0.02, 0.10, 50, True, _slowest),
    )
}
"""By name. The figures delta are those of ``harness/docs/understand/measuring.md``."""


def thetas(gate: str, launches: Sequence[Pairs]) -> list[float]:
    """The log ratio of each launch, by the name of the gate."""
    thetas: list[float] = GATES[gate].of(launches).tolist()
    return thetas


def percent(text: object) -> float | None:
    """Read a text such as "5%" as a share; None of anything else."""
    match = _PERCENT.fullmatch(text.strip()) if isinstance(text, str) else None
    return float(match[1]) / 100 if match else None


def acceptable(gate: str, text: object) -> float:
    """A largest acceptable slow-down such as "5%", as a share.

    Raises:
        ValueError: anything else, or less than the gate can tell from no difference.
    """
    share = percent(text)
    if not share:
        raise ValueError(f"{text!r} is no largest acceptable slow-down: write one such as 5%")
    delta = GATES[gate].delta
    if share <= delta:
        raise ValueError(
            f"{text} is too small: two measurements of the same code differ by up to {delta:.0%}; "
            "write more than that"
        )
    return share


ALPHA = 0.01
"""Level of "slower than delta", and of "within the limit": each one-sided."""

LEANS = 0.05
"""A figure with a smaller p of "slower by no more than delta" is a sign: it never passes as it
stands."""

EARLY: Mapping[int, float] = {3: 0.01, 4: 0.02}
"""Launches after which the first part only looks for what is much slower, and the p that a figure
must be below: so few clear nothing."""

SEARCH, CONFIRM = (5, 8, 12, 18, 24), (4, 6, 9, 13, 18)
"""After how many launches each part looks for a verdict."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgement of some launches on one gate: p of "slower by no more than delta" and of "slower by
    the limit or more", and the interval of the log ratio, :data:`ALPHA` on either side."""

    mean: float
    error: float
    df: int
    p_worse: float
    p_beyond_limit: float

    @classmethod
    def of(cls, thetas: Sequence[float], delta: float, limit: float) -> Judged:
        """Student's t over launches, two or more."""
        values = np.asarray(thetas, dtype=np.float64)
        mean, df = float(values.mean()), len(values) - 1
        error = float(values.std(ddof=1)) / math.sqrt(len(values))

        return cls(
            mean,
            error,
            df,
            p_worse=float(student_p(math.log1p(delta) - mean, error, df)),
            p_beyond_limit=float(student_p(mean - math.log1p(limit), error, df)),
        )

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the ratio, :data:`ALPHA` on either side."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.df, 1 - ALPHA)) * self.error
        return math.exp(self.mean - half), math.exp(self.mean + half)


Launch = TypeVar("Launch")


@dataclass(slots=True)
class Trial(Generic[Launch]):
    """Takes in launches until it is :attr:`over`.

    Attributes:
        limits: name of each gate that is judged -> its largest acceptable slow-down, a share.
        thetas: name of a gate, launches -> the log ratio of side b over side a in each.
        first, again: launches of each part.
        signs: gates that leaned towards slower when the first part ended.
    """

    limits: Mapping[str, float]
    thetas: Callable[[str, Sequence[Launch]], Sequence[float]]
    first: list[Launch] = field(default_factory=list)
    again: list[Launch] = field(default_factory=list)
    signs: tuple[str, ...] = ()
    over: bool = False
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def add(self, launch: Launch) -> None:
        """One more launch."""
        if self.over:
            raise ValueError("the trial is over")
        part = self.again if self.signs else self.first
        part.append(launch)
        if self.signs and len(part) in CONFIRM:
            self._look_again()
        elif not self.signs and len(part) in (*EARLY, *SEARCH):
            self._look()

    def _look(self) -> None:
        """The first part: nothing to see, a sign, or not sure yet."""
        seen, n = self._seen(self.first), len(self.first)
        if min(item.p_worse for item in seen.values()) < EARLY.get(n, LEANS):
            self.signs = tuple(name for name, judged in seen.items() if judged.p_worse < LEANS)
        if self.signs or n in EARLY:
            return
        level = ALPHA / len(SEARCH)
        if all(item.p_beyond_limit < level for item in seen.values()):
            self._end({name: _passed(judged, GATES[name]) for name, judged in seen.items()})
        elif n == SEARCH[-1]:
            self._end({n: at_last(judged, GATES[n], level) for n, judged in seen.items()})

    def _look_again(self) -> None:
        """The second part: confirmed, cleared, or not sure yet."""
        seen = self._seen(self.again)
        level = ALPHA / len(CONFIRM)
        corrected = holm(np.array([seen[name].p_worse for name in self.signs]))
        shown = [n for n, p in zip(self.signs, corrected.tolist(), strict=True) if p < level]
        last = len(self.again) == CONFIRM[-1]
        cleared = all(_within(item, level) for item in seen.values())
        if not (shown or cleared or last):
            return
        self._end(
            {
                name: Verdict.WORSE if name in shown else at_last(judged, GATES[name], level)
                for name, judged in seen.items()
            }
        )

    def _seen(self, part: Sequence[Launch]) -> dict[str, Judged]:
        return {
            name: Judged.of(self.thetas(name, part), GATES[name].delta, limit)
            for name, limit in self.limits.items()
        }

    def _end(self, verdicts: dict[str, Verdict]) -> None:
        self.verdicts, self.over = verdicts, True

    def results(self) -> tuple[GateResult, ...]:
        """One for each gate; undecided where the trial was broken off."""
        part = self.again if self.signs else self.first
        if len(part) < 2:
            part = self.first
        if len(part) < 2:
            why = "too few launches"
            return tuple(
                GateResult(n, Verdict.MISSING, limit, GATES[n].delta, reason=why)
                for n, limit in self.limits.items()
            )
        return tuple(
            self._result(name, judged, len(part)) for name, judged in self._seen(part).items()
        )

    def _result(self, name: str, judged: Judged, launches: int) -> GateResult:
        gate, sign = GATES[name], name in self.signs
        verdict = self.verdicts.get(name, Verdict.UNDECIDED)
        return GateResult(
            name,
            verdict,
            self.limits[name],
            gate.delta,
            ratio=math.exp(judged.mean),
            interval=judged.interval,
            spread=judged.error * math.sqrt(launches),
            launches=launches,
            confirmed=verdict is Verdict.WORSE if sign and self.over else None,
            reason=_reason(verdict, sign=sign, over=self.over),
        )


def overall(gates: Sequence[GateResult]) -> Verdict:
    """Return the verdict of a whole duet: one gate that fails fails it; it passes when all that
    were judged do."""
    verdicts = [gate.verdict for gate in gates if gate.verdict is not Verdict.MISSING]
    for decisive in (Verdict.WORSE, Verdict.UNDECIDED, Verdict.EQUIVALENT, Verdict.BETTER):
        if decisive in verdicts:
            return decisive
    return Verdict.MISSING


def _passed(judged: Judged, gate: Gate) -> Verdict:
    faster = judged.interval[1] * (1 + gate.delta) <= 1
    return Verdict.BETTER if faster else Verdict.EQUIVALENT


def at_last(judged: Judged, gate: Gate, level: float) -> Verdict:
    """Judge what is not worse, when no more launches come."""
    return _passed(judged, gate) if _within(judged, level) else Verdict.UNDECIDED


def _within(judged: Judged, level: float) -> bool:
    """Return whether it is shown to be within its limit, and does not lean towards slower."""
    return judged.p_beyond_limit < level and judged.p_worse >= LEANS


def _reason(verdict: Verdict, *, sign: bool, over: bool) -> str:
    if not over:
        return "broken off before it was decided"
    if verdict is Verdict.UNDECIDED:
        if sign:
            return "a first sign of slower was neither confirmed nor cleared"
        return "not shown to be within the limit"
    return "a first sign of slower was not confirmed" if sign and verdict in _PASSES else ""


_PASSES = (Verdict.BETTER, Verdict.EQUIVALENT)


FOUND = 0.9
"""What is found in so many of all duets counts as visible."""

_TRIALS, _SEED, _STEPS = 1000, 42, 14
_SPREADS = 15


@lru_cache(maxsize=256)
def visible(spread: float, delta: float, limit: float) -> float:
    """The smallest slow-down, a share, that :data:`FOUND` of all duets say FAIL to.

    Args:
        spread: of the log ratio from launch to launch, one standard deviation.
    """
    noise = np.random.default_rng(_SEED).standard_normal((_TRIALS, SEARCH[-1] + CONFIRM[-1]))
    low = math.log1p(delta)
    high = max(low, math.log1p(limit)) + _SPREADS * spread
    for _ in range(_STEPS):
        middle = (low + high) / 2
        share = fails(middle + spread * noise, delta, limit).mean()
        low, high = (low, middle) if share >= FOUND else (middle, high)
    return math.expm1(high)


def fails(thetas: NDArray[np.float64], delta: float, limit: float) -> NDArray[np.bool_]:
    """Return which duets of one gate end with FAIL.

    Args:
        thetas: (duets, launches) log ratios: those of the first part, then those of the second.
    """
    n = len(thetas)
    first, again = thetas[:, : SEARCH[-1]], thetas[:, SEARCH[-1] :]
    going, sign = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for look in (*EARLY, *SEARCH):
        worse, beyond = _tests(first[:, :look], delta, limit)
        sign |= going & (worse < EARLY.get(look, LEANS))
        going &= ~sign
        if look in SEARCH:
            going &= beyond >= ALPHA / len(SEARCH)
    going, failed = sign, np.zeros(n, dtype=bool)
    for look in CONFIRM:
        worse, beyond = _tests(again[:, :look], delta, limit)
        failed |= going & (worse < ALPHA / len(CONFIRM))
        cleared = (beyond < ALPHA / len(CONFIRM)) & (worse >= LEANS)
        going = going & ~failed & ~cleared
    return failed


def _tests(
    thetas: NDArray[np.float64], delta: float, limit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p of "slower by no more than delta" and of "slower by the limit or more", by duet."""
    n = thetas.shape[1]
    mean = thetas.mean(axis=1)
    error = thetas.std(axis=1, ddof=1) / math.sqrt(n)
    return (
        student_p(math.log1p(delta) - mean, error, n - 1),
        student_p(mean - math.log1p(limit), error, n - 1),
    )
