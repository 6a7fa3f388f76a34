"""Calls that fail: of which kind, whether they may work when they are made again, and when."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Kind(StrEnum):
    """Cause of a failed call."""

    THROTTLED = "429"
    SERVER = "5xx"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    PARTIAL = "partial"
    """A service answered, and said that its answer is not whole."""
    OTHER = "other"


TRANSIENT = (Kind.THROTTLED, Kind.SERVER, Kind.CONNECTION, Kind.TIMEOUT, Kind.PARTIAL)
"""What may pass. All else would fail again."""

_LOST = (
    *("ConnectionError", "ConnectError", "ProtocolError", "NetworkError"),
    *("ReadError", "WriteError", "RemoteDisconnected"),
)
"""Ends of the names of exceptions of clients whose connection broke."""

_LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 0.5


class CallError(Exception):
    """A call that a service did not answer as it should: a fact of this query, not a fault of the
    harness. Its text stands in the status of the query."""

    kind = Kind.OTHER


class TransientError(CallError):
    """One that may work when it is made again.

    Args:
        text: what happened.
        kind: one of :data:`TRANSIENT`.
        retry_after: seconds that the service asks to wait; None where it does not say.
    """

    def __init__(
        self, text: str, kind: Kind = Kind.SERVER, *, retry_after: float | None = None
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after = retry_after


class Retry(BaseModel):
    """``retry`` of a retriever's config: which failed calls are made again, and how often.

    Attributes:
        when: kinds of failure.
        times: calls that follow a failed one, at most.
        respect_retry_after: wait as long as the service asks for (60 s at most); else, and where it
            does not say, half a second, then twice as long each time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: tuple[Kind, ...] = TRANSIENT
    times: Annotated[int, Field(ge=0, le=20)] = 2
    respect_retry_after: bool = True

    def wait_s(self, failures: int, asked: float | None) -> float:
        """Seconds before the next call, after so many ``failures`` (1 or more) in a row.

        Args:
            asked: what the service asks for.
        """
        if asked is not None and self.respect_retry_after:
            return min(max(asked, 0.0), _LONGEST_WAIT_S)
        return min(_FIRST_WAIT_S * 2.0 ** (failures - 1), _LONGEST_WAIT_S)


def kind_of(problem: BaseException) -> Kind:
    """The kind of a failure, by what adapters say, by the status of an HTTP answer that a client
    library put into its exception, or by the exception and what caused it."""
    for cause in _causes(problem):
        if isinstance(cause, CallError):
            return cause.kind
        status = _status(cause)
        if status is not None:
            served = Kind.SERVER if 500 <= status < 600 else Kind.OTHER
            return Kind.THROTTLED if status == 429 else served
        if isinstance(cause, TimeoutError) or _named(cause, "Timeout", "TimeoutError"):
            return Kind.TIMEOUT
        if isinstance(cause, ConnectionError) or _named(cause, *_LOST):
            return Kind.CONNECTION
    return Kind.OTHER


def retry_after(problem: BaseException) -> float | None:
    """Seconds that the service asks to wait, None where neither the failure nor what caused it says
    so."""
    for cause in _causes(problem):
        asked = getattr(cause, "retry_after", None)
        for holder in (getattr(cause, "response", None), cause):
            headers: Any = getattr(holder, "headers", None)
            if asked is None and hasattr(headers, "get"):
                asked = headers.get("retry-after")
        try:
            seconds = math.nan if asked is None else float(asked)
        except (TypeError, ValueError):  # a date: of somebody else's clock
            continue
        if math.isfinite(seconds):
            return seconds
    return None


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """It, and what caused it, the latest first."""
    seen: set[int] = set()
    cause: BaseException | None = problem
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _status(problem: BaseException) -> int | None:
    """Read the status as the clients of services keep it: on the exception, or on the answer that
    it holds."""
    for holder in (problem, getattr(problem, "response", None)):
        for name in ("status_code", "status", "code"):
            status: Any = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600:
                return status
    return None


def _named(problem: BaseException, *ends: str) -> bool:
    """Return whether a class of ``problem`` has one of these endings: libraries have their own."""
    return any(kind.__name__.endswith(ends) for kind in type(problem).__mro__)
