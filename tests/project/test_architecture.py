"""The import rule of the house: data flows one way, and the core loads nothing heavy."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from retrieval_bench.capabilities import Capability, named, own_packages
from tests.builders.imports import CAPABILITIES, CORE, graph, path_of, tree
from tests.builders.processes import python

ROOT = Path(__file__).parents[2]
README = ROOT / "harness" / "README.md"

FLOORS: dict[str, int] = {
    "core": 0,
    "data": 2, "stats": 2,
    "measure": 3, "metrics": 3,
    "runs": 4,
    "experiment": 5, "comparison": 5,
    "reports": 8,
    "capabilities": 1, "testing": 2,
    "cli": 9, "api": 9,
    "__init__": 10, "__main__": 10,
}  # fmt: skip
"""A package imports from lower floors only; all that is loose in the folder is named, too. Above
the kernel are the packages of capabilities, each above those that it stands on."""


def _floor(package: str) -> int:
    below: Capability = named(f"{package}.capability:CAPABILITY")
    return max(map(_floor, below.stands_on), default=10) + 1


FLOORS |= {package: _floor(package) for package in own_packages()}

FORBIDDEN = [
    ("measure", "metrics", "the runner knows no metric"),
    ("runs/evaluation", "core/retriever", "evaluate knows no retriever"),
    ("comparison", "runs/records", "compare knows no file"),
    ("data", "metrics", "data knows no metric"),
    (
        "retrieval_bench_score/scoring",
        "retrieval_bench_score/runs",
        "the rules of a convention know no file",
    ),
    ("reports", "experiment/experiment", "the report starts no run"),
]

HEAVY = {"torch", "faiss", "langchain", "langchain_core", "sentence_transformers", "vl_convert"}
ADAPTERS = ROOT / "retrievers" / "retrieval_bench_retrievers"
ROOMS = {
    "encoders": 1, "text": 1, "functions": 1, "trec_run": 1, "index_files": 1,
    "dense": 2, "lexical": 2, "hybrid": 2, "http": 2, "sql": 2, "libraries": 2, "qa_reader": 2,
    "rerank": 3, "engines": 3, "programs": 3,
    "pipeline": 4, "mcp": 4,
}  # fmt: skip
"""Likewise of the retrievers."""


@cache
def _adapters() -> dict[str, set[str]]:
    """The same of the modules of retrievers."""
    found: dict[str, set[str]] = {}
    for path in ADAPTERS.rglob("*.py"):
        named: set[str] = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(ADAPTERS.name):
                base = str(node.module).split(".")[1:]
                for alias in node.names:
                    module = "/".join([*base, alias.name])
                    there = (ADAPTERS / module).with_suffix(".py").is_file()
                    named.add(module if there else "/".join(base))
        found[path.relative_to(ADAPTERS).with_suffix("").as_posix()] = named
    return found


def _unit(module: str) -> str:
    return module.partition("/")[0]


@pytest.mark.slow
def test_every_package_has_a_floor_and_nothing_else_is_there() -> None:
    assert {_unit(module) for module in graph()} == set(FLOORS)


@pytest.mark.parametrize("unit", sorted(FLOORS))
def test_no_arrow_runs_back(unit: str) -> None:
    back = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in others
        if _unit(module) == unit != _unit(other) and FLOORS[_unit(other)] >= FLOORS[unit]
    ]
    assert not back


@pytest.mark.parametrize("unit", sorted(FLOORS))
def test_no_arrow_runs_in_a_circle_within_a_package(unit: str) -> None:
    inside = {
        module: {other for other in others if _unit(other) == unit and other != module}
        for module, others in graph().items()
        if _unit(module) == unit
    }
    order = TopologicalSorter(inside)
    order.prepare()  # raises CycleError, which names the modules


@pytest.mark.slow
def test_every_room_of_retrievers_has_a_floor_and_no_arrow_runs_back() -> None:
    arrows = _adapters()
    assert {_unit(module) for module in arrows} - {"__init__"} == set(ROOMS)
    back = [
        f"{module} imports {other}"
        for module, others in arrows.items()
        for other in others
        if _unit(module) != _unit(other) and ROOMS[_unit(other)] >= ROOMS[_unit(module)]
    ]
    assert not back


def test_no_arrow_runs_in_a_circle_among_retrievers() -> None:
    order = TopologicalSorter(_adapters())
    order.prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize(("unit", "other", "rule"), FORBIDDEN)
def test_separate_concerns_stay_apart(unit: str, other: str, rule: str) -> None:
    own = [module for module in graph() if f"{module}/".startswith(f"{unit}/")]
    assert own
    for module in own:
        assert not [one for one in graph()[module] if f"{one}/".startswith(f"{other}/")], rule


def _rooms(root: Path) -> dict[Path, list[Path]]:
    """Folders with modules -> their modules."""
    folders = sorted({path.parent for path in root.rglob("*.py")})
    return {
        folder: [p for p in folder.glob("*.py") if not p.stem.startswith("__")]
        for folder in folders
    }


def test_no_arrow_runs_in_a_circle_between_rooms() -> None:
    roots = [(graph(), folder, CORE.parent) for folder in CAPABILITIES]
    for arrows, root, base in ((graph(), CORE, CORE), (_adapters(), ADAPTERS, ADAPTERS), *roots):
        for folder in _rooms(root):
            inside = f"{folder.relative_to(base).as_posix()}/".removeprefix("./")
            between: dict[str, set[str]] = {}
            for module, others in arrows.items():
                if module.startswith(inside):
                    own = _unit(module.removeprefix(inside))
                    used = {_unit(o.removeprefix(inside)) for o in others if o.startswith(inside)}
                    between.setdefault(own, set()).update(used - {own})
            order = TopologicalSorter(between)
            order.prepare()  # raises CycleError, which names the rooms


def test_no_room_is_crowded() -> None:
    """A list of files is short enough to be read."""
    roots = (CORE, ADAPTERS, *CAPABILITIES)
    rooms = {folder: inside for root in roots for folder, inside in _rooms(root).items()}
    crowded = [folder.name for folder, inside in rooms.items() if len(inside) > 16]
    assert crowded == []


def test_no_name_stands_twice_but_those_of_commands() -> None:
    """A command, its table, its picture and what it does bear one name; a file that is looked up by
    its name is found."""
    subjects = ("cli/", "reports/tables/")
    names = [
        path.stem
        for path in CORE.rglob("*.py")
        if not path.relative_to(CORE).as_posix().startswith(subjects)
        and not path.stem.startswith("__")
    ]
    assert [name for name, n in Counter(names).items() if n > 1] == []


def test_modules_can_be_read_in_one_sitting() -> None:
    modules = [*CORE.parent.rglob("*.py"), *ADAPTERS.rglob("*.py")]
    assert not [p for p in modules if len(p.read_text("utf-8").splitlines()) >= 500]


def test_the_readme_of_retrievers_lists_every_module() -> None:
    """Each with the sentence that its own docstring begins with; ``UPDATE_GOLDEN=1`` writes them,
    a new room behind the others."""
    readme = ROOT / "retrievers" / "README.md"
    head, mark, old = readme.read_text("utf-8").partition("| room, module | what |\n|---|---|\n")
    listed = re.findall(r"^\| `(\w+)", old, re.MULTILINE)
    rest = re.sub(r"\A(\|.*\n)+", "", old)
    rows = {}
    for path in ADAPTERS.rglob("*.py"):
        name = path.relative_to(ADAPTERS).as_posix().removesuffix("__init__.py")
        first = str(ast.get_docstring(tree(path))).partition("\n\n")[0].replace("\n", " ")
        room = re.split(r"\W", name)[0]
        at = listed.index(room) if room in listed else len(listed)
        rows[at, name] = f"| `{name}` | {first} |\n" if name else ""
    written = head + mark + "".join(rows[key] for key in sorted(rows)) + rest
    if os.environ.get("UPDATE_GOLDEN"):
        readme.write_text(written, "utf-8")
    assert readme.read_text("utf-8") == written


def _first_line(file: Path) -> str:
    return str(ast.get_docstring(tree(file))).partition("\n")[0]


def _house() -> dict[str, list[str]]:
    """Head of a table of the README -> its rows, each with what its own docstring begins with."""
    floors = []
    for name, floor in sorted(FLOORS.items(), key=lambda item: (-item[1], item[0])):
        folder = next((base / name for base in (CORE, CORE.parent) if (base / name).is_dir()), None)
        what = _first_line(folder / "__init__.py" if folder else CORE / f"{name}.py")
        floors.append(f"| {floor} | `{name}{'/' if folder else ''}` | {what} |")
    rooms = [folder for folder in _rooms(CORE) if len(folder.relative_to(CORE).parts) > 1]
    rooms += [folder for root in CAPABILITIES for folder in _rooms(root) if folder != root]
    files = [folder / "__init__.py" for folder in rooms]
    return {
        "| floor | where | what it is for |\n|---:|---|---|\n": floors,
        "| room | what it is for |\n|---|---|\n": [
            f"| `{path_of(file).removesuffix('__init__')}` | {_first_line(file)} |"
            for file in files
        ],
    }


def test_the_readme_lists_every_package_and_room() -> None:
    """``UPDATE_GOLDEN=1`` writes the tables."""
    page = written = README.read_text("utf-8")
    for head, rows in _house().items():
        before, _, rest = written.partition(head)
        after = re.sub(r"\A(\|.*\n)+", "", rest)
        written = "\n".join([f"{before}{head}{rows[0]}", *rows[1:], after])
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(written, "utf-8")
    assert page == written or os.environ.get("UPDATE_GOLDEN")


def test_the_core_imports_no_adapter() -> None:
    for path in CORE.parent.rglob("*.py"):
        assert f"import {ADAPTERS.name}" not in path.read_text(encoding="utf-8"), path
        assert f"from {ADAPTERS.name}" not in path.read_text(encoding="utf-8"), path


@pytest.mark.slow
def test_importing_the_core_loads_nothing_heavy() -> None:
    code = (
        "import sys, retrieval_bench.api.measuring, retrieval_bench_explain.api\n"
        "import retrieval_bench.cli, retrieval_bench.experiment.experiment\n"
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    assert not {*HEAVY, ADAPTERS.name} & set(python(code).split())


def test_naming_a_function_of_python_loads_next_to_nothing() -> None:
    code = (
        "import sys\n"
        "from retrieval_bench import bench, evaluate\n"
        "own = [n for n in sys.modules if n[:16] == 'retrieval_bench.' and 'capabil' not in n]\n"
        "print('numpy' in sys.modules, 'pydantic' in sys.modules, len(own) < 15)"
    )
    assert python(code) == "False False True"


def test_the_command_line_parses_without_numpy() -> None:
    code = (
        "import sys, retrieval_bench.cli\n"
        "retrieval_bench.cli.parser().format_help()\n"
        "print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    )
    assert python(code) == "False False"


@pytest.mark.slow
def test_only_the_command_line_prints_or_exits() -> None:
    for path in [*CORE.parent.rglob("*.py"), *ADAPTERS.rglob("*.py")]:
        if CORE / "cli" in path.parents or path.name == "__main__.py":
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"print", "exit"}, f"{path}:{node.lineno}"


@pytest.mark.slow
def test_no_table_has_a_row_twice() -> None:
    """Python keeps the last one, without a word."""
    for path in [*CORE.parent.rglob("*.py"), *ADAPTERS.rglob("*.py")]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Dict):
                rows = Counter(ast.unparse(key) for key in node.keys if key is not None)
                assert not [row for row, n in rows.items() if n > 1], f"{path}:{node.lineno}"


def test_no_test_imports_another_test() -> None:
    """Shared builders are in tests/builders."""
    for path in (ROOT / "tests").rglob("*.py"):
        found = re.findall(r"^ *from tests\.\S*\btest_\w+", path.read_text("utf-8"), re.MULTILINE)
        assert not found, path


def test_s4_percentiles_have_one_home() -> None:
    """S4: numpy's are interpolated in nine ways, and say nothing of samples that are too small."""
    for path in [*CORE.parent.rglob("*.py"), *ADAPTERS.rglob("*.py")]:
        if path != CORE / "stats" / "percentiles.py":
            for line in path.read_text("utf-8").splitlines():
                assert not re.search(r"\b(np|numpy|statistics)\.(nan)?(percentile|quantile)", line)
