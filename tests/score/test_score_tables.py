"""The exact text of ``audit``, ``evaluate`` and ``reader``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.types import Qrels, Ranking
from retrieval_bench.metrics import Judgements
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench_answers.answers import Answer, GoldQuestion, Predictions, Span
from retrieval_bench_answers.reader import ReaderResult, score_reader
from retrieval_bench_answers.tables.reader import reader_tables
from retrieval_bench_pages import html
from retrieval_bench_score.audit import Audit, audit
from retrieval_bench_score.conventions import CONVENTIONS, convention
from retrieval_bench_score.runs.imported import RunFile
from retrieval_bench_score.scorecard import ScoreCard, Truth, score_file
from retrieval_bench_score.tables.audit import audit_brief, audit_tables
from retrieval_bench_score.tables.score import score_brief, score_tables
from tests.builders.golden import golden
from tests.builders.tables import rows_in

N = 60
QUERIES = [f"q{i:02d}" for i in range(N)]
QRELS: Qrels = {
    **{q: {f"{q}-{j}": 1 + j % 2 for j in range(1 + i % 3)} for i, q in enumerate(QUERIES)},
    **{f"hello{i:02d}": {} for i in range(20)},
}


def make_run(
    name: str, seed: int, finds: int, first: int, *, warnings: tuple[str, ...] = ()
) -> RunFile:
    """Up to ``finds`` relevant documents of a query stand among 8 others, one at rank ``first`` or
    one below, the others anywhere. Every 10th query is missing; every second unanswerable one got
    an answer."""
    rng = np.random.default_rng(seed)
    rankings: dict[str, Ranking] = {}
    for i, (query_id, grades) in enumerate(QRELS.items()):
        if not grades and i % 2:
            continue
        if grades and (i + seed) % 10 == 0:
            continue
        ids = [f"x{j}" for j in range(8)]
        for doc_id in list(grades)[:finds]:
            ids.insert(int(rng.integers(0, 8)), doc_id)
        for doc_id in list(grades)[:1]:
            ids.remove(doc_id)
            ids.insert(first - 1 + int(rng.integers(0, 2)), doc_id)
        top = 5.0 if grades else 2.0
        rankings[query_id] = Ranking(ids, np.round(top - np.arange(len(ids)) / 4 + i % 7 / 8, 3))
    return RunFile(Path(name), "trec", rankings, {}, warnings)


RUNS = (
    make_run("bm25.trec", 1, 1, 1, warnings=("a warning of the file",)),
    make_run("dense.trec", 2, 3, 2),
    make_run("hybrid.trec", 4, 2, 1),
)


def audited(runs: tuple[RunFile, ...], qrels: Qrels = QRELS) -> Audit:
    return audit(runs, Judgements(qrels), list(CONVENTIONS.values()), 10)


def card(name: str = "trec", qrels: Qrels = QRELS) -> ScoreCard:
    return score_file(RUNS[0], Truth.of(qrels), (), convention(name))


def read() -> tuple[ReaderResult, ReaderResult]:
    """The spans of a reader with two answers a question, and the texts of another."""
    gold = [
        *(GoldQuestion(f"q{i}", ("서울",), (Span(f"d{i}", 4, 6),), (f"d{i}",)) for i in range(9)),
        *(GoldQuestion(f"u{i}", ()) for i in range(3)),
    ]
    answers: Mapping[str, tuple[Answer, ...]] = {
        **{
            f"q{i}": (
                Answer("서울은", Span(f"d{i}", 4, 7 + i % 2)),
                Answer("서울", Span(f"d{i - i % 2}", 4, 6)),
            )
            for i in range(8)
        },
        "u0": (Answer(""),),
        "u1": (Answer("x", Span("d0", 0, 1)), Answer("")),
        "zz": (Answer(""),),
    }
    retrieved = {f"q{i}": [f"d{i - i % 4}"] for i in range(9)}
    texts = Predictions({q: of[:1] for q, of in answers.items()}, has_spans=False)
    return (
        score_reader(gold, Predictions(answers, has_spans=True), "retrieved", retrieved),
        score_reader(gold[:9], texts),
    )


def test_an_audit_of_more_systems_than_fit_beside_each_other() -> None:
    repeated = RunFile(Path("again.trec"), "trec", {"q01": Ranking(["x", "x"])}, {"q01": ("x",)})
    qrels = {**QRELS, "none": {"x0": 0}}
    golden(
        "audit_many.txt", terminal.plain(audit_tables(audited((*RUNS, RUNS[0], repeated), qrels)))
    )


WITHIN_MARKUP: Qrels = {"<b>": {"a": 1}, **{q: QRELS[q] for q in QUERIES}}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("audit.txt", lambda: audit_tables(audited(RUNS))),
        ("audit_brief.txt", lambda: audit_brief(audited(RUNS))),
        ("score_brief.txt", lambda: score_brief(card(), per_query=True)),
        ("audit_one.txt", lambda: audit_tables(audited(RUNS[:1]))),
        ("audit.md", lambda: audit_tables(audited(RUNS[:2]))),
        ("score.txt", lambda: score_tables(card(), per_query=True)),
        ("score_scienceqa.txt", lambda: score_tables(card("scienceqa"))),
        ("score_none.txt", lambda: score_tables(card("mala2025", {"zz": {"a": 1}}))),
        ("score.html", lambda: score_tables(card(qrels=WITHIN_MARKUP), per_query=True)),
        ("reader.txt", lambda: reader_tables(read()[0], "mine.jsonl", ["one | warning"])),
        ("reader_texts.txt", lambda: reader_tables(read()[1], "texts.json")),
    ],
)
def test_the_text_of_what_scoring_shows(name: str, shown: Callable[[], list[Table]]) -> None:
    form = {"txt": terminal.plain, "md": markdown.render, "html": html.render}[name.split(".")[1]]
    golden(name, form(shown()) + "\n" * name.endswith("html"))


@pytest.mark.parametrize("made", ["audit", "score", "reader"])
def test_eighty_columns_are_enough(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {
        "audit": lambda: audit_tables(audited(RUNS)),
        "score": lambda: score_tables(card(), per_query=True),
        "reader": lambda: reader_tables(read()[0]),
    }[made]()
    for table in shown:
        assert rows_in(80, table, monkeypatch) == rows_in(300, table, monkeypatch)
