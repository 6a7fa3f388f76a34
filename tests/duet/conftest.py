from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from retrieval_bench_duet.revisions import kept


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for what is kept, which the test alone uses."""
    monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(tmp_path / "ca che é"))
    return tmp_path / "ca che é"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> Iterator[None]:
    """No package index, nothing of the user's git and pip, and no folder in use afterwards."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    in_use: dict[Path, IO[str]] = {}
    monkeypatch.setattr(kept, "_in_use", in_use)
    yield
    for file in in_use.values():
        file.close()
