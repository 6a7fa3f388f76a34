"""Tables of MS MARCO and LoTTE, which have no header; and their runs, whose ranks are no scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.data import load_dataset
from retrieval_bench.runs.imported import read_rankings
from tests.builders.files import save, save_all
from tests.builders.refusals import faults_of

YAML = (
    "format: marco\nfiles: {documents: collection.tsv, queries: queries.dev.tsv}\n"
    "splits: {test: qrels.dev.tsv}\n"
)
PASSAGES = '0\tThe presence of "communication" amid scientific minds\n7\tno quotes, one " mark\n'
QUERIES = "1048585\twhat is paula deen's brother\n2\t연차 휴가\n"
QRELS = "1048585\t0\t7\t1\n2\t0\t0\t1\n"
SCORE = "query-id\tcorpus-id\tscore\n"


def folder(path: Path, **files: str) -> Path:
    named = {
        "dataset.yaml": YAML,
        "collection.tsv": PASSAGES,
        "queries.dev.tsv": QUERIES,
        "qrels.dev.tsv": QRELS,
    }
    return save_all(path, named | {name.replace("_", "."): text for name, text in files.items()})


def order(path: Path) -> dict[str, list[str]]:
    run = read_rankings(path)
    return {query: list(ranking.doc_ids) for query, ranking in run.ordered("trec").items()}


def refusal(path: Path) -> str:
    return "\n".join(faults_of(read_rankings, path))


class TestDatasets:
    def test_passages_queries_and_judgements_need_no_header(self, tmp_path: Path) -> None:
        data = load_dataset(folder(tmp_path))
        assert [(one.id, one.text) for one in data.documents or ()] == [
            ("0", 'The presence of "communication" amid scientific minds'),
            ("7", 'no quotes, one " mark'),
        ]
        assert [query.text for query in data.queries] == [
            "what is paula deen's brother",
            "연차 휴가",
        ]
        assert data.qrels == {"1048585": {"7": 1}, "2": {"0": 1}}

    def test_whole_documents_have_a_url_and_a_title(self, tmp_path: Path) -> None:
        table = "7\thttp://x\tA title\tThe text.\n0\thttp://y\t\tAnother.\n"
        data = load_dataset(folder(tmp_path / "a", collection_tsv=table))
        first, second = data.documents or ()
        assert (first.title, first.text, first.metadata) == (
            "A title",
            "The text.",
            {"url": "http://x"},
        )
        assert second.title == ""
        yaml = YAML + "columns: {documents: {title: null}}\n"
        untitled = load_dataset(folder(tmp_path / "b", collection_tsv=table, dataset_yaml=yaml))
        assert [one.title for one in untitled.documents or ()] == ["", ""]
        assert untitled.fingerprint != data.fingerprint

    def test_lotte_names_its_answers_in_json_lines(self, tmp_path: Path) -> None:
        answers = '{"qid": 2, "query": "연차 휴가", "answer_pids": [0, 7]}\n'
        data = load_dataset(folder(tmp_path, qrels_dev_tsv=answers))
        assert data.qrels == {"2": {"0": 1, "7": 1}}

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            (
                {"collection_tsv": "pid\tpassage\n" + PASSAGES},
                "collection.tsv:1: 'pid\\tpassage' is a header; accepted: no header; `format: ",
            ),
            (
                {"queries_dev_tsv": "qid\tquery\n" + QUERIES},
                "queries.dev.tsv:1: 'qid\\tquery' is a header",
            ),
            (
                {"collection_tsv": PASSAGES + "8\tone\ttwo\n"},
                "collection.tsv:3: 3 columns in '8\\tone\\ttwo'; accepted: id<TAB>text, or",
            ),
            (
                {"qrels_dev_tsv": '{"qid": 2, "answer_pids": "0"}\n'},
                "qrels.dev.tsv:1: answer_pids is '0'; accepted: a list of document ids",
            ),
            (
                {"dataset_yaml": YAML + "columns: {documents: {id: pid}}\n"},
                "columns.documents: tables without a header have no names",
            ),
        ],
        ids=["documents with a header", "queries with a header", "three columns", "LoTTE", "names"],
    )
    def test_what_is_no_such_table_is_told_by_its_place(
        self, tmp_path: Path, files: Mapping[str, str], says: str
    ) -> None:
        assert says in "\n".join(faults_of(load_dataset, folder(tmp_path, **files)))


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

    @pytest.mark.needs("retrieval_bench_score")
    def test_the_second_of_two_is_at_rank_two(self, tmp_path: Path) -> None:
        from retrieval_bench_score.score import evaluate
        from retrieval_bench_score.scorecard import Truth

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
