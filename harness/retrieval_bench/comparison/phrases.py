"""Parts of the sentences on systems that stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.comparison.group import SpeedUp
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import about, times_text

NAMED = 4
"""Systems that a sentence names before it counts the rest."""


def named(names: Sequence[str]) -> str:
    """Some systems in a sentence, which counts the rest."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[:-1] else names)


def faster_text(speed_up: SpeedUp | None) -> str:
    """Return how much faster, with the two digits that hold from one session to the next, and the
    interval where these show one."""
    if speed_up is None:
        return "faster"
    value = _few_digits(speed_up.times)
    ends = [] if speed_up.ci98 is None else list(map(_few_digits, speed_up.ci98))
    return f"{value} faster" + (f" ({' to '.join(ends)})" if ends and value not in ends else "")


def _few_digits(times: float) -> str:
    return f"{about(round(times))}x" if times >= 10 else times_text(times)


def is_are(names: Sequence[str]) -> str:
    """Return the verb behind some names."""
    return "is" if len(names) == 1 else "are"


def what_helps(delta: Delta, gap: float) -> str:
    """Say how many queries would tell two systems apart whose true difference is ``gap``."""
    if delta.resolvable_from is not None:
        units = counted(delta.units, "query" if delta.clusters is None else "cluster")
        could = f"{delta.resolvable_from:,} could"
        return f" {units} can't show any difference, whatever they say; {could}."
    if delta.queries_needed is None:
        return ""
    total = about(delta.n + delta.queries_needed)
    if not delta.wins and not delta.losses:
        return f" No query differs; about {total} such queries would show that they are equivalent."
    shown = f"If the true gap is {gap:.3f}, about {total} queries in all would show it"
    if delta.needed_for == "equivalence":
        shown = f"About {total} queries in all would show that they are equivalent"
    differ = (delta.wins or 0) + (delta.losses or 0)
    return f" {shown} (80 % power); you have {delta.n:,}, of which {differ:,} tell the two apart."
