"""A submission: which lists are emptied, what they score, what the file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_answers.submission import ALL, HELD_OUT, Submission, read_threshold, submit
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.runs.imported import read_rankings
from retrieval_bench_score.scorecard import Truth, score_file
from tests.builders import some
from tests.builders.scripted import Scripted

DOCUMENTS = [Document(f"d{i}", f"text {i}", "title" if i == 1 else "") for i in range(6)]
ANSWERED = {f"{i}": {"d1": 1} for i in range(1, 9)}
CHAT = ["11", "12", "13", "14"]
QRELS = {**ANSWERED, "2": {"d2": 1, "d3": 1}}


Script = Mapping[str, Mapping[str, float]]


def scripted(script: Script, *, scores: bool = True) -> Scripted:
    """Returns what it was told; a query that is not in the script fails."""
    return Scripted(
        lambda query: script[query.id] if scores else [*script[query.id]],
        capabilities=Capabilities(has_scores=scores),
    )


SCRIPT: Script = {
    **{q: {"d1": 9.0 + int(q), "d0": 1.0} for q in ANSWERED},
    "2": {"d2": 11.0, "d0": 5.0, "d3": 4.0},
    "8": {"d5": 3.0},
    **{q: {"d4": float(i + 1)} for i, q in enumerate(CHAT)},
    "99": {"d0": 7.0},
}


def data(*, judged: bool = True, chat: bool = True, ids: str = "{}") -> Dataset:
    queries = [Query(ids.format(q), f"question {q}") for q in ANSWERED]
    flag = {"answerable": False} if chat else {}
    queries += [Query(ids.format(q), f"hello {q}", metadata=flag) for q in CHAT]
    queries.append(Query(ids.format("99"), "unjudged"))
    qrels = {ids.format(q): grades for q, grades in QRELS.items()}
    made = build_dataset("tiny", DOCUMENTS, queries, qrels)
    return made if judged else replace(made, qrels={}, queries=tuple(queries[:8]))


def made(
    retriever: Retriever | None = None, dataset: Dataset | None = None, **more: Any
) -> Submission:
    experiment = prepare(
        [retriever or scripted(SCRIPT)],
        data() if dataset is None else dataset,
        k=3,
        save=False,
        every_query=True,
    )
    return submit(experiment, **more)


def lists(submission: Submission) -> dict[str, list[str]]:
    return {str(line["eval_id"]): line["topk"] for line in submission.records}


def score(submission: Submission, group: str, metric: str) -> Any:
    (one,) = [s for s in submission.scores if (s.queries, s.metric) == (group, metric)]
    return one.n, one.as_found, one.submitted


def test_every_query_is_searched_once_and_has_a_line() -> None:
    retriever = scripted(SCRIPT)
    submission = made(retriever, threshold="none")
    assert sorted(retriever.heard) == sorted(q.text for q in data().queries)
    assert list(lists(submission)) == [*ANSWERED, *CHAT, "99"]
    assert submission.counts.lines == 13
    assert submission.counts.returned == 13


@pytest.mark.slow
def test_a_line_holds_what_the_competition_asks_for() -> None:
    line = made(threshold="none").records[1]
    assert line == {
        "eval_id": 2,
        "standalone_query": "question 2",
        "topk": ["d2", "d0", "d3"],
        "answer": "",
        "references": [
            {"score": 11.0, "content": "text 2"},
            {"score": 5.0, "content": "text 0"},
            {"score": 4.0, "content": "text 3"},
        ],
    }
    assert made(threshold="none").records[0]["references"][0]["content"] == "title text 1"


@pytest.mark.slow
def test_ids_are_numbers_only_where_all_of_them_are() -> None:
    assert [line["eval_id"] for line in made(threshold="none").records][:2] == [1, 2]
    with_zero = build_dataset("z", DOCUMENTS, [Query("1", "a"), Query("02", "b")], {"1": {"d1": 1}})
    retriever = scripted({"1": {"d1": 1.0}, "02": {"d1": 1.0}})
    ids = [line["eval_id"] for line in made(retriever, with_zero).records]
    assert ids == ["1", "02"]


def test_a_given_threshold_empties_what_is_below_it_and_nothing_else() -> None:
    submission = made(threshold=3.0)
    empty = {q for q, docs in lists(submission).items() if not docs}
    assert empty == {"11", "12"}  # 13 and 8 have exactly 3
    assert submission.counts.below_threshold == 2
    assert submission.records[8]["references"] == []
    assert submission.records[8]["standalone_query"] == "hello 11"


def test_the_scores_are_those_of_the_conventions() -> None:
    submission = made(threshold=4.0)
    assert lists(submission)["13"] == lists(submission)["8"] == []
    # Divided by hits: 2 is (1 + 2/3) / 2; 8 finds nothing; three of four chats are emptied.
    assert score(submission, ALL, "AP(norm=hits)@3") == (
        12, pytest.approx((6 + 5 / 6) / 12), pytest.approx((6 + 5 / 6 + 3) / 12)
    )  # fmt: skip
    assert score(submission, ALL, "AP@3") == (
        8, pytest.approx((6 + 5 / 6) / 8), pytest.approx((6 + 5 / 6) / 8)
    )  # fmt: skip
    assert score(submission, ALL, "R@3")[1] == pytest.approx(7 / 8)


def test_the_decision_table_is_what_each_threshold_gives() -> None:
    submission = made(threshold=4.0)
    rows = {choice.threshold: choice for choice in submission.choices}
    assert [row.threshold for row in submission.choices if row.chosen] == [4.0]
    assert rows[4.0].empty == 4
    assert (rows[4.0].false_empty, rows[4.0].false_return) == (1, 1)
    assert rows[4.0].map == pytest.approx((6 + 5 / 6 + 3) / 12)
    assert rows[1.0].empty == 0
    assert rows[None].empty == 12
    assert rows[None].map == pytest.approx(4 / 12)
    assert rows[None].trec == 0.0
    above = rows[16.0]
    assert above.trec == pytest.approx(1 / 8)  # 7 alone has a top score of 16
    assert above.dev_map is None


def test_a_threshold_that_is_chosen_is_reported_on_the_other_queries() -> None:
    dev = ["1", "2", "3", "11", "12", "13"]
    submission = made(threshold="auto", dev_ids=dev)
    assert submission.decision.kind == "auto"
    assert submission.decision.threshold == 10.0
    assert submission.reported == HELD_OUT
    (chosen,) = [choice for choice in submission.choices if choice.chosen]
    assert chosen.threshold == 10.0
    assert chosen.dev_map == pytest.approx((2 + 5 / 6 + 3) / 6)
    # 4 to 7 found, 8 and 14 emptied, the latter rightly.
    assert chosen.map == pytest.approx(5 / 6)
    assert chosen.trec == pytest.approx(4 / 5)
    assert (chosen.empty, chosen.false_empty, chosen.false_return) == (2, 1, 0)
    assert score(submission, HELD_OUT, "AP(norm=hits)@3") == (
        6, pytest.approx(4 / 6), pytest.approx(5 / 6)
    )  # fmt: skip
    assert score(submission, ALL, "AP(norm=hits)@3")[0] == 12
    assert some(some(submission.report).threshold).dev_ids == tuple(sorted(dev))


def test_the_last_row_empties_every_list_also_one_with_a_higher_score_than_any_dev_query() -> None:
    submission = made(threshold="auto", dev_ids=["1", "2", "11"])
    last = submission.choices[-1]
    assert last.threshold is None
    assert (last.empty, last.trec) == (9, 0.0)


@pytest.mark.slow
def test_without_being_asked_a_threshold_is_chosen_where_it_can_be() -> None:
    assert made().decision.kind == "auto"
    plain = made(dataset=data(chat=False))
    assert plain.decision.kind == "none"
    assert plain.decision.reason == "no query is marked as unanswerable"
    assert plain.choices == ()
    assert plain.scores


def test_where_there_are_no_judgements_the_file_is_made_all_the_same() -> None:
    submission = made(dataset=data(judged=False), threshold=10.5)
    assert submission.scores == ()
    assert submission.choices == ()
    assert {q for q, docs in lists(submission).items() if not docs} == {"1", "8"}


@pytest.mark.slow
def test_a_retriever_without_scores_has_no_threshold() -> None:
    retriever = scripted(SCRIPT, scores=False)
    submission = made(retriever)
    assert submission.decision.kind == "none"
    assert "without scores" in str(submission.decision.reason)
    assert submission.records[0]["references"][0]["score"] is None
    for threshold in ("auto", 3.0):
        with pytest.raises(ConfigError, match="without scores"):
            made(scripted(SCRIPT, scores=False), threshold=threshold)


def test_a_search_that_fails_is_an_empty_list_that_is_counted_and_named() -> None:
    script = {q: hits for q, hits in SCRIPT.items() if q not in ("5", "11")}
    submission = made(scripted(script), threshold="none")
    assert submission.counts.failed == 2
    assert submission.counts.nothing_found == 0
    assert lists(submission)["5"] == []
    assert any("the search failed: 2 (11, 5)" in warning for warning in submission.warnings)
    assert any("2 queries failed: KeyError" in warning for warning in submission.warnings)


def test_an_interruption_is_no_submission() -> None:
    class Stopped(Scripted):
        def search(self, query: Query, k: int) -> Ranking:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(Stopped())


def test_a_query_that_needs_no_search_is_not_searched() -> None:
    retriever = scripted(SCRIPT)
    submission = made(
        retriever,
        threshold="none",
        messages=lambda m: None if m[-1]["content"].startswith("hello") else "x",
    )
    assert set(retriever.heard) == {"x"}
    assert submission.counts.no_search == 4
    assert submission.records[8]["standalone_query"] == ""
    assert lists(submission)["11"] == []
    assert score(submission, ALL, "AP(norm=hits)@3")[2] == pytest.approx((6 + 5 / 6 + 4) / 12)


def test_every_line_is_in_one_of_the_counts() -> None:
    script = {**{q: hits for q, hits in SCRIPT.items() if q != "5"}, "6": {}}
    counts = made(
        scripted(script), threshold=4.0, messages=lambda m: None if "14" in m[0]["content"] else "x"
    ).counts
    # Below 4: 8 and three chats; 5 failed, 6 found nothing, 14 is unanswerable.
    assert (counts.no_search, counts.nothing_found, counts.failed) == (1, 1, 1)
    assert (counts.lines, counts.returned, counts.below_threshold) == (13, 6, 4)


def test_queries_that_nothing_judges_are_submitted_and_said() -> None:
    submission = made(threshold="none")
    assert lists(submission)["99"] == ["d0"]
    assert "1 query without judgements: submitted, not scored" in submission.warnings


def test_the_file_scores_what_the_submission_says(tmp_path: Path) -> None:
    submission = made(threshold=4.0)
    submission.write(tmp_path / "s.jsonl")
    truth = Truth.of(data())
    for name, metric in (("scienceqa", "AP(norm=hits)@3"), ("trec", "AP@3")):
        card = score_file(read_rankings(tmp_path / "s.jsonl"), truth, ["AP@3"], convention(name))
        (mean,) = card.scored.evaluation.means
        n, _, value = score(submission, ALL, metric)
        assert mean.n == n
        assert mean.mean == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "value"), [(None, None), ("auto", "auto"), ("none", "none"), ("4.5", 4.5), ("-1", -1)]
)
def test_a_threshold_is_read(text: str | None, value: object) -> None:
    assert read_threshold(text) == value


@pytest.mark.parametrize("text", ["nan", "inf", "Auto", ""])
def test_another_word_is_no_threshold(text: str) -> None:
    with pytest.raises(ConfigError, match="accepted: auto, none, or a score"):
        read_threshold(text)


def test_what_cannot_be_chosen_is_told_before_anything_is_searched() -> None:
    retriever = scripted(SCRIPT)
    with pytest.raises(ConfigError, match="where no query is marked as unanswerable"):
        made(retriever, data(chat=False), threshold="auto")
    with pytest.raises(ConfigError, match="with --threshold none"):
        made(retriever, threshold="none", dev_ids=["1"])
    with pytest.raises(ConfigError, match="where no query is marked"):
        made(retriever, data(chat=False), dev_ids=["1"])
    assert retriever.heard == []


def test_a_chosen_row_is_what_is_submitted_though_it_empties_all_dev_queries() -> None:
    top = {"what a1": 1.0, "hi u1": 2.0, "hi u2": 2.0, "what a2": 9.0, "hi u3": 1.0}

    def retriever(query: str, k: int) -> list[tuple[str, float]]:
        return [("d2" if query == "what a2" else "d1", top[query])]

    queries = [
        Query(text[-2:], text, metadata={} if "a" in text[-2:] else {"answerable": False})
        for text in top
    ]
    documents = [Document("d1", "a"), Document("d2", "b")]
    mine = build_dataset("mine", documents, queries, {"a1": {"d2": 1}, "a2": {"d2": 1}})
    experiment = prepare(
        [retriever], mine, k=3, protocol=Protocol(rounds=1), save=False, every_query=True
    )
    submission = submit(experiment, dev_ids=["a1", "u1", "u2"])
    (chosen,) = (choice for choice in submission.choices if choice.chosen)
    assert (chosen.empty, chosen.map) == (1, 1.0)
