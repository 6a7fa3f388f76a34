"""Runs and judgements of every kind, brought together."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.types import Dataset, Document, Qrels, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.reports.render.terminal import plain
from retrieval_bench_score.conventions import CONVENTIONS, convention
from retrieval_bench_score.runs.imported import RunFile, read_rankings
from retrieval_bench_score.scorecard import ScoreCard, Truth, score_file, score_mapping
from retrieval_bench_score.tables.score import score_tables
from tests.builders import some
from tests.builders.files import save
from tests.cli.project import make_project

QRELS: Qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "질문": {"문서": 1}, "hello": {}}
SCORES = {
    "q1": {"a": 1.0, "x": 3.0, "b": 1.0},
    "q2": {"c": 2.0, "d": 2.0},
    "hello": {"x": 0.5},
    "nobody": {"a": 1.0},
}
LISTS = {"q1": ["x", "a", "b"], "q2": ["c", "d"], "hello": ["x"], "nobody": ["a"]}


def dataset() -> Dataset:
    documents = [Document(i, f"text of {i}") for i in ("a", "b", "c", "d", "x")]
    queries = [
        Query("q1", "text b"),
        Query("q2", "text c"),
        Query("hello", "hi", metadata={"answerable": False}),
        Query("unjudged", "three"),
    ]
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}
    return build_dataset("tiny", documents, queries, qrels, split="test", language="en")


def written(folder: Path, run: Mapping[str, Any]) -> RunFile:
    path = save(folder / "run.json", json.dumps(run))
    return read_rankings(path)


def figures(card: ScoreCard) -> dict[str, Any]:
    """The document without what the run is called and how its order is described."""
    document = card.with_queries().as_dict()
    return {key: document[key] for key in document if key not in ("run", "judgements", "tie_rule")}


class TestTruth:
    def test_of_a_dataset_knows_all_queries_and_of_judgements_nothing_else(self) -> None:
        truth = Truth.of(QRELS)
        assert (truth.name, truth.known, truth.unanswerable) == ("judgements", (), ())
        assert truth.no_answer == {"hello"}
        truth = Truth.of(dataset())
        assert truth.name == "tiny (test)"
        assert truth.known == ("q1", "q2", "hello", "unjudged")
        assert truth.unanswerable == ("hello",)
        assert truth.no_answer == {"hello"}

    def test_of_a_file_a_folder_or_its_split(self, tmp_path: Path) -> None:
        data = make_project(tmp_path) / "data"
        file = Truth.of(str(data / "qrels" / "test.tsv"))
        folder = Truth.of(data)
        assert file.judgements.qrels == folder.judgements.qrels
        assert (file.known, folder.known) == ((), ("q1", "q2", "q3", "질문"))
        assert folder.name == "data (test)"
        rows = "query-id\tcorpus-id\tscore\nq2\td1\t1\n"
        save(data / "qrels" / "dev.tsv", rows)
        assert Truth.of(data, "dev").judgements.qrels == {"q2": {"d1": 1}}

    @pytest.mark.parametrize("wrong", [None, ["d"], {"q": ["d"]}, {"q": "d"}, 3])
    def test_of_anything_else_is_refused(self, wrong: Any) -> None:
        with pytest.raises(
            DataError,
            match=r"(another form|judgements of type)[\s\S]*accepted: \{query: \{document",
        ):
            Truth.of(wrong)


class TestOrder:
    def test_a_file_with_scores_is_ordered_as_the_convention_has_it(self, tmp_path: Path) -> None:
        run = written(tmp_path, SCORES)
        trec = score_file(run, Truth.of(QRELS), ["RR"])
        assert trec.scored.tie_rule == "score in single precision desc, id desc"
        assert trec.scored.evaluation.per_query[:, 0].tolist() == [0.5, 0.5, 0.0]
        blog = score_file(run, Truth.of(QRELS), ["RR"], convention("blog"))
        assert blog.scored.tie_rule == "order of the list"
        assert blog.scored.evaluation.per_query[:, 0].tolist() == [0.5, 1.0, 0.0, 0.0]

    def test_lists_keep_their_order_and_say_so(self, tmp_path: Path) -> None:
        card = score_file(written(tmp_path, LISTS), Truth.of(QRELS), ["RR"])
        assert card.scored.tie_rule == "order of the list"
        assert card.scored.evaluation.per_query[:, 0].tolist() == [0.5, 1.0, 0.0]

    @pytest.mark.parametrize("name", CONVENTIONS)
    @pytest.mark.parametrize("run", [SCORES, LISTS])
    def test_dictionaries_give_what_the_same_file_gives(
        self, name: str, run: Any, tmp_path: Path
    ) -> None:
        truth = Truth.of({**QRELS, "none": {"x": 0}} if name != "piaf" else QRELS)
        rules = convention(name)
        from_file = score_file(written(tmp_path, run), truth, (), rules)
        from_memory = score_mapping(run, truth, (), rules)
        assert figures(from_file) == figures(from_memory)
        assert from_file.scored.tie_rule == from_memory.scored.tie_rule

    def test_nothing_that_was_given_is_changed(self) -> None:
        before = json.dumps([SCORES, QRELS])
        for rules in CONVENTIONS.values():
            score_mapping(SCORES, Truth.of(QRELS), (), rules)
        assert json.dumps([SCORES, QRELS]) == before


class TestDocument:
    def test_has_the_queries_only_when_they_are_asked_for(self) -> None:
        card = score_mapping(SCORES, Truth.of(QRELS), ["AP"])
        assert "per_query" not in card.as_dict()
        assert "abstention" in card.as_dict()
        answerable = score_mapping(SCORES, Truth.of({"q1": {"a": 1}}), ["AP"])
        assert "abstention" not in answerable.as_dict()

    def test_a_mean_over_no_query_is_null_and_shown_as_a_dash(self) -> None:
        card = score_mapping({"zz": ["a"]}, Truth.of({"q": {"a": 1}}), (), convention("mala2025"))
        document = json.loads(json.dumps(card.as_dict(), allow_nan=False))
        assert document["metrics"]["AP(norm=hits)@3"] == {"mean": None, "ci95": None, "n": 0}
        shown = plain(score_tables(card, per_query=True))
        assert "nan" not in shown
        assert "!  no query counts" in shown

    @pytest.mark.parametrize(("depth", "deep"), [(0, False), (3, False), (99, False), (100, True)])
    def test_what_is_reported_without_asking_depends_on_depth_only_for_deep_runs(
        self, depth: int, deep: bool, tmp_path: Path
    ) -> None:
        run = {"q1": [f"d{i}" for i in range(depth)], "q2": []}
        expected = ["nDCG@10", "AP", "RR", "R@10", "R@100", "Success@1", "Judged@10"]
        if not deep:
            expected.remove("R@100")
        truth = Truth.of(QRELS)
        for card in (score_mapping(run, truth), score_file(written(tmp_path, run), truth)):
            assert list(card.as_dict()["metrics"]) == expected
        blog = score_mapping(run, truth, (), convention("blog"))
        assert list(blog.as_dict()["metrics"]) == ["RR@10", "AP@10", "nDCG@10", "Success@10"]

    def test_warnings_of_the_file_come_first(self, tmp_path: Path) -> None:
        path = save(tmp_path / "run.trec", "q1 Q0 x 1 1.0 t\nq1 Q0 a 2 3.0 t\n")
        first, second = score_file(read_rankings(path), Truth.of({"q1": {"a": 1}, "q2": {"c": 1}}),
                                   ["AP"]).scored.warnings  # fmt: skip
        assert "do not follow the scores" in first
        assert "1 query to score not in the run" in second


class TestAbstention:
    def test_is_none_where_every_query_has_an_answer_and_without_scores_has_no_threshold(
        self,
    ) -> None:
        assert score_mapping(SCORES, Truth.of({"q1": {"a": 1}})).abstention is None
        card = score_mapping(LISTS, Truth.of(QRELS))
        assert (some(card.abstention).auroc, some(card.abstention).threshold) == (None, None)
        assert some(card.abstention).reason == "3 queries with hits but without scores"

    def test_counts_empty_lists_of_all_judged_queries_that_the_convention_counts(self) -> None:
        card = score_mapping({**SCORES, "q2": {}}, Truth.of(QRELS))
        found = some(card.abstention).run.abstention
        # 질문 is not in the run: a text format could not hold its empty list.
        assert (found.false_empty, found.true_return) == (2, 1)
        assert (found.true_empty, found.false_return) == (0, 1)
        card = score_mapping({**SCORES, "q2": {}}, Truth.of(QRELS), (), convention("scienceqa"))
        assert some(card.abstention).run.n == 3
        assert some(card.abstention).run.abstention.false_empty == 1

    def test_counts_queries_of_a_dataset_that_say_that_nothing_answers_them(self) -> None:
        run = {"q1": ["a"], "q2": ["c"], "hello": []}
        card = score_mapping(run, Truth.of(dataset()))
        assert some(card.abstention).run.abstention.true_empty == 1
        assert card.scored.counts.unjudged_queries == 1

    @pytest.mark.parametrize("name", CONVENTIONS)
    def test_is_weighed_by_the_competition_s_rules_under_every_convention(
        self, name: str, tmp_path: Path
    ) -> None:
        """Not by the tie rule of trec: in a's file order the relevant document is first."""
        run = {"q": {"a": 1.0, "b": 1.0}, "hello": {}}
        truth = Truth.of({"q": {"a": 1}, "hello": {}})
        for card in (
            score_file(written(tmp_path, run), truth, (), convention(name)),
            score_mapping(run, truth, (), convention(name)),
        ):
            assert some(card.abstention).run.scienceqa_map == 1.0

    def test_the_threshold_is_chosen_on_the_given_queries(self) -> None:
        n = 20
        qrels = {f"q{i}": {"a": 1} if i % 2 else {} for i in range(n)}
        run = {
            q: {"y": 1.0, ("a" if grades else "x"): 2.0 + bool(grades)}
            for q, grades in qrels.items()
        }
        dev = [f"q{i}" for i in range(6)]
        abstention = some(score_mapping(run, Truth.of(qrels), dev_ids=dev).abstention)
        threshold = some(abstention.threshold)
        assert (sorted(threshold.dev_ids), threshold.threshold) == (sorted(dev), 3.0)
        assert threshold.rest.before.n == n - 6
        assert abstention.auroc == 1.0

    def test_queries_to_choose_on_are_refused_where_they_are_unknown_or_all_have_an_answer(
        self,
    ) -> None:
        with pytest.raises(DataError, match="2 dev queries that this run does not know: x, y"):
            score_mapping(SCORES, Truth.of(QRELS), dev_ids=["q1", "y", "x"])
        with pytest.raises(ConfigError, match="here every query has an answer"):
            score_mapping(SCORES, Truth.of({"q1": {"a": 1}}), dev_ids=["q1"])


class TestWrongRuns:
    @pytest.mark.parametrize("name", CONVENTIONS)
    @pytest.mark.parametrize(
        "score",
        [math.nan, math.inf, -math.inf, "high", "1.5", None, [1], pytest.param(10**400, id="huge")],
    )
    def test_a_score_that_is_no_finite_number_is_told_under_every_convention(
        self, name: str, score: Any
    ) -> None:
        run = {"q1": {"a": 1.0}, "nobody": {"문서": score}}
        with pytest.raises(DataError) as raised:
            score_mapping(run, Truth.of({"q1": {"a": 1}}), (), convention(name))
        assert raised.value.given.startswith(f"score {score!r}"[:36])
        assert raised.value.given.endswith(" of document '문서', query 'nobody'")

    @pytest.mark.parametrize("score", [2, np.float32(2), np.int64(2), True])
    def test_numbers_of_any_kind_are_scores(self, score: Any) -> None:
        card = score_mapping({"q1": {"x": score, "a": 3.5}}, Truth.of({"q1": {"a": 1}}), ["RR"])
        assert card.scored.evaluation.means[0].mean == 1.0

    @pytest.mark.parametrize(
        "run",
        [
            {"q1": ["a"], "q2": {"c": 1.0}},
            {"q1": {"a": 1.0}, "q2": ["c"]},
            {"q1": "abc"},
            {"q1": ["a"], "q2": "c"},
            {"q1": None},
            {"q1": {"a"}},
            ["a"],
            None,
            3,
        ],
    )
    def test_another_form_is_refused(self, run: Any) -> None:
        with pytest.raises(DataError, match=r"accepted: \{query: \{document: score\}\} or"):
            score_mapping(run, Truth.of(QRELS))

    @pytest.mark.parametrize("run", [{}, {"q1": {}}, {"q1": []}, {"q1": ()}])
    def test_nothing_returned_is_a_run(self, run: Any) -> None:
        card = score_mapping(run, Truth.of({"q1": {"a": 1}}), ["AP"])
        assert (card.scored.evaluation.means[0].mean, card.scored.counts.evaluated) == (0.0, 1)
