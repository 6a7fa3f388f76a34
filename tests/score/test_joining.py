"""Runs and judgements from Python and from files in one form; ids that never meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from retrieval_bench import audit, evaluate
from retrieval_bench.core.errors import DataError
from retrieval_bench.reports.render.terminal import plain
from retrieval_bench_score.tables.score import score_tables
from tests.builders import some
from tests.builders.files import save

UNIT = UUID(int=7)


def mean(run: Any, qrels: Any, **options: Any) -> float:
    return evaluate(run, qrels, metrics=["AP"], **options).means["AP"]


def warned(run: Any, qrels: Any) -> str:
    return "\n".join(evaluate(run, qrels, metrics=["AP"]).card.scored.warnings)


@pytest.mark.slow
@pytest.mark.needs("pandas")
@pytest.mark.parametrize(
    "columns",
    [
        {"query": ["1", "1"], "doc": ["a", "b"], "score": [0.5, 0.9]},
        {"qid": [1, 1], "docid": [7, 8], "docno": ["a", "b"], "score": [1, 2], "query": ["x", "x"]},
        {"Query_ID": ["1", "1"], "docno": ["a", "b"], "rank": [2, 1]},
        {"topic": ["1"] * 3, "doc_id": ["b", "a", "b"], "score": [9, 5, 1]},
    ],
    ids=["usual", "of PyTerrier", "ranks alone", "a document twice"],
)
def test_the_line_that_converts_a_data_frame_gives_what_the_frame_says(
    columns: dict[str, list[Any]],
) -> None:
    import pandas as pd

    run = pd.DataFrame(columns)
    judgements = pd.DataFrame({"query_id": ["1"], "corpus-id": ["a"], "relevance": [1]})
    lines = []
    for given, qrels in ((run, {"1": {"a": 1}}), ({"1": ["b", "a"]}, judgements)):
        with pytest.raises(
            DataError, match=r"of type pandas\.DataFrame with the columns"
        ) as caught:
            evaluate(given, qrels)
        lines.append(some(caught.value.fix).removeprefix("give "))
    names = {"run": run, "judgements": judgements}
    assert mean(eval(lines[0], names), eval(lines[1], names)) == 0.5


@pytest.mark.needs("pandas")
def test_columns_that_nobody_knows_are_named_as_such() -> None:
    import pandas as pd

    run = pd.DataFrame({"query": ["1"], "passage": ["a"], "score": [1.0]})
    with pytest.raises(DataError, match=r"with your columns in the place of 'doc'$"):
        evaluate(run, {"1": {"a": 1}})


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ([("1", "a", 1.0)], "a run of type list"),
        ({"1": ["a"], "2": None}, "something else for a ranking: type NoneType"),
    ],
)
def test_what_stands_in_the_place_of_a_run_is_named(run: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        evaluate(run, {"1": {"a": 1}})


@pytest.mark.parametrize(
    ("run", "qrels"),
    [
        ({"1": {10: 9.1, 11: 3.0}}, {"1": {"10": 2}}),
        ({"1": [10, 11]}, {"1": {"10": 2}}),
        ({1: {10: 9.1}}, {"1": {"10": 2}}),
        ({"1": {"10": 9.1}}, {1: {10: 2}}),
        ({np.int64(1): {np.int32(10): np.float32(9.1)}}, {"1": {"10": np.int64(2)}}),
        ({"1": np.array([10, 11])}, {"1": {"10": 1}}),
        ({1: {UNIT: 1}}, {"1": {str(UNIT): 1}}),
        ({"1": {"10": 1}}, {"1": {"10": 1.0}}),
        ({"1": {"10": 1}}, {"1": {"10": True}}),
    ],
)
def test_numbers_and_uuids_are_the_ids_that_their_text_is(run: Any, qrels: Any) -> None:
    assert mean(run, qrels) == 1.0


@pytest.mark.parametrize(
    ("run", "qrels", "given"),
    [
        ({"1": {1.5: 1.0}}, {"1": {"1": 1}}, "the id 1.5 of type float"),
        ({"1": [True]}, {"1": {"1": 1}}, "the id True of type bool"),
        ({None: ["a"]}, {"1": {"1": 1}}, "the id None of type NoneType"),
        ({"1": [("a", 1.0)]}, {"1": {"a": 1}}, "of type tuple"),
        ({"1": {"a": "x"}}, {"1": {"a": 1}}, "score 'x' of document 'a'"),
        ({"1": {"a": None}}, {"1": {"a": 1}}, "score None of document"),
        ({"1": {"a": 1.0}}, {"1": {"a": 0.5}}, "the grade 0.5"),
        ({"1": {"a": 1.0}}, {"1": {"a": "1"}}, "the grade '1'"),
        ({"1": {"a": 1.0}}, {"1": {"a": float("nan")}}, "the grade nan"),
        ({"1": {1: 1.0, "1": 2.0}}, {"1": {"1": 1}}, "the ids 1 and '1'"),
        ({1: ["a"], "1": ["b"]}, {"1": {"a": 1}}, "1"),
        ({"1": ["a"]}, {"1": ["a"]}, "judgements in another form"),
        (None, {"1": {"a": 1}}, "a run of type NoneType"),
        (["a"], {"1": {"a": 1}}, "a run of type list"),
    ],
)
def test_anything_else_is_refused_in_our_words(run: Any, qrels: Any, given: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate(run, qrels, metrics=["AP"])
    assert given in str(caught.value)
    assert "do: " in caught.value.render()


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (("a", 1.0), "{document: score}"),
        (["a", 1.0], "{document: score}"),
        (np.array([10, 0.5]), "{document: score}"),
        (b"10", "decode"),
        (10.0, "int()"),
        (None, "str()"),
    ],
    ids=["pair", "list", "array", "bytes", "float", "none"],
)
def test_no_remedy_makes_an_id_that_is_nowhere(given: Any, fix: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate({"1": [given]}, {"1": {"10": 1}}, metrics=["AP"])
    assert fix in str(caught.value.fix)


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    return save(tmp_path / "q.txt", "q1 0 A-1 1\nq2 0 B-2 1\nq3 0 C-3 1\n")


def test_ids_or_queries_of_another_kind_are_told_with_both_sides_and_known_ones_are_not(
    tmp_path: Path, qrels: Path
) -> None:
    run = save(tmp_path / "r.run", "q1 Q0 a-1 1 3 t\nq2 Q0 b-2 1 3 t\nq3 Q0 c-3 1 3 t\n")
    text = "None of the 3 returned ids is judged ('a-1' beside 'A-1'): they differ in upper and"
    assert text in warned(run, qrels)
    assert text in warned({"q1": ["a-1"], "q2": ["b-2"], "q3": ["c-3"]}, qrels)
    assert any(text in warning for warning in audit([run], qrels).value.warnings)
    assert not evaluate(run, qrels).card.why_nothing, "without a corpus it is a warning"
    text = warned({"Q1": ["A-1"], "Q2": ["B-2"]}, qrels)
    assert "None of the 2 queries of the run is known ('Q1' beside 'q1'): they differ in" in text
    assert "ids" not in warned({"q1": ["B-2"], "q2": ["C-3"], "q3": ["A-1"]}, qrels)
    assert "ids" not in warned({"q1": ["A-1"], "q2": ["x"], "q3": ["y"]}, qrels)


I1 = {"q1": {"caf\u00e9-1": 1}, "q2": {"B-1": 1}, "q3": {"C-1": 1}, "q4": {"D-1": 1}}


@pytest.mark.parametrize("spelt", ["cafe\u0301-1", "CAF\u00c9-1", "caf\u00e9-01"])
def test_one_judged_id_that_is_written_differently_is_told(tmp_path: Path, spelt: str) -> None:
    """I1: from files and Python, in a score and an audit; it was .75, and nothing was said."""
    given = {"q1": [spelt], "q2": ["B-1"], "q3": ["C-1"], "q4": ["D-1"]}
    lines = [f"{q} Q0 {doc} 1 1.0 t\n" for q, (doc,) in given.items()]
    run = save(tmp_path / "r.run", "".join(lines))
    judged = [f"{q} 0 {doc} 1\n" for q, grades in I1.items() for doc in grades]
    qrels = save(tmp_path / "q.txt", "".join(judged))
    assert mean(run, qrels) == 0.75
    text = "1 returned id is written otherwise than the judged ones ("
    assert text in warned(run, qrels)
    assert text in warned(given, I1)
    assert text in warned({q: dict.fromkeys(docs, 1.0) for q, docs in given.items()}, I1)
    assert any(text in warning for warning in audit([run], qrels).value.warnings)


def test_one_query_that_is_written_differently_is_told() -> None:
    """I1: its judgements were met by nothing."""
    text = warned({"Q1": ["x"], "q2": ["B-1"], "q3": ["y"]}, I1)
    assert "1 query of the run is written otherwise than the judged ones ('Q1' beside 'q1';" in text
    assert "these queries have no hits" in text


def test_a_diagnosis_of_ids_looks_at_every_hit() -> None:
    """K3: what is judged stood at rank 12, and the ids were called others."""
    run = {f"q{i}": [*(f"x{i}-{n}" for n in range(11)), f"doc{i}", "y"] for i in range(5)}
    assert "ids" not in warned(run, {f"q{i}": {f"doc{i}": 1} for i in range(5)})
    deep = {"q0": [*(f"x{n}" for n in range(900)), "doc0"]}
    assert "ids" not in warned(deep, {"q0": {"doc0": 1}})
    none = warned(run, {f"q{i}": {f"DOC{i}": 1} for i in range(5)})
    assert "None of the 61 returned ids is judged ('doc0' beside 'DOC0'): they differ in" in none


def chunked(folder: Path) -> Path:
    """A dataset whose judgements are on pages, and whose documents are parts of them."""
    pages = {"d1#0": "d1", "d1#1": "d1", "d2#0": "d2", "d2#1": "d2", "d5#0": "d5"}
    corpus = [
        json.dumps({"_id": i, "text": f"text {i}", "page": page}) for i, page in pages.items()
    ]
    save(folder / "dataset.yaml", "format: beir\nunit_key: page\n")
    save(folder / "corpus.jsonl", "\n".join(corpus) + "\n")
    save(
        folder / "queries.jsonl",
        "".join(json.dumps({"_id": f"q{i}", "text": "leave"}) + "\n" for i in (1, 2)),
    )
    table = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\nq2\td5\t1\n"
    save(folder / "qrels" / "test.tsv", table)
    return folder


CHUNKS = (
    "q1 Q0 d1#0 1 9 t\nq1 Q0 d1#1 2 8 t\nq2 Q0 d2#1 1 7 t\nq2 Q0 d2#0 2 6 t\nq2 Q0 d5#0 3 5 t\n"
)


def test_chunks_count_for_the_pages_that_are_judged(tmp_path: Path) -> None:
    data = chunked(tmp_path / "ds")
    run = save(tmp_path / "chunk.run", CHUNKS)
    assert mean(run, data) == 1.0
    assert "2 further hits of a unit" in warned(run, data)
    pages = save(tmp_path / "page.run", CHUNKS.replace("#0", "").replace("#1", ""))
    assert mean(pages, data) == 1.0, "the first hit of each page"
    rows = [line.split() for line in CHUNKS.splitlines()]
    scores: dict[str, dict[str, float]] = {}
    for query, _, doc, _, score, _ in rows:
        scores.setdefault(query, {})[doc] = float(score)
    assert mean(scores, data) == 1.0
    assert mean({query: list(of) for query, of in scores.items()}, data) == 1.0
    cells = audit([run], data, conventions=["trec"]).value.rows
    assert {some(cell.mean) for row in cells for cell in row.cells if row.concept == "AP"} <= {1.0}


def test_a_run_of_which_no_id_is_in_the_corpus_judges_nothing(tmp_path: Path) -> None:
    data = chunked(tmp_path / "ds")
    card = evaluate(save(tmp_path / "bad.run", "q1 Q0 x1 1 9 t\nq2 Q0 x2 1 7 t\n"), data).card
    assert card.why_nothing == "no id that the run returns is in the corpus"
    assert any("is in the corpus" in warning for warning in card.scored.warnings)
    assert "0.0000" not in plain(score_tables(card)), "no figure of it is shown"
    known = evaluate(save(tmp_path / "known.run", "q1 Q0 d5#0 1 9 t\n"), data).card
    assert not known.why_nothing, "a bad system that returns documents of the corpus"


def test_a_hit_that_the_corpus_does_not_have_is_told(tmp_path: Path) -> None:
    """K7: in a score, too, though it be one."""
    data = chunked(tmp_path / "ds")
    run = save(tmp_path / "r.run", f"{CHUNKS}q1 Q0 gone 3 1 t\n")
    assert "1 of 4 hits (25.0 %) are documents that the corpus does not have" in warned(run, data)


def test_the_best_hit_of_a_repeated_document_alone_counts_on_request(
    tmp_path: Path, qrels: Path
) -> None:
    run = save(tmp_path / "r.run", "q1 Q0 x 1 4 t\nq1 Q0 A-1 2 3 t\nq1 Q0 x 3 2 t\n")
    with pytest.raises(DataError, match="more than once"):
        evaluate(run, qrels)
    assert mean(run, qrels, repeats="first", missing="left out") == 0.5
    lists = {"q1": ["x", "x", "A-1"]}
    assert mean(lists, qrels, repeats="first", missing="left out") == 0.5
