"""How much of what systems return is judged, and whose pool the judgements look like."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from retrieval_bench_doctor.pools import Pool, judged_at, pool, too_little_for_a_pool

K = 10
N_QUERIES = 60
CORPUS = [f"d{i}" for i in range(200)]
QUERIES = [f"q{i}" for i in range(N_QUERIES)]

Lists = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]


def relevant(query: str) -> list[str]:
    """Five documents of each query."""
    return random.Random(f"relevant {query}").sample(CORPUS, 5)


def system(seed: str, *, finds: float = 0.6, depth: int = 50) -> Lists:
    """A system that finds a share of the relevant documents at the top, and fills up."""
    lists = {}
    for query in QUERIES:
        rng = random.Random(f"{seed} {query}")
        found = [one for one in relevant(query) if rng.random() < finds]
        rest = [one for one in rng.sample(CORPUS, depth) if one not in found]
        top = rest[:8] + found
        rng.shuffle(top)
        lists[query] = (top + rest[8:])[:depth]
    return lists


def judged(of: Callable[[str], Iterable[str]]) -> Qrels:
    """Judgements of the documents that ``of`` gives for a query."""
    return {q: {d: int(d in relevant(q)) for d in of(q)} for q in QUERIES}


A, B, C = system("a"), system("b"), system("c")
OF_A = judged(lambda q: A[q][:K])
OF_BOTH = judged(lambda q: {*A[q][:K], *B[q][:K]})
COMPLETE = judged(lambda q: CORPUS)


def found(qrels: Qrels, one: Lists = A, other: Lists = B) -> Pool:
    result = pool(("a", one), ("b", other), qrels, K)
    assert result is not None
    return result


class TestPool:
    def test_a_pool_of_one_system_favours_it(self) -> None:
        one = found(OF_A)
        assert (one.favours, one.alone) == ("a", True)
        assert one.judged[0].mean == 1.0
        assert one.judged[1].mean < 0.5
        assert one.ci95[0] > 0.4

    def test_it_favours_the_second_as_well(self) -> None:
        one = found(OF_A, B, A)
        assert (one.favours, one.alone) == ("b", True)
        assert one.difference < 0

    def test_a_pool_of_both_favours_none(self) -> None:
        assert found(OF_BOTH).favours == ""

    def test_a_pool_of_both_and_another_one_favours_none(self) -> None:
        three = judged(lambda q: {*A[q][:K], *B[q][:K], *C[q][:K]})
        assert found(three).favours == ""

    def test_a_pool_that_one_of_them_had_no_part_in_favours_the_other(self) -> None:
        one = found(OF_BOTH, A, C)
        assert (one.favours, one.alone) == ("a", False)

    def test_complete_judgements_favour_none(self) -> None:
        one = found(COMPLETE)
        assert one.favours == ""
        assert [shares.mean for shares in one.judged] == [1.0, 1.0]

    def test_complete_judgements_favour_no_better_system(self) -> None:
        assert found(COMPLETE, system("good", finds=1.0), system("bad", finds=0.0)).favours == ""

    @pytest.mark.parametrize("depth", [3, 5, 20])
    def test_a_pool_of_another_depth_shows_as_well(self, depth: int) -> None:
        one = found(judged(lambda q: A[q][:depth]))
        assert one.favours == "a"
        assert one.alone == (depth <= K)
        assert one.judged[0].k == min(depth, K)

    def test_random_judgements_favour_none(self) -> None:
        drawn = judged(lambda q: random.Random(q).sample(CORPUS, 40))
        assert found(drawn).favours == ""

    def test_near_misses_that_people_wrote_down_favour_none(self) -> None:
        """As in science-mini: all that is relevant, and a few others that no system chose."""
        chosen = judged(lambda q: [*relevant(q), *random.Random(q).sample(CORPUS, 4)])
        good = system("good", finds=1.0)
        assert found(chosen, good, B).favours == ""

    @pytest.mark.slow
    def test_there_is_no_false_alarm_on_judgements_of_both(self) -> None:
        """Twenty pairs of systems of any quality."""
        rng = random.Random(0)
        for at in range(20):
            one, other = (system(f"{at}{side}", finds=rng.random()) for side in "ab")
            both = judged(lambda q, a=one, b=other: {*a[q][:K], *b[q][:K]})  # type: ignore[misc]
            assert found(both, one, other).favours == ""

    def test_a_difference_that_is_sure_and_small_is_none(self) -> None:
        nearly = judged(lambda q: {*A[q][:K], *B[q][: K - 1]})
        one = found(nearly)
        assert one.ci95[0] > 0
        assert one.favours == ""

    def test_relevant_documents_alone_say_nothing(self) -> None:
        """A good system finds all of them, wherever they came from."""
        alone = {q: dict.fromkeys(relevant(q), 1) for q in QUERIES}
        assert pool(("a", system("good", finds=1.0)), ("b", B), alone, K) is None

    def test_the_share_of_judged_and_of_relevant_documents_is_told(self) -> None:
        one = found(OF_BOTH)
        first, second = one.held
        assert one.documents == sum(map(len, OF_BOTH.values()))
        assert first.judged == pytest.approx(N_QUERIES * K / one.documents)
        assert second.judged == pytest.approx(N_QUERIES * K / one.documents)
        in_both = [(q, d) for q in QUERIES for d in OF_BOTH[q] if d in relevant(q)]
        of_a = [d in A[q][:K] for q, d in in_both]
        assert first.relevant == pytest.approx(np.mean(of_a))

    def test_a_grade_below_zero_counts_as_not_judged(self) -> None:
        spam = {q: {d: -1 if d in B[q][:K] else g for d, g in OF_BOTH[q].items()} for q in QUERIES}
        one = found(spam)
        assert one.judged[1].mean == 0.0
        assert one.documents == sum(g >= 0 for row in spam.values() for g in row.values())


class TestTooLittle:
    @pytest.mark.parametrize(
        ("n", "qrels", "why"),
        [
            (5, OF_A, "5 queries with hits were asked, 20 are needed"),
            (
                60,
                {q: {"d1": 1, "d2": 1} for q in QUERIES},
                "0 documents are judged as not relevant, 50 are needed",
            ),
            (60, {q: {"d1": 0, "d2": 1} for q in QUERIES}, "the median query needs 3 judgements"),
            (60, OF_A, ""),
        ],
    )
    def test_it_says_what_it_takes(self, n: int, qrels: Qrels, why: str) -> None:
        told = too_little_for_a_pool({q: A[q] for q in QUERIES[:n]}, qrels)
        assert why in told
        assert bool(why) == bool(told)


class TestJudgedAt:
    def test_it_is_the_mean_over_queries_with_an_interval(self) -> None:
        lists = {"q1": ["a", "b"], "q2": ["a", "x"]}
        share = judged_at("own", lists, {"q1": {"a": 0, "b": 1}, "q2": {"a": 1}}, 2)
        assert share is not None
        assert (share.k, share.n, share.mean) == (2, 2, 0.75)
        assert share.ci95 is not None
        assert share.ci95[0] < 0.75 < share.ci95[1] <= 1.0

    def test_one_query_has_no_interval(self) -> None:
        share = judged_at("own", {"q": ["a"]}, {"q": {"a": 1}}, 10)
        assert share is not None
        assert share.ci95 is None

    def test_a_query_that_nobody_judged_does_not_count(self) -> None:
        assert judged_at("own", {"q": ["a"]}, {}, 10) is None
        assert judged_at("own", {}, {"q": {"a": 1}}, 10) is None
