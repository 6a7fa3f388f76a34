"""The page as one file, and what it saves."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench_labels.judge.offline import is_offline, offline_page, read_offline
from retrieval_bench_labels.label import Kind, Label, Pair, Pool
from retrieval_bench_labels.store import Store
from tests.builders import some
from tests.builders.labels import HOSTILE, make_pool, make_store, said

POOL = make_pool()
ANSWER: dict[str, Any] = {
    "query": "q0",
    "doc": "d0-0",
    "digest": "0123456789abcdef",
    "grade": 2,
    "note": "메모",
    "span": [0, 3],
    "at": "2026-01-31T13:00:00.123+01:00",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", POOL)


def embedded(page: str) -> Any:
    """The data that a page brings."""
    found = some(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S))
    return json.loads(found[1])


def asked(page: str) -> list[Pair]:
    return [
        Pair(task["query"]["id"], document["id"])
        for task in embedded(page)["tasks"]
        for document in task["documents"]
    ]


def document(**changes: Any) -> dict[str, Any]:
    whole = {"schema_version": 1, "kind": "retrieval-bench labels", "fingerprint": "f" * 16,
             "who": "anna", "labels": [ANSWER]}  # fmt: skip
    return whole | changes


def saved(path: Path, content: Any) -> Path:
    file = path / "labels-anna.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def faults(path: Path, content: Any) -> list[str]:
    """What is said of a file, without its name."""
    file = saved(path, content)
    with pytest.raises(DataError) as caught:
        read_offline(file)
    return [fault.removeprefix(f"{file}: ") for fault in caught.value.faults]


class TestThePage:
    def test_it_loads_nothing_and_may_talk_to_nobody(self, store: Store) -> None:
        page = offline_page(POOL, store, "anna")
        assert not re.search(r"(?:src|href)=(?!\"data:,\")", page)
        assert "default-src 'none'" in page
        assert "connect-src" not in some(re.search(r"Content-Security-Policy[^>]*", page))[0]

    def test_only_its_own_script_and_style_are_allowed(self, store: Store) -> None:
        page = offline_page(POOL, store, "anna")
        for tag, rule in (("script", "script-src"), ("style", "style-src")):
            content = some(re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S))[1]
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{rule} 'sha256-{digest}'" in page

    def test_no_text_can_end_the_data(self, tmp_path: Path) -> None:
        pool = make_pool(texts=HOSTILE)
        page = offline_page(pool, make_store(tmp_path / "hostile.sqlite", pool), "</script>")
        assert page.count("</script>") == 2
        assert page.count("<script") == 2
        data = embedded(page)
        assert {id_: one["text"] for id_, one in data["documents"].items()} == dict(HOSTILE)

    def test_it_brings_what_a_person_has_still_to_answer(self, store: Store) -> None:
        store.add(said(POOL, "q0", "d0-0", "anna", 1))
        store.add(Label(Pair("q0", "d0-1"), "qrels", 1, Kind.DATASET))
        store.add(said(POOL, "q2", "d2-0", "ben", 1))
        store.add(said(POOL, "q2", "d2-0", "carl", 2))
        pairs = asked(offline_page(POOL, store, "anna"))
        assert {Pair("q0", "d0-0"), Pair("q0", "d0-1")}.isdisjoint(pairs)
        assert Pair("q2", "d2-0") in pairs, "on which two differ"
        assert len(pairs) == len(set(pairs)) == 7

    def test_nobody_is_kept_from_a_question_by_it(self, store: Store) -> None:
        offline_page(POOL, store, "anna")
        assert store.claims() == {}

    def test_it_says_nothing_of_the_systems(self, store: Store) -> None:
        data = embedded(offline_page(POOL, store, "anna"))
        assert not {"systems", "lists", "source"} & set(data)


class TestReading:
    def test_what_was_saved_is_read(self, tmp_path: Path) -> None:
        found = read_offline(saved(tmp_path, document()))
        assert found == [
            Label(
                Pair("q0", "d0-0"),
                "anna",
                2,
                digest="0123456789abcdef",
                note="메모",
                span=(0, 3),
                at="2026-01-31T12:00:00+00:00",
                source="labels-anna.json",
            )
        ]

    def test_it_is_kept_in_a_store(self, tmp_path: Path, store: Store) -> None:
        answer = ANSWER | {"digest": POOL.digests()[Pair("q0", "d0-0")]}
        store.add_all(read_offline(saved(tmp_path, document(labels=[answer]))))
        assert [(label.who, label.grade) for label in store.labels()] == [("anna", 2)]

    def test_a_skip_and_no_answer_at_all_are_read(self, tmp_path: Path) -> None:
        skipped = ANSWER | {"grade": None, "span": None, "note": ""}
        assert read_offline(saved(tmp_path, document(labels=[skipped])))[0].grade is None
        assert read_offline(saved(tmp_path, document(labels=[]))) == []

    def test_all_faults_are_told_at_once(self, tmp_path: Path) -> None:
        wrong = [
            3,
            {"query": "q0"},
            ANSWER | {"grade": 4, "span": [3, 1], "at": "yesterday"},
            ANSWER | {"digest": "x", "more": 1, "note": "x" * 2_001, "query": ""},
            ANSWER,
            ANSWER,
        ]
        told = faults(tmp_path, document(labels=wrong, who="", fingerprint=None, other=1))
        begins = ["other", "fingerprint", "who", "labels[0]", *["labels[1]."] * 6,
                  *["labels[2]."] * 3, *["labels[3]."] * 4,
                  "labels[5]: a second answer"]  # fmt: skip
        assert len(told) == len(begins)
        assert all(fault.startswith(begin) for fault, begin in zip(told, begins, strict=True))
        assert "labels[2].grade: 4; accepted: 0 to 3, or null where it was skipped" in told

    @pytest.mark.parametrize("grade", [True, 1.0, "1", -1, [], 10**30])
    def test_a_grade_is_a_number_from_0_to_3(self, tmp_path: Path, grade: Any) -> None:
        assert len(faults(tmp_path, document(labels=[ANSWER | {"grade": grade}]))) == 1

    @pytest.mark.parametrize("span", [[1], [1, 1], [-1, 2], [True, 2], ["0", "1"], [0, 2**70], 3])
    def test_a_span_is_a_part_of_a_text(self, tmp_path: Path, span: Any) -> None:
        assert len(faults(tmp_path, document(labels=[ANSWER | {"span": span}]))) == 1

    @pytest.mark.parametrize("at", ["", 3, None, "2026-01-31", "2026-01-31T12:00:00", "x" * 99])
    def test_a_time_has_a_zone(self, tmp_path: Path, at: Any) -> None:
        assert len(faults(tmp_path, document(labels=[ANSWER | {"at": at}]))) == 1

    @pytest.mark.parametrize("content", [[], 3, {}, {"kind": "x"}, "", "{", '{"kind": NaN}'])
    def test_another_file_is_told_from_one_of_ours(self, tmp_path: Path, content: Any) -> None:
        assert len(faults(tmp_path, content)) == 1

    @pytest.mark.parametrize("version", [2, "1", True, None])
    def test_another_version_is_refused(self, tmp_path: Path, version: Any) -> None:
        (fault,) = faults(tmp_path, document(schema_version=version))
        assert fault == f"schema_version: {version!r}; accepted: 1"

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no such file"):
            read_offline(tmp_path / "none.json")

    def test_a_file_of_ours_is_recognised(self, tmp_path: Path) -> None:
        assert is_offline(saved(tmp_path, document()))
        assert not is_offline(saved(tmp_path, {"kind": "other"}))
        assert not is_offline(tmp_path / "none.json")


def test_another_pool_has_another_fingerprint(store: Store) -> None:
    other: Pool = replace(POOL, fingerprint="other")
    assert embedded(offline_page(other, store))["fingerprint"] == "other"
