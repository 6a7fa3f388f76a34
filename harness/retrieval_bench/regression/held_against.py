"""Subjects that are held against a baseline, for documents."""

from __future__ import annotations

from typing import TypedDict


class RevisionFacts(TypedDict):
    """A revision of the code.

    Attributes:
        commit: its hash.
        dirty: whether files were new or changed.
    """

    commit: str
    dirty: bool


class SubjectDataset(TypedDict):
    """A dataset, with the number of queries that count in means."""

    name: str
    split: str
    fingerprint: str
    n_queries: int


class Subject(TypedDict):
    """Subject of a measurement.

    Attributes:
        retriever: its name.
        dataset: on which.
        k: hits asked for.
        machine: a fingerprint of what changes times.
        revision: of the code; null where git knows no commit.
    """

    retriever: str
    dataset: SubjectDataset
    k: int
    machine: str
    revision: RevisionFacts | None
