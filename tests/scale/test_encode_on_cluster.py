"""``data encode --on tcp://``: the bytes of one process, from workers that prove who they are."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Phase, Task
from retrieval_bench_scale import cluster as clusters
from retrieval_bench_scale.shards.encode import encode_corpus
from tests.builders.cluster import local_cluster
from tests.builders.fake_encoder import many
from tests.builders.files import json_lines, save_all
from tests.builders.reporters import Remembering

pytestmark = [pytest.mark.needs("distributed"), pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[Any]:
    with local_cluster() as made:
        yield made


def encoded(here: Path, out: str, on: str, **more: Any) -> dict[str, bytes]:
    """The files that one call makes."""
    queries = [{"_id": f"q{at}", "text": f"text {at * 31}"} for at in range(20)]
    contents = {
        "corpus.jsonl": json_lines(many(3 * 1024)),
        "queries.jsonl": json_lines(queries),
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq0\td000000\t1\n",
    }
    if not (here / "data").exists():
        save_all(here / "data", contents)
    params = {"folder": str(here), "takes_s": more.pop("takes_s", 0.0)}
    fake = {"target": "tests.builders.fake_encoder:Hashed", "params": params}
    encode_corpus(fake, "data", on=on, out=here / out, exact=10, **more)
    return {path.name: path.read_bytes() for path in (here / out).iterdir()}


def test_two_workers_make_the_bytes_of_one_process(cluster: Any, here: Path) -> None:
    assert encoded(here, "a", cluster.scheduler_address) == encoded(here, "b", "local:1")


class Killing(Remembering):
    """Kills a process while documents are encoded."""

    def __init__(self, victim: int) -> None:
        super().__init__()
        self.victim = victim

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        if "encoding" in phase.text:
            threading.Timer(1.5, os.kill, (self.victim, signal.SIGKILL)).start()
        with super().phase(phase) as task:
            yield task


@pytest.mark.long
def test_a_worker_that_is_killed_costs_its_block(cluster: Any, here: Path) -> None:
    with clusters.dask().Client(cluster.scheduler_address, set_as_default=False) as client:
        (victim, *_) = client.run(os.getpid).values()
    made = encoded(here, "a", cluster.scheduler_address, takes_s=0.001, reporter=Killing(victim))
    assert (here / "calls").read_text("utf-8").count("\n") <= 3 + 1
    assert made == encoded(here, "b", "local:1")


def _elsewhere(_: str) -> tuple[Mapping[str, str], str | None, float]:
    return {"numpy": "0.1"}, None, 0.0


@pytest.mark.long
def test_a_worker_that_differs_is_refused(
    cluster: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_proof", _elsewhere)
    with pytest.raises(ConfigError, match="has other files of this project: none"):
        encoded(here, "a", cluster.scheduler_address)
    assert list((here / "a").iterdir()) == []


def test_a_cluster_that_is_not_there_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_CONNECT_S", 1)
    with pytest.raises(ConfigError, match="no scheduler answers"):
        encoded(here, "a", "tcp://127.0.0.1:9")
