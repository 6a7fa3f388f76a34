"""Empty lists on a considerable share of the queries are told beside the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.files import beir, json_lines, save
from tests.cli.project import QUICK as ONCE
from tests.cli.project import Command

SEARCHES = """
def first(text, k):
    return ["d0"] if text == "query 0" else []
def last(text, k):
    return [] if text == "query 19" else ["d0"]
def two(text, k):
    return [] if text in ("query 18", "query 19") else ["d0"]
def short(text, k):
    return ["d0"]
def never(text, k):
    return []
"""
FOUND = "Nothing was found for"


@pytest.fixture
def project(here: Path) -> Path:
    """20 queries, each with a document of its own, and searches that find little."""
    save(here / "own.py", SEARCHES)
    for name in ("first", "last", "two", "short", "never"):
        params = f'target: callable\nparams: {{function: "own.py:{name}"}}\n'
        save(here / f"{name}.yaml", params)
    write(here / "ds")
    return here


def write(folder: Path, *, filters: int = 0, relevant: int = 20) -> None:
    """A dataset of 20 queries, the first ``filters`` of which allow no document, and the first
    ``relevant`` of which have one that is relevant."""
    queries = [{"_id": f"q{i}", "text": f"query {i}"} for i in range(20)]
    documents = [{"_id": f"d{i}", "text": f"text {i}", "shop": "one"} for i in range(20)]
    nothing = {"filter": {"shop": "none"}}
    asked = [one | (nothing if at < filters else {}) for at, one in enumerate(queries)]
    beir(folder, documents, asked, ((f"q{i}", f"d{i}", int(i < relevant)) for i in range(20)))


def bench(run: Command, name: str, *more: str) -> str:
    run(f"bench {name}.yaml --dataset ds", *ONCE, *more)
    return run.unwrapped


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("first", f"! {FOUND} 19 of 20 queries with a relevant document: they count 0."),
        ("two", f"! {FOUND} 2 of 20 queries with a relevant document: they count 0."),
        ("last", ""),
        ("short", ""),
    ],
)
def test_bench_says_so_from_a_tenth_of_the_queries_on(name: str, told: str, run: Command) -> None:
    out = bench(run, name)
    assert told in out
    assert (FOUND in out) == bool(told)


@pytest.mark.usefixtures("project")
def test_one_that_says_it_of_every_search_is_not_repeated(run: Command) -> None:
    out = bench(run, "never")
    assert "every search found nothing" in out
    assert FOUND not in out


@pytest.mark.usefixtures("project")
def test_the_document_has_a_code(run: Command) -> None:
    for name in ("first", "never"):
        warnings = json.loads(bench(run, name, "--format", "json"))["warnings"]
        assert [one["code"] for one in warnings].count("nothing-found") == 1


@pytest.mark.usefixtures("project")
def test_compare_doctor_and_probe_say_so(run: Command) -> None:
    run("compare first.yaml short.yaml --dataset ds", *ONCE)
    assert f"! first: {FOUND} 19 of 20 queries" in run.unwrapped
    run("doctor first.yaml --dataset ds --ask 20")
    assert f"! {FOUND} 19 of 20 queries" in run.unwrapped
    run("bench first.yaml --dataset ds --probe 4")
    assert f"{FOUND} 3 of 4 queries" in run.unwrapped


def test_queries_whose_filter_allows_no_answer_do_not_count(project: Path, run: Command) -> None:
    save(project / "fits.py", "def fits(text, k, filter):\n    return [] if filter else ['d0']\n")
    params = 'target: callable\nparams: {function: "fits.py:fits", pass_filter: true}\n'
    save(project / "fits.yaml", params)
    write(project / "ds", filters=15)
    out = bench(run, "fits")
    assert out.startswith("fits on ds")
    assert FOUND not in out


def test_queries_without_a_relevant_document_do_not_count(project: Path, run: Command) -> None:
    write(project / "ds", relevant=3)
    assert f"{FOUND} 2 of 3 queries" in bench(run, "first")


def test_where_nothing_is_judged_it_is_told_too(project: Path, run: Command) -> None:
    (project / "ds" / "qrels" / "test.tsv").unlink()
    (project / "ds" / "qrels").rmdir()
    assert f"! {FOUND} 19 of 20 queries. Look at the index" in bench(run, "first")


def test_of_a_run_file_no_index_can_be_looked_at(project: Path, run: Command) -> None:
    save(project / "own.run", "".join(f"q{i} Q0 d{i} 1 2.5 x\n" for i in range(4)))
    run("bench trec_run --set path=own.run --dataset ds", *ONCE)
    assert f"{FOUND} 16 of 20 queries with a relevant document: they count 0. " in run.unwrapped
    assert "Look at the index" not in run.unwrapped


def test_score_says_so_of_empty_lists_in_json_and_of_contexts_that_are_not_there(
    project: Path, run: Command
) -> None:
    lists = {f"q{i}": [f"d{i}"] if i < 5 else [] for i in range(20)}
    save(project / "run.json", json.dumps(lists))
    assert run("score run run.json --dataset ds") == 0
    assert f"{FOUND} 15 of 20 queries with a relevant document: they count 0." in run.unwrapped
    save(project / "judged.json", json.dumps({f"q{i}": {f"d{i}": int(i < 6)} for i in range(20)}))
    assert run("score run run.json --qrels judged.json") == 0
    assert f"{FOUND} 1 of 6 queries with a relevant document: it counts 0." in run.unwrapped
    assert run("score audit run.json --dataset ds") == 0
    assert f"{FOUND} 15 of 20" in run.unwrapped
    row = {"user_input": "when", "reference_contexts": ["at noon"], "retrieved_contexts": None}
    save(project / "rag" / "test.jsonl", json_lines([row]))
    assert run("score run rag/test.jsonl --dataset rag") == 0
    assert f"{FOUND} 1 of 1 query" in run.unwrapped
