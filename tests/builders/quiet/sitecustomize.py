"""A quiet machine for tests: no warning says what else its processor does, or what else runs inside
of a call, such as coverage of the tests.

With this folder in ``PYTHONPATH`` that holds for a process and those that it starts; the fixture
``_quiet_machine`` calls :func:`quieten` in the process of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any


def quieten(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let each check of the machine, a function that gives a sentence or None, give None, and let
    there be nothing to observe a call."""
    try:
        from retrieval_bench.measure.machine import disturbances
    except ImportError:  # another Python, or a revision that has no such module
        return
    for name, check in list(vars(disturbances).items()):
        sentence = isinstance(check, FunctionType) and check.__annotations__.get("return")
        if sentence == "str | None":
            replace(disturbances, name, _says_nothing)
    with suppress(ImportError):
        from retrieval_bench.measure.machine import observers

        replace(observers, "OBSERVERS", ())


def _says_nothing(*_facts: object) -> None:
    return None


if __name__ == "sitecustomize" and sys.flags.no_site == 0:
    quieten()
