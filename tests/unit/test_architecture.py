"""The import rule of the house: data flows one way, and the core loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FLOORS = [
    {"errors", "figures", "progress", "types", "__init__", "scripts", "cache", "git"},
    {"secrets", "foreign", "retriever", "ranking", "stats", "percentiles", "latency", "stages"},
    {"plugins", "units"},
    {"config"},
    {"data", "metrics", "measure"},
    {"evaluation", "trec"},
    {
        "scoring",
        "reader",
        "outcomes",
        "run",
        "summary",
        "ceiling",
        "query_groups",
        "query_details",
        "query_slicers",
    },
    {"power"},
    {"paired"},
    {"answered", "comparability"},
    {"verdicts"},
    {"call_pairs", "latency_ratio"},
    {"diff"},
    {"run_files", "records", "comparison", "recommendation", "run_data"},
    {"audit", "scorecard", "slices"},
    {"experiment", "testing"},
    {"preparation"},
    {"tuning", "reproduce"},
    {"standalone", "result_file", "reading", "submission_scores", "submission"},
    {"question_answering"},
    {"launches", "launch_merge", "launch_worker", "cold", "cold_record", "cold_worker"},
    {"duet"},
    {"history"},
    {"regress"},
    {"sessions", "report"},
    {"api"},
    {"cli"},
    {"__main__"},
]
"""A module may import from its own floor and from the floors above it in this list."""

FORBIDDEN = [
    ("measure", "metrics", "the runner knows no metric"),
    ("evaluation", "retriever", "evaluate knows no retriever"),
    ("comparison", "records", "compare knows no file"),
    ("metrics", "data", "metrics know no dataset"),
    ("data", "metrics", "data knows no metric"),
    ("data", "measure", "data knows no runner"),
    ("scoring", "run_files", "the rules of a convention know no file"),
    ("report", "experiment", "the report starts no run"),
    ("experiment", "report", "a run prints nothing"),
]

HEAVY = {"torch", "faiss", "langchain", "langchain_core", "sentence_transformers", "matplotlib"}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def _graph() -> dict[str, set[str]]:
    """Unit of the core (module or folder) -> units that it imports."""
    graph: dict[str, set[str]] = {}
    for path in (ROOT / "harness").rglob("*.py"):
        unit = path.relative_to(ROOT / "harness").parts[0].removesuffix(".py")
        imported = {n.split(".")[1] for n in _imports(path) if n.startswith("harness.")}
        graph.setdefault(unit, set()).update(imported - {unit})
    return graph


def _floor(unit: str) -> int:
    return next(i for i, floor in enumerate(FLOORS) if unit in floor)


def test_every_unit_has_a_floor() -> None:
    assert set(_graph()) <= set().union(*FLOORS)


@pytest.mark.parametrize("unit", sorted(set().union(*FLOORS) - {"__init__"}))
def test_no_arrow_runs_back(unit: str) -> None:
    units = set(_graph())
    back = {
        other
        for other in _graph().get(unit, set()) & units
        if other != "__init__" and _floor(other) > _floor(unit)
    }
    assert not back


@pytest.mark.parametrize(("unit", "other", "rule"), FORBIDDEN)
def test_separate_concerns_stay_apart(unit: str, other: str, rule: str) -> None:
    assert other not in _graph()[unit], rule


def test_the_core_imports_no_adapter() -> None:
    for path in (ROOT / "harness").rglob("*.py"):
        assert not {n for n in _imports(path) if n.split(".")[0] == "retrievers"}, path


def test_importing_the_core_loads_nothing_heavy() -> None:
    code = (
        "import sys, harness, harness.api, harness.cli, harness.experiment\n"
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
    assert "retrievers" not in done.stdout.split()


def test_the_command_line_parses_without_numpy() -> None:
    code = (
        "import sys, harness.cli\n"
        "harness.cli.parser().format_help()\n"
        "print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_only_the_command_line_prints_or_exits() -> None:
    for path in [*(ROOT / "harness").rglob("*.py"), *(ROOT / "retrievers").rglob("*.py")]:
        if path.parent.name == "cli" or path.name == "__main__.py":
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"print", "exit"}, f"{path}:{node.lineno}"
