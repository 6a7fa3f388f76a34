"""What a run would do, as ``--dry-run`` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented


@dataclass(frozen=True, slots=True)
class Trial:
    """One call of one retriever.

    Attributes:
        retriever: its name.
        documents: that it indexed for it; None where it holds its own.
        hits: of the answer.
    """

    retriever: str
    documents: int | None
    hits: int


@dataclass(frozen=True, slots=True)
class PlannedRun(Documented):
    """Plan of one experiment.

    Attributes:
        retrievers: their names.
        dataset: its name.
        queries: that would be asked.
        rounds: of a launch.
        measured_calls: of a retriever in a launch.
        launches: processes.
        warm_up_calls_at_least, warm_up_calls_at_most: of the warm-up; None = as many calls as its
            seconds allow.
        warm_up_seconds_at_most: after which it ends.
        calls_at_least, calls_at_most: of all retrievers and launches; None likewise.
        warnings: of the data.
        tried: each retriever that was asked one query.
        not_checked: what only a real run shows.
    """

    retrievers: Sequence[str]
    dataset: str
    queries: int
    rounds: int
    measured_calls: int
    launches: int
    warm_up_calls_at_least: int
    warm_up_calls_at_most: int | None
    warm_up_seconds_at_most: float
    calls_at_least: int
    calls_at_most: int | None
    warnings: Sequence[str]
    tried: Sequence[Trial] = ()
    not_checked: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plans(Documented):
    """Plans of runs on several datasets.

    Attributes:
        experiments: one for each dataset.
    """

    experiments: Sequence[PlannedRun]
