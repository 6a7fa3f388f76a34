"""``load --on``: processes on the workers of a cluster, which are asked first who they are."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Phase, Task
from retrieval_bench_load.engine.levels import State
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.stamps import COLUMNS, DONE, DUE, SENT
from retrieval_bench_scale import cluster as clusters
from tests.builders.cluster import local_cluster
from tests.builders.marks import also
from tests.builders.reporters import Remembering

pytestmark = [pytest.mark.needs("distributed"), pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Of all tests that leave it as it is."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        with local_cluster() as made:
            yield made


def loaded(
    cluster: Any, out: Path, *, reporter: Remembering | None = None, **plan: Any
) -> LoadResult:
    usual: dict[str, Any] = {"rates": (40,), "seconds": 1.0, "warm_up_s": 0.2}
    address = cluster.scheduler_address
    return load(
        "bm25", "science-mini", Plan(**usual | plan), on=address, out=out, reporter=reporter
    )


def test_each_worker_makes_its_share_and_all_stamps_are_on_one_clock(
    cluster: Any, tmp_path: Path
) -> None:
    result = loaded(cluster, tmp_path / "load")
    assert (result.status, result.processes) == ("complete", 2)
    calls = np.load(tmp_path / "load" / "calls-1.npy")
    assert calls.shape[1] == len(COLUMNS)
    assert set(calls[:, COLUMNS.index("worker")]) == {0, 1}
    due = calls[:, DUE]
    assert (np.diff(due) >= 0).all()
    assert 0 <= due[0] < due[-1] < 1.5e9
    assert (calls[:, SENT] >= due).all()
    assert (calls[:, DONE] >= calls[:, SENT]).all()
    assert json.loads((tmp_path / "load" / "load.json").read_text("utf-8"))["processes"] == 2


class Killing(Remembering):
    """Kills the process ``victim`` while a level is made whose words have ``when`` in them."""

    def __init__(self, victim: int, when: str) -> None:
        super().__init__()
        self.victim = victim
        self.when = when

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        if self.when in phase.text:
            threading.Timer(1.5, os.kill, (self.victim, signal.SIGKILL)).start()
        with super().phase(phase) as task:
            yield task


@pytest.mark.long
def test_a_worker_that_is_killed_takes_its_level_with_it_and_no_other(tmp_path: Path) -> None:
    with local_cluster() as own:
        with clusters.dask().Client(own.scheduler_address, set_as_default=False) as client:
            (victim, *_) = client.run(os.getpid).values()
        killing = Killing(victim, "41 a second")
        result = loaded(own, tmp_path / "load", rates=(40, 41, 42), seconds=4.0, reporter=killing)
    first, second = result.levels
    assert "lost" not in str(first.result.reasons)
    assert second.result.state is State.NOT_MEASURED
    assert "was lost with its worker" in str(second.result.reasons)
    assert result.status == "partial"
    assert "ended early" in str(result.warnings)
    assert len(np.load(tmp_path / "load" / "calls-2.npy")) > 0, "what the other one made is there"


def test_more_processes_than_workers_are_refused_before_a_call(
    cluster: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="3 processes of the generator") as caught:
        loaded(cluster, tmp_path / "load", processes=3)
    assert "at most 2" in str(caught.value.accepted)
    assert not (tmp_path / "load").exists()


Proof = tuple[Mapping[str, str], str | None, float]


def _elsewhere(_: str) -> Proof:
    return {"numpy": "0.1"}, None, time.time()


def _blind(_: str) -> Proof:
    return clusters.facts(), None, time.time()


def _late(token: str) -> Proof:
    return clusters.facts(), Path(token).read_text("utf-8"), time.time() - 60


@pytest.mark.parametrize(
    ("proof", "problem"),
    [
        (_elsewhere, "has other files of this project: none"),
        *also((_blind, "does not see the folder"), (_late, r"has a clock that is \d\d")),
    ],
)
def test_a_worker_that_differs_is_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof: Any, problem: str
) -> None:
    monkeypatch.setattr(clusters, "_proof", proof)
    with pytest.raises(ConfigError, match=problem):
        loaded(cluster, tmp_path / "load")
    assert not (tmp_path / "load").exists()


@pytest.mark.parametrize(
    "address", ["nonsense", "tcp://127.0.0.1", "127.0.0.1:8786", "http://localhost:8787"]
)
def test_an_address_of_another_form_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--on {address}"), clusters.connected(address, tmp_path):
        pass


def test_where_nobody_answers_it_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_CONNECT_S", 0.2)
    with (
        pytest.raises(ConfigError, match="no scheduler answers") as caught,
        clusters.connected("tcp://127.0.0.1:9", tmp_path),
    ):
        pass
    assert "dask scheduler" in str(caught.value.fix)
