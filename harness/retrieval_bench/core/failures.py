"""Calls that fail: those that may work when they are made again, and all others."""

from __future__ import annotations

STATUS_OF_MANY = 429
"""HTTP: too many requests."""


class CallError(Exception):
    """A call that a service did not answer as it should: a fact of this query, not a fault of the
    harness. Its text stands in the status of the query."""


class TransientError(CallError):
    """One that may work when it is made again: 429, 5xx, a lost connection, a time-out.

    Args:
        text: what happened.
        retry_after: seconds that the service asks to wait; None where it does not say.
    """

    def __init__(self, text: str, *, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after
