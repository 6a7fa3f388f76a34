"""The result of ``compare``: figures and answers, with texts where nothing is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrieval_bench.capabilities import keys_added_to
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Dataset
from retrieval_bench.runs.dataset import datasets_of


def with_texts(comparison: Comparison, named: Sequence[str | Dataset] = ()) -> Comparison:
    """``comparison`` with the texts of the queries that differ most, and the titles of what the
    systems find first, on datasets where nothing is judged; as it is where there is none.

    Args:
        named: where some of the datasets are now; the others are looked for where the runs found
            them.

    Raises:
        HarnessError: one of ``named`` is no dataset, or none of those of the runs.
    """
    groups = list(comparison.groups)
    if not comparison.unjudged:
        return comparison
    places = [at for at, group in enumerate(groups) if named or not group.judged]
    sources = datasets_of([groups[at].runs for at in places], named)
    for at, source in zip(places, sources, strict=True):
        groups[at] = groups[at].with_texts(source)
    return replace(comparison, groups=tuple(groups))


@dataclass(frozen=True, slots=True)
class Compared(Documented):
    """Document of ``compare --format json``: figures, answers, and slices where there are some.

    Attributes:
        comparison: of runs.
        records: what packages worked out of it.
    """

    KEYS = "*comparison recommendations=comparison.recommendations +"

    comparison: Comparison
    records: Sequence[Documented] = ()

    def shortened(self) -> Compared:
        """Return the same with the pairs that the short table shows."""
        return replace(self, comparison=replace(self.comparison, whole=False))

    @staticmethod
    def added() -> Sequence[Any]:
        """Records of packages, made of what was compared, whose keys stand in its documents."""
        return keys_added_to("compared")
