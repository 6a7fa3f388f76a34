"""What several tests build: datasets, runs, retrievers, repositories; a module a subject.

A module is imported by those who need it, so that a test of a table does not load a model.
"""

from typing import TypeVar

T = TypeVar("T")


def some(value: T | None) -> T:
    """Return ``value``, which must be there."""
    assert value is not None
    return value
