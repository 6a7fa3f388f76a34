"""What the queries of a published table could show: by hand, and against simulated tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench_score.published_table import SPREADS, audit_table
from retrieval_bench_score.tables.audit import possible_tables

HEADER = "system,metric,mean,n\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "paper.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    return path


def test_the_smallest_difference_is_that_of_the_textbook_where_queries_are_many(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "a,nDCG@10,0.60,10000\nb,nDCG@10,0.62,10000\n")
    (pair,) = audit_table(path, ["0.4"]).pairs
    expected = (norm.isf(0.025) + norm.isf(0.2)) * 0.4 / np.sqrt(10_000)
    assert pair.smallest == pytest.approx(expected, rel=0.01)
    assert pair.needed == pytest.approx(10_000 * (expected / 0.02) ** 2, rel=0.02)
    assert pair.possible
    assert pair.difference == pytest.approx(0.02)


def test_holm_leaves_the_largest_of_three_a_third_of_the_level_and_corrects_a_metric_by_itself(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "a,AP,0.50,5000\nb,AP,0.51,5000\nc,AP,0.53,5000\n")
    pairs = {(pair.a, pair.b): pair for pair in audit_table(path, ["AP=0.3"]).pairs}
    for names, share in ((("a", "c"), 3), (("b", "c"), 2), (("a", "b"), 1)):
        expected = (norm.isf(0.025 / share) + norm.isf(0.2)) * 0.3 / np.sqrt(5000)
        assert pairs[names].smallest == pytest.approx(expected, rel=0.01), names
    one = write(tmp_path, "a,AP,0.5,400\nb,AP,0.6,400\n")
    alone = audit_table(one, ["0.3"]).pairs[0].smallest
    both = write(tmp_path, "a,AP,0.5,400\nb,AP,0.6,400\na,RR,0.5,400\nb,RR,0.6,400\n")
    assert [pair.smallest for pair in audit_table(both, ["0.3"]).pairs] == [alone, alone]


def test_a_test_of_so_many_queries_finds_the_smallest_difference_in_four_of_five(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "a,nDCG@10,0.60,300\nb,nDCG@10,0.62,300\n")
    (pair,) = audit_table(path, ["0.3"]).pairs
    assert pair.smallest is not None
    drawn = np.random.default_rng(1).normal(pair.smallest, 0.3, (4000, 300))
    found = np.asarray(ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05)
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_so_few_queries_show_no_difference_of_means_from_0_to_1(tmp_path: Path) -> None:
    path = write(tmp_path, "a,nDCG@10,0.5,5\nb,nDCG@10,0.6,5\nc,AP,0,60\nd,AP,1,60\n")
    few, many = audit_table(path).pairs
    assert (few.smallest, few.possible) == (None, False)
    assert 0 < (many.smallest or 0) < 1
    assert many.possible


def test_equal_means_and_other_queries_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "a,map,0.6,300\nb,MAP,0.6,300\nc,AP,0.7,299\n")
    audit = audit_table(path, ["0.3"])
    equal, first, second = audit.pairs
    assert (equal.metric, equal.needed, equal.possible) == ("AP", None, False)
    assert first.n is first.smallest is second.n is None
    (table,) = possible_tables(audit)
    assert [row[-1] for row in table.rows] == ["no", *["not the same queries"] * 2]
    assert "2 pairs of means over different queries" in str(table.notes)


def test_every_metric_that_is_usual_has_a_spread_of_its_own_and_others_ask_for_one(
    tmp_path: Path,
) -> None:
    assert {"nDCG@10", "AP", "RR@10", "R@100", "Success@1"} <= set(SPREADS)
    assert all(0 < sd < 0.6 for sd in SPREADS.values())
    path = write(tmp_path, "a,nDCG@10,0.6,300\nb,ndcg_cut_10,0.7,300\n")
    assert audit_table(path).pairs[0].sd == SPREADS["nDCG@10"]
    assert audit_table(path, ["0.5"]).pairs[0].sd == 0.5
    assert audit_table(path, ["0.5", "NDCG@10=0.2"]).pairs[0].sd == 0.2
    path = write(tmp_path, "a,ERR@7,0.5,9\nb,ERR@7,0.6,9\n")
    with pytest.raises(ConfigError) as caught:
        audit_table(path)
    assert "no standard deviation of paired differences for ERR@7" in caught.value.given
    assert audit_table(path, ["0.3"]).as_dict()["pairs"][0]["sd"] == 0.3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,AP,61.2,300\nb,AP,0.5,300\n", ":2: mean is '61.2'; accepted: a number from 0 to 1"),
        ("a,AP,x,300\nb,AP,0.5,300\n", ":2: mean is 'x'"),
        ("a,AP,0.5,1\nb,AP,0.5,300\n", ":2: n is '1'; accepted: queries in the mean, 2 or more"),
        ("a,AP,0.5,30.5\nb,AP,0.5,300\n", ":2: n is '30.5'"),
        ("a,APP,0.5,300\nb,AP,0.5,300\n", ":2: metric 'APP'"),
        ("a,AP,0.5\nb,AP,0.5,300\n", ":2: 3 columns"),
        ("a,AP,0.5,300\na,map,0.6,300\n", "AP of a twice"),
        ("a,AP,0.5,300\n", "fewer than two systems"),
    ],
)
def test_what_is_wrong_in_the_table_is_told_with_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(DataError) as caught:
        audit_table(write(tmp_path, text), ["0.3"])
    assert says in "\n".join(caught.value.faults)


def test_another_header_is_told(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("name,score\nx,1\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        audit_table(path)
    assert "header name,score; accepted: system,metric,mean,n" in caught.value.faults[0]


@pytest.mark.parametrize("spread", ["0", "-1", "x", "AP=", "nan", "inf", "AP=x"])
def test_a_spread_that_is_none_is_told(tmp_path: Path, spread: str) -> None:
    with pytest.raises(ConfigError, match="--sd"):
        audit_table(write(tmp_path, "a,AP,0.5,9\nb,AP,0.6,9\n"), [spread])
