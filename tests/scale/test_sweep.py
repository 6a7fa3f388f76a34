"""Sweeps over made-up vectors in clusters, whose exact neighbours are worked out here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render.table import text_of
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench_scale.approximate.selectivity import (
    PERCENTILE,
    TENANT,
    fields_of_document,
    tenant_of_query,
)
from retrieval_bench_scale.approximate.sweep import _once, parse_sweep, sweep
from retrieval_bench_scale.approximate.swept import (
    Reach,
    Sweep,
    SweptValue,
    cheapest,
    reach_of,
    undecided,
)
from retrieval_bench_scale.tables.sweep import sweep_tables
from tests.builders import some
from tests.builders.clustered import Probing, clustered, dataset_of, vector_of, without_model

QUICK = Protocol(rounds=1, warm_up_s=0.0)


@cache
def data(n: int = 400, queries: int = 40) -> Dataset:
    return dataset_of(*clustered(n, queries))


def swept(retriever: Any, values: list[float], parameter: str = "probes", **more: Any) -> Sweep:
    given = {"protocol": QUICK, "save": False, **more}
    return sweep(retriever, given.pop("data", data()), parameter, values, **given)


def found_by(retriever: Retriever, query: Query, k: int) -> set[str]:
    ranking = retriever.search(query, k)
    assert isinstance(ranking, Ranking)
    return {*ranking.doc_ids}


class Told(Probing):
    """It says of itself what an engine does that has built no graph, and stands in for another."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "index": {"used": "flat: no graph was built"}}

    def health(self, queries: Sequence[Query]) -> list[str]:
        return ["a stand-in of another: its times are not those of a server"]


@pytest.mark.slow
def test_what_an_engine_says_of_itself_is_told() -> None:
    found = swept(Told(), [1, 64])
    warnings = found.warnings
    assert "a stand-in of another: its times are not those of a server" in warnings
    assert "The index is flat: no graph was built: every value searches exhaustively." in warnings
    # F5: of values that all search exhaustively none is the cheapest.
    (level,) = found.levels
    assert (level.cheapest, level.undecided) == (None, ())
    (table,) = sweep_tables(found)
    assert "no value is the cheapest that finds 0.95 of the exact top 10: the index" in table.title
    assert not any("An exhaustive search takes" in text_of(note) for note in table.lead)


class Counting(Probing):
    """It keeps how many hits each exhaustive search was asked for."""

    depths: ClassVar[list[int]] = []

    def search(self, query: Query, k: int) -> Ranking:
        if self.exact:
            self.depths.append(k)
        return super().search(query, k)


def test_the_exhaustive_search_is_timed_for_as_many_hits_as_the_values() -> None:
    """F5: exact beside exact is no slower for hits that nobody asked for."""
    Counting.depths.clear()
    swept(Counting(), [64])
    last = Counting.depths[-40:]
    assert set(last) == {10}


class TestRecall:
    def test_it_is_the_share_of_the_exact_first_k_of_each_query(self) -> None:
        (level,) = swept(Probing(), [1, 4, 64], k=5).levels
        documents = some(data().documents)
        vectors = np.stack([vector_of(one.text) for one in documents])
        partly = Probing(probes=1)
        partly.index(documents)
        for query, recall in zip(data().queries, level.values[0].recalls, strict=True):
            order = np.argsort(-(vectors @ vector_of(query.text)))[:5]
            exact = {f"d{at:06}" for at in order}
            assert recall == len(exact & found_by(partly, query, 5)) / 5
        recalls = [some(one.recall) for one in level.values]
        assert recalls == sorted(recalls)
        assert recalls[0] < 0.9 < recalls[-1] == 1

    def test_ways_that_share_an_index_build_it_once(self) -> None:
        made = Probing()
        swept(made, [1, 2, 3])
        assert made.indexed == 1

    def test_queries_that_fail_count_as_nothing_found(self) -> None:
        class Failing(Probing):
            def search(self, query: Query, k: int) -> Ranking:
                if not self.exact and query.id == "q0003":
                    raise RuntimeError("gone")
                return super().search(query, k)

        found = swept(Failing(), [64])
        (value,) = found.levels[0].values
        assert (value.failed, value.recalls[3]) == (1, 0.0)
        assert some(value.recall) == pytest.approx(39 / 40)
        assert any("1 query without an answer" in text for text in found.warnings)

    def test_queries_for_which_there_is_nothing_to_find_have_none(self) -> None:
        class Empty(Probing):
            def search(self, query: Query, k: int) -> Ranking:
                return Ranking([], []) if query.id == "q0003" else super().search(query, k)

        (level,) = swept(Empty(), [64]).levels
        assert (level.queries, level.values[0].recalls[3]) == (39, None)
        assert level.values[0].recall == 1

    @pytest.mark.slow
    def test_values_that_change_nothing_are_told(self) -> None:
        class Least(Probing):
            def search(self, query: Query, k: int) -> Ranking:
                self.probes = max(self.probes, 3)
                return super().search(query, k)

        told = "probes 1, 2: the next value finds the same."
        assert told in swept(Least(), [1, 2, 3, 64]).warnings
        assert "finds the same" not in "".join(swept(Probing(), [1, 2, 64, 65]).warnings)


CONFIG = {"target": "tests.builders.clustered:Probing", "params": {"shares": False}}


class TestWays:
    @pytest.mark.slow
    def test_a_parameter_called_exact_is_enough(self) -> None:
        own, shared = swept(CONFIG, [1, 4]), swept(Probing(), [1, 4])
        assert [one.recalls for one in own.levels[0].values] == [
            one.recalls for one in shared.levels[0].values
        ]

    def test_a_parameter_is_found_by_the_end_of_its_path(self) -> None:
        from retrieval_bench_scale.approximate.variants import _path

        params = {"index": {"type": "hnsw", "ef_search": 8}, "depth": 3}
        assert _path("ef_search", params) == "index.ef_search"
        assert _path("depth", params) == "depth"
        assert _path("other", params) == "other"
        with pytest.raises(ConfigError, match="which 2 places have"):
            _path("m", {"a": {"m": 1}, "b": {"m": 2}})

    def test_what_lacks_the_parameter_or_an_exact_search_is_refused_with_what_has_one(self) -> None:
        with pytest.raises(ConfigError, match="unknown key 'ef'") as problem:
            swept(CONFIG, [1], "ef")
        assert "probes" in str(problem.value)
        with pytest.raises(ConfigError, match="bm25 does not say how it would search exactly"):
            swept("bm25", [1], "k1")
        with pytest.raises(ConfigError, match="does not say how it would search exactly"):
            swept(Probing(shares=False), [1])


class TestChoice:
    def value(self, value: float, ci95: tuple[float, float], ms: float, **more: Any) -> SweptValue:
        middle = sum(ci95) / 2
        made = SweptValue(
            value,
            middle,
            ci95,
            None,
            None,
            reach_of(ci95, 0.95),
            ms,
            (ms, ms),
            None,
            None,
            0,
            None,
            (),
        )
        return replace(made, **more)

    def test_the_lower_end_of_the_interval_decides(self) -> None:
        assert reach_of((0.95, 0.99), 0.95) is Reach.REACHED
        assert reach_of((0.94, 0.99), 0.95) is Reach.OPEN
        assert reach_of((0.80, 0.94), 0.95) is Reach.BELOW
        assert reach_of(None, 0.95) is Reach.OPEN

    def test_the_fastest_of_those_that_reach_it_is_the_cheapest(self) -> None:
        values = [
            self.value(16, (0.90, 0.94), 0.1),
            self.value(32, (0.93, 0.97), 0.2),
            self.value(64, (0.96, 0.98), 0.3),
            self.value(128, (0.97, 0.99), 0.6),
        ]
        chosen = some(cheapest(values))
        assert chosen.value == 64
        assert undecided(values, chosen) == (32,)
        assert cheapest(values[:2]) is None
        assert undecided(values[:2], None) == (32,)

    def test_times_that_cannot_be_told_apart_leave_the_lowest_value_without_encoding(self) -> None:
        values = [
            self.value(64, (0.96, 0.98), 0.31, p50_ci95=(0.28, 0.33)),
            self.value(128, (0.97, 0.99), 0.30, p50_ci95=(0.27, 0.32)),
        ]
        assert some(cheapest(values)).value == 64
        values = [
            self.value(64, (0.96, 0.98), 20.0, search_ms=0.4, search_ci95=(0.39, 0.41)),
            self.value(128, (0.97, 0.99), 19.0, search_ms=0.6, search_ci95=(0.59, 0.61)),
        ]
        assert some(cheapest(values)).value == 64


class TestInput:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ef_search=16,32", ("ef_search", (16, 32))),
            ("index.ef_search=[64, 16,16]", ("index.ef_search", (16, 64))),
            ("weight=0.5", ("weight", (0.5,))),
        ],
    )
    def test_values_come_once_and_from_low_to_high(self, text: str, expected: Any) -> None:
        assert parse_sweep(text) == expected

    @pytest.mark.parametrize(
        "text", ["ef_search", "ef_search=", "=16", "ef=16,many", "ef=true", "ef=16,,32"]
    )
    def test_what_is_no_parameter_with_numbers_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigError):
            parse_sweep(text)

    @pytest.mark.parametrize("recall", [0.0, 1.0, 1.5, -1.0, float("nan")])
    def test_a_recall_that_no_sample_shows_is_refused(self, recall: float) -> None:
        with pytest.raises(ConfigError, match="above 0 and below 1"):
            swept(Probing(), [1], recall=recall)

    @pytest.mark.parametrize("tail", [0.0, 1.01, -1.0, float("nan")])
    def test_a_tail_that_no_query_can_have_is_refused(self, tail: float) -> None:
        with pytest.raises(ConfigError, match="above 0 and at most 1"):
            swept(Probing(), [1], tail=tail)

    @pytest.mark.parametrize("filters", [["0"], ["101"], ["ten"], ["nan"]])
    def test_a_filter_that_is_no_percentage_is_refused(self, filters: list[str]) -> None:
        with pytest.raises(ConfigError, match="percentages above 0 up to 100, or `tenants`"):
            swept(Probing(), [1], filters=filters)


class TestTail:
    def test_it_is_the_share_of_queries_that_find_so_much_with_its_exact_interval(self) -> None:
        found = swept(Probing(), [1, 4, 64], k=10)
        assert (found.tail, found.decided_by) == (0.9, "recall")
        for value in found.levels[0].values:
            served = sum(some(one) >= 0.9 - 1e-9 for one in value.recalls)
            assert value.tail == served / 40
            assert value.tail_ci95 == pytest.approx(clopper_pearson(served, 40))

    def test_nine_of_ten_is_a_recall_of_nine_tenths(self) -> None:
        """Also where it is computed as 1 - .1, which is less in floating point."""
        (level,) = swept(LosesOne(), [64], k=10).levels
        assert some(level.values[0].recall) == pytest.approx(0.9)
        assert level.values[0].tail == 1.0

    def test_a_high_mean_hides_queries_that_find_nothing(self) -> None:
        (level,) = swept(Blind(), [64], recall=0.7).levels
        (value,) = level.values
        assert some(value.recall) == pytest.approx(0.9)
        assert value.tail == 0.9
        assert value.reach is Reach.REACHED
        (level,) = swept(Blind(), [64], recall=0.97, tail=0.9).levels
        assert level.values[0].reach is not Reach.REACHED

    def test_clusters_of_the_dataset_are_the_unit(self) -> None:
        queries = [
            replace(query, metadata={**query.metadata, "talk": at // 5})
            for at, query in enumerate(data().queries)
        ]
        talks = replace(data(), queries=tuple(queries), cluster_key="talk")
        (level,), (alone,) = (swept(Probing(), [1], data=one).levels for one in (talks, data()))
        assert (level.clusters, alone.clusters) == (8, None)
        of, own = level.values[0], alone.values[0]
        assert (of.recall, of.tail) == (own.recall, own.tail)
        for wide, ends in ((of.ci95, own.ci95), (of.tail_ci95, own.tail_ci95)):
            assert some(wide)[1] - some(wide)[0] > some(ends)[1] - some(ends)[0]

    def test_with_a_tail_it_decides(self) -> None:
        by_mean = swept(Probing(), [1, 2, 4, 8, 64], recall=0.8)
        by_tail = swept(Probing(), [1, 2, 4, 8, 64], recall=0.8, tail=1.0)
        assert by_tail.decided_by == "tail"
        first = by_mean.levels[0].cheapest
        for value in by_tail.levels[0].values:
            assert value.reach is reach_of(value.tail_ci95, 0.8)
        assert some(first) <= some(by_tail.levels[0].cheapest)
        (table,) = sweep_tables(by_tail)
        assert "that finds 1 of the exact top 10 for 80 % of queries: 1.000 [0.91" in table.title


class LosesOne(Probing):
    """It loses the last hit of each list."""

    def search(self, query: Query, k: int) -> Ranking:
        found = super().search(query, k)
        return found if self.exact else Ranking(found.doc_ids[:-1], list(some(found.scores))[:-1])


class Blind(Probing):
    """It finds nothing for each tenth query, and all for the others."""

    def search(self, query: Query, k: int) -> Ranking:
        if not self.exact and query.id.endswith("3"):
            return Ranking([], [])
        return super().search(query, k)


class TestFilters:
    @pytest.mark.slow
    def test_each_level_is_held_against_the_exact_search_under_its_filter(self) -> None:
        found = swept(Probing(), [1, 64], filters=["100", "10%", "tenants"], k=3)
        names = [level.name for level in found.levels]
        assert names == ["as asked", "100 %", "10 %", "tenants"]
        plain, whole, tenth, tenants = found.levels
        assert plain.share is None
        assert whole.share == 1
        assert [one.recalls for one in whole.values] == [one.recalls for one in plain.values]
        documents = list(some(data().documents))
        fits = {one.id for one in documents if fields_of_document(one.id)[PERCENTILE] < 10}
        assert some(tenth.share) == pytest.approx(len(fits) / len(documents))
        of = Counter(fields_of_document(one.id)[TENANT] for one in documents)
        fitting = [of[tenant_of_query(one.id)] for one in data().queries]
        assert some(tenants.share) == pytest.approx(sum(fitting) / 40 / len(documents))
        assert of.most_common()[0][0] == "t01"
        for level in found.levels[1:]:
            assert [one.leaked for one in level.values] == [0, 0]
            assert level.values[-1].recall == 1

    @pytest.mark.slow
    def test_hits_outside_of_the_filter_are_counted_and_are_no_recall(self) -> None:
        class Leaking(Probing):
            def search(self, query: Query, k: int) -> Ranking:
                return super().search(query if self.exact else replace(query, filter=None), k)

        found = swept(Leaking(), [64], filters=["10"], k=3)
        (value,) = found.levels[1].values
        assert some(value.leaked) > 60
        assert some(value.recall) < 0.5


class Stopped(Probing):
    """Ctrl-C comes at the query ``at``, of the exhaustive search or of another one."""

    at, when_exact = "q0001", False

    def search(self, query: Query, k: int) -> Ranking:
        if query.id == self.at and self.exact is self.when_exact:
            raise KeyboardInterrupt
        return super().search(query, k)


class TestCtrlC:
    NO_WARM_UP = Protocol(rounds=1, max_calls=41, warm_up_s=0.0)

    def test_what_was_measured_is_kept_and_says_that_it_is_a_part(self) -> None:
        found = swept(Stopped(), [1, 64], filters=["50"], protocol=self.NO_WARM_UP)
        (level,) = found.levels
        assert found.status == "partial"
        assert 0 < level.queries < 40
        known = [one for one in level.values[1].recalls if one is not None]
        assert known == [1.0] * level.queries

    def test_nothing_measured_is_nothing_to_keep(self) -> None:
        made = Stopped()
        made.when_exact = True
        with pytest.raises(KeyboardInterrupt):
            swept(made, [1, 64], protocol=self.NO_WARM_UP)


def test_what_each_level_says_of_its_times_is_told_once() -> None:
    told = [Notice("busy: 70 %", Code.BUSY), Notice("busy: 71 %", Code.BUSY), "flat", "flat"]
    assert _once(told) == ["busy: 70 %", "flat"]


def test_the_queries_are_those_that_bench_asks() -> None:
    judged = replace(data(), qrels={"q0002": {"d000001": 1}, "q0005": {"d000002": 1}})
    found = swept(Probing(), [64], data=judged, filters=["50"])
    assert found.queries == ("q0002", "q0005")
    assert [len(level.values[0].recalls) for level in found.levels] == [2, 2]


def test_a_sweep_is_saved_whole(tmp_path: Path) -> None:
    import json

    out = tmp_path / "kept"
    found = swept(Probing(), [1, 2], save=True, out=out)
    kept = json.loads((out / "sweep.json").read_text("utf-8"))
    assert found.folder == out
    assert kept["schema_version"] == Sweep.schema_version
    assert [one["value"] for one in kept["levels"][0]["values"]] == [1, 2]
    assert len(kept["queries"]) == len(kept["levels"][0]["values"][0]["recalls"]) == 40


@pytest.mark.dense
class TestDense:
    @pytest.fixture(autouse=True)
    def _no_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without_model(monkeypatch)

    def config(self, index: Any) -> dict[str, Any]:
        return {"name": "made", "target": "dense", "params": {"index": index, "cache": False}}

    @pytest.mark.parametrize(
        ("index", "parameter", "values"),
        [
            ({"type": "hnsw", "m": 4, "ef_construction": 8}, "ef_search", [10, 1500]),
            ({"type": "ivf", "nlist": 40}, "index.nprobe", [1, 40]),
            ({"type": "hnsw", "ef_search": 10}, "index.m", [2, 16]),
        ],
    )
    def test_farther_searches_find_more(
        self, index: Any, parameter: str, values: list[float]
    ) -> None:
        found = swept(self.config(index), values, parameter, data=data(1500, 60))
        few, many = found.levels[0].values
        assert some(few.recall) < some(many.recall)
        assert not any("flat" in text for text in found.warnings)

    def test_its_exact_search_is_that_of_a_flat_index(self) -> None:
        from retrieval_bench_retrievers.dense.dense import Dense

        documents = some(data(1500, 60).documents)
        served = Dense(index={"type": "hnsw", "m": 2, "ef_construction": 4}, cache=False)
        flat = Dense(index="flat", cache=False)
        for one in (served, flat):
            one.index(documents)
        exact = some(served.searching({"exact": True}))
        lost = 0
        for query in data(1500, 60).queries:
            expected = found_by(flat, query, 10)
            assert found_by(exact, query, 10) == expected
            lost += len(expected - found_by(served, query, 10))
        assert lost
        assert served.searching({"index.m": 3}) is None
        assert served.searching({"dimensions": 8}) is None
        with pytest.raises(ConfigError, match="whole number"):
            served.searching({"ef_search": 2.5})

    def test_too_few_vectors_for_a_graph_are_told(self) -> None:
        found = swept(self.config("hnsw"), [16, 32], "ef_search")
        assert any("every value searches exhaustively" in text for text in found.warnings)
