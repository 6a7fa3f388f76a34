from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrieval_bench.measure.threads
import retrieval_bench_retrievers.hybrid.hybrid
from retrieval_bench.core.calls.usage import collected
from retrieval_bench.core.config import load_retriever_config, read_yaml
from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Document, Query, Ranking, Usage
from retrieval_bench_retrievers.hybrid import asking
from retrieval_bench_retrievers.hybrid.fusion import Convex
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.hybrid.legs import LegSpec
from tests.builders import some
from tests.builders.scripted import Scripted

QUERY = Query("q1", "검색")
SCRIPTED = "tests.builders.scripted:Scripted"


class Learning(Scripted):
    """A leg that wants to know what it will be asked for."""

    asked_for = 0

    def use_k(self, k: int) -> None:
        self.asked_for = k


class Failing(Scripted):
    def __init__(self, problem: BaseException, **params: Any) -> None:
        super().__init__(**params)
        self.problem = problem

    def search(self, query: Query, k: int) -> RankingLike:
        raise self.problem


BM25 = {"a": 12.0, "b": 7.0, "c": 2.0}
DENSE = {"b": 0.9, "d": 0.8, "a": 0.5}


def two(**params: Any) -> Hybrid:
    return Hybrid(legs=[Scripted(BM25), Scripted(DENSE)], **params)


def inline(name: str, **params: Any) -> dict[str, Any]:
    return {"name": name, "target": SCRIPTED, "params": params}


@pytest.fixture
def configs(here: Path) -> Path:
    """A working folder with retriever configs ``sparse`` and ``meaning``."""
    folder = here / "configs" / "retrievers"
    folder.mkdir(parents=True)
    for name, hits in (("sparse", BM25), ("meaning", DENSE)):
        content = {"target": SCRIPTED, "params": {"hits": hits}}
        (folder / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")
    return folder


def fault(**params: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        two(**params)
    return str(caught.value)


# --- rankings


def test_the_default_is_rrf_with_sixty_from_one() -> None:
    ranking = two().search(QUERY, 10)
    assert ranking.doc_ids == ["b", "a", "d", "c"]
    expected = [1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62, 1 / 63]
    assert list(some(ranking.scores)) == pytest.approx(expected, rel=1e-15)


def test_convex_gives_the_weighted_min_max_scores() -> None:
    ranking = two(fusion={"method": "convex", "weights": [3, 1]}).search(QUERY, 10)
    assert list(ranking) == [
        ("a", pytest.approx(0.75)),
        ("b", pytest.approx(0.75 * 0.5 + 0.25)),
        ("d", pytest.approx(0.25 * 0.75)),
        ("c", 0.0),
    ]


def test_weights_by_name_are_the_same_as_in_order() -> None:
    legs = [inline("sparse", hits=BM25), inline("meaning", hits=DENSE)]
    by_name = Hybrid(legs=legs, fusion={"weights": {"meaning": 0.2, "sparse": 0.8}})
    in_order = Hybrid(legs=legs, fusion={"weights": [0.8, 0.2]})
    assert list(by_name.search(QUERY, 10)) == list(in_order.search(QUERY, 10))
    assert by_name.describe()["fusion"]["weights"] == {"sparse": 0.8, "meaning": 0.2}


@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_a_leg_of_weight_zero_adds_nothing_and_is_still_traced(method: str) -> None:
    ranking = two(fusion={"method": method, "weights": [1, 0]}).search(QUERY, 10)
    assert ranking.doc_ids == list(BM25)
    assert list(ranking.legs["Scripted#2"].ranks) == [3, 1, 0]


def test_ties_within_a_leg_follow_the_tie_rule_before_they_get_ranks() -> None:
    tied = Hybrid(legs=[Scripted({"z": 1.0, "a": 1.0}), Scripted()])
    assert tied.search(QUERY, 2).doc_ids == ["a", "z"]


def test_legs_may_return_pairs_or_nothing() -> None:
    class Pairs(Scripted):
        def search(self, query: Query, k: int) -> RankingLike:
            return [("a", 2.0), ("b", 1.0)]

    assert Hybrid(legs=[Pairs(), Scripted()]).search(QUERY, 5).doc_ids == ["a", "b"]
    assert len(Hybrid(legs=[Scripted(), Scripted()]).search(QUERY, 5)) == 0


def test_legs_without_scores_can_be_fused_by_rank() -> None:
    unscored = Scripted(["c", "a"], capabilities=Capabilities(external=True, has_scores=False))
    hybrid = Hybrid(legs=[Scripted(BM25), unscored])
    ranking = hybrid.search(QUERY, 1)
    assert ranking.doc_ids == ["a"]
    assert np.isnan(ranking.legs["Scripted#2"].scores).all()
    assert hybrid.capabilities.has_scores


# --- depth


def test_each_leg_is_asked_for_its_depth_or_k_whichever_is_more() -> None:
    legs = [Scripted(BM25), Scripted(DENSE)]
    hybrid = Hybrid(legs=legs, depth=[50, 7])
    hybrid.search(QUERY, 10)
    hybrid.search(QUERY, 60)
    assert [leg.asked for leg in legs] == [[50, 60], [10, 60]]


def test_the_depth_is_one_hundred_unless_said() -> None:
    leg = Scripted()
    Hybrid(legs=[leg, Scripted()]).search(QUERY, 10)
    assert leg.asked == [100]


def test_hits_below_the_depth_do_not_count() -> None:
    shallow = Hybrid(legs=[Scripted(BM25), Scripted(DENSE)], depth=1)
    assert shallow.search(QUERY, 1).doc_ids == ["a"]  # b, with two hits, has one at depth 1


def test_a_leg_that_returns_more_than_asked_breaks_the_contract() -> None:
    class Generous(Scripted):
        def search(self, query: Query, k: int) -> RankingLike:
            return Ranking(["a", "b", "c"])

    hybrid = Hybrid(legs=[Scripted(), Generous()], depth=2)
    with pytest.raises(ContractError, match="3 hits returned"):
        hybrid.search(QUERY, 1)


# --- traces and stages


def test_each_leg_s_rank_and_score_of_each_fused_hit_are_kept() -> None:
    ranking = two().search(QUERY, 3)
    assert ranking.doc_ids == ["b", "a", "d"]
    first, second = ranking.legs["Scripted"], ranking.legs["Scripted#2"]
    assert list(first.ranks) == [2, 1, 0]
    assert list(second.ranks) == [1, 3, 2]
    assert list(first.scores) == pytest.approx([7.0, 12.0, float("nan")], nan_ok=True)
    assert list(second.scores) == [0.9, 0.5, 0.8]


def test_each_leg_s_whole_list_is_kept_beyond_the_cut() -> None:
    ranking = two().search(QUERY, 1)
    assert ranking.doc_ids == ["b"]
    first, second = ranking.legs["Scripted"], ranking.legs["Scripted#2"]
    assert first.doc_ids == list(BM25)
    assert second.doc_ids == list(DENSE)
    assert list(some(first.doc_scores)) == list(BM25.values())


def test_a_leg_s_list_ends_at_its_depth_and_may_have_no_scores() -> None:
    legs = [Scripted(BM25), Scripted(["c", "d"])]
    ranking = Hybrid(legs=legs, depth=[1, 2]).search(QUERY, 1)
    assert ranking.legs["Scripted"].doc_ids == ["a"]
    assert ranking.legs["Scripted#2"].doc_ids == ["c", "d"]
    assert ranking.legs["Scripted#2"].doc_scores is None


class WithTexts(Scripted):
    """A leg whose hits come with texts, and all but the first with a source."""

    def search(self, query: Query, k: int) -> Ranking:
        ranking = checked_ranking(super().search(query, k), k)
        ids = ranking.doc_ids
        texts = [f"{hit.score:g} of {hit.doc_id}" for hit in ranking]
        return Ranking(ids, ranking.scores, texts=texts, sources=[None, *ids[1:]])


def test_texts_and_sources_of_hits_stay_with_them_from_the_first_leg_that_has_them() -> None:
    legs = [Scripted({"e": 1.0}), WithTexts(BM25), WithTexts(DENSE)]
    ranking = Hybrid(legs=legs).search(QUERY, 5)
    came = {
        doc_id: (text, source)
        for doc_id, text, source in zip(
            ranking.doc_ids, ranking.texts or (), ranking.sources or (), strict=True
        )
    }
    assert came == {
        "a": ("12 of a", "a"),  # the first hit of its first leg has no source
        "b": ("7 of b", "b"),
        "c": ("2 of c", "c"),
        "d": ("0.8 of d", "d"),
        "e": (None, None),
    }
    assert two().search(QUERY, 5).texts is None


def test_equal_names_are_numbered_around_taken_ones() -> None:
    legs = [inline(name) for name in ("dense", "dense", "dense#2", "dense")]
    names = list(Hybrid(legs=legs).search(QUERY, 1).legs)
    assert names == ["dense", "dense#2", "dense#2#2", "dense#3"]


def test_stages_of_one_leg_keep_their_name_and_shared_ones_name_the_leg(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = count(0, 10)
    for module in (asking, retrieval_bench_retrievers.hybrid.hybrid):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: next(ticks))
    legs = [
        inline("bm25", stages={"tokenize": 3, "sparse": 5}),
        inline("dense", stages={"tokenize": 1, "encode": 7, "fuse": 2}),
    ]
    assert Hybrid(legs=legs).search(QUERY, 1).stages == {
        "bm25.tokenize": 3,
        "sparse": 5,
        "dense.tokenize": 1,
        "encode": 7,
        "dense.fuse": 2,
        "leg:bm25": 10,
        "leg:dense": 10,
        "fuse": 10,
    }


def test_a_hybrid_of_hybrids_works() -> None:
    inner = Hybrid(legs=[inline("x", hits=BM25), inline("y", hits=DENSE)])
    outer = Hybrid(legs=[inner, inline("x", hits=["d"])])
    ranking = outer.search(QUERY, 10)
    assert ranking.doc_ids == ["d", "b", "a", "c"]
    assert list(ranking.legs) == ["Hybrid", "x"]
    assert set(ranking.stages) == {
        *("Hybrid.leg:x", "Hybrid.leg:y", "Hybrid.fuse"),
        *("leg:Hybrid", "leg:x", "fuse"),
    }
    assert outer.describe()["legs"]["Hybrid"]["fusion"]["text"] == "rrf k=60, ranks from 1"


# --- indexing


class Indexed(Scripted):
    def __init__(self, **params: Any) -> None:
        super().__init__(capabilities=Capabilities(), **params)


def documents() -> Iterator[Document]:
    yield Document("a", "one")
    yield Document("b", "둘")


def test_every_leg_indexes_all_documents_of_a_one_time_iterator() -> None:
    legs = [Indexed(), Indexed()]
    Hybrid(legs=legs).index(documents())
    assert [leg.indexed for leg in legs] == [["a", "b"], ["a", "b"]]


def test_external_legs_are_not_indexed_and_others_are() -> None:
    own, external = Indexed(), Scripted()
    hybrid = Hybrid(legs=[own, external])
    assert not hybrid.capabilities.external
    hybrid.index(documents())
    assert own.indexed == ["a", "b"]
    assert external.indexed is None


def test_search_before_index_is_an_error_unless_all_legs_are_external() -> None:
    with pytest.raises(ContractError, match="before index"):
        Hybrid(legs=[Indexed(), Scripted()]).search(QUERY, 1)
    external = Hybrid(legs=[Scripted(), Scripted()])
    assert external.capabilities.external
    assert len(external.search(QUERY, 1)) == 0


def test_search_after_an_index_that_failed_is_an_error() -> None:
    class Once(Indexed):
        def index(self, documents: Iterable[Document]) -> None:
            if self.indexed is not None:
                raise RuntimeError("disk full")
            super().index(documents)

    hybrid = Hybrid(legs=[Indexed(), Once()])
    hybrid.index(documents())
    with pytest.raises(RuntimeError, match="disk full") as caught:
        hybrid.index(documents())
    assert caught.value.__notes__ == ["in leg 'Once' of the hybrid"]
    with pytest.raises(ContractError, match="before index"):
        hybrid.search(QUERY, 1)


def test_language_and_progress_reach_the_legs_also_of_nested_hybrids() -> None:
    leg, learning = Scripted(), Learning()
    outer = Hybrid(legs=[leg, Hybrid(legs=[learning, Scripted()])])

    def told(done: int, total: int) -> None: ...

    outer.use_language("ko")
    outer.use_k(130)
    outer.progress = told
    assert (leg.language, learning.language) == ("ko", "ko")
    assert learning.asked_for == 130
    assert learning.progress is told
    assert outer.progress is told
    assert leg.progress is told


# --- facts


def test_capabilities_are_those_of_the_weakest_leg() -> None:
    def leg(**facts: Any) -> Scripted:
        return Scripted(capabilities=Capabilities(**facts))

    hybrid = Hybrid(legs=[leg(external=True, score_tolerance=1e-5), leg(exact=False)])
    assert hybrid.capabilities == Capabilities(external=False, exact=False, score_tolerance=1e-5)


@pytest.mark.parametrize(
    ("fusion", "text"),
    [
        ({}, "rrf k=60, ranks from 1"),
        ({"method": "rrf", "k": 2, "base": 0}, "rrf k=2, ranks from 0"),
        ({"weights": [0.7, 0.3]}, "rrf k=60, ranks from 1, weights x 0.7, y 0.3"),
        ({"method": "convex"}, "convex min-max, weights x 0.5, y 0.5"),
    ],
)
def test_describe_prints_the_fusion(fusion: dict[str, Any], text: str) -> None:
    hybrid = Hybrid(legs=[inline("x"), inline("y")], fusion=fusion)
    assert hybrid.describe()["fusion"]["text"] == text


def test_describe_is_plain_data() -> None:
    facts = Hybrid(legs=[inline("x", hits=["a"]), inline("y")], depth=[20, 30]).describe()
    assert json.loads(json.dumps(facts)) == {
        "fusion": {
            **{"text": "rrf k=60, ranks from 1", "method": "rrf", "k": 60, "base": 1},
            "weights": {"x": 1.0, "y": 1.0},
        },
        "depth": {"x": 20, "y": 30},
        "parallel": False,
        "legs": {"x": {"n_hits": 1}, "y": {"n_hits": 0}},
    }


def test_warnings_and_disk_use_of_the_legs_are_passed_on() -> None:
    legs = [
        inline("x", warnings=["cut off"], disk=3),
        inline("y", warnings=["unknown script"]),
        inline("z", disk=4),
    ]
    hybrid = Hybrid(legs=legs)
    assert hybrid.health([QUERY]) == ["x: cut off", "y: unknown script"]
    assert hybrid.disk_bytes() == 7
    assert two().disk_bytes() is None


# --- legs from configs


def test_legs_are_built_from_names_files_and_inline_targets(configs: Path) -> None:
    legs: list[LegSpec] = ["sparse", str(configs / "meaning.yaml"), inline("third", hits=["d"])]
    hybrid = Hybrid(legs=legs)
    assert list(hybrid.search(QUERY, 10).legs) == ["sparse", "meaning", "third"]
    assert hybrid.search(QUERY, 1).doc_ids == ["b"]
    assert hybrid.describe()["legs"]["sparse"] == {
        "target": SCRIPTED,
        "params": {"hits": BM25},
        "n_hits": 3,
    }


def test_a_secret_of_a_named_leg_stays_out_of_the_description(
    configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_TEST_TOKEN", "s3cret-value")
    content = {"target": SCRIPTED, "params": {"warnings": ["${HYBRID_TEST_TOKEN}"]}}
    (configs / "guarded.yaml").write_text(json.dumps(content), encoding="utf-8")
    hybrid = Hybrid(legs=["guarded", "sparse"])
    assert hybrid.health([]) == ["guarded: s3cret-value"]
    assert "s3cret-value" not in json.dumps(hybrid.describe())


def test_a_config_that_is_its_own_leg_is_an_error(configs: Path) -> None:
    content = {"target": "hybrid", "params": {"legs": ["sparse", "loop"]}}
    (configs / "loop.yaml").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ConfigError, match="retriever 'loop' contains itself"):
        load_retriever_config("loop").build()


@pytest.mark.usefixtures("configs")
def test_all_unknown_legs_are_told_at_once_with_near_names() -> None:
    with pytest.raises(ConfigError) as caught:
        Hybrid(legs=["sparsee", "meening"])
    for told in ("'sparsee'", "'meening'", "did you mean sparse"):
        assert told in str(caught.value)


def test_legs_that_were_built_are_closed_when_another_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[Retriever] = []

    def note(leg: Scripted) -> None:
        closed.append(leg)

    monkeypatch.setattr(Scripted, "close", note)
    given = Scripted()
    with pytest.raises(PluginError, match="Nowhere"):
        Hybrid(legs=[inline("x"), given, {"target": f"{__name__}:Nowhere"}])
    assert len(closed) == 1
    assert closed[0] is not given


@pytest.mark.parametrize(
    ("name", "model"),
    [("hybrid", {"method": "rrf", "k": 60}), ("hybrid-convex", {"method": "convex"})],
)
def test_the_shipped_configs_are_valid(name: str, model: dict[str, Any]) -> None:
    folder = packaged_configs() / "retrievers"
    content = read_yaml(folder / f"{name}.yaml")
    assert content["target"] == "hybrid"
    params = content["params"]
    assert params.pop("legs") == ["bm25", "dense"]
    facts = two(**params).describe()
    assert model.items() <= facts["fusion"].items()
    assert set(facts["depth"].values()) == {100}


# --- bad parameters


@pytest.mark.parametrize(
    ("fusion", "message"),
    [
        ({"method": "rff"}, "unknown method 'rff'; did you mean rrf?"),
        ({"metod": "rrf"}, "unknown key 'fusion.rrf.metod'"),
        ({"method": "convex", "k": 60}, "unknown key 'fusion.convex.k'"),
        ({"method": "convex", "normalize": "z-score"}, "'min-max'"),
        ({"normalize": "min-max"}, "unknown key 'fusion.rrf.normalize'"),
        ({"k": "60"}, "'fusion.rrf.k'"),
        ({"k": -1}, "'fusion.rrf.k'"),
        ({"base": 2}, "'fusion.rrf.base'"),
        ({"k": 0, "base": 0}, "divides by zero"),
        ({"weights": [1]}, "1 weights for 2 legs"),
        ({"weights": [0, 0]}, "all weights are 0"),
        ({"weights": [1, -1]}, "not a finite number of 0 or more"),
        ({"weights": [1, float("nan")]}, "not a finite number of 0 or more"),
        ({"weights": [1, "2"]}, "is no number"),
        ({"weights": [1, True]}, "is no number"),
        ({"weights": 0.5}, "a list with one number per leg"),
        ({"weights": {"Scripted": 1, "scripted#2": 1}}, "did you mean Scripted#2"),
        ({"weights": {"Scripted": 1}}, "no weight for leg 'Scripted#2'"),
        ("rrf", "a mapping such as {method: rrf, k: 60}"),
    ],
)
def test_a_fusion_that_cannot_be_used_is_refused(fusion: Any, message: str) -> None:
    assert message in fault(fusion=fusion)


@pytest.mark.parametrize("depth", [0, -3, 2.5, "100", True, [100], [10, 0], {"Scripted": 10}])
def test_a_depth_that_cannot_be_used_is_refused(depth: Any) -> None:
    assert "depth" in fault(depth=depth)


def test_all_faults_are_told_at_once() -> None:
    text = fault(
        fusion={"kay": 60, "weights": [1, 2, 3], "base": "one"}, depth=0, parallel="perhaps"
    )
    for part in ("'fusion.rrf.kay'", "3 weights", "'fusion.rrf.base'", "'depth", "'parallel'"):
        assert part in text


ONE = Scripted()
UNSCORED = Scripted(capabilities=Capabilities(external=True, has_scores=False))
TWO_OR_MORE = "list of two or more"


@pytest.mark.parametrize(
    ("legs", "fusion", "message"),
    [
        *((legs, None, TWO_OR_MORE) for legs in ([], ["bm25"], "bm25", {"a": "bm25"}, None)),
        ([1, 2], None, "a value of type int where a retriever belongs"),
        ([ONE, ONE], None, "given as two legs"),
        ([ONE, UNSCORED], {"method": "convex"}, "without scores: Scripted"),
    ],
)
def test_legs_that_cannot_be_used_are_refused(legs: Any, fusion: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Hybrid(legs=legs, fusion=fusion)


def test_convex_over_a_leg_that_turns_out_to_have_no_scores_says_which() -> None:
    legs = [inline("x", hits=BM25), inline("y", hits=["a"])]
    hybrid = Hybrid(legs=legs, fusion={"method": "convex"})
    with pytest.raises(ContractError, match="leg 2 of 2"):
        hybrid.search(QUERY, 1)


# --- failures


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("at", [0, 1])
def test_an_exception_of_a_leg_propagates_with_the_leg_s_name(parallel: bool, at: int) -> None:
    legs: list[Retriever] = [Scripted(BM25), Scripted(DENSE)]
    legs[at] = Failing(ValueError("no such tenant"))
    hybrid = Hybrid(legs=legs, parallel=parallel)
    with pytest.raises(ValueError, match="no such tenant") as caught:
        hybrid.search(QUERY, 1)
    assert caught.value.__notes__ == ["in leg 'Failing' of the hybrid"]
    hybrid.close()


def test_an_error_of_the_harness_says_which_leg_in_its_text() -> None:
    inner = Hybrid(legs=[inline("good"), inline("twice", hits=["a", "a"])])
    with pytest.raises(ContractError) as caught:
        Hybrid(legs=[inner, Scripted()]).search(QUERY, 5)
    assert "returned twice" in str(caught.value)
    assert "where: leg 'Hybrid'; leg 'twice'" in str(caught.value)


# --- parallel legs


class Meeting(Scripted):
    """Returns only when all legs are being asked at the same time."""

    def __init__(self, barrier: threading.Barrier, hits: Sequence[str]) -> None:
        super().__init__(hits=hits)
        self.barrier = barrier

    def search(self, query: Query, k: int) -> RankingLike:
        self.barrier.wait(timeout=20)
        return super().search(query, k)


def test_parallel_legs_run_at_the_same_time_the_last_in_the_caller_s_thread() -> None:
    barrier = threading.Barrier(3)
    legs = [Meeting(barrier, hits) for hits in (["a", "b"], ["b"], ["b", "c"])]
    hybrid = Hybrid(legs=legs, parallel=True)
    for _ in range(3):
        assert hybrid.search(QUERY, 2).doc_ids[0] == "b"
    hybrid.close()
    assert set(legs[2].threads) == {threading.current_thread().name}
    assert not {*legs[0].threads, *legs[1].threads} & set(legs[2].threads)


def test_parallel_and_serial_legs_give_the_same_ranking() -> None:
    serial, parallel = two(), two(parallel=True)
    expected, found = serial.search(QUERY, 10), parallel.search(QUERY, 10)
    parallel.close()
    assert list(found) == list(expected)
    assert list(found.legs) == list(expected.legs)
    assert set(found.stages) == {"leg:Scripted", "leg:Scripted#2", "fuse"}


def test_threads_start_at_the_first_search_and_end_with_close() -> None:
    before = threading.active_count()
    hybrid = two(parallel=True)
    assert threading.active_count() == before
    hybrid.search(QUERY, 1)
    assert threading.active_count() == before + 1
    hybrid.close()
    assert threading.active_count() == before


def test_serial_legs_start_no_thread() -> None:
    before = threading.active_count()
    two().search(QUERY, 1)
    assert threading.active_count() == before


def test_the_thread_limit_of_timed_searches_is_applied_in_the_legs_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited: list[str] = []
    monkeypatch.setattr(
        retrieval_bench.measure.threads,
        "apply_to_this_thread",
        lambda: limited.append(threading.current_thread().name),
    )
    legs = [Scripted(), Scripted()]
    hybrid = Hybrid(legs=legs, parallel=True)
    hybrid.search(QUERY, 1)
    hybrid.search(QUERY, 1)
    hybrid.close()
    assert limited == legs[0].threads[:1]


class TimeOut(BaseException):
    """As a signal handler raises it."""


class Slow(Scripted):
    """Holds its first call until told to end it; notes when two calls overlap."""

    def __init__(self) -> None:
        super().__init__(hits=["a"])
        self.begun, self.release = threading.Event(), threading.Event()
        self.inside = 0
        self.overlapped = self.gave_up = False

    def search(self, query: Query, k: int) -> RankingLike:
        self.inside += 1
        self.overlapped |= self.inside > 1
        self.begun.set()
        self.gave_up = not self.release.wait(timeout=20)
        self.inside -= 1
        return super().search(query, k)


class TimesOut(Scripted):
    """Runs out of time in its first call, while the slow leg is at work."""

    def __init__(self, slow: Slow) -> None:
        super().__init__(hits=["b"])
        self.slow = slow
        self.calls = 0

    def search(self, query: Query, k: int) -> RankingLike:
        self.calls += 1
        if self.calls == 1:
            assert self.slow.begun.wait(timeout=20)
            raise TimeOut
        return super().search(query, k)


def test_a_time_out_in_the_caller_leaves_no_leg_asked_twice_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Slow()
    hybrid = Hybrid(legs=[slow, TimesOut(slow)], parallel=True)
    with pytest.raises(TimeOut):
        hybrid.search(QUERY, 1)
    waited_for: list[int] = []

    def release_and_wait(futures: Sequence[Future[Any]]) -> None:
        waited_for.append(len(futures))
        slow.release.set()
        wait(futures)

    monkeypatch.setattr(asking, "wait", release_and_wait)
    assert set(hybrid.search(QUERY, 2).doc_ids) == {"a", "b"}
    hybrid.close()
    assert waited_for == [1]
    assert not slow.overlapped


def test_close_does_not_wait_for_a_leg_that_hangs() -> None:
    slow = Slow()
    hybrid = Hybrid(legs=[slow, TimesOut(slow)], parallel=True)
    with pytest.raises(TimeOut):
        hybrid.search(QUERY, 1)
    hybrid.close()
    slow.release.set()
    assert not slow.gave_up  # the leg was still at work when close came back
    assert slow.closed == 1


def test_every_leg_is_closed_once_also_when_one_raises() -> None:
    class Stuck(Scripted):
        def close(self) -> None:
            super().close()
            raise OSError("connection lost")

    legs = [Scripted(), Stuck(), Scripted()]
    hybrid = Hybrid(legs=legs)
    with pytest.raises(OSError, match="connection lost"):
        hybrid.close()
    hybrid.close()
    assert [leg.closed for leg in legs] == [1, 1, 1]


def test_convex_weights_are_divided_by_their_sum() -> None:
    model = Convex.model_validate(
        {"method": "convex", "weights": {"x": 3, "y": 1}}, context={"legs": ["x", "y"]}
    )
    assert model.weights == (0.75, 0.25)


def test_how_a_leg_is_called_is_said_of_the_hybrid(tmp_path: Path) -> None:
    leg = tmp_path / "slow.yaml"
    leg.write_text("target: bm25\nrate_limit: 2\n", encoding="utf-8")
    for given in (str(leg), {"target": "bm25", "name": "slow", "rate_limit": 2}):
        with pytest.raises(ConfigError) as caught:
            Hybrid(legs=["bm25", given])
        assert "rate_limit of slow, which is called by another retriever here" in str(caught.value)


class Paid(Scripted):
    """A leg that uses up money."""

    def search(self, query: Query, k: int) -> Ranking:
        ranking = checked_ranking(super().search(query, k), k)
        return replace(ranking, usage={"call": Usage(money=0.5)})


@pytest.mark.parametrize(("parallel", "turned"), [(False, False), (True, False), (True, True)])
def test_what_a_leg_used_up_is_paid_for_where_another_one_fails(
    *, parallel: bool, turned: bool
) -> None:
    legs: list[Retriever] = [Paid(BM25), Failing(ConnectionError("down"))]
    if turned:
        legs.reverse()
    with collected() as used, pytest.raises(ConnectionError):
        Hybrid(legs=legs, parallel=parallel).search(QUERY, 3)
    assert used() == Usage(money=0.5)
