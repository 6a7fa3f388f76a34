"""Filters of queries: read, checked, part of the fingerprint, and what a run says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset, dataset_fingerprint, load_dataset
from retrieval_bench.experiment.filtered import cut_under_filters
from retrieval_bench.measure.protocol import Protocol
from tests.builders import some
from tests.builders.files import save_all
from tests.builders.refusals import dataset_faults, faults_of

TEXTS = ("red apples", "green apples", "blue apples", "no fruit at all")
DOCUMENTS = [
    Document(f"d{i}", text, metadata={"tenant": "ab"[i % 2], "year": 2020 + i})
    for i, text in enumerate(TEXTS)
]
QRELS = {"q1": {"d0": 1}, "q2": {"d1": 1}, "q3": {"d2": 1}}
QUICK = Protocol(rounds=1, warm_up_s=0.0)


def queries(*filters: Any) -> list[Query]:
    return [
        Query(f"q{i}", "apples", filter=None if given is None else parse_filter(given))
        for i, given in enumerate(filters, start=1)
    ]


def data(*filters: Any, documents: Any = DOCUMENTS) -> Dataset:
    return build_dataset("shop", documents, queries(*filters), QRELS, language="en")


FILTERED = ({"tenant": "a"}, {"tenant": "b", "year": {"gte": 2021}}, None)


@pytest.mark.needs("retrieval_bench_exchange")
class TestReading:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        from retrieval_bench import export_dataset

        export_dataset(data(*FILTERED), "beir", tmp_path / "beir")
        return tmp_path / "beir"

    def test_a_folder_comes_back_as_it_was_written(self, folder: Path) -> None:
        lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(lines[1])["filter"] == {"tenant": "b", "year": {"gte": 2021}}
        assert "filter" not in json.loads(lines[2])
        read = load_dataset(folder)
        assert [query.filter for query in read.queries] == [
            query.filter for query in data(*FILTERED).queries
        ]
        assert read.fingerprint == data(*FILTERED).fingerprint == dataset_fingerprint(read)
        assert "filter" not in read.queries[0].metadata

    def test_a_cell_holds_json(self, tmp_path: Path) -> None:
        files = {
            "dataset.yaml": "format: plain\n"
            "files: {documents: documents.csv, queries: queries.csv}\n"
            "splits: {test: qrels.csv}\n",
            "documents.csv": "id,text,tenant\nd0,apples,a\nd1,apples,b\n",
            "queries.csv": 'id,text,filter\nq1,apples,"{""tenant"": ""a""}"\nq2,apples,\n',
            "qrels.csv": "query_id,doc_id,grade\nq1,d0,1\nq2,d1,1\n",
        }
        read = load_dataset(save_all(tmp_path, files))
        assert some(read.queries[0].filter).values == {"tenant": "a"}
        assert read.queries[1].filter is None

    def test_what_is_no_filter_is_told_with_its_line(self, folder: Path) -> None:
        path = folder / "queries.jsonl"
        broken = path.read_text().replace('{"gte": 2021}', '{"from": 2021}')
        path.write_text(broken)
        told = dataset_faults(folder)[0]
        assert told.startswith("queries.jsonl:2: filter: year: 'from' is no comparison")

    def test_a_field_that_no_document_has_is_told(self) -> None:
        (fault,) = faults_of(data, {"tenannt": "a"}, None, None)
        assert "a filter names the field 'tenannt', which no document has" in fault

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({"tenant": "A"}, "'A' beside 'a'; they differ in upper and lower case"),
            ({"tenant": {"in": ["a", "b "]}}, "'b ' beside 'b'; they differ in blanks"),
            ({"or": [{"tenant": "\u200ba"}, {"year": 2020}]}, "characters that nobody sees"),
            ({"year": "2021"}, "filters on 'year' by 2021, which documents have as another type"),
            ({"year": {"gte": "2021"}}, ""),
            ({"tenant": "c"}, ""),
            ({"tenant": "a"}, ""),
        ],
    )
    def test_i1_a_value_that_is_known_but_for_its_spelling_is_told(
        self, given: Any, told: str
    ) -> None:
        warned = [
            text for text in data(given, None, None).warnings if text.startswith("filters on")
        ]
        assert len(warned) == bool(told)
        assert told in "".join(warned)

    @pytest.mark.parametrize("field", ["Tenant", " tenant", "\u200btenant"])
    def test_i1_a_field_that_is_known_but_for_its_spelling_is_named(self, field: str) -> None:
        (fault,) = faults_of(data, {field: "a"}, None, None)
        assert "which no document has; documents have 'tenant'" in fault

    def test_k4_lists_that_are_cut_under_a_filter_say_how_many_would_fit(self) -> None:
        known = data({"tenant": "a"}, {"tenant": "b"}, None)
        lists = [Ranking(["d0"]), Ranking(["d1", "d3"]), Ranking(["d2"])]
        (told,) = cut_under_filters(known, known.queries, lists, 3)
        assert told.startswith(
            "1 of 2 queries with a filter got fewer than 3 hits (1), though more documents "
            "fit it (2)"
        )
        assert not cut_under_filters(known, known.queries, lists, 1)
        assert not cut_under_filters(known, known.queries, [Ranking(["d0", "d2"]), *lists[1:]], 9)

    def test_a_key_that_is_no_filter_is_told_with_the_way_out(self, folder: Path) -> None:
        path = folder / "queries.jsonl"
        path.write_text(path.read_text().replace('{"tenant": "a"}', '"english only"'))
        told = dataset_faults(folder)[0]
        assert "is no JSON" in told
        assert "columns: {queries: {filter: NAME}}" in told

    def test_types_of_metadata_are_part_of_the_fingerprint(self) -> None:
        prints = {
            data({"year": {"gte": 1}}, None, None, documents=documents).fingerprint
            for documents in (
                [replace(d, metadata={"year": value}) for d in DOCUMENTS]
                for value in (5, "5", 5.5, True, ["5"], {"5"})
            )
        }
        assert len(prints) == 6

    def test_a_missing_unit_beside_a_filter_is_the_fault_that_is_told(self) -> None:
        documents = [DOCUMENTS[0], replace(DOCUMENTS[1], metadata={"tenant": "a", "unit": "u"})]
        given = ("x", documents, queries({"tenant": "a"}), {"q1": {"u": 1}})
        assert "unit" in faults_of(build_dataset, *given, unit_key="unit")[0]

    def test_what_can_never_be_found_is_a_warning(self) -> None:
        warned = data({"tenant": "b"}, {"tenant": "c"}, None).warnings
        assert any("filters that no document fits" in one for one in warned)
        assert any("a relevant document that their filter leaves out" in one for one in warned)


class TestFingerprint:
    def test_without_filters_it_is_what_it_was(self) -> None:
        assert data(None, None, None).fingerprint == "640b6c56ddb9e627dd3422ffbea41a73"

    def test_filters_and_the_fields_that_they_name_are_in_it(self) -> None:
        plain, filtered = data(None, None, None), data(*FILTERED)
        assert plain.fingerprint != filtered.fingerprint
        other = [{"tenant": "a"}, {"year": {"gte": 2021}, "tenant": "b"}, None]
        assert data(*other).fingerprint == filtered.fingerprint  # another way of writing it
        assert data({"tenant": "b"}, *FILTERED[1:]).fingerprint != filtered.fingerprint
        moved = [replace(d, metadata={**d.metadata, "tenant": "a"}) for d in DOCUMENTS]
        noted = [replace(d, metadata={**d.metadata, "note": "new"}) for d in DOCUMENTS]
        changed = build_dataset("shop", moved, queries({"tenant": "a"}, None, None), QRELS)
        same = build_dataset("shop", noted, queries({"tenant": "a"}, None, None), QRELS)
        before = data({"tenant": "a"}, None, None).fingerprint
        assert changed.fingerprint != before
        assert same.fingerprint == before


@pytest.mark.usefixtures("here")
class TestRuns:
    @pytest.mark.slow
    def test_a_built_in_leaks_nothing(self) -> None:
        run = bench("bm25", data(*FILTERED), k=3, protocol=QUICK).run
        found = run.summary.as_dict()["filters"]
        assert found == {"queries": 2, "leaked": 0, "leaking": 0, "applied": True}
        assert [run.rankings.row(at).doc_ids for at in range(2)] == [["d0", "d2"], ["d1"]]
        assert len(run.rankings.row(2)) == 3
        assert not any("leaked" in warning for warning in run.summary.warnings)

    def test_chunks_are_filtered_and_their_units_too(self) -> None:
        chunks = [
            replace(d, metadata={**d.metadata, "page": f"p{i // 2}"})
            for i, d in enumerate(DOCUMENTS)
        ]
        judged = {"q1": {"p0": 1}, "q2": {"p1": 1}}
        asked = queries({"tenant": "a"}, {"tenant": "b", "year": {"gte": 2023}})
        dataset = build_dataset("pages", chunks, asked, judged, language="en", unit_key="page")
        run = bench("bm25", dataset, k=2, protocol=QUICK).run
        assert [run.rankings.row(at).doc_ids for at in range(2)] == [["p0", "p1"], []]
        assert run.summary.as_dict()["filters"]["leaked"] == 0

    def test_what_leaks_is_counted(self) -> None:
        def careless(text: str, k: int) -> list[str]:
            return ["d0", "d1", "d2"][:k]

        run = bench(careless, data(*FILTERED), k=3, protocol=QUICK).run
        found = run.summary.as_dict()["filters"]
        assert found == {"queries": 2, "leaked": 3, "leaking": 2, "applied": False}
        (warning,) = [w for w in run.summary.warnings if "leaked" in w]
        assert warning.startswith("3 hits of 2 queries leaked")
        assert isinstance(warning, Notice)
        assert warning.code is Code.LEAKED

    def test_without_a_corpus_nobody_can_tell(self) -> None:
        run = bench(lambda text, k: ["d0"], data(*FILTERED, documents=None), k=3, protocol=QUICK)
        assert run.run.summary.as_dict()["filters"]["leaked"] is None
        assert any("nobody can tell" in w for w in run.run.summary.warnings)

    def test_without_filters_nothing_is_said(self) -> None:
        run = bench("bm25", data(None, None, None), k=3, protocol=QUICK).run
        assert run.summary.filters is None

    @pytest.mark.needs("retrieval_bench_score")
    def test_a_run_file_of_others_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "run.trec").write_text("q1 Q0 d0 1 1.0 x\n")
        given = {"target": "trec_run", "params": {"path": str(tmp_path / "run.trec")}}
        with pytest.raises(ConfigError) as caught:
            bench(given, data(*FILTERED), k=3, protocol=QUICK)
        assert caught.value.given == "trec_run on queries with filters"
        assert bench(given, data(None, None, None), k=3, protocol=QUICK)

    @pytest.mark.slow
    def test_runs_with_other_filters_are_not_compared(self) -> None:
        runs = [
            bench("bm25", data(*filters), k=3, protocol=QUICK).run
            for filters in (FILTERED, (None, None, None))
        ]
        comparison = compare_runs(runs)
        assert comparison.deltas[0].verdict.value == "not comparable"
