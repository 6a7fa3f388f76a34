"""What the documents of a comparison have of runs that are judged otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.core.as_json.document import Documented, OnDataset
from retrieval_bench_modes.likeness import Likeness
from retrieval_bench_modes.unjudged import Unjudged
from retrieval_bench_modes.until_decided import Asked, UntilDecided


@dataclass(frozen=True, slots=True)
class Modes(Documented):
    """Keys beside those of a comparison.

    Attributes:
        comparison: of runs.
    """

    KEYS = "until_decided? likeness?"

    comparison: Comparison

    @property
    def until_decided(self) -> list[OnDataset[Asked]]:
        """The questions asked of systems that were measured until decided, for each such
        dataset."""
        groups = [group for group in self.comparison.groups if isinstance(group, UntilDecided)]
        return [OnDataset(group.dataset, group.asked) for group in groups]

    @property
    def likeness(self) -> list[OnDataset[Likeness]]:
        """The likeness of the systems' answers, for each dataset where nothing is judged."""
        groups = [group for group in self.comparison.groups if isinstance(group, Unjudged)]
        return [OnDataset(group.dataset, group.likeness) for group in groups]
