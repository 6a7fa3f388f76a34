"""The exact text of one sample in each format. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retrieval_bench.reports.render import render
from retrieval_bench.reports.render.table import Marked, Table
from tests.builders.golden import golden

SAMPLE = [
    Table(
        "Two & three",
        ("", "n", "bm25", "a_b - bm25"),
        [
            ("all", "1,204", Marked("0.7154", "ab"), "-0.0100"),
            ("", "", "[.576, .711]", "[-0.104, +0.111]"),
            ("한국어", Marked("9", "*"), Marked("0.5000", ""), "-"),
        ],
        rules=[2],
        notes=["p < .05", "100 % of --k"],
    ),
    Table("Take bm25.", (), (), notes=["it is fast"]),
]


@pytest.mark.parametrize(
    ("form", "ending"),
    [
        (render.plain, "txt"),
        (render.markdown, "md"),
        (render.html, "html"),
        (render.latex, "tex"),
        (render.csv, "csv"),
    ],
)
def test_a_sample_in_every_format(form: Callable[[list[Table]], str], ending: str) -> None:
    golden(f"sample.{ending}", form(SAMPLE))
