"""Parts of a retriever that can be left out.

A retriever that is made of others, or does something to the query or to the list, says what it is
without each of its parts (:meth:`.Retriever.parts`): another retriever over the same objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from retrieval_bench.core.retriever import Retriever

Kind = Literal[
    "leg", "fusion", "rewriting", "expansion", "weighting", "reranker", "filter", "depth"
]


@dataclass(frozen=True, slots=True)
class Part:
    """One part, and the retriever without it.

    Attributes:
        name: distinct among the parts; a part inside of another has the other's name before it, as
            in ``retrieve/bm25``.
        kind: what it is.
        without: the retriever without it.
        instead: what stands in its place, in words; empty where nothing does.
        stages: whose time and usage go with it.
        beside: stages that run at the same time as ``stages``: with the part a call waits for the
            longest of all, without it for the longest of these.
        share: of the time of ``stages``, how much goes.
        timed: False where stages do not say what it takes.
        gets: what it works on: the name of a list that the ranking keeps; empty = none.
        gives: likewise what it makes.
    """

    name: str
    kind: Kind
    without: Retriever
    instead: str = ""
    stages: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    share: float = 1.0
    timed: bool = True
    gets: str = ""
    gives: str = ""

    def inside(self, name: str, without: Retriever, stages: Mapping[str, str]) -> Part:
        """The same part of a retriever that holds this one under ``name``.

        Args:
            without: the whole without the part.
            stages: what the whole calls the stages of what it holds, where that is not the same.
        """
        return replace(
            self,
            name=f"{name}/{self.name}",
            without=without,
            stages=tuple(stages.get(one, one) for one in self.stages),
            beside=tuple(stages.get(one, one) for one in self.beside),
            gets=f"{name}/{self.gets}" if self.gets else "",
            gives=f"{name}/{self.gives}" if self.gives else "",
        )
