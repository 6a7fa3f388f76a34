"""Does the service stand still? Times without any answer while calls are under way, whether they
come again, and calls behind each other that have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.stats.percentiles import quantiles
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.stamps import ANSWERED, NEVER
from retrieval_bench_load.engine.tails import Floats, Ints
from retrieval_bench_load.periods import period

_OUTAGE = 10
"""Calls behind each other without an answer are an outage; calls that wait, a standstill."""

_TOGETHER = (1, 3)
"""Calls under way at the end of a time without an answer: each is tried as the least, since one
call alone may take long, and clients may be few."""

LEAST_S, _LONGER, _LOWER = 0.02, 3.0, 1.25
"""A standstill that comes again is so long at least, and so many times as long as what is usual;
how long it is at least is tried by steps of this ratio."""

_CALLS = 10
"""On so many calls there is one standstill at most: fewer show no period."""

_CHANCE, _SURE, _APART = 2e-5, 0.01, 5.0
"""Probability that a period is one of chance, at most: some fifty are looked at; and where each
standstill holds calls as an outage does, and is so many times as long as any other."""

_ALONE, _FEW = 20.0, 4
"""A standstill that does not come again is so many times as long as all but so many others."""

_RHYTHM = 0.5
"""Length of the mean direction of times on a circle of the period from which on calls are due in
its rhythm, so that it is theirs."""


@dataclass(frozen=True, slots=True)
class Outage(Documented):
    """Calls behind each other that had no answer.

    Attributes:
        begin_s: when the first was due, seconds from the begin of the window.
        seconds: until a call was due that was answered; None where none was.
        calls: without an answer.
    """

    begin_s: float
    seconds: float | None
    calls: int


@dataclass(frozen=True, slots=True)
class _Waits:
    """Times of a level without an answer, while calls were under way, by their end.

    Attributes:
        level: its name.
        due: when calls were due that were not made in turn, seconds from the level's start.
        end, seconds: of each.
        waiting: calls under way at its end.
        grain: mean seconds between calls.
    """

    level: str
    due: Floats
    end: Floats
    seconds: Floats
    waiting: Ints
    grain: float

    @classmethod
    def of(cls, made: LevelCalls, level: str) -> _Waits:
        """The times of all calls, the warm-up's too, that waited for no repetition."""
        calls = made.calls
        calls = calls[(calls.sent != NEVER) & (calls.done != NEVER) & (calls.waited == 0)]
        calls = calls[np.argsort(calls.done, kind="stable")]
        sent, done = calls.sent / 1e9, calls.done / 1e9
        if len(done) < 2:
            none = np.empty(0)
            return cls(level, none, none, none, none.astype(np.int64), 0.0)
        # From the last answer on, or from when the first call was made that has none yet.
        begin = np.maximum(done[:-1], np.minimum.accumulate(sent[::-1])[::-1][1:])
        seconds = done[1:] - begin
        # A call that goes on for long behind the end did not wait for it.
        behind = np.searchsorted(done, done[1:] + float(np.median(done - sent)), "right")
        for at in np.flatnonzero(seconds >= LEAST_S).tolist():
            seconds[at] = done[at + 1] - max(done[at], sent[at + 1 : behind[at]].min())
        waiting = np.searchsorted(np.sort(sent), done[1:], "right") - np.arange(1, len(done))
        due = calls.due / 1e9 if made.level.pace else np.empty(0)
        return cls(level, due, done[1:], seconds, waiting, float(np.ptp(sent)) / len(sent))


@dataclass(slots=True)
class Stalls:
    """Looks for standstills and outages in the calls of levels."""

    _levels: list[_Waits] = field(default_factory=list)
    _outages: list[str] = field(default_factory=list)

    def add(self, made: LevelCalls, level: str) -> None:
        """Take in a level, by its name."""
        self._levels.append(_Waits.of(made, level))
        failed = made.calls.status[made.inside] != ANSWERED
        for outage in outages_of(made):
            others = float(failed.sum() - outage.calls) / max(1, len(failed) - outage.calls)
            if failed.all() or len(failed) * others**outage.calls > _CHANCE:
                continue
            lasted = "to its end" if outage.seconds is None else f"for {_time(outage.seconds)}"
            self._outages.append(
                f"{level}: {outage.calls:,} calls behind each other had no answer, {lasted} from "
                f"{_time(outage.begin_s)} after its begin on."
            )

    def warnings(self) -> list[str]:
        """What there is to say: a line on what comes again, else one on the standstills of each
        level; and one on each outage."""
        texts = [*(self._again() or self._once()), *self._outages]
        return [Notice(text, Code.STANDS_STILL) for text in texts]

    def _again(self) -> list[str]:
        best, text = _CHANCE, ""
        for least in _TOGETHER:
            some = [(of, of.waiting >= least) for of in self._levels]
            lengths = np.concatenate([np.empty(0), *(of.seconds[which] for of, which in some)])
            usual = float(np.median(lengths)) if len(lengths) else 0.0
            above, longest = max(LEAST_S, _LONGER * usual), float(lengths.max(initial=0.0))
            while above < longest:
                each, chance, n = self._period(least, above)
                if chance < best:
                    seconds = float(quantiles(lengths[lengths > above], 0.75)) - usual
                    best, text = chance, _words(seconds, each, n)
                above *= _LOWER
        return [text] if text else []

    def _period(self, least: int, above: float) -> tuple[float, float, int]:
        """The period of standstills longer than ``above``, the probability that it is one of
        chance, and how many there are."""
        levels, moments, held, others = self._levels, [], _OUTAGE, 0.0
        lengths: list[Floats] = []
        for of in levels:
            long = (of.waiting >= least) & (of.seconds > above)
            lengths.append(of.seconds[long])
            moments.append(of.end[long])
            held = min(held, of.waiting[long].min(initial=held))
            others = max(others, of.seconds[(of.waiting >= least) & ~long].max(initial=0.0))
        n = sum(map(len, moments))
        if _CALLS * n > sum(len(of.end) for of in levels):
            return 0.0, 1.0, n
        lasts = float(np.mean(np.concatenate(lengths)))
        each, chance = period(moments, max(of.grain for of in levels), lasts)
        if chance < 1 and any(_in_rhythm(of.due, each) for of in levels):
            return each, 1.0, n
        sure = held >= _OUTAGE and above > _APART * others
        return each, chance * _CHANCE / _SURE if sure else chance, n

    def _once(self) -> Iterator[str]:
        for of in self._levels:
            order = np.argsort(-of.seconds)[: _FEW + 1]
            seconds = of.seconds[order]
            apart = np.flatnonzero(seconds[:-1] > _ALONE * seconds[1:])
            still = order[: apart[-1] + 1] if len(apart) else order[:0]
            if len(still) and of.waiting[still].min() >= _OUTAGE:
                first, many = int(still[0]), f" {counted(len(still), 'time')}" * (len(still) > 1)
                begin, lasted = of.end[first] - of.seconds[first], _time(of.seconds[first])
                yield (
                    f"{of.level}: the service stood still{many}, for {lasted} from {_time(begin)} "
                    f"after the start on, while {of.waiting[first]:,} calls waited for an answer."
                )


def _words(seconds: float, each: float, n: int) -> str:
    return (
        f"The service stands still for {_time(seconds)} each {_time(each)}: no call is answered "
        f"meanwhile ({n:,} times). Look for what it does then, such as collecting garbage, or "
        "whether its cores are rationed."
    )


def _in_rhythm(due: Floats, seconds: float) -> bool:
    around = np.exp(2j * np.pi * due / seconds)
    return bool(len(around) and abs(around.mean()) > _RHYTHM)


def _time(seconds: float) -> str:
    """Two digits that count."""
    value, unit = (1e3 * seconds, "ms") if seconds < 0.995 else (seconds, "s")
    return f"{float(f'{value:.2g}'):,g} {unit}"


def outages_of(made: LevelCalls) -> list[Outage]:
    """Outages among the calls that are due in the window."""
    calls = made.calls[made.inside]
    due_s = (calls.due - made.begin) / 1e9
    failed = (calls.status != ANSWERED).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], failed, [0]])))
    outages = []
    for first, behind in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if behind - first >= _OUTAGE:
            lasted = float(due_s[behind] - due_s[first]) if behind < len(due_s) else None
            outages.append(Outage(float(due_s[first]), lasted, behind - first))
    return outages
