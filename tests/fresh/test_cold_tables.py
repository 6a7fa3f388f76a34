"""The exact text of ``bench --cold``; UPDATE_GOLDEN=1 as in test_tables."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render import terminal
from retrieval_bench_fresh import cold
from retrieval_bench_fresh.cold import ColdDataset, ColdProcess, ColdStart
from retrieval_bench_fresh.tables.cold import cold_brief, cold_tables
from retrieval_bench_launches.launches import LaunchSpec
from tests.builders.golden import golden

DATASET = ColdDataset(
    name="science-mini", split="test", fingerprint="abc", n_documents=220, n_queries=166
)
MS = 1_000_000


def dense(number: int) -> ColdProcess:
    """The first process is slow and encodes; those that follow read a cache."""
    slow = 2 if number == 0 else 1
    steps = {
        "interpreter": 25 + number,
        "import": 300 * slow,
        "build": 60,
        "model load": 5_000 * slow + 10 * number,
        "documents": 1,
        "index build": 4_000 if number == 0 else 50 + number,
        "first query": 15,
        "second query": 12,
    }
    facts = ["nothing is cut off"]
    if number:
        facts.append("220 of 220 vectors came from the cache")
    return ColdProcess(
        steps_ns={step: ms * MS for step, ms in steps.items()},
        imports_ns={"model load": 4_400 * slow * MS, "build": 2 * MS, "index build": 40 * MS},
        index="built",
        peak_rss_bytes={"after import": 47 * MS, "after index": (600 + number) * MS},
        disk_bytes=350_000,
        calls=316 + 50 * number,
        steady=number != 0,
        seconds=4.5 + number,
        repeats_ns=[11 * MS, 13 * MS],
        facts=facts,
        warnings=["OMP_NUM_THREADS=1 is set"],
    )


def saved_index(index: str) -> ColdProcess:
    step = "index build" if index == "saved" else "index load"
    steps = {"import": 250, "build": 1, step: 900 if index == "saved" else 8, "first query": 2}
    return ColdProcess(
        steps_ns={name: ms * MS for name, ms in {**steps, "second query": 1}.items()},
        imports_ns={},
        index=index,
        peak_rss_bytes={"after import": 47 * MS, "after index": None},
        disk_bytes=12_300_000,
        calls=20,
        failed=3,
    )


def test_what_a_worker_says_of_itself_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is JSON: its dataset stayed a mapping, and the end of ``bench --cold`` a bug."""
    about = {"retriever": "dense", "dataset": asdict(DATASET)}
    monkeypatch.setattr(cold, "_started", lambda *_: (about, dense(1)))
    told = LaunchSpec(["dense"], "science-mini", k=10, protocol=Protocol(threads=1))
    start = cold.cold_start(told, 2)
    assert start.dataset == DATASET
    assert start.as_dict()["index"]["documents_per_second"] == pytest.approx(20_000)
    assert cold_tables(start)


def test_a_cold_start_says_what_each_step_is() -> None:
    start = ColdStart(
        retriever="dense",
        dataset=DATASET,
        k=10,
        threads=1,
        planned=5,
        processes=tuple(dense(number) for number in range(5)),
    )
    golden("cold_brief.txt", terminal.plain(cold_brief(start)))
    golden("cold.txt", terminal.plain(cold_tables(start)))


def test_a_partial_cold_start_with_a_loaded_index_says_what_is_missing() -> None:
    start = ColdStart(
        retriever="검색기",
        dataset=DATASET,
        k=3,
        threads=2,
        planned=5,
        processes=(saved_index("loaded"),),
        saved=saved_index("saved"),
        problem="the process died without a word: signal SIGKILL\n  where: process 2 of 5",
    )
    golden("cold_partial.txt", terminal.plain(cold_tables(start)))
