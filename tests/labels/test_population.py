"""What is shown of questions like those of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.stats.power import queries_needed
from retrieval_bench.stats.randomization import randomization_p
from retrieval_bench_labels.decide.population import Population, of_population, sentence
from retrieval_bench_labels.grades import Settled
from retrieval_bench_labels.label import Pair, Pool
from tests.builders import some
from tests.builders.pools import Lists, graded, judged, mixed, pool_of, two


def plain(lists: Lists, seed: int = 0) -> Pool:
    return pool_of(lists, seed, target=Target.POPULATION)


def told(pool: Pool, grades: Mapping[Pair, Settled]) -> Population:
    return some(of_population(pool, grades))


def _b_wins(pool: Pool, first: int) -> bool:
    return told(pool, judged(pool, first)).pairs[0].delta.verdict is Verdict.BETTER


def test_a_clear_difference_is_decided_by_bets_before_the_end() -> None:
    pool = plain(two())
    found = told(pool, judged(pool, 20))
    (pair,) = found.pairs
    assert (found.complete, found.done, found.drawn, found.labels_left) == (False, True, 20, 60)
    assert pair.delta.verdict is Verdict.BETTER
    assert pair.delta.anytime
    assert pair.delta.level == pytest.approx(0.992)
    assert pair.beyond == 0
    assert sentence(pool, found, pair).startswith("b is better than a on questions like these, by ")


def test_what_these_questions_show_is_not_yet_shown_of_others() -> None:
    pool = plain(two(12))
    found = told(pool, judged(pool, 6))
    assert not found.done  # though a mean of 1 on half of them leaves b ahead on these
    assert sentence(pool, found, found.pairs[0]) == (
        "a or b: can't tell yet which is better on questions like these. 18 labels are left in the "
        "pool; they may be enough."
    )


@pytest.mark.parametrize(("better", "same"), [(9, 0), (8, 3), (6, 0), (7, 1)])
def test_all_judged_it_is_the_test_of_compare_with_zeros_for_what_cannot_differ(
    better: int, same: int
) -> None:
    pool = plain(mixed(12, better, same))
    found = told(pool, judged(pool, 12))
    drop = 1 - 1 / np.log2(3)
    values = np.array([drop] * better + [-drop] * (12 - better - same) + [0.0] * same)
    delta = found.pairs[0].delta
    assert found.complete
    assert delta.n == 12
    assert delta.p == pytest.approx(float(randomization_p(values[:, None])[0]))
    assert delta.verdict is (Verdict.BETTER if some(delta.p) < 0.05 else Verdict.UNDECIDED)
    excludes = some(delta.ci)[0] > 0
    assert excludes == (delta.verdict is Verdict.BETTER)


def test_what_cannot_differ_counts_at_its_turn_without_a_label() -> None:
    pool = plain(mixed(12, 6, same=6))
    assert [query.weight for query in pool.queries].count(0.0) == 6
    assert [query.weight for query in pool.in_turn] == [1.0] * 6 + [0.0] * 6
    asked = [Pair(q.id, doc) for q in pool.in_turn[:6] for doc in q.documents]
    grades = graded({pair: int(pair.doc_id.startswith("g")) for pair in asked})
    assert told(pool, grades).complete
    assert told(pool, grades).pairs[0].delta.ties == 6
    first = next(at for at, query in enumerate(pool.queries) if query.weight)
    assert told(pool, {}).drawn == first
    assert told(pool, {}).labels_left == len(asked)


def test_a_pool_drawn_by_differences_says_nothing_of_others_until_all_is_judged() -> None:
    pool = pool_of(two(), target=Target.SPLIT)
    assert of_population(pool, judged(pool, 39)) is None
    assert told(pool, judged(pool, 40)).pairs[0].delta.verdict is Verdict.BETTER


def test_grades_outside_of_the_pool_move_nothing_before_all_is_judged() -> None:
    pool = plain(two(12))
    more = graded({Pair(query.id, "elsewhere"): 1 for query in pool.queries})
    for first, moved in ((11, False), (12, True)):
        grades = judged(pool, first)
        alone, beside = (told(pool, of).pairs[0].delta for of in (grades, {**grades, **more}))
        assert (beside.difference == alone.difference) is not moved


def test_verdicts_that_rest_on_failures_are_none() -> None:
    pool = replace(plain(two(20)), failed={"a": [f"q{at:02}" for at in range(18)]})
    found = told(pool, judged(pool, 20))
    (pair,) = found.pairs
    assert pair.delta.rests_on_failures
    assert not found.done
    assert "A failed on 18 queries; on the 2 queries that both answered" in sentence(
        pool, found, pair
    )


def test_nothing_relevant_is_no_comparison() -> None:
    pool = plain(two(12))
    found = told(pool, judged(pool, 12, relevant="nothing"))
    assert found.pairs[0].delta.verdict is Verdict.MISSING
    assert not found.done
    assert "no evaluated query has a relevant document" in sentence(pool, found, found.pairs[0])
    lists = two(12)["a"]
    same = plain({"a": lists, "c": lists})
    assert told(same, {}).pairs[0].delta.verdict is Verdict.UNDECIDED  # something may be relevant


def test_how_many_questions_it_takes_beyond_the_pool() -> None:
    pool = plain(mixed(20, 12))
    before, after = told(pool, judged(pool, 16)), told(pool, judged(pool, 20))
    judged_ones = [1 if query.id < "q12" else -1 for query in pool.queries[:16]]
    values = np.array(judged_ones)[:, None] * (1 - 1 / np.log2(3))
    (needed,) = queries_needed(values, 0.05, equivalence_alpha=0.025)
    assert before.beyond == 16 + min(filter(None, (needed.difference, needed.equivalence))) - 20 > 0
    assert after.beyond == after.pairs[0].delta.queries_needed
    assert sentence(pool, after, after.pairs[0]) == (
        "a or b: can't tell which is better on questions like these. No label is left in the pool; "
        f"about {after.beyond} further questions like these would show something (80 % power)."
    )
    assert "labels are left in the pool; it probably takes about" in sentence(
        pool, before, before.pairs[0]
    )
    assert told(pool, judged(pool, 3)).pairs[0].beyond is None
    few = plain(two(3))
    assert told(few, judged(few, 3)).beyond == 3
    assert "So few questions can show nothing: it takes at least 3 further ones." in sentence(
        few, told(few, judged(few, 3)), told(few, judged(few, 3)).pairs[0]
    )


@pytest.mark.slow
def test_several_pairs_share_the_chance_of_error() -> None:
    lists = two(30)
    pool = plain({**lists, "c": lists["a"]})
    early, late = told(pool, judged(pool, 25)), told(pool, judged(pool, 30))
    assert [pair.delta.level for pair in early.pairs] == [pytest.approx(1 - 0.008 / 3)] * 3
    verdicts = [Verdict.BETTER, Verdict.UNDECIDED, Verdict.WORSE]
    assert [pair.delta.verdict for pair in early.pairs] == verdicts
    alone = plain(lists)  # with a third of the chance of error a verdict takes longer
    first = [min(n for n in range(1, 30) if _b_wins(of, n)) for of in (alone, pool)]
    assert first[0] < first[1]
    assert [pair.delta.verdict for pair in late.pairs] == verdicts
    assert [pair.beyond == 0 for pair in late.pairs] == [True, False, True]
    assert not late.done


def test_one_system_has_nothing_to_compare_with() -> None:
    pool = plain({"a": two(3)["a"]})
    pool = replace(pool, queries=tuple(replace(query, weight=1.0) for query in pool.queries))
    assert told(pool, {}).pairs == told(pool, judged(pool, 3)).pairs == ()
    assert told(pool, {}).done


def test_every_pool_of_a_file_has_its_part_of_the_chance_of_error() -> None:
    pool = replace(plain(two()), generation=2)
    assert told(pool, judged(pool, 30)).pairs[0].delta.level == pytest.approx(0.999)


@pytest.mark.slow
@pytest.mark.long
def test_bets_are_wrong_in_at_most_one_of_a_hundred_pools() -> None:
    """Questions drawn from a population in which the systems are equal, looked at to the last."""
    rng, wrong, tries = np.random.default_rng(3), 0, 300
    for seed in range(tries):
        n = 40
        lists = mixed(n, int(rng.binomial(n, 0.5)))
        pool = plain(lists, seed)
        verdict = told(pool, judged(pool, n - 1)).pairs[0].delta.verdict
        wrong += verdict in (Verdict.BETTER, Verdict.WORSE)
    assert wrong <= 6  # of 3 expected at most
