"""The guide's ``tools.md`` and its tests say the same: each statement there is a test here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.builders.guide import guide_page

ROOT = Path(__file__).parents[2]
PAGE = guide_page("tools.md")

_STATEMENT = re.compile(r"\[T(\d+)\.(\d+)\]")
_TOOL = re.compile(r"^\| T(\d+) \| .*? \| `([\w.-]+)` ([\w.]+) \| (yes|no) \| `(\w+\.py)` \|", re.M)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _tested() -> dict[tuple[int, int], str]:
    """Number of each statement that a test names, and the file of the test."""
    found: dict[tuple[int, int], str] = {}
    for path in sorted(Path(__file__).parent.glob("test_tools_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                match = re.match(r"test_t(\d+)_(\d+)_[a-z]", node.name)
                assert match, f"{path.name}: {node.name} names no statement"
                number = int(match[1]), int(match[2])
                assert number not in found, f"two tests of T{match[1]}.{match[2]}"
                found[number] = path.name
    return found


def test_every_statement_of_the_page_has_a_test_and_every_test_a_statement() -> None:
    stated = {(int(tool), int(question)) for tool, question in _STATEMENT.findall(PAGE)}
    assert stated == set(_tested())
    assert len(stated) > 100


def test_the_tests_of_a_tool_are_in_the_file_that_the_page_names() -> None:
    files = {int(tool): file for tool, _, _, _, file in _TOOL.findall(PAGE)}
    assert len(files) >= 9
    for (tool, question), file in _tested().items():
        assert files[tool] == file, f"T{tool}.{question}"


def test_each_number_stands_in_the_column_of_its_tool_and_the_row_of_its_question() -> None:
    columns: list[str] = []
    checked = 0
    for line in PAGE.splitlines():
        cells = _cells(line)
        if re.fullmatch(r".*\(T\d+\)", cells[-1]):
            columns = cells
        question = re.match(r"(\d+)\. ", cells[0]) if line.startswith("|") else None
        if not question:
            continue
        assert len(cells) == len(columns), line
        for column, cell in list(zip(columns, cells, strict=True))[2:]:
            tool = column.rpartition("(T")[2].rstrip(")")
            numbers = _STATEMENT.findall(cell)
            assert set(numbers) <= {(tool, question[1])}, cell
            assert numbers or cell in ("–", "as 3"), f"no number: {cell}"
            checked += len(numbers)
    assert checked >= len(_tested())


def test_versions_are_those_that_ci_tests_with() -> None:
    pinned = dict(
        line.replace("_", "-").lower().split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    for _, name, version, in_ci, _ in _TOOL.findall(PAGE):
        known = pinned.get(name.replace("_", "-").lower())
        assert (known is not None) == (in_ci == "yes"), name
        if known:
            assert known == version, f"run the tests of {name} with {known}, then mend the page"
