"""What the kernel still knows of its capabilities: arrows that may only become fewer.

Each capability is to be a package beside the kernel (:mod:`retrieval_bench.capabilities`). The
modules of those that are not yet are listed here, and the imports that tie the kernel to them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.builders.imports import CORE, graph

PLANNED = {
    "explain": "comparison/explain/ reports/tables/understand/slice",
}
"""Capability -> its modules, or folders of them; the longest name that fits counts.

What the kernel has for good though one may think of a capability: pictures of a run's own times
(``of_runs``, ``rounds``, ``queries``, ``stages``), which each run's folder gets; and the records of
what parts buy (``comparison/ledger``), for the document of ``bench`` has them and its schema is
made from types. What they say is worked out, put into words and drawn by ``explain``.
"""

ARROWS = """
cli/measure/compare -> comparison/explain/groupings
cli/measure/compare -> comparison/explain/slices
cli/measure/compare -> reports/tables/understand/slice
comparison/compared -> comparison/explain/slices
reports/frames -> comparison/explain/slices
reports/tables/understand/comparison -> comparison/explain/slices
reports/tables/understand/comparison -> reports/tables/understand/slice
"""
"""Modules of the kernel, and modules of capabilities that they import."""

REACHED = {"cli/measure/bench": (178, 33_600), "cli/measure/compare": (180, 33_950)}
"""Modules that a command reaches by imports, and their lines: at most so many."""


def _capability(module: str) -> str:
    """The capability that a module belongs to, "kernel" for none."""
    if module.startswith("retrieval_bench_"):
        return module.partition("/")[0]
    fitting = [
        (len(place), name)
        for name, places in PLANNED.items()
        for place in places.split()
        if module == place or (place.endswith("/") and module.startswith(place))
    ]
    return max(fitting)[1] if fitting else "kernel"


def _arrows() -> dict[str, set[str]]:
    return {
        module: away
        for module, others in graph().items()
        if _capability(module) == "kernel"
        and (away := {other for other in others if _capability(other) != "kernel"})
    }


def _listed() -> dict[str, set[str]]:
    listed: dict[str, set[str]] = {}
    for line in ARROWS.strip().splitlines():
        module, _, other = line.partition(" -> ")
        listed.setdefault(module, set()).add(other)
    return listed


def _beyond(arrows: Mapping[str, set[str]], others: Mapping[str, set[str]]) -> dict[str, set[str]]:
    left = {module: away - others.get(module, set()) for module, away in arrows.items()}
    return {module: away for module, away in left.items() if away}


def test_the_kernel_imports_no_more_of_its_capabilities_than_is_listed() -> None:
    assert not _beyond(_arrows(), _listed())


def test_an_arrow_that_is_gone_is_listed_no_more() -> None:
    assert not _beyond(_listed(), _arrows())


def test_every_module_that_is_planned_is_there() -> None:
    places = [place for named in PLANNED.values() for place in named.split()]
    modules = graph()
    assert not [
        place
        for place in places
        if not any(module == place or module.startswith(place) for module in modules)
    ]


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
