"""What a launch and the process that started it tell each other."""

from __future__ import annotations

import struct
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core import errors, secrets
from retrieval_bench.core.errors import DataError, HarnessError

BOARD = struct.Struct("=4q")
"""The shared file: number of the phase, signs of life in it, calls done, calls planned."""


def described(problem: HarnessError) -> dict[str, Any]:
    """An error in words that can be sent; ``raised`` says where it came from."""
    kind = next(base for base in type(problem).__mro__ if base.__module__ == errors.__name__)
    parts = (problem.given, problem.where, problem.accepted, problem.fix)
    return {
        "kind": kind.__name__,
        "parts": [secrets.redact(part) for part in parts],
        "faults": secrets.redact(list(problem.faults)) if isinstance(problem, DataError) else [],
        "raised": secrets.redact("".join(traceback.format_exception(problem))),
    }


def rebuilt(description: Mapping[str, Any], place: Sequence[str] = ()) -> HarnessError:
    """The error that :func:`described` put in words.

    Args:
        place: words that are added to where it came up.
    """
    given, where, accepted, fix = description["parts"]
    known: dict[str, Any] = {
        "where": "; ".join(filter(None, [where, *place])),
        "accepted": accepted,
        "fix": fix,
    }
    kind = getattr(errors, description["kind"])
    if kind is DataError:
        known["faults"] = description["faults"]
    problem: HarnessError = kind(given, **known)
    problem.__cause__ = RuntimeError(description["raised"])
    return problem
