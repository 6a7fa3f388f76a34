"""Predictions of mteb and retrieved contexts of Ragas as runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench_score.runs.imported import read_rankings
from retrieval_bench_score.score import evaluate
from retrieval_bench_score.scorecard import ScoreCard, Truth
from tests.builders.files import json_lines, save, save_all

META = {"model_name": "m", "revision": "r"}
LEAVE, TICKET = "Every employee has 25 days of paid leave a year.", "Train tickets are paid back."
ROWS: list[dict[str, Any]] = [
    {
        "user_input": "how many days of leave",
        "reference_contexts": [LEAVE],
        "retrieved_contexts": [TICKET, LEAVE],
        "response": "20",
    },
    {"user_input": "ticket", "reference_contexts": [TICKET], "retrieved_contexts": [TICKET]},
]


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_rankings(path)
    return "\n".join(caught.value.faults)


def means(path: Path, dataset: Path) -> tuple[list[float], ScoreCard]:
    card = evaluate(path, lambda: Truth.needed(str(dataset)), metrics=["RR", "R@2"])
    return [mean.mean for mean in card.scored.evaluation.means], card


class TestPredictionsOfMteb:
    def test_one_subset_and_split_are_a_run(self, tmp_path: Path) -> None:
        content = {"mteb_model_meta": META, "default": {"test": {"0012": {"0007": 0.9, "8": 1}}}}
        run = read_rankings(save(tmp_path / "p.json", json.dumps(content, indent=1)))
        assert list(run.rankings) == ["0012"]
        assert list(run.ordered("trec")["0012"].doc_ids) == ["8", "0007"]

    @pytest.mark.parametrize(
        ("parts", "says"),
        [
            ({"default": {"dev": {}, "test": {}}}, "predictions of default/dev, default/test"),
            ({"en": {"test": {}}, "de": {"test": {}}}, "predictions of en/test, de/test"),
            ({}, "predictions of nothing"),
            ({"default": {"test": {"q": {"d": "x"}}}}, "default/test, query 'q': score of 'd' is"),
            ({"default": {"test": 3}}, "predictions of default/test; accepted: "),
        ],
    )
    def test_what_is_not_one_run_is_told(
        self, tmp_path: Path, parts: dict[str, Any], says: str
    ) -> None:
        content = json.dumps({"mteb_model_meta": META, **parts})
        assert says in refusal(save(tmp_path / "p.json", content))


class TestRetrievedContexts:
    @pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
    def test_the_file_of_a_dataset_is_also_the_run_of_the_system(
        self, tmp_path: Path, kind: str
    ) -> None:
        path = tmp_path / f"test.{kind}"
        if kind == "csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                rows = csv.DictWriter(file, list(ROWS[0]))
                rows.writeheader()
                rows.writerows(ROWS)
        else:
            save(path, json_lines(ROWS) if kind == "jsonl" else json.dumps(ROWS))
        values, card = means(path, tmp_path)
        assert values == [0.75, 1.0]
        assert read_rankings(path).format == "ragas"
        assert card.scored.warnings == ()

    def test_texts_stand_for_the_documents_of_a_corpus_that_contain_them(
        self, tmp_path: Path
    ) -> None:
        corpus = [{"_id": "a", "text": f"Intro. {LEAVE}"}, {"_id": "b", "text": TICKET}]
        corpus += [{"_id": "c", "text": "Other."}]
        rows = [{**ROWS[0], "retrieved_contexts": ["Gone.", TICKET, "Train tickets", LEAVE]}]
        described = "format: ragas\nfiles: {documents: corpus.jsonl}\nsplits: {test: t.jsonl}\n"
        folder = save_all(
            tmp_path,
            {
                "t.jsonl": json_lines(rows),
                "corpus.jsonl": json_lines(corpus),
                "dataset.yaml": described,
            },
        )
        values, card = means(folder / "t.jsonl", folder)
        assert values == [pytest.approx(1 / 3), 0.0]
        assert "1 retrieved context in no document: not judged" in card.scored.warnings

    def test_ids_beside_the_contexts_count_and_nothing_retrieved_is_an_empty_ranking(
        self, tmp_path: Path
    ) -> None:
        row = {
            "user_input": "q",
            "retrieved_context_ids": ["b", 7],
            "retrieved_contexts": ["x", "y"],
        }
        run = read_rankings(save(tmp_path / "r.jsonl", json_lines([row])))
        assert [list(ranking.doc_ids) for ranking in run.rankings.values()] == [["b", "7"]]
        rows = [{**ROWS[0], "retrieved_contexts": []}, ROWS[1]]
        run = read_rankings(save(tmp_path / "r.jsonl", json_lines(rows)))
        assert [len(ranking) for ranking in run.rankings.values()] == [0, 1]
        assert run.warnings == ()
        rows = [{"question": "q", "contexts": ["x", "y"], "ground_truth": "g"}]
        run = read_rankings(save(tmp_path / "r.jsonl", json_lines(rows)))
        assert [len(ranking) for ranking in run.rankings.values()] == [2]

    def test_contexts_that_lost_their_commas_are_refused(self, tmp_path: Path) -> None:
        table = "user_input,retrieved_contexts\nq,\"['a' 'b']\"\n"
        assert "a list without commas" in refusal(save(tmp_path / "r.csv", table))
