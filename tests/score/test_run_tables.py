"""Runs as tables: ranks, which are no scores, rows of Parquet, and a separator that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench_score.runs.imported import read_rankings
from retrieval_bench_score.score import evaluate
from retrieval_bench_score.scorecard import Truth
from tests.builders.files import save
from tests.builders.refusals import faults_of

SCORE = "query-id\tcorpus-id\tscore\n"


def order(path: Path) -> dict[str, list[str]]:
    run = read_rankings(path)
    return {query: list(ranking.doc_ids) for query, ranking in run.ordered("trec").items()}


def refusal(path: Path) -> str:
    return "\n".join(faults_of(read_rankings, path))


def parquet(path: Path, columns: Mapping[str, Any]) -> Path:
    import pyarrow as arrow
    from pyarrow import parquet as writer

    writer.write_table(arrow.table(dict(columns)), path)
    return path


def test_a_run_with_another_separator_is_one_fault(tmp_path: Path) -> None:
    path = save(tmp_path / "run", "q,Q0,d,1,9.5,t\n" * 150)
    with pytest.raises(DataError, match="columns separated by commas") as caught:
        read_rankings(path)
    assert len(caught.value.faults) == 1


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    "names",
    [("q_id", "doc_id", "score"), ("qid", "docno", "score"), ("query_id", "doc_id", "score")],
)
@pytest.mark.parametrize("ids", [["10", "11", "12"], [10, 11, 12]])
def test_a_run_may_be_a_table_with_a_row_for_each_hit(
    tmp_path: Path, names: Sequence[str], ids: list[Any]
) -> None:
    """K5: as ranx and others save it; its ids may be numbers."""
    columns = (["a", "b", "a"], ids, [1.5, 1.0, 2.5])
    path = parquet(tmp_path / "run.parquet", dict(zip(names, columns, strict=True)))
    run = read_rankings(path)
    assert (run.format, run.warnings) == ("parquet", ())
    found = {query: list(ranking) for query, ranking in run.ordered("trec").items()}
    assert found == {"a": [("12", 2.5), ("10", 1.5)], "b": [("11", 1.0)]}


@pytest.mark.needs("pyarrow")
def test_faults_of_such_a_table_are_told_with_their_rows(tmp_path: Path) -> None:
    def faults(**columns: list[Any]) -> list[str]:
        path = parquet(tmp_path / "run.parquet", columns)
        with pytest.raises(DataError) as caught:
            read_rankings(path)
        return [text.removeprefix(f"{path}") for text in caught.value.faults]

    told = faults(q_id=["a", "", "c"], doc_id=["x", "y", "z"], score=[1.0, 2.0, float("nan")])
    assert [text.split(";")[0] for text in told] == [": row 2: q_id is ''", ": row 3: score is nan"]
    (told_of_columns,) = faults(query=["a"], document=["x"], score=[1.0])
    assert "a table of the columns 'query', 'document', 'score'" in told_of_columns
    assert "one column q_id or qid or query_id or query-id" in told_of_columns
    save(tmp_path / "run.parquet", "q1 Q0 d 1 1.0 x")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_rankings(tmp_path / "run.parquet")


class TestRunsOfRanks:
    @pytest.mark.parametrize(
        "table",
        [
            "q1\ta\t1\nq1\tb\t2\nq2\tc\t1\n",
            "q1\tb\t2\nq2\tc\t1\nq1\ta\t1\n",
            "qid\tpid\trank\nq1\ta\t1\nq1\tb\t2\nq2\tc\t1\n",
            "query-id\tcorpus-id\trank\nq1\ta\t3\nq1\tb\t20\nq2\tc\t7\n",
            "q1\ta\t0\nq1\tb\t1\nq2\tc\t0\n",
            "q1\ta\t1\t17.5\nq1\tb\t2\t3.25\nq2\tc\t1\t9\n",
            "q1\ta\t1.0\r\nq1\tb\t2.0\r\n\r\nq2\tc\t1.0",
        ],
        ids=["plain", "shuffled", "header", "gaps", "from 0", "with a score", "floats"],
    )
    def test_the_rank_is_the_order_and_no_score(self, tmp_path: Path, table: str) -> None:
        path = save(tmp_path / "run.tsv", table)
        run = read_rankings(path)
        assert run.format == "marco"
        assert all(ranking.scores is None for ranking in run.rankings.values())
        assert order(path) == {"q1": ["a", "b"], "q2": ["c"]}

    def test_the_second_of_two_is_at_rank_two(self, tmp_path: Path) -> None:
        path = save(tmp_path / "run.tsv", "q1\ta\t1\nq1\tb\t2\n")
        card = evaluate(path, lambda: Truth.of({"q1": {"b": 1}}), metrics=["RR"])
        assert [mean.mean for mean in card.scored.evaluation.means] == [0.5]

    @pytest.mark.parametrize(
        "table",
        [
            SCORE + "q1\ta\t1\nq1\tb\t2\n",
            SCORE + "q1\ta\t1.0\nq2\tc\t1\nq1\tb\t2.0\n",
            SCORE + "q1\tb\t2\nq1\ta\t1\nq1\tc\t3\n",
            "q1 Q0 a 1 1 t\nq1 Q0 b 2 2 t\n",
            "q1 Q0 a 0 0 t\nq1 Q0 b 1 1 t\nq2 Q0 b 0 0 t\n",
            '{"q1": {"a": 1, "b": 2, "c": 3}, "q2": {"a": 1}}',
        ],
        ids=["header", "floats", "shuffled", "TREC", "from 0", "JSON"],
    )
    def test_ranks_in_the_place_of_scores_are_refused(self, tmp_path: Path, table: str) -> None:
        told = refusal(save(tmp_path / "run", table))
        assert "they look like ranks, by which the last would be the best" in told
        assert "query<TAB>document<TAB>rank" in told

    @pytest.mark.parametrize(
        "table",
        [
            SCORE + "q1\ta\t2\nq1\tb\t1\n",
            SCORE + "q1\ta\t1\nq1\tb\t2\nq2\ta\t5\n",
            SCORE + "q1\ta\t1\n",
            "q1 Q0 a 1 2 t\nq1 Q0 b 2 1.5 t\n",
        ],
        ids=["falling", "other numbers", "one hit", "TREC"],
    )
    def test_scores_that_are_none_of_this_are_scores(self, tmp_path: Path, table: str) -> None:
        assert order(save(tmp_path / "run", table))["q1"][0] in ("a", "b")

    @pytest.mark.parametrize(
        ("table", "says"),
        [
            ("q1\ta\t17\nq1\tb\t12\n", "query 'q1': the third column is 17, 12: no ranks"),
            ("q1\ta\t1\nq1\tb\t1\n", "query 'q1': the third column is 1, 1: no ranks"),
            ("q\td\trank\nq1\ta\t1.5\nq1\tb\t2\n", "the third column is 1.5, 2: no ranks"),
            ("q1\ta\t17.5\nq1\tb\t12.5\n", "header is 'q1\\ta\\t17.5'"),
        ],
        ids=["numbers", "twice", "fractions", "scores without a header"],
    )
    def test_numbers_that_are_no_ranks_are_never_taken_for_them(
        self, tmp_path: Path, table: str, says: str
    ) -> None:
        assert says in refusal(save(tmp_path / "run.tsv", table))

    def test_the_retriever_that_replays_a_run_refuses_ranks_as_scores_too(
        self, tmp_path: Path
    ) -> None:
        from retrieval_bench_retrievers.trec_run import TrecRun

        path = save(tmp_path / "run.trec", "q1 Q0 a 1 1 t\nq1 Q0 b 2 2 t\n")
        with pytest.raises(DataError, match="they look like ranks"):
            TrecRun(path)
