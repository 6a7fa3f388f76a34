"""A saved run as a retriever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.errors import ContractError, DataError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.core.units.self_hits import as_judged
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench_retrievers.trec_run import TrecRun
from retrieval_bench_score.runs.as_units import in_units
from retrieval_bench_score.runs.imported import read_rankings


def _saved(folder: Path, text: str) -> TrecRun:
    path = folder / "other.trec"
    path.write_text(text, encoding="utf-8")
    return TrecRun(path)


def test_a_run_folder_is_replayed_by_query_id(tmp_path: Path) -> None:
    rankings = {"q1": Ranking(["b", "a", "c"], [2, 2, 1]), "q2": Ranking(["문서-1"], [1])}
    write_run(tmp_path / "run.trec", rankings, "x")
    retriever = construct("trec_run", {"path": str(tmp_path)})
    for query_id, ranking in rankings.items():
        answer = checked_ranking(retriever.search(Query(query_id, "never looked at"), 10), 10)
        assert list(answer.doc_ids) == list(ranking.doc_ids)
    assert retriever.capabilities.external


def test_at_most_k_hits_come_back(tmp_path: Path) -> None:
    retriever = _saved(tmp_path, "q Q0 a 1 3 x\nq Q0 b 2 2 x\nq Q0 c 3 1 x\n")
    assert list(retriever.search(Query("q", ""), 2)) == [("a", 3.0), ("b", 2.0)]
    with pytest.raises(ContractError, match="k = 0"):
        retriever.search(Query("q", ""), 0)


def test_scores_decide_and_ties_come_as_in_trec_eval(tmp_path: Path) -> None:
    """Whatever the rank column says; the contract's own rule for ties changes nothing."""
    retriever = _saved(tmp_path, "q Q0 b 1 1 x\nq Q0 c 2 1 x\nq Q0 a 3 5 x\nr Q0 a 1 1 x\n")
    answer = checked_ranking(retriever.search(Query("q", ""), 3), 3)
    assert answer.doc_ids == ["a", "c", "b"]
    assert answer.scores is not None
    assert list(answer.scores) == pytest.approx([5, 1, 1])
    (warning,) = retriever.health([Query("q", ""), Query("r", "")])
    assert warning.startswith("other.trec: for 1 of 2 queries the lines do not follow the scores")


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        (["0.700000001", "0.70", "0.1"], "bac"),
        (["1e300", "1e308", "5"], "bac"),
        (["-1e300", "-1e308", "-1e309"], None),
        (["0", "-0.0", "1e-60"], "cba"),
        (["3", "3", "3"], "cba"),
        (["16777216", "16777217", "16777215"], "bac"),
    ],
)
def test_ties_are_those_of_single_precision(
    scores: list[str], order: str | None, tmp_path: Path
) -> None:
    text = "".join(f"q Q0 {doc} 1 {score} x\n" for doc, score in zip("abc", scores, strict=True))
    if order is None:
        with pytest.raises(DataError, match="score is"):
            _saved(tmp_path, text)
        return
    answer = checked_ranking(_saved(tmp_path, text).search(Query("q", ""), 3), 3)
    assert "".join(answer.doc_ids) == order
    falling = np.asarray(answer.scores, dtype=np.float64)
    assert np.isfinite(falling).all()
    assert (falling[1:] < falling[:-1]).all()


def test_a_query_that_is_not_in_the_run_has_no_hits_and_is_told(tmp_path: Path) -> None:
    retriever = _saved(tmp_path, "q Q0 a 1 1 x\n")
    queries = [Query("q", ""), Query("other", "")]
    assert len(retriever.search(queries[1], 5)) == 0
    assert retriever.health(queries) == ["1 of 2 queries are not in other.trec"]
    assert retriever.health(queries[:1]) == []


def test_the_manifest_says_which_run_it_was(tmp_path: Path) -> None:
    text = "q Q0 a 1 1 x\n"
    assert _saved(tmp_path, text).describe() == {
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "queries": 1,
    }


def test_a_path_without_a_run_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        TrecRun(tmp_path)


PAGES = {"z1": "a", "b1": "c", "m1": "e", "m2": "e"}
HITS = {"q1": {"m1": 3.0, "m2": 2.0, "z1": 1.0, "b1": 1.0}, "q2": {"b1": 0.5}}


def _as(form: str) -> str:
    rows = [(q, doc, score, at) for q, of in HITS.items()
            for at, (doc, score) in enumerate(of.items(), start=1)]  # fmt: skip
    return {
        "trec": "".join(f"{q} Q0 {doc} {at} {score} x\n" for q, doc, score, at in rows),
        "pages": "".join(f"{q} Q0 {PAGES[doc]} {at} {score} x\n" for q, doc, score, at in rows),
        "beir": "query-id\tcorpus-id\tscore\n"
        + "".join(f"{q}\t{doc}\t{score}\n" for q, doc, score, _ in rows),
        "marco": "".join(f"{q}\t{doc}\t{at}\n" for q, doc, _, at in rows),
        "json": json.dumps(HITS),
        "lists": json.dumps({q: list(of) for q, of in HITS.items()}),
        "mteb": json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": HITS}}),
    }[form]


def _dataset(unit_of: Mapping[str, str]) -> Dataset:
    return Dataset(
        name="d",
        documents=[Document(doc, f"text {doc}") for doc in PAGES],
        queries=(Query("q1", "x"), Query("q2", "y")),
        qrels={},
        split="test",
        language=None,
        fingerprint="f",
        unit_of=unit_of,
    )


def _found(retriever: Retriever, query_id: str = "q1") -> list[str]:
    answer = retriever.search(Query(query_id, "x"), 10)
    scored = retriever.capabilities.has_scores
    return list(checked_ranking(answer, 10, has_scores=scored).doc_ids)


@pytest.mark.parametrize(
    ("form", "documents", "units"),
    [
        ("trec", "m1 m2 z1 b1", "e c a"),
        ("beir", "m1 m2 z1 b1", "e c a"),
        ("json", "m1 m2 z1 b1", "e c a"),
        ("mteb", "m1 m2 z1 b1", "e c a"),
        ("marco", "m1 m2 z1 b1", "e a c"),
        ("lists", "m1 m2 z1 b1", "e a c"),
        ("pages", "", "e c a"),
    ],
)
def test_every_form_of_a_run_is_replayed_in_the_order_of_score_run(
    form: str, documents: str, units: str, tmp_path: Path
) -> None:
    """Also over units: those that tie come by the id of the unit, not by that of its part."""

    path = tmp_path / "other"
    path.write_text(_as(form), encoding="utf-8")
    for unit_of, order in (({}, documents), (PAGES, units)):
        if order:
            data = _dataset(unit_of)
            assert _found(as_judged(TrecRun(path), data)) == order.split()
            scored = in_units(read_rankings(path), unit_of).ordered("trec")
            assert list(scored["q1"].doc_ids) == order.split()


def test_a_document_that_comes_again_is_refused_with_the_word_that_keeps_its_best_hit(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pages.run"
    path.write_text("q1 Q0 a 1 9 x\nq1 Q0 b 2 8 x\nq1 Q0 a 3 7 x\n", encoding="utf-8")
    with pytest.raises(DataError, match="'a' for query 'q1'") as caught:
        as_judged(TrecRun(path), _dataset({}))
    assert "repeats=first" in str(caught.value)
    best = as_judged(TrecRun(path, repeats="first"), _dataset({}))
    assert list(best.search(Query("q1", "x"), 10)) == [("a", 9.0), ("b", 8.0)]


def test_lists_beside_scores_leave_the_order_alone(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text('{"q1": {"a": 1, "b": 2.5}, "q2": ["c", "a"], "q3": []}', encoding="utf-8")
    retriever = as_judged(TrecRun(path), _dataset({}))
    assert not retriever.capabilities.has_scores
    assert [_found(retriever, q) for q in ("q1", "q2", "q3")] == [["b", "a"], ["c", "a"], []]


def test_fused_runs_are_units_only_where_all_of_them_are_replayed(tmp_path: Path) -> None:
    """A leg that searches finds parts of documents, which units of another leg would never meet."""
    path = tmp_path / "other.run"
    path.write_text(_as("trec"), encoding="utf-8")
    leg = {"name": "run", "target": "trec_run", "params": {"path": str(path)}}
    words = {"name": "words", "target": "bm25", "params": {}}
    for legs, told in (([leg, leg | {"name": "again"}], "e c a"), ([leg, words], "e a c")):
        hybrid = construct("hybrid", {"legs": legs, "fusion": {"method": "rrf"}})
        data = _dataset(PAGES)
        retriever = as_judged(hybrid, data)
        if not hybrid.capabilities.external:
            assert data.documents is not None
            retriever.index(data.documents)
        assert _found(retriever) == told.split()


def test_retrieved_texts_become_the_documents_of_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    row = {"user_input": "x", "reference": "y", "reference_contexts": ["text z1"]}
    row["retrieved_contexts"] = ["nowhere", "text b1", "text z1"]
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    retriever = as_judged(TrecRun(path), _dataset({}))
    (query_id,) = read_rankings(path).rankings
    assert _found(retriever, query_id)[1:] == ["b1", "z1"]
    assert "1 retrieved context in no document" in retriever.health([])[-1]
