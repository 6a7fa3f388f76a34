"""What came back over all searches, for engines that may not know how many hits were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Query


class SearchCounts:
    """Counts searches, and warns where all of them have one fault.

    Args:
        nothing: what may be wrong where all found nothing, a question.
        short: what may be wrong where all found less than was asked for.

    Attributes:
        searches: how many there were.
    """

    def __init__(self, nothing: str, short: str) -> None:
        self._nothing = nothing
        self._told_short = short
        self.reset()

    @classmethod
    def of(cls, name: str, hand_on: str) -> SearchCounts:
        """Those of what is called ``name``, and gets k from the harness as ``hand_on`` says."""
        remedy = f"fewer on purpose, or {name} may not hand k on, {hand_on}"
        return cls(f"does {name} hold an index?", remedy)

    def reset(self) -> None:
        """Forget all searches: another index begins."""
        self.searches = self._short = self._collapsed = self._most_hits = self._most_asked = 0
        self._fewest_hits: int | None = None

    def add(
        self,
        query: Query,
        k: int,
        hits: int,
        *,
        documents: int | None = None,
        size: int | None = None,
    ) -> None:
        """Count one search.

        Args:
            query: what was asked; with a filter, a short list is no fault.
            k: hits asked for.
            hits: what the engine gave, at most ``k`` of them counted.
            documents: left of them where chunks collapsed; None = none did.
            size: of the index, None where it is not known.
        """
        limit = k if size is None else min(k, size)
        left = hits if documents is None else documents
        self.searches += 1
        self._short += query.filter is None and hits < limit
        self._collapsed += left < min(hits, limit)
        self._most_hits = max(self._most_hits, min(hits, k))
        fewest = hits if self._fewest_hits is None else self._fewest_hits
        self._fewest_hits = min(fewest, hits)
        self._most_asked = max(self._most_asked, k)

    def warnings(self) -> list[str]:
        """Says when every search found nothing, or got fewer hits than asked for; as a note where
        not all got the same number, for who returns what matches alone has no limit."""
        if self.searches and not self._most_hits:
            text = f"every search found nothing: {self._nothing}"
            return [Notice(text, Code.NOTHING_FOUND)]
        if self.searches and self._short == self.searches:
            if self._fewest_hits != self._most_hits:
                each = f"{self._fewest_hits} to {self._most_hits} of {self._most_asked}"
                text = (
                    f"every search got fewer hits than asked for ({each}): what matches alone may"
                )
                return [Notice(f"{text} come back; otherwise {self._told_short}", Code.NOTE)]
            most = f"at most {self._most_hits} of {self._most_asked}"
            text = f"every search got fewer hits than asked for ({most}): {self._told_short}"
            return [Notice(text, Code.FEWER)]
        return []

    def facts(self) -> list[str]:
        """Says how many lists are shorter because chunks of one document collapsed."""
        if not self._collapsed:
            return []
        short = f"{self._collapsed:,} of {self.searches:,} lists are shorter than asked for"
        return [f"{short}, because chunks of one document count once"]


def declared_size(declared: Mapping[str, Any]) -> int | None:
    """The number of documents that ``external`` declares, None where it says none."""
    return int(declared["count"]) if "count" in declared else None
