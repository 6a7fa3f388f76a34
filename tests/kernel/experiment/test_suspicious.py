"""Answers that hardly come from a search are told: F2 and F3."""

from __future__ import annotations

import pytest

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Qrels, Ranking
from retrieval_bench.experiment.warnings import fewer_hits, remembered, same_answers, too_good
from retrieval_bench.runs.timing_facts import LatencyFacts


def judged(n: int, relevant: int = 2) -> Qrels:
    return {f"q{at}": {f"q{at}-{rank}": 1 for rank in range(relevant)} for at in range(n)}


def peeked(n: int, wrong: int = 0, relevant: int = 2) -> dict[str, list[str]]:
    """All that is relevant first, but for the first ``wrong`` queries."""
    lists = {q: [*docs, "other"] for q, docs in judged(n, relevant).items()}
    return {q: docs[::-1] if at < wrong else docs for at, (q, docs) in enumerate(lists.items())}


@pytest.mark.parametrize(
    ("n", "wrong", "relevant", "told"),
    [(140, 0, 2, True), (100, 5, 1, True), (25, 1, 3, True), (100, 6, 2, False), (24, 0, 2, False)],
)
def test_the_judgements_on_nearly_all_queries(
    n: int, wrong: int, relevant: int, told: bool
) -> None:
    warnings = too_good(peeked(n, wrong, relevant), judged(n, relevant))
    assert bool(warnings) is told
    if told:
        (text,) = warnings
        assert text.startswith(f"1.000 on {n - wrong} of {n} queries, since all that is judged")
        assert "does it see the judgements?" in text


def test_queries_without_a_relevant_document_and_empty_lists_say_nothing_of_it() -> None:
    qrels = {**judged(30), **{f"none{at}": {"x": 0} for at in range(30)}}
    lists = peeked(30) | {f"none{at}": ["x"] for at in range(30)}
    assert too_good(lists, qrels)
    assert not too_good({query_id: [] for query_id in lists}, qrels)


@pytest.mark.parametrize(
    ("lengths", "k", "size", "told"),
    [
        ([3] * 10, 10, 220, "3 hits came back, of 10"),
        ([40] * 40, 100, None, "40 hits came back, of 100"),
        ([4, 0, 2, 4, 4, 4, 4, 3, 4, 1, 4, 4], 10, 50, "4 hits came back"),
        ([4, 4, 0, 2], 10, 50, ""),
        ([3] * 10, 10, 3, ""),
        ([3] * 9 + [10], 10, 220, ""),
        ([1, 2, 3, 4, 5, 6, 7], 10, 220, ""),
        ([3, 3], 10, 220, ""),
        ([0, 0, 0], 10, 220, ""),
    ],
)
def test_never_more_than_so_many(lengths: list[int], k: int, size: int | None, told: str) -> None:
    warnings = fewer_hits([range(n) for n in lengths], k, size)
    assert bool(warnings) is bool(told)
    assert told in "".join(warnings)


def test_one_answer_for_different_queries() -> None:
    same = Ranking(["a", "b", "c"], None)
    answers = [(f"query {at}", same) for at in range(6)]
    (text,) = same_answers(answers, 20)
    assert text.startswith("6 of 6 different queries got the same hits in the same order")
    others = [(f"other {at}", Ranking([f"d{at}", "a"], None)) for at in range(7)]
    assert not same_answers([*answers, *others], 20)
    assert not same_answers([("one text", same)] * 9, 20)
    alone = Ranking(["a"], None)
    assert not same_answers([(f"query {at}", alone) for at in range(6)], 20)


def test_empty_answers_are_no_sign_of_a_cache() -> None:
    facts = {"first_visit": {"ratio": 40.0}, "p50": {"value": 0.0001}}
    latency = LatencyFacts.model_validate(facts)
    assert len(remembered(latency)) == 2
    assert not remembered(latency, [Notice("Nothing was found.", Code.NOTHING_FOUND)])
