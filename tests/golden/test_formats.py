"""The exact text of one sample in each format. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retrieval_bench.reports.render import csv, html, latex, markdown, terminal
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY
from retrieval_bench.reports.render.table import Table
from tests.builders.golden import golden

SAMPLE = [
    Table(
        "Two & three",
        ("", "n", "bm25", "a_b - bm25"),
        [
            (
                "all",
                COUNT(1204),
                QUALITY(0.7154, (0.576, 0.711), "ab"),
                DIFFERENCE(-0.01, (-0.104, 0.111)),
            ),
            ("한국어", COUNT(9, marks="*"), QUALITY(0.5), DIFFERENCE(None)),
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
