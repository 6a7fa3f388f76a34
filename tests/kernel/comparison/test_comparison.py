from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.fixed import resamples_for
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.power import Moments, Needed, queries_needed
from retrieval_bench.stats.randomization import randomization_p
from tests.builders import some
from tests.builders.marks import also
from tests.builders.runs import run


def needed(differences: NDArray[np.float64], level: float) -> Needed:
    moments = Moments.of(np.asarray(differences)[:, None])
    (found,) = queries_needed(moments, level, margin=MARGIN)
    return found


RNG = np.random.default_rng(8)
BASE = RNG.random(80).tolist()
WORSE = [max(0.0, value - 0.1) for value in BASE]


def test_a_clear_difference_is_better_one_way_and_worse_the_other() -> None:
    (delta,) = compare_runs([run("a", WORSE), run("b", BASE)]).deltas
    assert delta.verdict is Verdict.BETTER
    assert delta.difference == pytest.approx(np.mean(BASE) - np.mean(WORSE))
    assert some(delta.ci)[0] > 0
    assert delta.queries_needed is None
    (delta,) = compare_runs([run("a", BASE), run("b", WORSE)]).deltas
    assert delta.verdict is Verdict.WORSE


def test_what_the_queries_cannot_tell_is_undecided_with_the_number_it_takes() -> None:
    noisy = (np.array(BASE) + RNG.normal(0.01, 0.2, 80)).tolist()
    (delta,) = compare_runs([run("a", BASE), run("b", noisy)]).deltas
    assert delta.verdict is Verdict.UNDECIDED
    assert some(delta.queries_needed) >= 1
    differences = np.array(noisy) - np.array(BASE)
    found = needed(differences, QUALITY_ALPHA).difference
    equivalence = needed(differences, QUALITY_ALPHA / 2).equivalence  # each of its two tests
    assert delta.queries_needed == min(some(found), some(equivalence))
    assert delta.needed_for == "equivalence"


@pytest.mark.slow
def test_queries_needed_is_for_the_level_that_holm_holds_the_row_against() -> None:
    rng = np.random.default_rng(5)
    noise = [rng.normal(0, 0.2, 300) for _ in range(7)]
    # One clear difference among 28 pairs, too small once Holm looks at all of them.
    noise[0] = noise[0] - noise[0].mean()
    shifted = noise[0] + rng.normal(0, 0.2, 300)
    shifted += 0.034 - (shifted - noise[0]).mean()
    systems = [*noise, shifted]
    runs = [run(str(i), (0.5 + values).tolist()) for i, values in enumerate(systems)]
    deltas = compare_runs(runs).deltas
    ordered = sorted(deltas, key=lambda delta: delta.p or 0)
    told = [
        delta for delta in deltas if delta.p and delta.p < QUALITY_ALPHA and delta.queries_needed
    ]
    assert told
    for delta in told:
        differences = systems[int(delta.b)] - systems[int(delta.a)]
        level = QUALITY_ALPHA / (len(deltas) - ordered.index(delta))
        assert delta.queries_needed == needed(differences, level).difference
        # With one test instead of all, hardly any more would be needed: a contradiction.
        assert (
            some(delta.queries_needed) > (needed(differences, QUALITY_ALPHA).difference or 0) + 50
        )


@pytest.mark.slow
def test_a_comparison_of_many_rows_can_still_find_a_difference() -> None:
    rng = np.random.default_rng(6)
    base = rng.random(40)
    runs = [run(str(i), (base + rng.normal(0, 0.01, 40)).tolist()) for i in range(32)]
    runs.append(run("best", (base + 1).tolist()))
    comparison = compare_runs(runs)
    assert len(comparison.deltas) == 528
    assert comparison.groups[0].resamples == comparison.as_dict()["resamples"] == 200_000
    best = [delta for delta in comparison.deltas if delta.b == "best"]
    assert {delta.verdict for delta in best} == {Verdict.BETTER}


@pytest.mark.parametrize("rows", [0, 1, 12, 13, 500, 5_000])
def test_resamples_follow_the_rows(rows: int) -> None:
    resamples = resamples_for(rows)
    assert 10_000 <= resamples <= 200_000
    assert rows / (resamples + 1) < QUALITY_ALPHA
    assert (resamples == 10_000) == (rows <= 12)


def test_without_queries_the_difference_is_missing_and_one_can_show_nothing() -> None:
    (delta,) = compare_runs([run("a", []), run("b", [])]).deltas
    assert (delta.verdict, delta.reason) == (Verdict.MISSING, "no evaluated query")
    assert (delta.difference, delta.p, delta.ci) == (None, None, None)
    (delta,) = compare_runs([run("a", [0.2]), run("b", [0.9])]).deltas
    assert (delta.verdict, delta.ci, delta.queries_needed) == (Verdict.UNRESOLVABLE, None, None)
    assert delta.p == 1.0


def test_a_pair_without_a_test_leaves_the_others_alone() -> None:
    runs = [run("a", WORSE), run("b", BASE, k=3), run("c", BASE), run("d", BASE[:5])]
    verdicts = {(delta.a, delta.b): delta.verdict for delta in compare_runs(runs).deltas}
    assert verdicts.pop(("a", "c")) is Verdict.BETTER
    assert set(verdicts.values()) == {Verdict.NOT_COMPARABLE}


@pytest.mark.slow
def test_equal_runs_on_few_queries_are_undecided_until_their_ties_show_equivalence() -> None:
    (delta,) = compare_runs([run("a", BASE), run("b", BASE)]).deltas
    assert (delta.verdict, delta.p, delta.needed_for) == (Verdict.UNDECIDED, 1.0, "equivalence")
    many = [0.5] * (80 + some(delta.queries_needed))
    (delta,) = compare_runs([run("a", many), run("b", many)]).deltas
    assert delta.verdict is Verdict.EQUIVALENT
    (delta,) = compare_runs([run("a", many[1:]), run("b", many[1:])]).deltas
    assert (delta.verdict, delta.queries_needed) == (Verdict.UNDECIDED, 1)


def test_holm_counts_all_rows_of_the_comparison() -> None:
    runs = [run(str(i), (np.array(BASE) + RNG.normal(0.02, 0.1, 80)).tolist()) for i in range(4)]
    deltas = compare_runs(runs).deltas
    assert len(deltas) == 6
    smallest = min(deltas, key=lambda delta: delta.p or 0)
    assert smallest.p_adjusted == pytest.approx(min(1, 6 * some(smallest.p)))


def test_queries_are_paired_by_id_not_by_place() -> None:
    a, b = run("a", [0.1, 0.9]), run("b", [0.9, 0.1])
    turned = replace(b.evaluation, query_ids=b.evaluation.query_ids[::-1])
    b = replace(b, evaluation=turned)
    (delta,) = compare_runs([a, b]).deltas
    assert delta.difference == 0
    assert delta.p == 1.0
    low, high = some(delta.ci)
    assert high == pytest.approx(-low)


@pytest.mark.parametrize(
    ("values", "change", "reason"),
    [
        (WORSE, {"k": 100}, "k 10 and 100"),
        (WORSE, {"metrics_version": 2}, "metrics_version 1 and 2"),
        (WORSE, {"convention": "piaf"}, "convention trec and piaf"),
        (
            WORSE,
            {"dataset": {"fingerprint": "g", "split": "test"}},
            "different dataset fingerprint",
        ),
        (WORSE, {"dataset": {"fingerprint": "f", "split": "dev"}}, "different dataset split"),
        (BASE[:40], {}, "different queries were finished"),
    ],
)
def test_runs_that_measured_something_else_are_not_comparable(
    values: list[float], change: dict[str, Any], reason: str
) -> None:
    (delta,) = compare_runs([run("a", BASE), run("b", values, **change)]).deltas
    assert (delta.verdict, delta.reason) == (Verdict.NOT_COMPARABLE, reason)
    assert delta.p is None


def test_equal_names_are_told_apart() -> None:
    assert compare_runs([run("a", BASE)] * 3).names == ("a", "a#2", "a#3")
    runs = [run("a", BASE), run("a#2", BASE), run("a", BASE)]
    assert compare_runs(runs).names == ("a", "a#2", "a#3")


def test_fewer_than_two_runs_or_no_common_metric() -> None:
    with pytest.raises(ConfigError, match="1 run"):
        compare_runs([run("a", BASE)])
    with pytest.raises(ConfigError, match="no metric in common"):
        compare_runs([run("a", BASE), run("b", BASE, metrics=["R@3"])])


with_gmap = partial(run, metrics=["GMAP"])


class TestGeometricMeans:
    A = (0.02, 0.5, 0.9, 0.11, 0.4, 0.07, 0.33, 1.0, 0.25, 0.6)
    B = (0.04, 0.45, 0.95, 0.3, 0.41, 0.1, 0.3, 0.9, 0.5, 0.66)

    def test_the_difference_and_its_p_are_those_of_geometric_means_and_logarithms(self) -> None:
        (delta,) = compare_runs([with_gmap("a", self.A), with_gmap("b", self.B)]).deltas
        means = [float(np.prod(values)) ** (1 / 10) for values in (self.A, self.B)]
        assert delta.difference == pytest.approx(means[1] - means[0])
        assert delta.difference != pytest.approx(np.mean(self.B) - np.mean(self.A), abs=0.005)
        logs = np.log(self.B) - np.log(self.A)
        sums = [abs(float(np.dot(signs, logs))) for signs in product([-1, 1], repeat=10)]
        extreme = sum(value >= abs(logs.sum()) - 1e-12 for value in sums)
        assert delta.p == pytest.approx(extreme / 2**10)
        plain = np.subtract(self.B, self.A)
        sums = [abs(float(np.dot(signs, plain))) for signs in product([-1, 1], repeat=10)]
        assert delta.p != sum(value >= abs(plain.sum()) - 1e-12 for value in sums) / 2**10

    def test_the_interval_is_a_ratio_from_the_inverted_test_of_the_logarithms(self) -> None:
        (delta,) = compare_runs([with_gmap("a", self.A), with_gmap("b", self.B)]).deltas
        logs = np.log(self.B) - np.log(self.A)
        ratio, low, high = some(delta.ratio)
        assert ratio == pytest.approx(float(np.exp(logs.mean())))
        for end, inside in ((low, 1 + 1e-6), (high, 1 - 1e-6)):
            assert randomization_p((logs - np.log(end * inside))[:, None])[0] >= QUALITY_ALPHA
            assert randomization_p((logs - np.log(end / inside))[:, None])[0] < QUALITY_ALPHA
        assert delta.verdict is Verdict.UNDECIDED
        assert low < 1 < high
        assert (delta.ci, delta.bound) == (None, None)
        assert delta.as_dict()["ratio"] == [ratio, low, high]

    def test_neither_the_order_of_the_runs_nor_of_queries_changes_what_is_paired(self) -> None:
        runs = [with_gmap("a", self.A), with_gmap("b", self.B)]
        (one,), (two,) = compare_runs(runs).deltas, compare_runs(runs[::-1]).deltas
        assert one.difference == pytest.approx(-(two.difference or 0.0))
        assert one.p == two.p
        ratio, low, high = some(two.ratio)
        assert one.ratio == pytest.approx((1 / ratio, 1 / high, 1 / low))
        a, b = runs
        order = [3, 1, 0, 2, *range(9, 3, -1)]
        ids = tuple(b.evaluation.query_ids[i] for i in order)
        turned = replace(b.evaluation, query_ids=ids, per_query=b.evaluation.per_query[order])
        paired = compare_runs([a, b]).deltas
        assert compare_runs([a, replace(b, evaluation=turned)]).deltas == paired

    def test_one_query_has_no_interval(self) -> None:
        (delta,) = compare_runs([with_gmap("a", [0.2]), with_gmap("b", [0.8])]).deltas
        assert delta.difference == pytest.approx(0.6)
        assert (delta.ci, delta.p) == (None, 1.0)

    def test_a_clear_difference_is_better_and_more_queries_are_counted_in_logarithms(self) -> None:
        low = [0.001 * (1 + i % 5) for i in range(60)]
        high = [value * 3 for value in low]
        (delta,) = compare_runs([with_gmap("a", low), with_gmap("b", high)]).deltas
        assert delta.verdict is Verdict.BETTER
        noisy = (np.array(low) * np.exp(np.random.default_rng(4).normal(0.05, 1, 60))).tolist()
        (delta,) = compare_runs([with_gmap("a", low), with_gmap("b", noisy)]).deltas
        assert delta.verdict is Verdict.UNDECIDED
        assert delta.queries_needed == needed(np.log(noisy) - np.log(low), QUALITY_ALPHA).difference


def on(name: str, fingerprint: str = "") -> dict[str, Any]:
    return {"dataset": {"name": name, "fingerprint": fingerprint or name, "split": "test"}}


RUN_A = np.random.default_rng(21).uniform(0.2, 0.8, 600)
HARDLY = RUN_A + np.random.default_rng(22).normal(0.002, 0.01, 600)


class TestEquivalence:
    def test_a_difference_that_is_shown_to_be_small_is_no_difference(self) -> None:
        level = RUN_A + HARDLY - HARDLY.mean() - RUN_A + RUN_A.mean()
        (delta,) = compare_runs([run("a", RUN_A), run("b", level)]).deltas
        assert (delta.verdict, delta.within_margin) == (Verdict.EQUIVALENT, True)
        assert some(delta.p_equivalence) < QUALITY_ALPHA
        assert delta.queries_needed is None

    @pytest.mark.slow
    def test_a_small_difference_can_be_real_all_the_same_and_the_margin_is_the_users(self) -> None:
        (delta,) = compare_runs([run("a", RUN_A), run("b", HARDLY)]).deltas
        assert (delta.verdict, delta.within_margin) == (Verdict.BETTER, True)
        runs = [run("a", RUN_A), run("b", HARDLY)]
        (delta,) = compare_runs(runs, margin=0.002).deltas
        assert not delta.within_margin
        assert compare_runs(runs, margin=0.002).as_dict()["margin"] == 0.002

    @pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, float("nan")])
    def test_a_margin_that_is_none_is_refused(self, margin: float) -> None:
        with pytest.raises(ConfigError, match="margin"):
            compare_runs([run("a", BASE), run("b", BASE)], margin=margin)

    def test_few_tied_queries_show_nothing_and_many_do(self) -> None:
        (few,) = compare_runs([run("a", [0.5] * 40), run("b", [0.5] * 40)]).deltas
        assert few.verdict is Verdict.UNDECIDED
        (many,) = compare_runs([run("a", [0.5] * 600), run("b", [0.5] * 600)]).deltas
        assert (many.verdict, many.ties) == (Verdict.EQUIVALENT, 600)

    @pytest.mark.slow
    def test_a_geometric_mean_has_no_absolute_margin(self) -> None:
        (delta,) = compare_runs([with_gmap("a", [0.5] * 600), with_gmap("b", [0.5] * 600)]).deltas
        assert (delta.p_equivalence, delta.within_margin) == (None, False)
        assert delta.verdict is Verdict.UNDECIDED

    @pytest.mark.slow
    def test_holm_looks_at_the_claims_of_equivalence_too(self) -> None:
        rng = np.random.default_rng(30)
        runs = [run(str(i), list(RUN_A + rng.normal(0, 0.08, 600))) for i in range(5)]
        alone = compare_runs(runs[:2]).deltas[0]
        together = compare_runs(runs).deltas[0]
        assert some(together.p_equivalence) > some(alone.p_equivalence)


def test_wins_ties_losses_and_effect_are_those_of_the_queries() -> None:
    a, b = [0.5, 0.5, 0.5, 0.5, 0.2], [0.7, 0.7, 0.5, 0.4, 0.2]
    (delta,) = compare_runs([run("a", a), run("b", b)]).deltas
    assert (delta.wins, delta.ties, delta.losses, delta.n) == (2, 2, 1, 5)
    differences = np.subtract(b, a)
    assert delta.effect_size == pytest.approx(differences.mean() / differences.std(ddof=1))


@pytest.mark.slow
def test_further_tests_come_with_their_own_holm() -> None:
    runs = [run(str(i), list(RUN_A + 0.002 * i + RNG.normal(0, 0.1, 600))) for i in range(3)]
    deltas = compare_runs(runs, tests=["t", "wilcoxon"]).deltas
    for delta in deltas:
        a, b = (np.array(runs[int(n)].evaluation.per_query[:, 0]) for n in (delta.a, delta.b))
        assert delta.tests["t"][0] == pytest.approx(scipy.stats.ttest_rel(b, a).pvalue)
        assert delta.tests["wilcoxon"][0] == pytest.approx(scipy.stats.wilcoxon(b - a).pvalue)
        row = delta.as_dict()
        assert (row["p_t"], row["p_t_adjusted"]) == delta.tests["t"]
    smallest = min(delta.tests["t"] for delta in deltas)
    assert smallest[1] == pytest.approx(min(1, 3 * smallest[0]))
    with pytest.raises(ConfigError, match="test 'welch'"):
        compare_runs(runs, tests=["welch"])


class TestBaseline:
    def test_all_others_are_held_against_it_be_it_one_of_equal_names_and_only_these_are_corrected(
        self,
    ) -> None:
        runs = [run(n, list(RUN_A + RNG.normal(0.01, 0.1, 600))) for n in "abcd"]
        comparison = compare_runs(runs, baseline="c")
        assert [(d.a, d.b) for d in comparison.deltas] == [("c", "a"), ("c", "b"), ("c", "d")]
        smallest = min(comparison.deltas, key=lambda delta: delta.p or 0)
        assert smallest.p_adjusted == pytest.approx(min(1, 3 * some(smallest.p)))
        deltas = compare_runs([run("a", BASE)] * 3, baseline="a#2").deltas
        assert [(d.a, d.b) for d in deltas] == [("a#2", "a"), ("a#2", "a#3")]

    def test_an_unknown_one_is_refused_with_close_names(self) -> None:
        with pytest.raises(ConfigError, match="baseline 'bm52'") as problem:
            compare_runs([run("bm25", BASE), run("dense", BASE)], baseline="bm52")
        assert "did you mean bm25" in str(problem.value)


class TestSeveralDatasets:
    RUNS = (
        run("bm25", BASE, **on("x")),
        run("dense", WORSE, **on("x")),
        run("bm25", WORSE, **on("y")),
        run("dense", BASE, **on("y")),
        run("hybrid", BASE, **on("y")),
    )

    def test_pairs_and_their_correction_are_of_one_dataset_at_a_time(self) -> None:
        comparison = compare_runs(self.RUNS)
        found = {(d.dataset, d.a, d.b): d.verdict for d in comparison.deltas}
        assert found["x", "bm25", "dense"] is Verdict.WORSE
        assert found["y", "bm25", "dense"] is Verdict.BETTER
        assert len(found) == 4
        assert comparison.names == ("bm25", "dense", "hybrid")
        (x,) = [d for d in compare_runs(self.RUNS).deltas if d.dataset == "x"]
        assert x.p == x.p_adjusted
        assert "boards" not in compare_runs(self.RUNS[:2]).as_dict()

    @pytest.mark.slow
    def test_the_board_has_means_and_averages_only_of_what_was_measured_everywhere(self) -> None:
        comparison = compare_runs(self.RUNS)
        board = comparison.board(comparison.metrics[0])
        mean, low = np.mean(BASE), np.mean(WORSE)
        assert board.means[0] == pytest.approx([mean, low])
        assert board.averages[:2] == pytest.approx([(mean + low) / 2] * 2)
        assert np.isnan(board.averages[2])
        document = comparison.as_dict()["boards"][0]
        assert document["datasets"] == ["x", "y"]
        assert [row["name"] for row in document["systems"]] == ["bm25", "dense", "hybrid"]

    def test_runs_that_are_alone_on_their_dataset_are_told(self) -> None:
        comparison = compare_runs([*self.RUNS[:2], run("bm25", BASE, **on("z"))])
        assert comparison.warnings == ("z: bm25 alone, nothing to compare with there",)
        assert len(comparison.deltas) == 1
        deltas = compare_runs([self.RUNS[0], self.RUNS[2]]).deltas
        assert [d.verdict for d in deltas] == [Verdict.NOT_COMPARABLE]

    def test_datasets_of_one_name_are_told_apart(self) -> None:
        runs = [run(n, BASE, **on("x", f)) for f in ("f1", "f2") for n in "ab"]
        assert [g.dataset for g in compare_runs(runs).groups] == ["x", "x#2"]

    @pytest.mark.slow
    def test_splits_of_one_dataset_are_called_by_their_names(self) -> None:
        def of(split: str, fingerprint: str = "f") -> list[Run]:
            data = {"name": "x", "fingerprint": fingerprint, "split": split}
            return [run(name, BASE, dataset=data) for name in "ab"]

        splits = compare_runs([*of("dev"), *of("test")])
        assert [g.dataset for g in splits.groups] == ["x dev", "x test"]
        other = compare_runs([*of("dev"), *of("test"), *of("test", "g")])
        assert [g.dataset for g in other.groups] == ["x", "x#2", "x#3"]


def test_a_metric_that_not_all_runs_have_or_that_lacks_a_value_is_told() -> None:
    runs = [run("a", BASE), run("b", [float("nan"), *BASE[1:]]), run("c", WORSE)]
    found = {(d.a, d.b): (d.verdict, d.reason) for d in compare_runs(runs).deltas}
    missing = (Verdict.MISSING, "nDCG@10 has no value on 1 query")
    assert found["a", "b"] == found["b", "c"] == missing
    assert found["a", "c"][0] is Verdict.WORSE
    more = run("b", np.column_stack([BASE, BASE]), metrics=["nDCG@10", "R@3"])
    told = compare_runs([run("a", BASE), more])
    assert told.warnings == ("left out, since not all runs have them: R@3",)


def test_queries_needed_never_fall_along_the_steps_of_holm() -> None:
    deltas = compare_runs([run(str(i), [0.5] * 24) for i in range(4)]).deltas
    assert len({delta.queries_needed for delta in deltas}) == 1
    (delta, *_) = deltas
    enough = [0.5] * (24 + some(delta.queries_needed))
    verdicts = {d.verdict for d in compare_runs([run(str(i), enough) for i in range(4)]).deltas}
    assert verdicts == {Verdict.EQUIVALENT}


@pytest.mark.slow
def test_systems_stand_in_one_order_on_all_datasets() -> None:
    runs = [run(n, BASE, **on(d)) for d, names in (("x", "ab"), ("y", "ba")) for n in names]
    assert [group.names for group in compare_runs(runs).groups] == [("a", "b"), ("a", "b")]


def test_who_was_beaten_by_whom() -> None:
    runs = [run("low", WORSE), run("high", BASE), run("other", BASE)]
    (group,) = compare_runs(runs).groups
    assert group.beaten("nDCG@10") == {"low": [], "high": [0], "other": [0]}


@pytest.mark.slow
@pytest.mark.parametrize("n", [27, *also(50)])
def test_many_systems_of_one_name_stay_apart(n: int) -> None:
    comparison = compare_runs([run("same", BASE[:20])] * n)
    assert len(set(comparison.names)) == n
    assert len(comparison.deltas) == n * (n - 1) // 2
    assert {delta.p for delta in comparison.deltas} == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "verdict"),
    [
        (5, "unresolvable"),
        (6, "undecided"),
        (10, "undecided"),
        (100, "undecided"),
        (1000, "equivalent"),
    ],
)
def test_of_two_equal_systems_it_is_said_what_so_many_queries_can_show(
    n: int, verdict: str
) -> None:
    ids = [f"q{i}" for i in range(n)]
    found = compare_runs([run(name, [0.5] * n, ids) for name in "ab"])
    (delta,), (answer,) = found.deltas, found.recommendations
    assert delta.verdict == verdict
    told = " ".join(answer.reasons)
    if verdict == "unresolvable":
        assert delta.as_dict()["resolvable_from"] == 6
        assert "5 queries can't show any difference, whatever they say; 6 could." in told
    elif verdict == "undecided":
        assert (
            "No query differs; about 370 such queries would show that they are equivalent." in told
        )
    else:
        assert told == ""


def test_the_more_pairs_the_more_queries_it_takes_to_show_anything() -> None:
    values = {"a": 0.0, "b": 0.1, "c": 0.2, "d": 0.3}  # of 7 queries: 2 / 2^7 is above .05 / 6
    runs = [run(name, [value] * 7) for name, value in values.items()]
    assert {delta.verdict for delta in compare_runs(runs[:2]).deltas} == {Verdict.BETTER}
    deltas = compare_runs(runs).deltas
    assert {(delta.verdict, delta.resolvable_from) for delta in deltas} == {
        (Verdict.UNRESOLVABLE, 8)
    }
    assert all(some(delta.ci)[0] <= 0 for delta in deltas)


@pytest.mark.slow
@pytest.mark.long
def test_a_table_of_forty_systems_can_tell_them_apart() -> None:
    rng = np.random.default_rng(0)
    base, ids = rng.random(100) * 0.5, [f"q{i}" for i in range(100)]
    runs = [run(f"s{at}", base + 0.01 * at * (at > 30), ids) for at in range(40)]
    verdicts = {delta.verdict for delta in compare_runs(runs).deltas}
    assert verdicts == {Verdict.BETTER, Verdict.UNDECIDED}


@pytest.mark.parametrize("seed", range(12))
def test_no_interval_excludes_zero_beside_an_undecided_difference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 80))
    ids = [f"q{i}" for i in range(n)]
    base = rng.beta(1, 1, size=n)
    values = [np.clip(base + rng.normal(0.04 * at, 0.15, size=n), 0, 1) for at in range(5)]
    for delta in compare_runs([run(f"s{at}", v, ids) for at, v in enumerate(values)]).deltas:
        low, high = some(delta.ci)
        assert low <= some(delta.difference) <= high
        assert high - low > 0
        if delta.verdict.open:
            assert low <= 0 <= high


def test_the_document_says_where_one_name_is_two_systems() -> None:
    def made(dataset: str, digest: str) -> Run:
        return replace(run("a", BASE, **on(dataset)), manifest={"retriever": {"hash": digest}})

    others = [run("b", BASE, **on(data)) for data in ("x", "y")]
    same = compare_runs([made("x", "1"), others[0], made("y", "1"), others[1]])
    apart = compare_runs([made("x", "1"), others[0], made("y", "2"), others[1]])
    unknown = compare_runs([made("x", ""), others[0], made("y", "2"), others[1]])
    assert not same.mixed + unknown.mixed
    assert apart.warnings[-1] == "These systems have other parameters on some datasets: a."
