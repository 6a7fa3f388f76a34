"""Who imports whom, in the kernel and in the capabilities beside it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

CORE = Path(__file__).parents[2] / "harness" / "retrieval_bench"
CAPABILITIES = sorted(CORE.parent.glob("retrieval_bench_*"))


def tree(path: Path) -> ast.Module:
    """Parse a file; what is kept of it is small, for a tree is many objects for the collector."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _module(name: str) -> str | None:
    """``a.b.c`` as the path of a module of ours, see :func:`graph`; None for anything else."""
    path = CORE.parent.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if name.startswith(CORE.name) and file.is_file():
            return path_of(file)
    return None


def path_of(file: Path) -> str:
    """A file as the path without suffix below the kernel, or below ``harness`` in a capability."""
    base = CORE if file.is_relative_to(CORE) else CORE.parent
    return file.relative_to(base).with_suffix("").as_posix()


@cache
def _imports(path: Path) -> set[str]:
    """The modules of ours that a file imports, wherever in it."""
    named: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            deeper = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= {name for name in deeper if _module(name)} or {node.module}
    return {found for name in named if (found := _module(name))}


@cache
def graph() -> dict[str, set[str]]:
    """Module, as a path without suffix -> modules that it imports."""
    files = (path for folder in (CORE, *CAPABILITIES) for path in folder.rglob("*.py"))
    return {path_of(path): _imports(path) for path in files}
