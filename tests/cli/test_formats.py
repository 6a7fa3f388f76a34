"""Every command prints in every format, and nothing but the result on stdout."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

import pytest

from retrieval_bench.cli.options import FORMATS
from tests.cli.project import Command

QUICK = ("--dataset", "data", "--rounds", "1", "--no-pictures", "--warm-up", "0")
COMMANDS = {
    "list": ("data", "list"),
    "bench": ("bench", "--retriever", "own.yaml", *QUICK),
    "compare": ("compare", "--retrievers", "own.yaml", "bm25", *QUICK, "--slices", "length"),
}


def _json(text: str) -> bool:
    return isinstance(json.loads(text), dict)


def _csv(text: str) -> bool:
    if text.startswith("dataset,system,metric,mean,low,high,n"):  # a tidy one
        return len({len(row) for row in csv.reader(io.StringIO(text))}) == 1
    tables = [list(csv.reader(io.StringIO(part))) for part in text.split("\n\n")]
    return all(
        table[0][0].startswith("# ")
        and len({len(row) for row in table[1:] if not row[0].startswith("# ")}) <= 1
        for table in tables
    )


def _latex(text: str) -> bool:
    return text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0


LOOKS_LIKE: dict[str, Callable[[str], bool]] = {
    "table": lambda text: bool(text.strip()) and not re.search(r" $|^[{\\|#]", text, re.MULTILINE),
    "json": _json,
    "markdown": lambda text: text.startswith("**") and "\n|---" in text,
    "latex": _latex,
    "csv": _csv,
}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "command", ["list", pytest.param("bench", marks=pytest.mark.slow), "compare"]
)
@pytest.mark.usefixtures("project")
def test_every_command_speaks_every_format(command: str, format_: str, run: Command) -> None:
    assert run(*COMMANDS[command], "--format", format_) == 0
    assert LOOKS_LIKE[format_](run.out)
    if format_ != "json":
        assert "length" in run.out or command != "compare"
