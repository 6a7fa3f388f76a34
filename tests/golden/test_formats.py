"""The exact text of one sample in each format. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retrieval_bench.reports.render import csv, markdown, terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench_pages import html, latex
from tests.builders.golden import golden
from tests.builders.sample_tables import SAMPLE


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
