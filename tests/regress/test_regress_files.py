"""Files of baselines: they read back as they were, and nothing broken is believed or left."""

from __future__ import annotations

import errno
import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import RecordError
from retrieval_bench_regress import files
from retrieval_bench_regress.files import NoBaselineError, Places
from tests.builders.baselines import MACHINE, latency, quality

VALUES = {"nDCG@10": [0.1 + 0.2, 1.0, 1 / 3], "RR@10": [0.0, 1.0, 0.5]}


def places(folder: Path, retriever: str = "mine", dataset: str = "tiny") -> Places:
    return Places(folder / "baselines", retriever, dataset, MACHINE)


@pytest.fixture
def at(tmp_path: Path) -> Places:
    """Where a baseline of quality and one of latency are saved."""
    made = places(tmp_path)
    files.write([(made.quality, quality(VALUES)), (made.latency, latency([1000, 2000, 3000]))])
    return made


def test_it_reads_back_to_the_last_digit(at: Places) -> None:
    assert at.read_quality() == quality(VALUES)
    assert at.read_quality().values("nDCG@10", ["q0000"])[0] == 0.1 + 0.2
    assert at.read_latency() == latency([1000, 2000, 3000])


def test_it_is_sorted_small_and_has_a_query_a_line(at: Places) -> None:
    text = at.quality.read_text(encoding="utf-8")
    document = json.loads(text)
    assert list(document) == sorted(document)
    assert '    "q0000": ["same", 0.0, 0.30000000000000004],\n' in text
    assert text.endswith("}\n")
    other = quality({**VALUES, "RR@10": [0.0, 1.0, 0.25]})
    changed = set(files.to_text(other).splitlines()) ^ set(text.splitlines())
    assert len(changed) == 2 * 3  # the query, the mean, the checksum


@pytest.mark.parametrize(
    ("retriever", "dataset"),
    [
        ("하이브리드 검색기", "데이터"),
        ("a/b\\c", "../../etc"),
        ("..", "."),
        ("x" * 300, "y" * 300),
        ("-rf *", "a\nb"),
        ("", " "),
    ],
)
def test_names_are_safe_and_stay_in_the_folder(
    tmp_path: Path, retriever: str, dataset: str
) -> None:
    at = places(tmp_path, retriever, dataset)
    assert at.quality.parent == tmp_path / "baselines"
    assert at.latency.parent == tmp_path / "baselines" / MACHINE
    of: dict[str, Any] = {
        "retriever": {**quality(VALUES).retriever.model_dump(), "name": retriever}
    }
    of["dataset"] = {**quality(VALUES).dataset.model_dump(), "name": dataset}
    files.write([(at.quality, quality(VALUES, **of))])
    assert at.read_quality().retriever.name == retriever


def test_names_that_would_share_a_file_are_told_apart(tmp_path: Path) -> None:
    names = ["a b", "a_b", "a/b", "가" * 30, "가" * 31]
    assert len({places(tmp_path, name).quality for name in names}) == len(names)


def test_a_file_of_another_name_or_machine_or_none_is_refused(tmp_path: Path) -> None:
    at = places(tmp_path, "mine-tiny", "x")
    files.write([(at.quality, quality(VALUES))])
    with pytest.raises(RecordError, match="the baseline of 'mine' on 'tiny'"):
        at.read_quality()
    at = places(tmp_path)
    files.write([(at.latency, latency([1, 2], fingerprint="another"))])
    with pytest.raises(RecordError, match="machine another in the folder of abcdef012345"):
        at.read_latency()
    with pytest.raises(NoBaselineError):
        at.read_quality()


@pytest.mark.parametrize("name", ["하이브리드", "modèle de Zoé"])
def test_a_name_is_the_same_in_either_form_of_unicode(tmp_path: Path, name: str) -> None:
    apart, together = (unicodedata.normalize(form, name) for form in ("NFD", "NFC"))
    assert apart != together
    for one, other in ((apart, together), (together, apart)):
        at = places(tmp_path, one, one)
        facts: dict[str, Any] = {
            "retriever": {**quality(VALUES).retriever.model_dump(), "name": one},
            "dataset": {**quality(VALUES).dataset.model_dump(), "name": one},
        }
        files.write([(at.quality, quality(VALUES, **facts))])
        assert places(tmp_path, other, other).read_quality().retriever.name == one


def test_it_knows_of_other_machines(at: Places) -> None:
    other = Places(at.folder, "mine", "tiny", "000000000000")
    assert other.elsewhere() == [MACHINE]
    assert at.elsewhere() == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(at: Places, share: float) -> None:
    for path, read in ((at.quality, at.read_quality), (at.latency, at.read_latency)):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * (len(content) - 3))])
        with pytest.raises(RecordError, match="unreadable baseline: not JSON"):
            read()


@pytest.mark.parametrize(
    "content", [b"[]", b"null", b"3", b'{"k": 3}', b'{"schema_version": "1"}', b"\0", b"\xff\xfe{}"]
)
def test_what_is_no_baseline_is_refused(at: Places, content: bytes) -> None:
    at.quality.write_bytes(content)
    with pytest.raises(RecordError, match="unreadable baseline"):
        at.read_quality()


def test_a_newer_version_or_the_other_kind_of_baseline_is_refused(at: Places) -> None:
    edited(at.quality, schema_version=99)
    with pytest.raises(RecordError) as caught:
        at.read_quality()
    assert "baseline of schema version 99" in caught.value.render()
    assert "or a newer one" in caught.value.render()
    files.write([(at.quality, latency([1]))])  # the other kind
    with pytest.raises(RecordError, match=r"unreadable baseline.*'convention' is missing"):
        at.read_quality()


@pytest.mark.parametrize(
    "change", [{"k": 11}, {"metrics": {"nDCG@10": 0.9, "RR@10": 0.5}}, {"queries": {}}, {"more": 1}]
)
def test_an_edited_file_does_not_fit_its_checksum(at: Places, change: dict[str, Any]) -> None:
    edited(at.quality, **change)
    with pytest.raises(RecordError, match="does not fit its checksum"):
        at.read_quality()


def test_a_number_that_json_has_no_word_for_is_no_value(at: Places) -> None:
    text = at.quality.read_text(encoding="utf-8")
    at.quality.write_text(text.replace('["same", 0.0,', '["same", NaN,'), encoding="utf-8")
    with pytest.raises(RecordError, match="does not fit its checksum"):
        at.read_quality()


def edited(path: Path, **change: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | change), encoding="utf-8")


def test_two_processes_of_one_number_do_not_share_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in two containers with one folder."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    at, other = places(tmp_path), places(tmp_path, "other")
    theirs: dict[str, Any] = {
        "retriever": {**quality(VALUES).retriever.model_dump(), "name": "other"}
    }
    fsync = os.fsync

    def meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        files.write([(other.quality, quality(VALUES, **theirs))])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    files.write([(at.quality, quality(VALUES))])
    assert at.read_quality().retriever.name == "mine"
    assert other.read_quality().retriever.name == "other"
    assert not list(tmp_path.rglob("*.part"))


class TestFailingDisk:
    def test_a_full_disk_leaves_both_old_files(
        self, tmp_path: Path, at: Places, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = at.quality.read_bytes(), at.latency.read_bytes()
        calls = []

        def full(descriptor: int) -> None:
            calls.append(descriptor)
            if len(calls) == 2:  # while the second file is written
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(RecordError) as caught:
            files.write([(at.quality, quality({"RR": [0.0]})), (at.latency, latency([1]))])
        assert "No space left on device" in caught.value.render()
        assert "all baselines are as they were" in caught.value.render()
        assert (at.quality.read_bytes(), at.latency.read_bytes()) == before
        assert not list(tmp_path.rglob("*.part"))

    def test_a_rename_that_fails_says_what_was_replaced(
        self, tmp_path: Path, at: Places, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replace = Path.replace

        def failing(self: Path, target: Path) -> Path:
            if target == at.latency:
                raise OSError(errno.EIO, "Input/output error")
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", failing)
        with pytest.raises(RecordError, match=r"replaced was .*mine-tiny.json"):
            files.write([(at.quality, quality({"RR": [0.0]})), (at.latency, latency([1]))])
        assert at.read_latency() == latency([1000, 2000, 3000])
        assert not list(tmp_path.rglob("*.part"))

    def test_an_interruption_leaves_the_old_file(
        self, tmp_path: Path, at: Places, monkeypatch: pytest.MonkeyPatch
    ) -> None:

        def interrupted(descriptor: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            files.write([(at.quality, quality({"RR": [0.0]}))])
        assert at.read_quality() == quality(VALUES)
        assert not list(tmp_path.rglob("*.part"))

    def test_a_file_where_the_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "baselines").write_text("", encoding="utf-8")
        with pytest.raises(RecordError, match="cannot write the baseline"):
            files.write([(places(tmp_path).quality, quality(VALUES))])
