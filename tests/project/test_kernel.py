"""What the kernel knows of capabilities: nothing; and how much its commands reach."""

from __future__ import annotations

import re

import pytest

from retrieval_bench.capabilities import own_packages
from tests.builders.imports import CORE, graph

REACHED = {"cli/measure/bench": (180, 30_000), "cli/measure/compare": (200, 33_000)}
"""Modules that a command reaches by imports, and their lines: at most so many."""


def test_the_kernel_imports_no_capability() -> None:
    """Wherever in a module, and by no string either: places stand in packages alone."""
    beside = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in others
        if other.startswith("retrieval_bench_") and not module.startswith("retrieval_bench_")
    ]
    place = re.compile(f"""["']({"|".join(own_packages())})""")
    named = [path.name for path in CORE.rglob("*.py") if place.search(path.read_text("utf-8"))]
    assert (beside, named) == ([], [])


@pytest.mark.parametrize("command", REACHED)
def test_what_a_command_reaches_does_not_grow(command: str) -> None:
    modules = graph()
    reached, todo = set[str](), [command]
    while todo:
        module = todo.pop()
        if module not in reached:
            reached.add(module)
            todo += modules[module]
    lines = sum((CORE / f"{module}.py").read_bytes().count(b"\n") for module in reached)
    most_modules, most_lines = REACHED[command]
    there = f"{len(reached)} modules, {lines:,} lines"
    assert len(reached) <= most_modules, there
    assert lines <= most_lines, there
