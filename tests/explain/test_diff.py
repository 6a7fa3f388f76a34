"""``explain`` on runs whose values can be computed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.calls import NOT_RUN
from retrieval_bench.metrics import parse_metric
from retrieval_bench.runs.dataset import titles_of
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.diff import Explanation, Placed, explain
from retrieval_bench_explain.kept_lists import KEPT, LEFT_BELOW, LOST, LOWERED, NO_LEG, RAISED, fate
from tests.builders import some
from tests.builders.hybrid_runs import make_dataset, make_run

DATA = make_dataset(
    {
        "q1": {"a": 1, "b": 0, "p": 0},
        "q2": {"c": 1},
        "q3": {"d": 2, "e": 1},
        "q4": {"f": 1},
        "q5": {"g": 1},
    }
)
BM25 = {"q1": "abc", "q2": "xyzc".translate(str.maketrans("xyz", "hij")), "q3": "hie", "q4": "hij"}
DENSE = {"q1": "hia", "q2": "hic", "q3": "dhi", "q4": "hijkf"}
FUSED = {"q1": "hab", "q2": "chi", "q3": "dhi", "q4": "hij"}
# RR@3           q1     q2     q3     q4  q5
#   bm25         1      0      1/3    0   0
#   dense        1/3    1/3    1      0   0
#   hybrid       1/2    1      1      0   0


@pytest.fixture
def hybrid() -> Run:
    return make_run("hybrid", DATA, FUSED, {"bm25": BM25, "dense": DENSE})


@pytest.fixture
def bm25() -> Run:
    return make_run("bm25", DATA, {q: row[:3] for q, row in BM25.items()})


@pytest.fixture
def own(hybrid: Run) -> Explanation:
    return explain([hybrid], DATA)


def groups(explanation: Explanation, query_id: str) -> tuple[str, ...]:
    return explanation.details([explanation.query_ids.index(query_id)], texts=False)[0].groups


def ranks(*each: int | None) -> dict[str, int | None]:
    return dict(zip(("hybrid", "leg bm25", "leg dense"), each, strict=True))


class TestOneHybrid:
    def test_it_stands_against_its_legs_cut_at_k_and_each_query_is_in_one_group_of_each_kind(
        self, own: Explanation
    ) -> None:
        assert [system.name for system in own.systems] == ["hybrid", "leg bm25", "leg dense"]
        assert own.values.tolist() == [
            pytest.approx(row)
            for row in ([1 / 2, 1, 1 / 3], [1, 0, 1 / 3], [1, 1 / 3, 1], [0] * 3, [0] * 3)
        ]
        assert own.difference.tolist() == pytest.approx([-1 / 2, 2 / 3, 0, 0, 0])
        assert own.subtracted == ("hybrid", "its best leg")
        assert [partition.kind for partition in own.partitions] == ["best leg", "fusion"]
        assert groups(own, "q1") == ("won by leg bm25", "lost by fusion")
        assert groups(own, "q2") == ("won by leg dense", "gained by fusion")
        assert groups(own, "q3") == ("won by leg dense", "as its best leg")
        assert groups(own, "q4") == ("every leg misses", "all miss")
        assert own.order() == [1, 0, 2, 3, 4]
        assert own.order("worse") == [0, 2, 3, 4, 1]
        assert own.order("better") == [1, 2, 3, 4, 0]
        assert own.order(group="lost by fusion") == [0]
        assert own.order(group="no such group") == []

    def test_a_detail_says_where_each_document_stood_whoever_found_it(
        self, own: Explanation
    ) -> None:
        detail = own.details([0])[0]
        assert detail.query.text == "what is q1"
        assert detail.documents == (
            Placed("h", "H", None, ranks(1, None, 1)),
            Placed("a", "A", 1, ranks(2, 1, 3), {"hybrid": LOWERED}),
            Placed("b", "B", 0, ranks(3, 2, None)),
            Placed("c", "C", None, ranks(None, 3, None)),
            Placed("i", "I", None, ranks(None, None, 2)),
        )
        fates = {
            (detail.query.id, one.doc_id): (one.ranks, one.fates.get("hybrid"))
            for detail in own.details(range(5), texts=False)
            for one in detail.documents
            if one.relevant
        }
        assert fates == {
            ("q1", "a"): (ranks(2, 1, 3), LOWERED),
            ("q2", "c"): (ranks(1, 4, 3), RAISED),
            ("q3", "d"): (ranks(1, None, 1), KEPT),
            ("q3", "e"): (ranks(None, 3, None), LOST),
            ("q4", "f"): (ranks(None, None, 5), LEFT_BELOW),
            ("q5", "g"): (ranks(None, None, None), NO_LEG),
        }

    def test_its_ceiling_is_that_of_its_legs_by_all_metrics(self, own: Explanation) -> None:
        (found,) = own.ceilings().values()
        assert [str(each.metric) for each in found] == ["RR@3", "R@3"]
        rr = found[0]
        assert list(rr.legs) == ["bm25", "dense"]
        assert rr.choice.mean == pytest.approx((1 + 1 / 3 + 1) / 5)
        assert rr.fusion.mean == pytest.approx(4 / 5)
        assert rr.fused == own.means[0]

    def test_another_metric_may_be_asked_for_no_deeper_than_the_rankings(self, hybrid: Run) -> None:
        found = explain([hybrid], DATA, parse_metric("Success@1"))
        assert found.values[:, 0].tolist() == [0, 1, 1, 0, 0]
        found = explain([hybrid], DATA, parse_metric("R"))
        assert found.values[1].tolist() == [1, 0, 1]  # bm25 has "c" at rank 4
        with pytest.raises(ConfigError, match="nDCG@10 of rankings of 3 hits"):
            explain([hybrid], DATA, parse_metric("nDCG@10"))

    def test_a_leg_without_any_hit_is_a_leg(self) -> None:
        run = make_run("hybrid", DATA, {"q1": "a"}, {"bm25": {"q1": "a"}, "mute": {}})
        found = explain([run], DATA)
        assert found.values[0].tolist() == [1, 1, 0]
        assert found.lists[2].tolist() == [[-1]] * 5

    def test_failed_queries_count_as_misses_and_those_not_reached_are_left_out(self) -> None:
        failed = {"q2": "ValueError: no"}
        run = make_run("hybrid", DATA, FUSED, {"bm25": BM25, "dense": DENSE}, failed=failed)
        found = explain([run], DATA)
        assert found.values[1].tolist() == [0, 0, 0]
        assert found.details([1])[0].status == {"hybrid": "ValueError: no"}
        assert found.warnings == ("1 query failed with hybrid: it counts as a miss",)
        run = make_run("hybrid", DATA, FUSED, {"bm25": BM25}, failed={"q1": NOT_RUN})
        found = explain([run], DATA)
        assert found.query_ids == ("q2", "q3", "q4", "q5")
        assert found.values[0].tolist() == [1, 0]
        assert found.warnings == ()

    def test_a_run_without_legs_or_whose_legs_tell_no_list_is_refused(self, bm25: Run) -> None:
        with pytest.raises(ConfigError, match="a single run without lists of legs") as problem:
            explain([bm25], DATA)
        assert "second run" in problem.value.fix
        untold = make_run("hybrid", DATA, FUSED, {"bm25": BM25}, told=False)
        with pytest.raises(ConfigError, match="a single run without lists of legs"):
            explain([untold], DATA)

    def test_a_single_query_can_be_explained(self) -> None:
        data = make_dataset({"q": {"a": 1}})
        run = make_run("hybrid", data, {"q": "ba"}, {"x": {"q": "a"}, "y": {"q": "b"}})
        found = explain([run], data)
        assert groups(found, "q") == ("won by leg x", "lost by fusion")
        assert found.means[0].ci95 is None

    def test_no_query_at_all_can_be_explained(self) -> None:
        nothing = dict.fromkeys(("q1", "q2", "q3", "q4", "q5"), NOT_RUN)
        run = make_run("hybrid", DATA, {}, {"bm25": {}}, failed=nothing)
        run = replace(run, rankings=replace(run.rankings, leg_lists={"bm25": np.full((5, 1), -1)}))
        found = explain([run], DATA)
        assert (found.query_ids, found.order()) == ((), [])
        assert found.means[0].n == 0


class TestTwoRuns:
    def test_two_plain_runs_are_told_apart_by_the_second_minus_the_first(self, bm25: Run) -> None:
        dense = make_run("dense", DATA, {q: row[:3] for q, row in DENSE.items()})
        found = explain([bm25, dense], DATA)
        assert [system.name for system in found.systems] == ["bm25", "dense"]
        assert found.difference.tolist() == pytest.approx([-2 / 3, 1 / 3, 2 / 3, 0, 0])
        assert found.subtracted == ("dense", "bm25")
        assert groups(found, "q1") == ("won by bm25",)
        assert groups(found, "q4") == ("both miss",)
        assert found.details([0])[0].documents[0].fates == {}
        ceilings = found.ceilings()
        assert list(ceilings) == ["both"]
        assert ceilings["both"][0].fused is None
        assert ceilings["both"][0].fusion.mean == pytest.approx(3 / 5)  # "f" stands behind the cut

    def test_a_metric_that_no_run_was_measured_by_is_warned_of_as_any_other(self) -> None:
        """Whose hits are judged far more is held against the order by the metric that was asked."""
        judged = make_run("judged", DATA, {"q1": "ab", "q2": "c", "q3": "de", "q4": "f"})
        other = make_run("other", DATA, {"q1": "ahi", "q2": "hic", "q3": "dhi", "q4": "hij"})
        measured = explain([other, judged], DATA, parse_metric("RR@3")).warnings
        assert "judged may look better because more of its hits were judged" in measured[0]
        assert explain([other, judged], DATA, parse_metric("nDCG@3")).warnings == measured

    def test_the_difference_of_geometric_means_is_that_of_the_means_that_are_shown(
        self, bm25: Run, hybrid: Run
    ) -> None:
        found = explain([bm25, hybrid], DATA, parse_metric("GMAP"))
        apart = found.means[1].mean - found.means[0].mean
        assert found.gap.difference == pytest.approx(apart)
        for partition in found.partitions:
            whole = partition.whole(found.metric)
            if partition.kind != "best leg":  # whose best leg of each query has no column
                before, after = map(some, whole.means.values())
                assert whole.gain == pytest.approx(after - before)

    def test_a_run_that_is_a_leg_of_the_other_is_one_system_with_it(
        self, bm25: Run, hybrid: Run
    ) -> None:
        found = explain([bm25, hybrid], DATA)
        assert [(s.name, s.leg, s.of) for s in found.systems] == [
            ("bm25", "bm25", (1,)),
            ("hybrid", "", ()),
            ("leg dense", "dense", (1,)),
        ]
        assert groups(found, "q1") == ("won by bm25", "won by leg bm25", "lost by fusion")
        relevant = next(one for one in found.details([1])[0].documents if one.relevant)
        assert [*relevant.ranks.values()] == [
            4,
            1,
            3,
        ]  # behind the cut of the run, known from the leg
        assert found.values[1, 0] == 0

    def test_hybrids_of_the_same_legs_share_them(self, hybrid: Run) -> None:
        legs = {"bm25": BM25, "dense": DENSE}
        other = make_run("hybrid", DATA, {q: row[::-1] for q, row in FUSED.items()}, legs)
        found = explain([hybrid, other], DATA)
        assert [(s.name, s.of) for s in found.systems] == [
            ("hybrid", ()),
            ("hybrid#2", ()),
            ("leg bm25", (0, 1)),
            ("leg dense", (0, 1)),
        ]
        assert [(p.kind, p.of) for p in found.partitions] == [
            ("outcome", "hybrid#2"),
            ("best leg", "hybrid and hybrid#2"),
            ("fusion", "hybrid"),
            ("fusion", "hybrid#2"),
        ]
        assert groups(found, "q1")[2:] == ("lost by fusion in hybrid", "lost by fusion in hybrid#2")
        assert list(found.ceilings()) == ["hybrid", "hybrid#2"]
        fates = next(one for one in found.details([0])[0].documents if one.relevant).fates
        assert fates == {"hybrid": LOWERED, "hybrid#2": LOWERED}

    @pytest.mark.parametrize(
        ("name", "ranked", "legs", "systems"),
        [
            ("other", FUSED, {"bm25": {"q1": "cba"}, "dense": DENSE},
             ["leg bm25 of hybrid", "leg dense", "leg bm25 of other"]),
            ("other", FUSED, {"dense": {**DENSE, "q4": "hijkg"}},
             ["leg bm25", "leg dense of hybrid", "leg dense of other"]),
            ("bm25", {"q1": "cba"}, {}, ["leg bm25", "leg dense"]),
        ],
        ids=["other lists", "behind the cut", "run named as a leg"],
    )  # fmt: skip
    def test_which_legs_are_the_same(
        self, hybrid: Run, name: str, ranked: Any, legs: dict[str, Any], systems: list[str]
    ) -> None:
        found = explain([hybrid, make_run(name, DATA, ranked, legs)], DATA)
        assert [system.name for system in found.systems] == ["hybrid", name, *systems]

    def test_two_legs_of_one_hybrid_with_the_same_lists_stay_two(self) -> None:
        run = make_run("hybrid", DATA, FUSED, {"one": BM25, "two": BM25})
        names = [system.name for system in explain([run], DATA).systems]
        assert names == ["hybrid", "leg one", "leg two"]

    def test_a_run_compared_with_itself_ties_everywhere(self, hybrid: Run) -> None:
        found = explain([hybrid, hybrid], DATA)
        assert not found.difference.any()
        assert set(found.partitions[0].groups(found.metric)[2:][0].label.split()) == {"tie"}
        assert found.partitions[0].groups(found.metric)[2].n == 3

    def test_rows_of_the_runs_may_be_in_another_order(self, bm25: Run, hybrid: Run) -> None:
        turned = replace(
            hybrid,
            rankings=replace(
                hybrid.rankings,
                query_ids=hybrid.rankings.query_ids[::-1],
                ranking=hybrid.rankings.ranking[::-1],
                leg_lists={leg: rows[::-1] for leg, rows in hybrid.rankings.leg_lists.items()},
            ),
            status=hybrid.status[::-1],
        )
        straight, other = explain([bm25, hybrid], DATA), explain([bm25, turned], DATA)
        np.testing.assert_allclose(straight.values, other.values, rtol=1e-12, atol=1e-15)
        assert straight.details([1])[0] == other.details([1])[0]

    def test_runs_that_cannot_be_compared_are_refused(self, bm25: Run) -> None:
        deeper = make_run("bm25", DATA, {"q1": "abc"}, k=5)
        with pytest.raises(ConfigError, match="cannot be compared: k 3 and 5"):
            explain([bm25, deeper], DATA)
        with pytest.raises(ConfigError, match="3 runs"):
            explain([bm25, bm25, bm25], DATA)

    def test_a_hybrid_whose_legs_tell_no_list_is_one_system(self, bm25: Run) -> None:
        untold = make_run("hybrid", DATA, FUSED, {"bm25": BM25}, told=False)
        assert len(explain([bm25, untold], DATA).systems) == 2


class TestTitles:
    def test_the_beginning_of_the_text_stands_for_a_missing_title(self) -> None:
        documents = [Document("a", "가" * 300), Document("b", "text", "제목")]
        data = make_dataset({"q": {"a": 1}}, documents)
        assert titles_of(data, {"a", "b", "not there"}) == {"a": "가" * 200, "b": "제목"}

    def test_a_unit_has_the_title_of_its_first_document(self) -> None:
        documents = [
            Document("a#1", "first", metadata={"page": "a"}),
            Document("a#2", "second", metadata={"page": "a"}),
            Document("b#1", "other", metadata={"page": "b"}),
        ]
        data = build_dataset(
            "units", documents, [Query("q", "t")], {"q": {"a": 1}}, unit_key="page"
        )
        run = make_run("hybrid", data, {"q": "ab"}, {"x": {"q": "ab"}})
        titles = [one.title for one in explain([run], data).details([0])[0].documents]
        assert titles == ["first", "other"]

    def test_a_dataset_without_documents_has_ids_only(self) -> None:
        data = replace(DATA, documents=None)
        run = make_run("hybrid", data, FUSED, {"bm25": BM25})
        found = explain([run], data)
        assert {one.title for one in found.details([0])[0].documents} == {None}
        assert found.warnings == ("the dataset has no documents: only their ids are known",)

    def test_the_corpus_is_walked_once_and_only_as_far_as_needed(self) -> None:
        walk = Walk([Document(c, c) for c in "abcdefghijkl"])
        data = replace(DATA, documents=walk)
        run = make_run("hybrid", data, {"q1": "ab", "q2": "ca"}, {"bm25": {"q1": "ab"}})
        explain([run], data).details([0, 1])
        assert (walk.walks, walk.read) == (1, 4)
        explain([run], data).details([0, 1], texts=False)
        assert walk.walks == 1


class Walk:
    """A corpus that counts how it is read."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents, self.walks, self.read = documents, 0, 0

    def __iter__(self) -> Iterator[Document]:
        self.walks += 1
        for document in self.documents:
            self.read += 1
            yield document

    def __len__(self) -> int:
        return len(self.documents)


@pytest.mark.parametrize(
    ("fused", "legs", "says"),
    [
        (1, [1, 3], KEPT),
        (3, [3, 0], KEPT),
        (1, [2, 2], RAISED),
        (2, [11, 90], RAISED),
        (2, [1, 0], LOWERED),
        (0, [10, 40], LOST),
        (0, [11, 0], LEFT_BELOW),
        (0, [0, 0], NO_LEG),
        (0, [], NO_LEG),
    ],
)
def test_what_fusion_did_is_told_against_the_best_leg(
    fused: int, legs: list[int], says: str
) -> None:
    assert fate(fused, legs, 10) == says


def test_judged_far_less_is_told() -> None:
    data: Dataset = make_dataset({"q": {"a": 1, "b": 1}})
    runs = [make_run("x", data, {"q": "ab"}), make_run("y", data, {"q": "ij"})]
    assert any("judge" in warning for warning in explain(runs, data).warnings)
