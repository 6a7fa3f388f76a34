"""A hybrid without each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Capabilities, Part, Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.hybrid.asking import Plan
from retrieval_bench_retrievers.hybrid.legs import Leg

WHOLE = ("leg:", "step:", "more texts of ")
"""What the names of stages begin with that a hybrid or pipeline has of its own."""


class Hybrid(Protocol):
    """Hybrid as its parts are made from it."""

    @property
    def legs(self) -> Sequence[Leg]:
        """The legs that it asks."""

    @property
    def parallel(self) -> bool:
        """True if the legs run at the same time."""

    def plan(self, query: Query) -> Plan:
        """Plan the questions to the legs for ``query``."""

    def with_legs(self, legs: Sequence[Leg], keep: Sequence[int] | None = None) -> Retriever:
        """The same with other ``legs``."""


class Alone(Retriever):
    """One leg of a hybrid, asked as the hybrid asks it."""

    def __init__(self, hybrid: Hybrid, at: int) -> None:
        self._hybrid = hybrid
        self._at = at

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the leg."""
        return self._leg.retriever.capabilities

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` of what the hybrid would fuse."""
        leg, asked = self._leg, self._hybrid.plan(query).queries[self._at]
        depth = max(leg.depth, k)
        raw = leg.retriever.search(asked, depth)
        return checked_ranking(raw, depth, has_scores=self.capabilities.has_scores).first(k)

    @property
    def _leg(self) -> Leg:
        return self._hybrid.legs[self._at]


def hybrid_parts(hybrid: Hybrid, k: int) -> list[Part]:
    """See :meth:`.Hybrid.parts`."""
    legs = hybrid.legs
    hybrid_parts = [_leg(hybrid, at) for at in range(len(legs))]
    if len(legs) > 2:
        hybrid_parts += [_fusion(hybrid, at) for at in range(len(legs))]
    deep = [leg for leg in legs if leg.depth > k]
    if deep:
        flat = hybrid.with_legs([replace(leg, depth=min(leg.depth, k)) for leg in legs])
        name = f"leg depth {max(leg.depth for leg in deep)}"
        hybrid_parts.append(Part(name, "depth", flat, f"depth {k}", timed=False))
    for at, leg in enumerate(legs):
        hybrid_parts += _inside(hybrid, at, leg.retriever.parts(max(leg.depth, k)))
    return hybrid_parts


def _leg(hybrid: Hybrid, at: int) -> Part:
    legs = hybrid.legs
    others = [other for other in range(len(legs)) if other != at]
    name, names = legs[at].name, [f"leg:{legs[other].name}" for other in others]
    stages = [f"leg:{name}"]
    without: Retriever
    if len(others) == 1:
        without, instead = Alone(hybrid, others[0]), f"{legs[others[0]].name} alone"
        stages.append("fuse")
    else:
        without, instead = hybrid.with_legs([legs[other] for other in others], others), ""
    beside = tuple(names) if hybrid.parallel else ()
    return Part(name, "leg", without, instead, tuple(stages), beside, gives=name)


def _fusion(hybrid: Hybrid, at: int) -> Part:
    name = hybrid.legs[at].name
    others = [f"leg:{leg.name}" for i, leg in enumerate(hybrid.legs) if i != at]
    beside = (f"leg:{name}",) if hybrid.parallel else ()
    alone = Alone(hybrid, at)
    return Part(
        f"fusion, {name} alone", "fusion", alone, f"{name} alone", (*others, "fuse"), beside
    )


def _inside(hybrid: Hybrid, at: int, parts: Sequence[Part]) -> list[Part]:
    legs, traces = hybrid.legs, []
    for part in parts:
        leg = replace(legs[at], retriever=part.without)
        whole = hybrid.with_legs([*legs[:at], leg, *legs[at + 1 :]])
        stages = [*part.stages, *part.beside]
        renamed = {stage: f"{leg.name}.{stage}" for stage in stages if stage.startswith(WHOLE)}
        inside = part.inside(leg.name, whole, renamed)
        # Side by side, what it saves depends on how long the other legs take without it.
        traces.append(replace(inside, timed=inside.timed and not hybrid.parallel))
    return traces
