"""Which queries count, what the document of a scored run says, and that it is the same again."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics import METRICS_VERSION, Judgements
from retrieval_bench.runs.records import to_json
from retrieval_bench.stats.intervals import SHARE, mean_intervals
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, Counts, Scored, score
from tests.builders import some
from tests.builders.generated import generated
from tests.builders.processes import python

TREC = convention("trec")


def scored(
    answers: Answers,
    qrels: dict[str, dict[str, int]],
    *names: str,
    under: str = "trec",
    **more: Any,
) -> Scored:
    rules = convention(under)
    return score(answers, Judgements(qrels), rules, rules.parse(names or ["AP"]), **more)


@pytest.mark.parametrize(
    ("missing", "unanswerable", "unjudged", "unknown", "under"),
    [
        (*some, under)
        for some in itertools.product([0, 2], [0, 3], [0, 1], [0, 4])
        for under in ("trec", "scienceqa", "blog")
    ],
)
def test_every_kind_of_query_is_counted_apart(
    missing: int, unanswerable: int, unjudged: int, unknown: int, under: str
) -> None:
    qrels = {f"judged{i}": {"a": 1} for i in range(5)}
    lists = {query_id: ["a"] for query_id in qrels}
    qrels |= {f"missing{i}": {"a": 1} for i in range(missing)}
    empty = [f"empty{i}" for i in range(unanswerable)]
    qrels |= {query_id: {} for query_id in empty[:1]}
    lists |= {query_id: ["a"] for query_id in empty[:2]}
    lists |= {f"unknown{i}": ["a"] for i in range(unknown)}
    known = [*qrels, *(f"unjudged{i}" for i in range(unjudged)), *empty]
    lists |= {f"unjudged{i}": ["a"] for i in range(unjudged)}
    result = scored(Answers(lists=lists), qrels, under=under, known=known, unanswerable=empty)
    evaluated = {
        "trec": 5 + missing,  # unanswerable ones apart
        "scienceqa": 5 + len(empty[:2]),  # what the run has
        "blog": 5 + missing + unanswerable,
    }[under]
    # Where unanswerable queries count, one that the run does not have is missing, too.
    missing += 0 if under == "trec" else len(empty[2:])
    assert result.counts == Counts(evaluated, missing, unanswerable, unjudged, unknown)
    assert len(result.evaluation.query_ids) == evaluated
    assert result.evaluation.means[0].n == evaluated


def test_unanswerable_queries_stay_apart_though_judged_and_are_never_missing() -> None:
    qrels = {"q": {"a": 1}, "says so": {"a": 0}}
    lists = {"q": ["a"], "says so": ["a"]}
    result = scored(Answers(lists=lists), qrels, unanswerable=["says so"])
    assert result.counts == Counts(1, 0, 1, 0, 0)
    assert result.evaluation.query_ids == ("q",)
    qrels = {"q": {"a": 1}, "empty": {}}
    assert scored(Answers(lists={"q": ["a"]}), qrels).counts == Counts(1, 0, 1, 0, 0)


def test_an_empty_list_is_an_answer_and_told_where_a_text_format_could_not_hold_it() -> None:
    for answers in (Answers(lists={"q": []}), Answers(scores={"q": {}})):
        result = scored(answers, {"q": {"a": 1}}, under="scienceqa")
        assert result.counts == Counts(1, 0, 0, 0, 0)
        assert result.evaluation.means[0].mean == 0
    result = scored(Answers(lists={"q": ["a"]}), {"q": {"a": 1}, "e": {}}, under="scienceqa")
    assert result.counts == Counts(1, 1, 1, 0, 0)
    assert any("cannot hold an empty list" in warning for warning in result.warnings)


def test_no_query_that_counts_is_no_crash() -> None:
    nothing: tuple[dict[str, dict[str, int]], ...] = ({}, {"empty": {}})
    for qrels in nothing:
        for answers in (Answers(lists={"q": ["a"]}), Answers(scores={"q": {"a": 1.0}}), Answers()):
            result = scored(
                answers, qrels, "AP", "ERR@3", "Judged@3", "GMAP", "nDCG(ideal=returned)"
            )
            assert result.counts.evaluated == 0
            assert "no query counts: nothing of the run is judged" in result.warnings
            document = result.as_dict()
            assert document["metrics"]["AP"] == {"mean": None, "ci95": None, "n": 0}
            assert result.by_query() == {}


def test_one_query_has_a_mean_and_no_interval() -> None:
    document = scored(Answers(lists={"q": ["x", "a"]}), {"q": {"a": 1}}).as_dict()
    assert document["metrics"] == {"AP": {"mean": 0.5, "ci95": None, "n": 1}}


def test_the_document_has_what_evaluate_promises() -> None:
    qrels = {"질문 1": {"a": 1}, "q2": {"a": 1, "b": 2}}
    result = scored(
        Answers(lists={"질문 1": ["x", "a"], "q2": ["b"]}), qrels, "AP", "map", "nDCG@10"
    )
    document = result.as_dict()
    assert list(document) == [
        "convention", "tie_rule", "metrics_version", "interval", "metrics", "counts", "warnings",
    ]  # fmt: skip
    assert document["convention"] == "trec"
    assert document["tie_rule"] == "score in single precision desc, id desc"
    assert document["metrics_version"] == METRICS_VERSION == 1
    assert document["interval"] == "Gaffke's bound"
    assert list(document["metrics"]) == ["AP", "nDCG@10"]
    average = document["metrics"]["AP"]
    assert (average["mean"], average["n"]) == (0.5, 2)
    assert average["ci95"] == pytest.approx([0.0779, 0.9221], abs=1e-4)
    assert document["counts"] == {
        "evaluated": 2, "missing": 0, "unanswerable": 0, "unjudged_queries": 0,
        "unknown_queries": 0,
    }  # fmt: skip
    assert document["warnings"] == []
    assert result.by_query() == {
        "질문 1": {"AP": 0.5, "nDCG@10": pytest.approx(1 / np.log2(3))},
        "q2": {"AP": 0.5, "nDCG@10": pytest.approx(2 / (2 + 1 / np.log2(3)))},
    }
    assert json.loads(to_json(result.by_query()))["q2"]["AP"] == 0.5


@pytest.mark.parametrize(
    ("under", "rule"),
    [
        ("trec", "score in single precision desc, id desc"),
        ("scienceqa", "order of the list"),
        ("mala2025", "order of the list"),
        ("piaf", "order of the list"),
        ("tutorial", "order of the list"),
        ("blog", "order of the list"),
    ],
)
def test_every_document_names_its_convention_and_its_rule_for_ties(under: str, rule: str) -> None:
    name = "AP" if under != "tutorial" else "R@3"
    document = scored(Answers(lists={"q": ["a"]}), {"q": {"a": 1}}, name, under=under).as_dict()
    assert (document["convention"], document["tie_rule"]) == (under, rule)
    told = Answers(lists={"q": ["a"]}, tie_rule="as it was saved")
    assert scored(told, {"q": {"a": 1}}, name, under=under).tie_rule == "as it was saved"


def test_documents_that_stand_again_are_named_for_three_queries_at_most() -> None:
    lists = {f"q{i}": ["a", "문서", "b", "문서", "b"] for i in range(1200)} | {"fine": ["a"]}
    with pytest.raises(DataError) as caught:
        scored(Answers(lists=lists), {query_id: {"a": 1} for query_id in lists})
    assert caught.value.given == (
        "a document stands more than once in the ranking of 1,200 queries"
    )
    assert caught.value.accepted == "each document once per query, under the convention trec"
    assert caught.value.fix == (
        'keep the best hit of each (`--repeats first`; in Python repeats="first"), or choose a '
        "convention that counts them again: scienceqa, mala2025, piaf, tutorial"
    )
    assert caught.value.faults == (
        *(f"query 'q{i}': document '문서'" for i in range(3)),
        "... and 1,197 queries more",
    )


def test_a_repetition_where_nothing_counts_does_not_matter() -> None:
    lists = {"q": ["a"], "unknown": ["b", "b"], "empty": ["c", "c"]}
    assert scored(Answers(lists=lists), {"q": {"a": 1}, "empty": {}}).counts.evaluated == 1


def test_what_may_surprise_is_said_in_words() -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}, "m1": {"a": 1}, "m2": {"a": 1}}
    lists = {"q": ["a"], "none": ["a"], **{f"u{i}": ["a"] for i in range(4)}}
    assert scored(Answers(lists=lists), qrels).warnings == (
        "2 queries to score not in the run: no hits, that is the value of an empty list (m1, m2)",
        "4 queries of the run unknown, not scored: u0, u1, u2, ...",
        "1 query judged without a relevant document",
    )
    assert scored(Answers(lists=lists), qrels, under="scienceqa").warnings[0] == (
        "2 queries to score not in the run: in no mean, as scienceqa has it (m1, m2)"
    )
    del qrels["m2"], qrels["none"]
    assert scored(Answers(lists={"q": ["a"], "u": ["a"]}), qrels).warnings == (
        "1 query to score not in the run: no hits, that is the value of an empty list (m1)",
        "1 query of the run unknown, not scored: u",
    )


def test_an_unanswerable_query_that_counts_is_not_said_to_be_judged() -> None:
    lists = {"q": ["a"], "empty": []}
    result = scored(Answers(lists=lists), {"q": {"a": 1}, "empty": {}}, under="blog")
    assert result.counts.evaluated == 2
    assert result.warnings == ()


def test_a_value_that_a_repetition_may_lift_above_one_is_told() -> None:
    result = scored(Answers(lists={"q": ["a", "a"]}), {"q": {"a": 1}}, under="piaf")
    assert result.evaluation.means[0].mean == 2.0
    assert result.warnings == (
        "1 query with a judged document more than once, counted again: a value may be above 1",
    )


def test_known_queries_without_a_judgement_are_neither_unknown_nor_scored() -> None:
    lists = {"q": ["a"], "new": ["a"]}
    result = scored(Answers(lists=lists), {"q": {"a": 1}}, known=["q", "new", "unasked"])
    assert result.counts == Counts(1, 0, 0, 2, 0)


def test_lists_and_scores_in_the_same_order_score_the_same() -> None:
    data = generated(950, 100)
    metrics = TREC.parse(["nDCG@10", "AP", "RR", "Judged@10", "GMAP"])
    judgements = Judgements(data.qrels)
    lists = score(Answers(lists=data.lists), judgements, TREC, metrics)
    scores = score(Answers(scores=data.scores), judgements, TREC, metrics)
    documents = [one.as_dict() | {"per_query": one.by_query()} for one in (lists, scores)]
    assert "ties" not in documents[0], "a list has no scores that could be equal"
    documents[1].pop("ties", None)
    assert to_json(documents[0]) == to_json(documents[1])


def test_scoring_leaves_its_input_alone() -> None:
    data = generated(951, 30)
    lists = data.lists
    before = copy.deepcopy((data.qrels, data.scores, lists))
    for name, answers in (
        ("trec", Answers(scores=data.scores)),
        ("mala2025", Answers(lists=lists)),
    ):
        scored(answers, data.qrels, under=name)
    assert (data.qrels, data.scores, lists) == before


def test_intervals_hold_their_mean_and_belong_to_the_values() -> None:
    data = generated(952, 50)
    result = scored(Answers(scores=data.scores), data.qrels, "AP", "nDCG@10", "GMAP").evaluation
    plain = mean_intervals(result.per_query[:, :2], [SHARE, SHARE])
    for mean, ends in zip(result.means, plain, strict=False):
        assert mean.ci95 == pytest.approx(tuple(ends))
    for mean in result.means:
        assert some(mean.ci95)[0] < mean.mean < some(mean.ci95)[1]
    logs = mean_intervals(np.log(result.per_query[:, 2:]), [None])
    assert result.means[2].ci95 == pytest.approx(tuple(np.exp(logs[0])))
    assert result.mean(result.metrics[1]) == result.means[1]
    assert result.values(result.metrics[1]).tolist() == result.per_query[:, 1].tolist()


CHILD = """
import sys
from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench.runs.records import to_json
from retrieval_bench_score.scoring import Answers, score
from tests.builders.generated import generated

data = generated(954, 60)
known = {*data.qrels, "unjudged", "unjudged too"}
for name, metrics in (("trec", ["AP", "nDCG@10", "GMAP", "ERR", "Bpref"]), ("blog", ["AP"])):
    rules = convention(name)
    answers = Answers(scores={**data.scores, "unknown": {"a": 1.0}, "unknown too": {}})
    scored = score(
        answers, Judgements(data.qrels), rules, rules.parse(metrics), known=known,
        unanswerable=["empty", "empty too", list(data.qrels)[0]],
    )
    sys.stdout.buffer.write(to_json([scored.as_dict(), scored.by_query()]).encode())
"""


@pytest.mark.slow
def test_another_process_writes_the_same_bytes() -> None:
    root = Path(__file__).parents[2]
    written = {
        python(CHILD, cwd=root, PYTHONHASHSEED=seed, PYTHONPATH=str(root))
        for seed in ("0", "1", "4294967295")
    }
    assert len(written) == 1
    assert written.pop().startswith('[\n  {\n    "convention": "trec"')
