"""Types of cold starts in JSON."""

from __future__ import annotations

from typing import Literal, TypedDict


class Spread(TypedDict):
    """A figure of several fresh processes; null where none has it.

    Attributes:
        first: of the first process, which may have found files that were not in memory yet.
        median, min, max: of the others.
        values: of all, in their order.
    """

    first: float | None
    median: float | None
    min: float | None
    max: float | None
    values: list[float | None]


class StepSpread(Spread):
    """Milliseconds of a step.

    Attributes:
        reason: why it has no time; null where it has.
    """

    reason: str | None


class ColdDataset(TypedDict):
    """A dataset, with the number of queries that were asked."""

    name: str
    split: str
    fingerprint: str
    n_documents: int
    n_queries: int


class ColdIndex(TypedDict):
    """Origin of the index.

    Attributes:
        how: each process built it, or they loaded it.
        build_ms: of the process that built the index which the others loaded.
        documents_per_second: of building it, without importing libraries.
        disk_bytes: of its files.
    """

    how: str
    build_ms: float | None
    documents_per_second: float | None
    disk_bytes: int | None


class ColdDocument(TypedDict):
    """Cold starts of one retriever, as JSON has them.

    Attributes:
        retriever, dataset, k, threads: what was started, for what.
        status: "complete" or "partial".
        problem: why there are fewer processes than planned; null where there are not.
        planned, processes: how many were asked for, and how many finished.
        steps_ms: each step of a start.
        imports_ms: of these, importing libraries.
        until_first_answer_ms: from the start of a process to its first answer.
        same_query_warm_ms: the same query later.
        steady: whether times stopped to fall, process by process.
        calls_until_steady, seconds_until_steady: until then.
        failed_calls: of all processes.
        index: how it came to be.
        peak_rss_bytes: memory by the moment at which it was looked at.
        health: what the retriever said of itself.
        warnings: of thread limits, and of a retriever that could not be closed.
    """

    retriever: str
    dataset: ColdDataset
    k: int
    threads: int
    status: Literal["complete", "partial"]
    problem: str | None
    planned: int
    processes: int
    steps_ms: dict[str, StepSpread]
    imports_ms: dict[str, Spread]
    until_first_answer_ms: Spread
    same_query_warm_ms: Spread
    steady: list[bool]
    calls_until_steady: Spread
    seconds_until_steady: Spread
    failed_calls: int
    index: ColdIndex
    peak_rss_bytes: dict[str, Spread]
    health: list[str]
    warnings: list[str]
