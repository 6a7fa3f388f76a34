"""The guide's table of cheats is what ``score audit --scorer`` finds in the tools."""

from __future__ import annotations

import re

import pytest

from tests.builders.guide import guide_page
from tests.oracle.tool_scorers import SCORERS, row

PAGE = guide_page("tools.md")
SECTION = PAGE.partition("\n## Inputs that must not win\n")[2].partition("\n## ")[0]

pytestmark = [pytest.mark.slow, pytest.mark.dense, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs(tool[1])) for name, tool in SCORERS.items()],
)
def test_the_row_of_a_tool_is_what_the_audit_finds(name: str) -> None:
    assert row(name) in SECTION.splitlines()


def test_every_tool_has_a_row() -> None:
    assert re.findall(r"^\| ((?:ours|T\d+).*?) \|", SECTION, re.MULTILINE) == list(SCORERS)
    assert {f"T{number}" for number in range(1, 12)} <= {name.split()[0] for name in SCORERS}
