"""Queries that are documents themselves, as in ArguAna and Quora, and what becomes of such a hit.

A query that stands in the corpus finds itself first. BEIR leaves such a hit out before it scores
(``ignore_identical_ids``), and so count its published figures; trec_eval keeps it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

SelfHits = Literal["keep", "drop"]
"""What becomes of a hit whose id is that of the query."""

KEEP: SelfHits = "keep"
DROP: SelfHits = "drop"

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Selves:
    """Queries that are documents, or units where judgements are on these.

    Attributes:
        same: queries with a document of their id that is the query: it has the same text, and is
            not judged relevant to it.
        unlike: queries with a document of their id that is not, by accident of equal ids.
        copies: query -> a document of another id that has its very text, and is not relevant to it.
    """

    same: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()
    copies: Mapping[str, str] = field(default_factory=lambda: _NONE)

    @property
    def ids(self) -> frozenset[str]:
        """Queries that have a document of their id."""
        return self.same | self.unlike

    def accidental(self, query_ids: Collection[str]) -> bool:
        """Return whether equal ids mean nothing for most of ``query_ids`` that have such a
        document."""
        same, unlike = (len(some.intersection(query_ids)) for some in (self.same, self.unlike))
        return unlike > same
