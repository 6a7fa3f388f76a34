"""Fresh processes: for what can be measured only once, or from nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders.processes import completed

ROOT = Path(__file__).parents[2]


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What ``command`` wrote to stdout; it runs in the root of the project.

    Raises:
        RuntimeError: it did not end with 0; with what it wrote to stderr.
    """
    done = completed(*command, cwd=ROOT, check=False, **environment or {})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def answer(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON that ``python -m tests.benchmarks.MODULE`` prints as its last line."""
    command = [sys.executable, "-m", f"tests.benchmarks.{module}", *arguments]
    found: dict[str, Any] = json.loads(run(command, environment).splitlines()[-1])
    return found
