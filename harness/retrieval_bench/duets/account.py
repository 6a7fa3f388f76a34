"""What a duet tells beside its verdict: of its two sides, and of the machine meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.duets.launch import Measured
from retrieval_bench.duets.sides import Side
from retrieval_bench.measure.disturbances import OTHERS, STOLEN

OF_A_PROCESS = ("packages", "blas", "thread_pools", "variables", "imported_before")
"""What each side says of itself: the two may have other ones."""


def surroundings(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the process of a side says of itself; nothing where it did not come to that."""
    told = facts.get("environment", {})
    return {name: told[name] for name in OF_A_PROCESS if name in told}


def about(side: Side, facts: Mapping[str, Any], of_a: Mapping[str, Any]) -> dict[str, Any]:
    """A side, for the record.

    Args:
        facts, of_a: what its process said, and that of side a, from which surroundings are told
            only where they differ.
    """
    a, own = surroundings(of_a), surroundings(facts)
    return {
        "name": side.name,
        "retriever": facts.get("name"),
        "place": side.place.label,
        "commit": side.place.commit,
        "overrides": list(side.overrides),
        "config": facts.get("config"),
        "environment": {name: own[name] for name in own if a and own[name] != a.get(name)},
    }


def share_of_the_cores(noise: Sequence[Mapping[str, Any]], whose: str) -> float | None:
    """Of the cores' time while it was measured, in the mean of launches; None where it is not
    known.

    Args:
        noise: records of :class:`retrieval_bench.measure.noise.NoiseRecorder`.
        whose: "others" or "stolen".
    """
    shares = [one["cores"][whose] for one in noise if one.get("cores")]
    return float(np.mean(shares)) if shares else None


def machine_warnings(noise: Sequence[Mapping[str, Any]]) -> list[str]:
    """What else used the machine, in sentences; none on a quiet one."""
    told = []
    if (others := share_of_the_cores(noise, "others") or 0.0) > OTHERS:
        told.append(
            f"other processes used {others:.0%} of the cores' time: end them to see smaller "
            "differences, and to be done sooner"
        )
    if (stolen := share_of_the_cores(noise, "stolen") or 0.0) > STOLEN:
        told.append(
            f"{stolen:.0%} of the cores' time went to other guests of the host: small "
            "differences are hidden, and it takes longer"
        )
    return told


def median_calls(launched: Sequence[Measured]) -> tuple[float, float] | None:
    """Of a call of either side, in nanoseconds, failed ones left out; None without any launch."""
    if not launched:
        return None
    both = np.concatenate([one.wall_ns for one in launched], axis=1)
    a, b = (float(np.median(side[side >= 0])) if (side >= 0).any() else 0.0 for side in both)
    return a, b
