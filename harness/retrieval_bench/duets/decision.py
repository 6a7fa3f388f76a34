"""When a duet has seen enough, and what it then says: from log ratios of launches to verdicts.

A duet has two parts. The first looks for a sign: it ends when every gate is shown to be within its
limit, or when one leans towards slower. A sign is no verdict. The second part measures anew, and
only its launches decide whether it was one: so the chance of a false alarm is that of the second
part alone, however often the first one has looked. Within the second part the looks share the
level, and Holm's correction holds for the gates that are looked at.

Source: Kalibera & Jones (2013), Rigorous Benchmarking in Reasonable Time, for the launch as the
unit; Holm (1979) for several gates. The two parts are decision record 0033.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from retrieval_bench.core.types import Verdict
from retrieval_bench.duets.gates import GATES, Gate
from retrieval_bench.duets.result import GateResult
from retrieval_bench.stats.resampling import holm, student_p

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
    """What some launches say of one gate: p of "slower by no more than delta" and of "slower by
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
        """Of the ratio, :data:`ALPHA` on either side."""
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
        if min(one.p_worse for one in seen.values()) < EARLY.get(n, LEANS):
            self.signs = tuple(name for name, one in seen.items() if one.p_worse < LEANS)
        if self.signs or n in EARLY:
            return
        level = ALPHA / len(SEARCH)
        if all(one.p_beyond_limit < level for one in seen.values()):
            self._end({name: _passed(one, GATES[name]) for name, one in seen.items()})
        elif n == SEARCH[-1]:
            self._end({n: _at_last(one, GATES[n], level) for n, one in seen.items()})

    def _look_again(self) -> None:
        """The second part: confirmed, cleared, or not sure yet."""
        seen = self._seen(self.again)
        level = ALPHA / len(CONFIRM)
        corrected = holm(np.array([seen[name].p_worse for name in self.signs]))
        shown = [n for n, p in zip(self.signs, corrected.tolist(), strict=True) if p < level]
        last = len(self.again) == CONFIRM[-1]
        cleared = all(_within(one, level) for one in seen.values())
        if not (shown or cleared or last):
            return
        self._end(
            {
                name: Verdict.WORSE if name in shown else _at_last(one, GATES[name], level)
                for name, one in seen.items()
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
        return tuple(self._result(name, one, len(part)) for name, one in self._seen(part).items())

    def _result(self, name: str, one: Judged, launches: int) -> GateResult:
        gate, sign = GATES[name], name in self.signs
        verdict = self.verdicts.get(name, Verdict.UNDECIDED)
        return GateResult(
            name,
            verdict,
            self.limits[name],
            gate.delta,
            ratio=math.exp(one.mean),
            interval=one.interval,
            spread=one.error * math.sqrt(launches),
            launches=launches,
            confirmed=verdict is Verdict.WORSE if sign and self.over else None,
            reason=_reason(verdict, sign=sign, over=self.over),
        )


def overall(gates: Sequence[GateResult]) -> Verdict:
    """Of a whole duet: one gate that fails fails it; it passes when all that were judged do."""
    verdicts = [gate.verdict for gate in gates if gate.verdict is not Verdict.MISSING]
    for decisive in (Verdict.WORSE, Verdict.UNDECIDED, Verdict.EQUIVALENT, Verdict.BETTER):
        if decisive in verdicts:
            return decisive
    return Verdict.MISSING


def _passed(one: Judged, gate: Gate) -> Verdict:
    faster = one.mean + one.error <= -math.log1p(gate.delta)
    return Verdict.BETTER if faster else Verdict.EQUIVALENT


def _at_last(one: Judged, gate: Gate, level: float) -> Verdict:
    return _passed(one, gate) if _within(one, level) else Verdict.UNDECIDED


def _within(one: Judged, level: float) -> bool:
    """Whether it is shown to be within its limit, and does not lean towards slower."""
    return one.p_beyond_limit < level and one.p_worse >= LEANS


def _reason(verdict: Verdict, *, sign: bool, over: bool) -> str:
    if not over:
        return "broken off before it was decided"
    if verdict is Verdict.UNDECIDED:
        if sign:
            return "a first sign of slower was neither confirmed nor cleared"
        return "not shown to be within the limit"
    return "a first sign of slower was not confirmed" if sign and verdict in _PASSES else ""


_PASSES = (Verdict.BETTER, Verdict.EQUIVALENT)
