from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics.abstention import Abstention, abstention
from retrieval_bench_score.outcomes import Outcomes, auroc, figures, outcomes
from retrieval_bench_score.thresholds import (
    AbstentionReport,
    ThresholdReport,
    abstention_report,
    choose_threshold,
    split_dev,
    threshold_curve,
)
from tests.builders import some
from tests.builders.processes import python

NAN = float("nan")

ROOT = Path(__file__).parents[2]


class Row(NamedTuple):
    answerable: bool
    returned: int
    top_score: float
    ap: Fraction


ROWS = st.builds(
    Row,
    answerable=st.booleans(),
    returned=st.integers(0, 3),
    top_score=st.one_of(
        st.sampled_from([-1.5, -1.0, 0.0, 0.5, 2.0]),
        st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False),
    ),
    ap=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(7, 12), Fraction(5, 6), Fraction(1)]),
)

TABLES = st.lists(ROWS, max_size=40)


def known(rows: list[Row]) -> Outcomes:
    return outcomes(
        [f"질문 {i:02d}" for i in range(len(rows))],
        [row.answerable for row in rows],
        [row.returned for row in rows],
        [row.top_score for row in rows],
        [float(row.ap) for row in rows],
    )


def value(row: Row) -> Fraction:
    """The competition's rule, on its own."""
    if not row.answerable:
        return Fraction(row.returned == 0)
    return row.ap if row.returned else Fraction(0)


def mean(rows: list[Row]) -> Fraction:
    return sum(map(value, rows), Fraction(0)) / len(rows)


def at(rows: list[Row], threshold: float) -> list[Row]:
    return [row._replace(returned=0) if row.top_score < threshold else row for row in rows]


def sample(n: int = 60, seed: int = 0, digits: int = 1) -> Outcomes:
    """Answerable queries tend to score higher; some lists are empty."""
    rng = np.random.default_rng(seed)
    answerable = np.arange(n) % 2 == 0
    return outcomes(
        [f"q{i:04d}" for i in range(n)],
        answerable,
        np.where(rng.random(n) < 0.1, 0, 10),
        np.round(rng.normal(2.0 * answerable, 1.0, size=n), digits),
        rng.choice([0, 1 / 3, 0.5, 1], size=n),
    )


def studied(report: AbstentionReport) -> ThresholdReport:
    assert report.threshold is not None, report.reason
    return report.threshold


# --- counts


def test_the_counts_of_a_worked_example() -> None:
    found = abstention([True] * 5 + [False] * 5, [3, 3, 3, 0, 0, 0, 0, 0, 1, 9])
    assert found == Abstention(true_empty=3, false_empty=2, false_return=2, true_return=3)
    assert (found.n_answerable, found.n_unanswerable) == (5, 5)
    assert (found.precision, found.recall, found.f1) == (0.6, 0.6, 0.6)
    assert found.undefined == {}


@pytest.mark.slow
@settings(deadline=None)
@given(TABLES)
def test_precision_recall_and_f1_are_those_of_sklearn(rows: list[Row]) -> None:
    from sklearn import metrics

    found = known(rows)
    ours = abstention(found.answerable, found.returned)
    theirs = metrics.precision_recall_fscore_support(
        [*(not row.answerable for row in rows), True],
        [*(row.returned == 0 for row in rows), True],
        average="binary",
    )
    one_more = Abstention(
        ours.true_empty + 1, ours.false_empty, ours.false_return, ours.true_return
    )
    assert (one_more.precision, one_more.recall, one_more.f1) == pytest.approx(theirs[:3])


def test_a_figure_that_is_not_defined_says_why() -> None:
    nothing_empty = abstention([True, False], [1, 1])
    assert (nothing_empty.precision, nothing_empty.recall, nothing_empty.f1) == (None, 0.0, 0.0)
    assert nothing_empty.undefined == {"precision": "not defined: no empty list"}
    all_answerable = abstention([True, True], [1, 0])
    assert (all_answerable.precision, all_answerable.recall, all_answerable.f1) == (0.0, None, 0.0)
    assert all_answerable.undefined == {"recall": "not defined: 0 unanswerable queries"}
    neither = abstention([True], [1])
    assert set(neither.undefined) == {"precision", "recall", "f1"}
    assert neither.as_dict()["f1"] is None


# --- AUROC


@pytest.mark.slow
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(TABLES)
def test_auroc_is_sklearn_s_with_lists_without_hits_below_all(rows: list[Row]) -> None:
    found = known(rows)
    ours = auroc(found.top_score, found.answerable)
    if len({row.answerable for row in rows}) < 2:
        assert ours is None
        return
    from sklearn import metrics

    theirs = metrics.roc_auc_score(found.answerable, np.nan_to_num(found.top_score, nan=-1e9))
    assert ours == pytest.approx(theirs, abs=1e-12)


# --- the curve


@pytest.mark.slow
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(TABLES)
def test_the_curve_is_what_applying_each_threshold_gives(rows: list[Row]) -> None:
    found = known(rows)
    curve = threshold_curve(found)
    scores = sorted({row.top_score for row in rows if row.returned})
    above = [float(np.nextafter(scores[-1], np.inf))] if scores else []
    assert curve.threshold.tolist() == scores + above
    for i, threshold in enumerate(curve.threshold.tolist()):
        after = at(rows, threshold)
        counts = abstention([r.answerable for r in after], [r.returned for r in after])
        assert curve.lists(i) == counts
        assert curve.scienceqa_map[i] == pytest.approx(float(mean(after)), abs=1e-12)


@pytest.mark.slow
@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(TABLES)
def test_the_chosen_threshold_is_the_lowest_of_the_best(rows: list[Row]) -> None:
    found = known(rows)
    curve = threshold_curve(found)
    if not len(curve):
        return
    exact = [mean(at(rows, threshold)) for threshold in curve.threshold.tolist()]
    assert choose_threshold(curve) == exact.index(max(exact))


def test_rounding_does_not_decide_between_equal_means() -> None:
    """Ten times .1 is one empty list of an unanswerable query, though not in binary."""
    ids = [f"q{i}" for i in range(11)]
    found = outcomes(ids, [True] * 10 + [False], [1] * 11, [1.0] * 11, [0.1] * 11)
    curve = threshold_curve(found)
    assert curve.scienceqa_map[1] > curve.scienceqa_map[0]
    assert choose_threshold(curve) == 0


@settings(deadline=None)
@given(TABLES, st.floats(-1e6, 1e6))
def test_a_threshold_empties_what_scores_below_it(rows: list[Row], threshold: float) -> None:
    found = known(rows)
    after = found.under(threshold)
    assert after.returned.tolist() == [row.returned for row in at(rows, threshold)]
    assert after.values().tolist() == [float(value(row)) for row in at(rows, threshold)]
    assert found.under(None).values().tolist() == [float(value(row)) for row in rows]


@pytest.mark.parametrize("points", [3, 10, 100])
def test_a_thinned_curve_keeps_its_ends_and_the_chosen_point(points: int) -> None:
    curve = threshold_curve(sample(4000))
    for keep in (0, 17, len(curve) - 1):
        indices = curve.thinned(points, keep).tolist()
        assert len(indices) <= points
        assert {0, keep, len(curve) - 1} <= set(indices)
        assert indices == sorted(set(indices))
    assert len(curve.thinned(len(curve), 3)) == len(curve)


# --- the split


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.text(min_size=1), st.booleans()), unique_by=lambda pair: pair[0]),
    st.randoms(use_true_random=False),
)
def test_the_split_takes_half_of_each_kind_in_any_order(
    pairs: list[tuple[str, bool]], random: object
) -> None:
    drawn = split_dev([q for q, _ in pairs], [a for _, a in pairs])
    for wanted in (True, False):
        ids = {q for q, answerable in pairs if answerable is wanted}
        n = len(drawn & ids)
        assert abs(n - len(ids) / 2) <= 1
        assert len(ids) < 2 or 0 < n < len(ids)
    random.shuffle(pairs)  # type: ignore[attr-defined]
    assert split_dev([q for q, _ in pairs], [a for _, a in pairs]) == drawn


def test_another_seed_draws_others() -> None:
    found = sample()
    ids, answerable = found.query_ids, found.answerable
    assert split_dev(ids, answerable) == split_dev(ids, answerable)
    assert split_dev(ids, answerable) != split_dev(ids, answerable, seed=1)


# --- the report


def test_no_query_is_in_both_the_choosing_and_the_reporting_set() -> None:
    found = sample()
    report = studied(abstention_report(found))
    assert report.dev_before.n == len(report.dev_ids) == 30
    assert report.dev_before.n + report.rest_before.n == len(found)
    rest = found.only(np.array([q not in report.dev_ids for q in found.query_ids]))
    assert report.rest_before == figures(rest)
    assert report.rest_after == figures(rest.under(report.threshold))


def test_held_out_queries_and_the_choice_know_of_each_other_by_the_threshold_alone() -> None:
    found = sample()
    report = studied(abstention_report(found))
    in_dev = np.isin(found.query_ids, report.dev_ids)
    ids, answerable, returned, top = (
        found.query_ids, found.answerable, found.returned, found.top_score,
    )  # fmt: skip
    other = outcomes(
        ids,
        answerable,
        np.where(in_dev, returned, 5),
        np.where(in_dev, top, np.arange(60.0)),
        np.where(in_dev, found.ap, 1.0),
    )
    again = studied(abstention_report(other))
    assert (again.threshold, again.dev_after) == (report.threshold, report.dev_after)
    assert again.rest_after != report.rest_after
    other = outcomes(ids, answerable, returned, top, np.where(in_dev, 1.0, found.ap))
    again = studied(abstention_report(other))
    assert again.dev_before != report.dev_before
    assert again.threshold != report.threshold
    assert again.rest_before == report.rest_before


def test_given_dev_queries_are_used_and_all_others_reported_but_unknown_ones_refused() -> None:
    found = sample()
    dev = found.query_ids[:20]
    report = studied(abstention_report(found, dev_ids=set(dev)))
    assert report.dev_ids == dev
    assert report.rest_before.n == 40
    with pytest.raises(DataError, match="1 dev query that this run does not know: q9999"):
        abstention_report(sample(), dev_ids={"q0001", "q9999"})


def test_difference_gain_and_optimism_belong_together() -> None:
    report = studied(abstention_report(sample(400)))
    before, after = report.rest_before.scienceqa_map, report.rest_after.scienceqa_map
    assert report.difference == pytest.approx(some(after) - some(before))
    assert report.ci95[0] < report.difference < report.ci95[1]
    assert report.gain_dev > 0
    assert report.optimism == pytest.approx(report.gain_dev - report.difference)
    assert report.curve.scienceqa_map[report.chosen] == pytest.approx(
        report.dev_after.scienceqa_map
    )


def test_where_no_threshold_helps_none_is_chosen_and_nothing_changes() -> None:
    """The unanswerable score highest: emptying costs more than it brings until all is empty."""
    n = 40
    answerable = np.arange(n) % 4 != 0
    found = outcomes(
        [f"q{i}" for i in range(n)], answerable, [1] * n, np.where(answerable, 1.0, 2.0), [1.0] * n
    )
    report = studied(abstention_report(found))
    assert (report.threshold, report.chosen) == (None, 0)
    assert report.rest_after == report.rest_before
    assert (report.difference, report.gain_dev) == (0.0, 0.0)
    assert report.ci95[0] == pytest.approx(-report.ci95[1])


def test_a_threshold_may_empty_every_list() -> None:
    n = 40
    answerable = np.arange(n) % 4 == 0
    found = outcomes([f"q{i}" for i in range(n)], answerable, [1] * n, [-3.0] * n, [0.5] * n)
    report = studied(abstention_report(found))
    assert report.threshold == np.nextafter(-3.0, 0.0)
    assert len(report.curve) == 2
    assert report.rest_after.scienceqa_map == 0.75


def test_the_order_of_the_queries_changes_nothing_not_even_a_bit() -> None:
    found = sample(301)
    order = np.random.default_rng(1).permutation(len(found))
    shuffled = outcomes(
        [found.query_ids[i] for i in order],
        found.answerable[order],
        found.returned[order],
        found.top_score[order],
        found.ap[order],
    )
    documents = [json.dumps(abstention_report(one).as_dict()) for one in (found, shuffled)]
    assert documents[0] == documents[1]


@pytest.mark.slow
def test_another_process_gives_the_same_bytes() -> None:
    code = (
        "import json; from tests.score.test_abstention import sample;"
        "from retrieval_bench_score.thresholds import abstention_report as r;"
        "print(json.dumps(r(sample()).as_dict()))"
    )
    assert python(code, cwd=ROOT) == json.dumps(abstention_report(sample()).as_dict())


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(TABLES)
def test_whatever_is_given_ends_in_json_without_nan(rows: list[Row]) -> None:
    report = abstention_report(known(rows))
    document = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert (document["threshold"] is None) == (document["reason"] is not None)
    if document["threshold"] is not None:
        assert 2 <= len(document["threshold"]["curve_on_dev"]) <= 100


@pytest.mark.slow
def test_the_curve_in_json_is_thinned() -> None:
    report = studied(abstention_report(sample(4000, digits=4)))
    rows = report.as_dict()["curve_on_dev"]
    assert len(rows) <= 100 < len(report.curve)
    assert report.threshold in {row["threshold"] for row in rows}
    assert rows[-1]["false_return"] == 0


def test_inputs_stay_as_they_are() -> None:
    columns = ([True, False] * 5, [0, 2] * 5, [1.0] * 10, [0.5] * 10)
    arrays = [np.array(column) for column in columns]
    for array in arrays:
        array.flags.writeable = False
    abstention_report(outcomes([f"q{9 - i}" for i in range(10)], *arrays))
    assert [array.tolist() for array in arrays] == list(columns)


@pytest.mark.parametrize(
    ("answerable", "returned", "scores", "says", "area"),
    [
        ([], [], [], "0 answerable queries, 0 to choose", None),
        ([True], [1], [1.0], "1 answerable query, 0 to choose", None),
        ([True] * 4, [1] * 4, [1.0] * 4, "0 unanswerable queries, 0 to choose", None),
        ([False] * 4, [1] * 4, [1.0] * 4, "0 answerable queries, 0 to choose", None),
        ([True, True, False], [1] * 3, [2.0, 2.0, 1.0], "1 unanswerable query, 0 to choose", 1.0),
        (
            [True, False] * 2,
            [1, 1, 0, 0],
            [NAN] * 4,
            "2 queries with hits but without scores",
            None,
        ),
        ([True, False] * 2, [0] * 4, [NAN] * 4, "has hits", 0.5),
    ],
)
def test_a_report_without_a_threshold_says_why(
    answerable: list[bool], returned: list[int], scores: list[float], says: str, area: float | None
) -> None:
    ids = [f"q{i}" for i in range(len(answerable))]
    report = abstention_report(outcomes(ids, answerable, returned, scores, [0.0] * len(ids)))
    assert report.threshold is None
    assert says in (report.reason or "")
    assert report.auroc == area
    assert report.run.n == len(ids)
    assert (report.run.scienceqa_map is None) == (not ids)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"query_ids": ["질문", "질문"]}, "query '질문' is there twice"),
        ({"returned": [1, -1]}, "query 'b' has a negative number of hits"),
        ({"top_score": [np.inf, 1.0]}, "query 'a' has an infinite top score"),
        ({"ap": [1.5, 0.0]}, "query 'a' has an average precision outside 0 to 1"),
        ({"ap": [NAN, 0.0]}, "query 'a' has an average precision outside 0 to 1"),
        ({"ap": [1.0]}, "2 queries with columns of shapes"),
    ],
)
def test_figures_that_cannot_be_are_refused(changed: dict[str, list[float]], says: str) -> None:
    good = {
        "query_ids": ["a", "b"],
        "answerable": [True, False],
        "returned": [1, 1],
        "top_score": [1.0, 2.0],
        "ap": [1.0, 0.0],
    }
    with pytest.raises(DataError, match=says) as raised:
        outcomes(**(good | changed))  # type: ignore[arg-type]
    assert raised.value.accepted
    assert raised.value.fix


def test_what_has_no_meaning_without_hits_is_not_looked_at() -> None:
    found = outcomes(["a", "b"], [True, False], [0, 1], [np.inf, 1.0], [NAN, 7.0])
    assert np.isnan(found.top_score[0])
    assert found.ap.tolist() == [0.0, 0.0]
