"""What the tests of blocks share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval_bench_scale.shards import encode, executors


@pytest.fixture
def in_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers are threads of this process: for tests of what is made and not of who makes it, since
    a process takes a second to start, and one with torch six."""
    monkeypatch.setattr(executors, "_Processes", ThreadPoolExecutor)
    yield
    while encode._here:
        encode._here.pop()[1].experiment.close()
