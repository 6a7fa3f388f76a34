"""The search for the highest rate that keeps a limit: which rate is asked next, when it ends, and
the bracket that it ends with. It has no clock and makes no call: whoever drives it says what time
is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench_load.engine.capacity import Evidence, Limit, Shown, shown
from retrieval_bench_load.engine.levels import State

_STEP = 1.5
"""From one rate to the next, until one keeps the limit and one breaks it."""

_GAP, _NARROW = 1.08, 1.2
"""Ratio of neighbouring rates, and of the ends, at which nothing is asked between them."""

_AGAIN, _LOWEST, _TRIES = 2, 8, 3
"""Levels at a rate that stays unclear, until it is left; at the lowest one, where fewer calls than
may be are beyond the limit: farther down no fewer would be; and at one that was not measured."""

_MOST_LEVELS = 60


@dataclass(frozen=True, slots=True)
class Capacity(Documented):
    """The highest rate that keeps a limit.

    Attributes:
        limit: what must be kept.
        keeps: the highest rate that was shown to keep it; None where none was.
        breaks: the lowest rate above it that was shown to break it; None where none was.
        levels: how many were made.
        rough: an end was shown by one level alone, or the ends are far from each other.
        reason: why an end is missing; None where none is.
        generator_ends: the lowest rate above ``keeps`` that the generator could not make, where
            nothing below it breaks the limit.
        not_measured: levels that were not.
    """

    limit: Limit
    keeps: float | None
    breaks: float | None
    levels: int
    rough: bool
    reason: str | None = None
    generator_ends: float | None = None
    not_measured: int = 0

    @property
    def beyond(self) -> bool:
        """Whether one call at a time breaks the limit: a search without levels is rough."""
        return not self.levels and not self.rough


@dataclass(slots=True)
class Search:
    """Looks for the bracket: steps up to the first failure, or down from one, then halves what is
    between on the logarithm. A rate that stays unclear is asked again, and its levels are pooled;
    time is kept for a second look at both ends.

    Attributes:
        limit: what must be kept.
        first: the first rate.
        level_s: what a level takes.
    """

    limit: Limit
    first: float
    level_s: float
    seen: dict[float, list[Evidence]] = field(default_factory=dict)
    last: float | None = None

    def add(self, rate: float, evidence: Evidence) -> None:
        """Take in a level at that rate."""
        self.seen.setdefault(rate, []).append(evidence)
        self.last = rate

    @property
    def levels(self) -> int:
        """How many were made."""
        return sum(map(len, self.seen.values()))

    def next(self, left_s: float) -> float | None:  # noqa: PLR0911 - a rule each
        """The next rate to ask at; None where the search has ended."""
        left = min(int(left_s / self.level_s), _MOST_LEVELS - self.levels)
        if left < 1:
            return None
        if self.last is None:
            return self.first
        if self._again(self.last):
            return self.last
        keeps, breaks = self._ends()
        upper = breaks or self._generator_ends(keeps)
        once = [end for end in (keeps, breaks) if end and len(_usable(self.seen[end])) < 2]
        if once and left <= len(once):
            return once[0]
        if keeps is None:
            return min(self.seen) / (_STEP if left >= _LOWEST else _STEP**2)
        if upper is None:
            return max(self.seen) * _STEP
        return self._between(keeps, upper) or next(iter(once), None) or self._unclear(keeps, upper)

    def _again(self, rate: float) -> bool:
        """Whether the last rate is to be asked again at once: it was not measured, or it is the
        only one that can be an end."""
        them = self.seen[rate]
        if them[-1].state is State.NOT_MEASURED:
            return not _usable(them) and not them[-1].bounded and len(them) < _TRIES
        keeps, breaks = self._ends()
        alone = keeps is None or (breaks is None and rate > keeps)
        most = _LOWEST if keeps is None and self._leans(rate) else _AGAIN
        return alone and self._shown(rate) is Shown.UNCLEAR and len(_usable(them)) < most

    def _leans(self, rate: float) -> bool:
        """Whether fewer calls than may be are beyond the limit."""
        return shown(self.seen[rate], self.limit, leans=True) is Shown.KEEPS

    def _between(self, keeps: float, upper: float) -> float | None:
        """In the middle of the widest gap between an end and what is unclear; None where all are
        narrow."""
        inside = sorted(
            rate for rate, them in self.seen.items() if keeps < rate < upper and _usable(them)
        )
        places = [keeps, *inside, upper]
        # Only next to an end: between two unclear rates nothing can be shown either.
        gaps = {(places[0], places[1]), (places[-2], places[-1])}
        low, high = max(gaps, key=lambda gap: gap[1] / gap[0])
        enough = _GAP if inside else _NARROW
        return math.sqrt(low * high) if high / low > enough else None

    def _unclear(self, keeps: float, upper: float) -> float | None:
        """Of the unclear rates between ends that are far apart the one with the fewest levels."""
        inside = [rate for rate in self.seen if keeps < rate < upper and _usable(self.seen[rate])]
        if upper <= _NARROW * keeps or not inside:
            return None
        return min(inside, key=lambda rate: (len(self.seen[rate]), rate))

    def found(self, *, whole: bool = True) -> Capacity:
        """The bracket by the levels so far.

        Args:
            whole: nobody ended the search.
        """
        keeps, breaks = self._ends()
        leaning = keeps is None or breaks is None
        if leaning:
            keeps, breaks = self._ends(leans=True)
        ends = None if breaks else self._generator_ends(keeps)
        upper = breaks or ends
        near = bool(keeps and upper and upper <= 1.35 * keeps)
        once = any(len(_usable(self.seen[end])) < 2 for end in (keeps, breaks) if end)
        lost = sum(one.state is State.NOT_MEASURED for them in self.seen.values() for one in them)
        reason = None
        if not whole:
            reason = f"the search was ended after {counted(self.levels, 'level')}"
        elif ends:
            reason = (
                "the generator could not make more: --processes shares the load where cores are "
                "free, --on where other machines are"
            )
        elif lost and lost == self.levels:
            reason = "no level at a rate was measured: the lines on levels say why"
        elif keeps is None or breaks is None:
            reason = "too little time (--max-minutes), or too few calls in a level (--duration)"
        rough = not whole or once or not near or leaning
        return Capacity(self.limit, keeps, breaks, self.levels, rough, reason, ends, lost)

    def _shown(self, rate: float) -> Shown:
        return shown(self.seen[rate], self.limit)

    def _ends(self, *, leans: bool = False) -> tuple[float | None, float | None]:
        """The highest rate that keeps the limit with none below it that breaks it, and the lowest
        that breaks it above."""
        verdicts = {at: shown(self.seen[at], self.limit, leans=leans) for at in sorted(self.seen)}
        broken = [rate for rate, verdict in verdicts.items() if verdict is Shown.BREAKS]
        kept = [rate for rate, verdict in verdicts.items() if verdict is Shown.KEEPS]
        keeps = max((one for one in kept if not broken or one < broken[0]), default=None)
        return keeps, min((one for one in broken if keeps is None or one > keeps), default=None)

    def _generator_ends(self, keeps: float | None) -> float | None:
        """The lowest rate above one that keeps the limit that could not be made."""
        above = [
            rate
            for rate, them in self.seen.items()
            if rate > (keeps or math.inf)
            and not _usable(them)
            and (len(them) >= _TRIES or any(one.bounded for one in them))
        ]
        return min(above, default=None)


def _usable(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [one for one in evidence if one.state is not State.NOT_MEASURED]
