"""The exact text of one sample in each format. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retrieval_bench.reports.render import csv, html, latex, markdown, terminal
from retrieval_bench.reports.render.cells import count, difference, quality
from retrieval_bench.reports.render.table import Table
from tests.builders.golden import golden

SAMPLE = [
    Table(
        "Two & three",
        ("", "n", "bm25", "a_b - bm25"),
        [
            (
                "all",
                count(1204),
                quality(0.7154, (0.576, 0.711), "ab"),
                difference(-0.01, (-0.104, 0.111)),
            ),
            ("한국어", count(9, "*"), quality(0.5), difference(None)),
        ],
        rules=[1],
        notes=["p < .05", "100 % of --k"],
    ),
    Table("Take bm25.", (), (), notes=["it is fast"]),
]


@pytest.mark.parametrize(
    ("form", "ending"),
    [
        (terminal.plain, "txt"),
        (markdown.render, "md"),
        (html.render, "html"),
        (latex.render, "tex"),
        (csv.render, "csv"),
    ],
)
def test_a_sample_in_every_format(form: Callable[[list[Table]], str], ending: str) -> None:
    golden(f"sample.{ending}", form(SAMPLE))
