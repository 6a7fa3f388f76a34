"""The exact text of ``diff``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.diff import Explanation, explain
from retrieval_bench_explain.differences import Differences
from retrieval_bench_explain.tables.diff import diff_tables
from tests.builders.golden import golden
from tests.builders.hybrid_runs import make_dataset, make_run

TITLES = {
    "a": "Apples",
    "b": "배와 사과의 저장: 온도와 습도가 과일의 품질에 미치는 영향에 대한 연구 보고서",
    "c": "التفاح والكمثرى في حوض البحر الأبيض المتوسط خلال القرن العشرين",
    "d": "👩‍👩‍👧‍👦 families and 🍎 apples, e\u0301tude of a very long title that goes on and on",
    "e": "moves the cursor \x1b[2J\r\x9b1A and \u202eturns the line",
}
QUERIES = {
    "q1": "Which apples keep well over the winter?",
    "q2": "사과는 겨울 동안 어떻게 보관해야 하나요? " * 9,
    "q3": "ما هي أفضل طريقة لحفظ التفاح؟ \x1b[31m",
    "q4": "林檎の保存方法を教えてください",
    "q5": "🍎?",
}


def data() -> Dataset:
    documents = [Document(c, f"text of {c}", TITLES.get(c, "")) for c in "abcdefghijklmnopq"]
    made = make_dataset(
        {"q1": {"a": 1, "f": 0}, "q2": {"b": 2, "c": 1}, "q3": {"c": 1}, "q4": {"d": 1, "q": 1},
         "q5": dict.fromkeys("hijklmnopqa", 1) | {"e": 3}},
        documents,
    )  # fmt: skip
    queries = tuple(Query(query.id, QUERIES[query.id]) for query in made.queries)
    return Dataset(**{**{f: getattr(made, f) for f in made.__slots__}, "queries": queries})


DATA = data()
BM25 = {"q1": "abf", "q2": "abc", "q3": "efgc", "q4": "fghij", "q5": "abcdefgh"}
DENSE = {"q1": "gha", "q2": "bca", "q3": "cde", "q4": "mnodp"}
FUSED = {"q1": "gab", "q2": "abc", "q3": "cfe", "q4": "mnf", "q5": "abc"}
METRICS = ("nDCG@3", "R@3")


def hybrid(name: str = "hybrid", fused: dict[str, str] = FUSED, *, legs: int = 2) -> Run:
    lists = {"bm25": BM25, "dense": DENSE}
    more = {f"dense-{i}": {q: row[i % 3 :] for q, row in DENSE.items()} for i in range(legs - 2)}
    return make_run(name, DATA, fused, {**lists, **more}, metrics=METRICS)


def plain(name: str, lists: dict[str, str], failed: dict[str, str] | None = None) -> Run:
    cut = {q: row[:3] for q, row in lists.items()}
    return make_run(name, DATA, cut, metrics=METRICS, failed=failed)


def explained(*runs: Run) -> tuple[Explanation, list[Table]]:
    found = explain(runs, DATA)
    return found, diff_tables(Differences(found, found.details(found.order()), texts=True))


def shown(*runs: Run, texts: bool = True) -> str:
    found = explain(runs, DATA)
    details = found.details(found.order(), texts=texts)
    return printed(diff_tables(Differences(found, details, texts)))


def printed(tables: list[Table]) -> str:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    terminal.to_console(tables, console)
    return text.getvalue()


RUNS = {
    "diff_hybrid": (hybrid(),),
    "diff_leg": (plain("dense", DENSE), hybrid()),
    "diff_plain": (plain("bm25", BM25), plain("dense", DENSE, {"q3": "TimeoutError: \x1b[2Jslow"})),
    "diff_hybrids": (
        hybrid(),
        hybrid("hybrid-with-a-long-name", {q: row[::-1] for q, row in FUSED.items()}),
    ),
    "diff_legs": (hybrid("many", legs=7),),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_text_of_diff(name: str) -> None:
    golden(f"{name}.txt", shown(*RUNS[name]))


def test_ids_only() -> None:
    text = shown(*RUNS["diff_hybrid"], texts=False)
    assert not any(word in text for word in ("Apples", "배와", "winter", "text of"))
    golden("diff_no_text.txt", text)


def test_diff_as_markdown() -> None:
    golden("diff.md", markdown.render(explained(*RUNS["diff_leg"])[1]))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_wider_than_a_terminal_or_moves_its_cursor(name: str) -> None:
    from rich.cells import cell_len

    text = shown(*RUNS[name])
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert not [
        c for c in text if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f" or c == "\u202e")
    ]


def test_fusion_that_changes_no_value_neither_gains_nor_loses() -> None:
    alike = hybrid("hybrid", {query: row[:3] for query, row in DENSE.items()})
    first, *_ = diff_tables(Differences(found := explain([alike], DATA), found.details([]), False))
    assert first.title == "hybrid and dense have the same nDCG@3 on all 5 queries."
