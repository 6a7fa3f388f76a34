"""The exact text of slices. After a wanted change: UPDATE_GOLDEN=1 make test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench_explain.slices import Slicing, slicings
from retrieval_bench_explain.tables.slice import slice_tables
from tests.builders.golden import golden
from tests.builders.runs import sample_run
from tests.builders.tables import LONG, check_width

TAGS: tuple[list[str], ...] = (["keyword"], ["keyword", "numeric"], [], ["긴 질문"])


def _slicings(systems: int, *names: str) -> list[Slicing]:
    """40 queries: 24 keywords, 8 of them numeric, 8 without a tag, 8 in Korean."""
    queries = tuple(
        Query(
            f"q{i}", "word " * (i % 9 + 1), metadata={"tags": TAGS[max(0, i % 5 - 1)], "topic": i}
        )
        for i in range(40)
    )
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    data = Dataset("tiny", None, queries, qrels, "test", "en", "f" * 32)
    return slicings(_group(systems), data, names)


def _group(
    systems: int, names: Sequence[str] = ("bm25", "dense", "hybrid-convex", "검색", "e")
) -> DatasetComparison:
    runs = [sample_run(name, i % 3) for i, name in enumerate(names[:systems])]
    (group,) = compare_runs(runs).groups
    return group


def test_two_systems_stand_beside_their_difference() -> None:
    golden("slices.txt", terminal.plain(slice_tables(_slicings(2))))


@pytest.mark.slow
def test_more_systems_have_their_differences_in_a_table_below() -> None:
    text = terminal.plain(slice_tables(_slicings(5, "tags", "source")))
    golden("slices_many.txt", text)
    assert max(map(cell_len, text.splitlines())) <= terminal.PLAIN_WIDTH


def test_the_markdown_of_slices() -> None:
    golden("slices.md", markdown.render(slice_tables(_slicings(2, "tags"))))


def test_the_name_of_a_slice_may_be_a_whole_answer() -> None:
    queries = tuple(Query(f"q{i}", "w", metadata={"answer": f"{i}" * 60}) for i in range(40))
    data = Dataset("tiny", None, queries, {q.id: {"d": 1} for q in queries}, "test", "en", "f" * 32)
    (found,) = slicings(_group(2), data, ["answer"])
    means, differences = slice_tables([found])
    assert "0" * 49 + "…" in {row[0] for row in means.rows}
    assert "Hardly any two queries share a value." in differences.notes


def test_nothing_asked_for_shows_nothing() -> None:
    assert slice_tables([]) == []


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_slices_with_long_names_fit_eighty_columns(n: int) -> None:
    queries = tuple(
        Query(
            f"q{i}", "한국어 " * (i % 9 + 1), metadata={"tags": ["태그" * 25, "t"] if i % 3 else []}
        )
        for i in range(40)
    )
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    data = Dataset("tiny", None, queries, qrels, "test", "ko", "f" * 32)
    names = ["tags", "source", "length", "relevant"]
    check_width(slice_tables(slicings(_group(n, LONG), data, names)))
