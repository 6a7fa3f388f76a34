"""Which cases of a test wait for `make test-all`."""

from __future__ import annotations

from typing import Any

import pytest


def also(*cases: Any) -> list[Any]:
    """Cases that decide again what those beside them have decided: they are `long`.

    Args:
        cases: each the value of the one parameter, or a tuple of the values of several.
    """
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for case in cases
    ]
