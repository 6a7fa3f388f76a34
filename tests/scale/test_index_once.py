"""An index that is built once, and the removal of what nobody uses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.reports.render.table import text_of
from retrieval_bench_scale.folders import Kept, kept
from retrieval_bench_scale.index_once import keep_index
from retrieval_bench_scale.tables.kept import cache_tables


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(tmp_path / "cache"))


def test_an_index_is_kept_once_and_what_keeps_none_is_said() -> None:
    first, second = (keep_index("bm25", "science-mini") for _ in range(2))
    assert (first.built, second.built) == (True, False)
    assert first.folder == second.folder
    assert first.bytes == second.bytes > 1_000
    content = json.loads((first.folder / "content.json").read_text("ascii"))
    (first.folder / "weights.npy").write_bytes(b"")
    third = keep_index("bm25", "science-mini")
    assert third.built
    assert third.damage is not None
    assert json.loads((first.folder / "content.json").read_text("ascii")) == content
    with pytest.raises(ConfigError, match="keeps no index"):
        keep_index({"target": "tests.builders.troubled:Troubled"}, "science-mini")


def test_what_was_not_used_for_long_is_removed() -> None:
    old, new = (
        keep_index("bm25", "science-mini", overrides=[f"k1={k1}"]).folder for k1 in (1.2, 1.4)
    )
    for path in old.rglob("*"):
        os.utime(path, (0, 0))
    assert not any(folder.removed for folder in kept().folders)
    assert [folder.removed for folder in kept(30).folders].count(True) == 1
    assert (old.exists(), new.exists()) == (False, True)
    assert {folder.removed for folder in kept(0).folders} == {True}
    assert kept().folders == ()


def test_an_empty_folder_is_as_old_as_it_is_and_goes(tmp_path: Path) -> None:
    (tmp_path / "cache" / "blocks" / "empty").mkdir(parents=True)
    (folder,) = kept(30).folders
    assert (folder.days < 1, folder.removed) == (True, False)
    assert [one.removed for one in kept(0).folders] == [True]


def test_without_a_home_nothing_is_kept() -> None:
    (table,) = cache_tables(Kept(None, ()))
    assert list(map(text_of, table.lead)) == ["No home folder is known: nothing is kept."]
