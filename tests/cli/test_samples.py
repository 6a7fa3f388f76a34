"""The samples of the guide are what the commands print; UPDATE_SAMPLES=1 writes those anew that
are not."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders.guide import guide_pages
from tests.builders.samples import BLOCK, samples, steady

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", *guide_pages()]
NEEDS_DENSE = re.compile(r"^<!-- sample[^>]*\b(dense|hybrid)\b", re.MULTILINE)
TAKES_MINUTES = (
    *("regression", "duet", "history", "labels", "services", "own-retriever"),
    "README.ko",  # the commands of README.md
)
"""Like those with a dense encoder: they wait for `make test-all`."""


def _cases() -> list[Any]:
    cases: list[Any] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        if "<!-- sample" in text:
            marks = [pytest.mark.dense] if NEEDS_DENSE.search(text) else []
            marks += [pytest.mark.long] if marks or page.stem in TAKES_MINUTES else []
            cases.append(pytest.param(page, marks=marks, id=page.name))
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("page", _cases())
def test_samples_are_what_the_commands_print(page: Path, tmp_path: Path) -> None:
    found = samples(page, tmp_path)
    if os.environ.get("UPDATE_SAMPLES"):
        text = page.read_text("utf-8")
        for sample in reversed(found):
            if steady(sample.shown) != steady(sample.printed):
                end = sample.start + len(sample.shown)
                text = text[: sample.start] + sample.printed + text[end:]
        page.write_text(text, encoding="utf-8")
        return
    for sample in found:
        assert steady(sample.printed) == steady(sample.shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_text_says_where_it_comes_from(page: Path) -> None:
    text = page.read_text("utf-8")
    told = {match.start("text") for match in BLOCK.finditer(text)}
    for block in re.finditer(r"^```text\n", text, re.MULTILINE):
        line = text.count("\n", 0, block.start()) + 1
        assert block.end() in told, f"{page.name}:{line} has no comment: sample, file or static"


def test_what_is_steady_has_no_times_and_keeps_all_else() -> None:
    text = (
        "bm25 on science-mini: nDCG@10 0.466\n"
        "  !  Times had not settled after 90 calls: trust large ratios alone.\n"
        "     Repeat before you quote them.\n"
        "  MAP@10   0.424 [0.354, 0.496]\n"
        "  latency  p50 0.166 [0.161, 0.172] ms over 1,162 calls\n"
        "  saved: results/runs/20261123T042750Z-bm25-science-mini-ffeeb435\n"
    )
    assert steady(text) == (
        "bm25 on science-mini: nDCG@10 0.466\nMAP@10 0.424 [0.354, 0.496]\n"
        "latency p50 # ms over # calls saved: results/runs/ID"
    )
    assert steady(text) == steady(text.replace("0.166", "0.201").replace("90 calls", "12 calls"))
    assert steady(text) != steady(text.replace("0.424", "0.425"))
    table = "  system  nDCG@10  p50 ms  p95 ms\n  bm25      0.466    {}    0.174\n"
    assert steady(table.format("0.123")) == steady(table.format("0.2"))
    assert "0.466" in steady(table.format("0.123"))


def test_that_one_is_faster_is_said_only_where_times_show_it() -> None:
    text = "mine: 166 queries\n  They share 49 %.{}\n"
    with_ends = text.format(" words is 1.25x faster (1.24x to 1.26x) than bm25.")
    assert steady(with_ends) == steady(text.format(" words is 9x faster than bm25."))
    assert steady(with_ends) == steady(text.format(""))
    assert "49" in steady(with_ends)
    advice = "  Use words: equivalent to bm25, and it is {} than bm25.\n"
    assert steady(advice.format("2x faster")) == steady(advice.format("3x faster (2x to 4x)"))
