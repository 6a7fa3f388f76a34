"""What people read stays short: the lines of the READMEs."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

WIDTH = 120
LINES = {"README.md": 130, "README.ko.md": 140}
"""At most so many lines; the Korean one has a section more, on Korean data."""


@pytest.mark.parametrize("name", LINES)
def test_a_readme_is_short_and_fits_a_screen(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES[name]
    assert [line for line in lines if len(line) > WIDTH] == []
