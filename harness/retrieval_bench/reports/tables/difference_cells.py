"""How a paired difference is written, and which ones where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.comparison.verdicts import Answered, Delta
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import interval_of, p_text, signed


@dataclass(frozen=True, slots=True)
class DifferenceCells:
    """The figures of a difference, as every table writes them.

    Attributes:
        difference: of the means.
        effect: the mean difference over the standard deviation.
        counts: queries won, tied, lost.
        p: after Holm.
        tests: p of each further test, after Holm.
    """

    difference: str
    effect: str
    counts: tuple[str, str, str]
    p: str
    tests: tuple[str, ...]

    @classmethod
    def of(cls, delta: Delta, tests: Sequence[str], nothing: str = "-") -> DifferenceCells:
        """The cells of ``delta``; ``nothing`` stands where there is no figure."""
        if delta.difference is None:
            return cls(nothing, nothing, (nothing,) * 3, nothing, (nothing,) * len(tests))
        effect, p = delta.effect_size, delta.p_adjusted
        won, tied, lost = (
            nothing if n is None else f"{n:,}" for n in (delta.wins, delta.ties, delta.losses)
        )
        return cls(
            signed(delta.difference),
            nothing if effect is None else signed(effect, 2),
            (won, tied, lost),
            nothing if p is None else p_text(p),
            tuple(
                p_text(delta.tests[name][1]) if name in delta.tests else nothing for name in tests
            ),
        )


def most_telling(
    deltas: Sequence[Delta], best_first: Sequence[str], *, baseline: str | None, most: int
) -> list[Delta]:
    """All ``deltas``; of more than ``most`` those of the baseline or, without one, of the best
    system, the one against the best of the others first.

    Args:
        best_first: the systems, by the metric that decides.
    """
    if len(deltas) <= most:
        return list(deltas)
    one = best_first[0] if baseline is None else baseline
    place = {name: at for at, name in enumerate(best_first)}
    own = [delta for delta in deltas if one in (delta.a, delta.b)]
    return sorted(own, key=lambda delta: place[delta.a if delta.b == one else delta.b])


def answered_rows(found: Answered, between: int) -> list[list[str]]:
    """Two rows with the same difference on the queries that both answered, for below a pair.

    Args:
        between: columns between the difference and the verdict, which stay empty.
    """
    p = "-" if found.p_adjusted is None else p_text(found.p_adjusted)
    difference = "-" if found.difference is None else signed(found.difference)
    interval = interval_of(found.ci95, lambda value: f"{value:+.3f}")
    return [
        [" both answered", difference, *([""] * between), f"{found.verdict.value}, p {p}"],
        [f" {counted(found.n, 'query')}", interval, *([""] * between), ""],
    ]
