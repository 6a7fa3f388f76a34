"""A saved run as a retriever."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.errors import ContractError, DataError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench_retrievers.trec_run import TrecRun


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
    assert warning.startswith("for 1 of 2 queries the lines of other.trec do not follow the scores")


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
    assert retriever.health(queries) == [
        "1 of 2 queries are not in other.trec",
    ]
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
