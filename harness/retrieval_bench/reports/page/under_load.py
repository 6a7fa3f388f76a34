"""The sections of the page on loads: how the times grow with the callers, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.load.load import LoadResult
from retrieval_bench.reports.page.pictures import figure
from retrieval_bench.reports.page.sections import Part
from retrieval_bench.reports.pictures import NARROW, WIDTH, svg
from retrieval_bench.reports.pictures.load import load_curve
from retrieval_bench.reports.render.html import notes_html, whole
from retrieval_bench.reports.render.markup import Markup, joined
from retrieval_bench.reports.tables.measure.load import load_tables
from retrieval_bench.reports.tables.run_facts import without_folders
from retrieval_bench.runs.run import relative_folder


def load_parts(loads: Sequence[LoadResult], *, with_text: bool) -> Iterator[Part]:
    """A section for each load: its picture, its levels, how well their times are known.

    Args:
        with_text: False leaves out warnings, which may quote a query.
    """
    for at, saved in enumerate(loads, start=1):
        load = replace(
            saved,
            warnings=without_folders(saved.warnings) if with_text else (),
            folder=saved.folder and Path(without_folders(relative_folder(saved))),
        )
        content = [_picture(load), *map(whole, load_tables(load, full=True))]
        yield Part(f"load{at}", f"{load.retriever} under load", joined(content))


def _picture(load: LoadResult) -> Markup:
    try:
        wide, narrow = (svg(load_curve(load, width=width)) for width in (WIDTH, NARROW))
    except MissingDependencyError as problem:
        return notes_html([f"No picture: {problem.given}."])
    return figure((wide, narrow), "latency against load")
