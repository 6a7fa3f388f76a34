"""Does a service refuse more than before? The share of calls that were refused at least once, or
had no answer, against that of another measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench_load.engine.levels import LevelResult
from retrieval_bench_regress.latency_gates import p_share_no_larger

REFUSALS = "refused or failed"
"""Begin of the names of its gates."""

SIGN, SHOWN = 0.15, 0.02
"""p of "no larger than before": from which on it is measured again, and of both measurements
together, from which on it fails."""


@dataclass(frozen=True, slots=True)
class Share:
    """Calls that were refused at least once, or had no answer.

    Attributes:
        calls: of these.
        of: all calls.
        independent: calls of which the share is known as well: refusals may come together.
    """

    calls: int
    of: int
    independent: float

    @classmethod
    def joined(cls, levels: Sequence[LevelResult]) -> Share:
        """Refusals of all calls of ``levels``; an older version knows of failed calls alone."""
        return cls(
            sum(level.troubled or level.failed for level in levels),
            sum(level.calls for level in levels),
            sum(level.troubled_of or float(level.calls) for level in levels),
        )

    def __str__(self) -> str:
        return f"{self.calls / max(1, self.of):.1%} of {self.of:,} calls"


def p_no_larger(now: Share, then: Share) -> float:
    """p of "the share is no larger now", by Fisher's exact test of independent calls."""
    n, before = (round(share.independent) for share in (now, then))
    found, known = (
        round(share.calls / max(1, share.of) * share.independent) for share in (now, then)
    )
    return p_share_no_larger((found, n), (known, before))


def told(now: Share, then: Share, here: str = "now", there: str = "before") -> str:
    """Both shares, in words; empty where nothing was refused."""
    return f"{now} {here}, {then} {there}" if now.calls or then.calls else ""
