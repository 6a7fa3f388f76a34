"""What people read stays short: the lines of the READMEs and the words of the guide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders.guide import GUIDE, guide_pages

ROOT = Path(__file__).parents[2]

WIDTH = 120
LINES = {"README.md": 133, "README.ko.md": 142}
"""At most so many lines; the Korean one has a section more, on Korean data."""

MADE = ("json.md", "options.md", "python.md", "tokens.md")
BY_HAND = {
    "the guide": 33_000,
    "approximate indexes, engines, shards and size": 2_420 + 780,
    "what five engines take under load": 420,
    "truth by rule": 1_120,
    "programs in any language": 1_330,
    "tests of pytest": 110,
    "tools of MCP servers": 980,
    "judges with a warranty": 1_480,
    "trackers": 480,
    "CI in six lines, and whether a change is an improvement": 160,
    "chunks and spans": 1_320,
    "answers for programs": 330,
    "schemas of YAML": 220,
    "writes of every target, legs, blocks, kills, gates and four engines": 560,
}
"""Words that came one after the other, in the order in which they did."""
WORDS = {"made from the code": 15_200, "written by hand": sum(BY_HAND.values())}
"""At most so many in the guide, without records of decisions."""


@pytest.mark.parametrize("name", LINES)
def test_a_readme_is_short_and_fits_a_screen(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES[name]
    assert [line for line in lines if len(line) > WIDTH] == []


def test_the_guide_has_no_more_words_than_it_may() -> None:
    counted = dict.fromkeys(WORDS, 0)
    for page in guide_pages():
        how = "made from the code" if page.name in MADE else "written by hand"
        counted[how] += _words(page.read_text(encoding="utf-8"))
    over = {how: f"{n:,} words" for how, n in counted.items() if n > WORDS[how]}
    assert not over, f"{over}; at most {WORDS}: say once what is said twice"


def _words(text: str) -> int:
    """Whatever has a letter or a digit, between blanks: also in tables, code and samples."""
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def test_words_are_counted_and_marks_are_not() -> None:
    assert _words("| `--k` | 10 | hits per query |\n|---|---:|\n") == 5


def test_every_page_is_behind_a_door() -> None:
    assert {path.name for path in GUIDE.glob("*.md")} == {"README.md"}
    assert len(guide_pages()) == len({page.name for page in guide_pages()})


def test_the_site_has_every_page_in_its_navigation() -> None:
    site = yaml.safe_load((ROOT / "harness" / "mkdocs.yml").read_text("utf-8"))
    assert {"tables", "fenced_code"} <= set(site["markdown_extensions"])

    def pages(part: Any) -> list[str]:
        if isinstance(part, str):
            return [part]
        inner = part.values() if isinstance(part, dict) else part
        return [page for one in inner for page in pages(one)]

    docs = ROOT / "harness" / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert {page for page in written if not page.startswith("decisions/0")} == set(
        pages(site["nav"])
    )
