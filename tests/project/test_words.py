"""Words of our own that nobody else uses stand in nothing that a user reads, nor in the code that
writes it; records of decisions say what was said then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHERE = ("*.md", "harness/**/*.md", "harness/**/*.py", "retrievers/**/*.py", "configs/**/*.yaml",
         "configs/**/*.md", "results/*.md")  # fmt: skip
FILES = sorted(
    path
    for pattern in WHERE
    for path in ROOT.glob(pattern)
    if "decisions" not in path.parts and path.name != "CHANGELOG.md"
)

OURS = {
    "call beside call": "side by side",
    "needs? no search": "unanswerable",
    "raised letters?": "superscript",
    "the first named": "the first",
    r"p\d+ not given": "what is missing, and how much more it takes",
    "figure that the data cannot support": "number that your data can't support",
    "share: of the time of all calls": "share of total time",
    "visible: what 9 of 10": "the smallest slow-down that a run would catch 9 times out of 10",
    "without any request to a network": "self-contained",
    r"equal sides fail in none": "no false alarm",
}
"""What is not said, and what people say."""


@pytest.mark.parametrize("ours", OURS)
def test_words_of_our_own_are_gone(ours: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]!r}, say {OURS[ours]!r}"
        for path in FILES
        for match in re.finditer(ours, re.sub(r"\s+", " ", path.read_text(encoding="utf-8")))
    ]
    assert not found


def test_the_files_that_people_read_are_looked_at() -> None:
    names = {path.name for path in FILES}
    assert {"README.md", "README.ko.md", "duet.md", "latency.py", "bm25.yaml"} <= names
