"""The guide: its pages, by the name of the file alone, in whichever folder they are."""

from __future__ import annotations

from pathlib import Path

GUIDE = Path(__file__).parents[2] / "harness" / "docs"
DOORS = ("learn", "do", "look-up", "understand")
"""The folders in which readers look, in that order; records of decisions are beside them."""


def guide_pages() -> list[Path]:
    """Every page of the guide, without records of decisions."""
    behind = (page for door in DOORS for page in sorted((GUIDE / door).glob("*.md")))
    return [GUIDE / "README.md", *behind]


def guide_page(name: str) -> str:
    """The text of one page."""
    return guide_file(name).read_text(encoding="utf-8")


def guide_file(name: str) -> Path:
    """Where the one file of that name is."""
    (path,) = (GUIDE / door / name for door in DOORS if (GUIDE / door / name).is_file())
    return path
