"""Heavy or optional libraries that tests need: loaded by the first test that uses them.

An import at the head of a test file is paid by every process that collects it, also where the
tests of the file are not run, and stays in memory for all tests that follow.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any


class Lazily:
    """Stand for a module until a test uses it; tests of optional ones carry the marker ``needs``.

    Args:
        module: dotted name.
        needs: further modules to load before it.
    """

    def __init__(self, module: str, *, needs: tuple[str, ...] = ()) -> None:
        self._modules = (*needs, module)
        self._loaded: Any = None

    def __getattr__(self, name: str) -> Any:
        if "PYTEST_CURRENT_TEST" not in os.environ:  # pytest looks at every name that it collects
            raise AttributeError(name)
        if self._loaded is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # theirs
                self._loaded = [import_module(module) for module in self._modules][-1]
        return getattr(self._loaded, name)
