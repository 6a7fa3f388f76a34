"""PyTerrier in both directions: the adapter over anything with ``transform``, and the package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, MissingDependencyError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import RankingLike
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.libraries.pyterrier import PyTerrierRetriever, as_pyterrier
from tests.builders.files import save
from tests.builders.foxes import Overlap
from tests.lazily import Lazily

pd = Lazily("pandas")
pt = Lazily("pyterrier", needs=("pandas",))

QUERY = Query("질문", "물은 언제 끓나요? (à 100°)")
CORPUS = [
    Document("d1", "fox fox dog", title="Fox"),
    Document("d2", "dog dog"),
    Document("문서", "산 owl fox"),
]


PIPE = """
import pandas


class Pipe:
    def __init__(self, docno='d1'):
        self.docno = docno

    def transform(self, frame):
        return pandas.DataFrame({'docno': [self.docno], 'score': [1.0]})


PIPE = Pipe()
made = Pipe
"""


class Stored:
    """Has ``transform`` as a transformer has, and gives what it holds."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked: list[Any] = []

    def transform(self, frame: Any) -> Any:
        self.asked.append(frame)
        return self.found


def frame(*rows: tuple[Any, ...], columns: str = "docno score") -> Any:
    return pd.DataFrame(list(rows), columns=columns.split())


def searched(found: Any, k: int = 3) -> Ranking:
    return checked_ranking(PyTerrierRetriever(Stored(found)).search(QUERY, k), k)


class TestRetriever:
    def test_one_query_is_asked_at_a_time(self) -> None:
        stored = Stored(frame(("d1", 2.0)))
        PyTerrierRetriever(stored).search(QUERY, 3)
        (asked,) = stored.asked
        assert asked.to_dict("records") == [{"qid": QUERY.id, "query": QUERY.text}]

    def test_hits_are_ranked_by_score_ties_by_id_and_cut_at_k(self) -> None:
        found = frame(("d9", 1.0), ("b", 2.0), ("문서", 3), ("a", 2.0))
        assert list(searched(found)) == [("문서", 3.0), ("a", 2.0), ("b", 2.0)]
        assert list(searched(found, k=2)) == [("문서", 3.0), ("a", 2.0)]

    def test_without_scores_the_rank_decides_and_nothing_is_a_score(self) -> None:
        found = frame(("a", 1), ("b", 0), columns="docno rank")
        ranking = searched(found)
        assert list(ranking.doc_ids) == ["b", "a"]
        assert ranking.scores is None

    def test_an_empty_frame_is_an_empty_ranking_whatever_its_columns(self) -> None:
        assert len(searched(pd.DataFrame())) == 0
        assert len(searched(frame())) == 0

    def test_stages_tell_the_pipeline_from_the_adapter(self) -> None:
        assert set(searched(frame(("a", 1.0))).stages) == {"pyterrier", "wrapper"}

    @pytest.mark.parametrize(
        ("made", "message"),
        [
            (lambda: [("a", 1.0)], "returned list"),
            (lambda: frame(("a", 1.0), columns="docno value"), "with the columns docno, value"),
            (lambda: frame(("a", 1.0), columns="docid score"), "with the columns docid, score"),
            (lambda: frame((7, 1.0)), "returned the docno 7"),
            (lambda: frame(("a", "x")), "a column score of other than numbers"),
            (lambda: frame(("a", 1.0, "q2"), columns="docno score qid"), "hits of the query 'q2'"),
        ],
    )
    def test_another_answer_is_an_error_that_names_it(
        self, made: Callable[[], Any], message: str
    ) -> None:
        with pytest.raises(ContractError) as caught:
            searched(made())
        assert message in str(caught.value)
        assert "accepted: a frame with the columns docno and score" in str(caught.value)

    def test_scores_that_are_no_numbers_are_refused_by_the_core(self) -> None:
        with pytest.raises(ContractError):
            searched(frame(("a", np.nan)))

    def test_what_the_pipeline_raises_is_passed_through(self) -> None:
        class Parser:
            def transform(self, asked: Any) -> Any:
                raise ValueError("cannot parse (")

        with pytest.raises(ValueError, match="cannot parse"):
            PyTerrierRetriever(Parser()).search(QUERY, 3)

    def test_a_config_names_an_object_or_what_makes_one(self, tmp_path: Path) -> None:
        file = save(tmp_path / "pipe.py", PIPE)
        for name, params, expected in [
            ("PIPE", {}, "d1"),
            ("Pipe", {"docno": "d2"}, "d2"),
            ("made", {"docno": "문서"}, "문서"),
        ]:
            retriever = construct("pyterrier", {"pipeline": f"{file}:{name}", **params})
            assert list(checked_ranking(retriever.search(QUERY, 1), 1).doc_ids) == [expected]
            assert retriever.describe()["returned"] == "Pipe"

    def test_what_cannot_be_a_pipeline_is_an_error_before_any_search(self) -> None:
        for pipeline, params, message in [
            (42, {}, "int, which has no method transform"),
            (dict, {}, "dict, which has no method transform"),
            (Stored(None), {"k": 3}, "which takes no parameters here: k"),
            (Stored, {}, "missing a required argument"),
            (Stored, {"found": 1, "nr": 2}, "nr"),
        ]:
            with pytest.raises(ConfigError) as caught:
                PyTerrierRetriever(pipeline, **params)  # type: ignore[arg-type]
            assert message in str(caught.value)

    def test_its_index_is_external_and_may_be_declared(self) -> None:
        retriever = PyTerrierRetriever(Stored(None), external={"index": "wiki", "version": "3"})
        assert retriever.capabilities.external
        assert retriever.describe()["external"] == {"index": "wiki", "version": "3"}

    def test_without_pandas_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingDependencyError, match="pip install pandas"):
            PyTerrierRetriever(Stored(None))


def test_without_pyterrier_the_way_back_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    monkeypatch.delitem(
        sys.modules, "retrieval_bench_retrievers.libraries.pyterrier_bridge", raising=False
    )
    with pytest.raises(MissingDependencyError, match="pip install python-terrier"):
        as_pyterrier(Overlap(CORPUS))


@pytest.mark.filterwarnings("ignore")  # of its own libraries
@pytest.mark.needs("pyterrier")
class TestTransformer:
    @pytest.mark.slow
    def test_a_retriever_is_a_transformer_of_frames(self) -> None:
        topics = pt.new.queries(["fox dog", "nothing"], ["1", "2"], lang=["en", "en"])
        found = as_pyterrier(Overlap(CORPUS), k=2)(topics)
        assert found.to_dict("records") == [
            {"qid": "1", "query": "fox dog", "lang": "en", "docno": "d1", "score": 2.0, "rank": 0},
            {"qid": "1", "query": "fox dog", "lang": "en", "docno": "d2", "score": 1.0, "rank": 1},
        ]

    def test_without_scores_the_order_is_kept(self) -> None:
        found = as_pyterrier(Overlap(CORPUS, has_scores=False)).search("fox dog")
        assert found["docno"].tolist() == ["d1", "d2", "문서"]
        assert found["score"].tolist() == [0.0, -1.0, -2.0]

    def test_texts_are_there_for_steps_that_read_them(self) -> None:
        ours = as_pyterrier(Overlap(CORPUS), documents=CORPUS)
        longest = ours >> pt.apply.doc_score(lambda row: len(row["title"] + row["text"]))
        found = longest.search("fox")
        assert found.sort_values("rank")["docno"].tolist() == ["d1", "문서"]
        with pytest.raises(ContractError, match="'문서' is not among the documents"):
            as_pyterrier(Overlap(CORPUS), documents=CORPUS[:2]).search("fox")

    @pytest.mark.slow
    def test_it_takes_part_in_an_experiment_and_with_operators(self) -> None:
        ours = as_pyterrier(Overlap(CORPUS))
        topics = pt.new.queries(["산 fox", "산"], ["1", "2"])
        qrels = frame(("1", "d1", 1), ("2", "문서", 1), columns="qid docno label")
        systems = {"ours": ours, "first": ours % 1, "sum": ours + ours}
        table = pt.Experiment(systems, topics, qrels, ["recip_rank"], validate="error")
        values = dict(zip(table["name"], table["recip_rank"], strict=True))
        assert values == {"ours": 0.75, "first": 0.5, "sum": 0.75}

    def test_it_says_which_columns_it_gives(self) -> None:
        outputs = pt.inspect.transformer_outputs(as_pyterrier(Overlap(CORPUS)), ["qid", "query"])
        assert set(outputs) == {"qid", "query", "docno", "score", "rank"}

    def test_documents_as_input_are_refused(self) -> None:
        hits = frame(("1", "fox", "d1"), columns="qid query docno")
        with pytest.raises(pt.validate.InputValidationError):
            as_pyterrier(Overlap(CORPUS)).transform(hits)

    def test_the_contract_is_checked_on_the_way_out_too(self) -> None:
        class Broken(Overlap):
            def search(self, query: Query, k: int) -> RankingLike:
                return [("d1", 1.0), ("d1", 1.0)]

        with pytest.raises(ContractError, match="twice"):
            as_pyterrier(Broken(CORPUS)).search("x")
        with pytest.raises(ContractError, match="k = 0"):
            as_pyterrier(Overlap(CORPUS), k=0)

    def test_there_and_back_gives_the_same_rankings(self) -> None:
        back = PyTerrierRetriever(as_pyterrier(Overlap(CORPUS)) % 2)
        query = Query("q", "fox dog")
        assert list(back.search(query, 5)) == list(
            checked_ranking(Overlap(CORPUS).search(query, 2), 2)
        )
        assert back.describe()["pyterrier"] == pt.__version__
