"""Cold starts: the worker's steps by a scripted clock, and real fresh processes that succeed, fail,
hang and die."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.core.units.self_hits import WithoutSelf
from retrieval_bench.data import load_dataset
from retrieval_bench_fresh import cold, cold_worker
from retrieval_bench_fresh.cold import ColdDataset, ColdProcess, ColdStart, cold_start
from retrieval_bench_launches.child import Child
from retrieval_bench_launches.launches import LaunchSpec
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from tests.builders import some
from tests.builders.files import save_all
from tests.builders.marks import also

MS = 1_000_000
DATASET = ColdDataset(name="d", split="test", fingerprint="f", n_documents=10, n_queries=3)

SCRIPTED = '''
import builtins
import os
import signal
import sys
import threading
from pathlib import Path

from retrieval_bench import Ranking, Retriever


class Clock:
    now = 0

    @classmethod
    def read(cls):
        return cls.now

    @classmethod
    def work(cls, ms):
        cls.now += ms * 1_000_000


class Plain(Retriever):
    """Every part takes a known time."""

    def __init__(self, act: str = "", at: str = "", count: str = ""):
        Clock.work(2)
        self.searches, self.act, self.at, self.count = 0, act, at, count
        self.log = []
        self._do("build")

    def _do(self, step):
        self.log.append(step)
        if step != self.at:
            return
        if self.count:
            runs = Path(self.count)
            with runs.open("a", encoding="utf-8") as file:
                file.write("x")
            if len(runs.read_text(encoding="utf-8")) < 2:
                return
        if self.act == "die":
            os._exit(3)
        if self.act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.act == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.act == "hang":
            threading.Event().wait()
        if self.act == "exit":
            sys.exit(4)
        if self.act == "raise":
            raise TypeError("자료가 이상함")

    def use_k(self, k):
        Plain.told_k = k

    def index(self, documents):
        self._do("index")
        print("이것은 결과가 아님")
        os.write(1, b"nor is this\\n")
        import a_late_library
        self.n = len(list(documents))
        Clock.work(30)

    def search(self, query, k):
        self._do("search")
        self.searches += 1
        Clock.work(50 if self.searches == 1 else 4)
        return Ranking([])

    def close(self):
        self._do("close")


class Kept(Plain):
    def prepare(self):
        Clock.work(11)

    def save(self, folder):
        (folder / "index").write_text("saved", encoding="utf-8")

    def load(self, folder):
        Clock.work(6)
        if (folder / "index").read_text(encoding="utf-8") != "saved":
            raise ValueError("not what was saved")
'''

LIBRARY = "import retriever_of_test_cold as scripted\nscripted.Clock.work(7)\n"


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with scripted retrievers; fresh processes stop early."""
    (tmp_path / "retriever_of_test_cold.py").write_text(SCRIPTED, encoding="utf-8")
    (tmp_path / "a_late_library.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cold, "STEADY_SECONDS", 0.05)
    for name in ("retriever_of_test_cold", "a_late_library"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def config(kind: str = "Plain", **params: str) -> dict[str, Any]:
    return {"name": "scripted", "target": f"retriever_of_test_cold:{kind}", "params": params}


def told_by_the_worker(kind: str = "Plain", **changes: Any) -> list[Mapping[str, Any]]:
    """What it says in this process, where its clock is the script's."""
    spec: dict[str, Any] = {
        "retrievers": [config(kind)],
        "overrides": [],
        "dataset": "science-mini",
        "split": "test",
        "language": None,
        "self_hits": None,
        "k": 5,
        "threads": 1,
        "steady_s": 10.0,
        "seed": 1,
        "save_to": None,
        "load_from": None,
    }
    told: list[Mapping[str, Any]] = []

    def clock() -> int:
        scripted = getattr(sys.modules.get("retriever_of_test_cold"), "Clock", None)
        return 0 if scripted is None else int(scripted.now)

    cold_worker.measure(spec | changes, cold_worker.Steps(told.append, clock))
    return told


def steps(told: list[Mapping[str, Any]]) -> dict[str, float]:
    return {step: ns / MS for step, ns in done(told)["steps_ns"].items()}


def done(told: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(line["done"] for line in told if "done" in line)
    return found


def test_every_step_takes_what_the_script_says(scripts: Path) -> None:
    told = told_by_the_worker()
    assert steps(told) == {
        "import": 0,
        "build": 2,
        "documents": 0,
        "index build": 37,
        "first query": 50,
        "second query": 4,
    }


def test_importing_inside_a_step_is_told_apart(scripts: Path) -> None:
    told = told_by_the_worker()
    assert done(told)["imports_ns"] == {"index build": 7 * MS}


def test_imports_are_watched_only_within_steps(scripts: Path) -> None:
    before = __import__
    told_by_the_worker()
    assert __import__ is before


def test_steady_times_are_seen_after_three_windows_of_repeats(scripts: Path) -> None:
    told = told_by_the_worker()
    seen = done(told)
    n = len(load_dataset("science-mini").evaluated) + len(load_dataset("science-mini").unanswerable)
    assert seen["steady"]
    assert [line["about"]["dataset"]["n_queries"] for line in told if "about" in line] == [n]
    assert seen["calls"] == n + 150
    assert seen["seconds"] == pytest.approx((50 + 4 * (n + 149)) / 1000)
    assert set(seen["repeats_ns"]) == {4 * MS}


def test_searches_go_on_until_the_first_query_came_again(scripts: Path) -> None:
    def place_in_second_round(seed: int) -> int:
        order = cold_worker._seeded(166, seed)
        rounds = [next(order) for _ in range(2 * 166)]
        return rounds.index(rounds[0], 166) - 166

    late = next(seed for seed in range(1_000) if place_in_second_round(seed) > 150)
    seen = done(told_by_the_worker(seed=late))
    assert seen["calls"] == 166 + 150
    assert seen["seconds"] == pytest.approx((50 + 4 * (166 + 149)) / 1000)
    assert len(seen["repeats_ns"]) == 1


def test_a_retriever_that_is_not_steady_in_time_says_so(scripts: Path) -> None:
    seen = done(told_by_the_worker(steady_s=0.1))
    assert not seen["steady"]
    assert seen["calls"] == 2 + 12  # 54 ms, then 4 ms each until 100 ms have passed


def test_queries_come_in_the_same_order_in_every_process() -> None:
    one, other = cold_worker._seeded(5, 3), cold_worker._seeded(5, 3)
    rounds = [next(one) for _ in range(15)]
    assert rounds == [next(other) for _ in range(15)]
    assert all(sorted(rounds[at : at + 5]) == list(range(5)) for at in (0, 5, 10))
    assert rounds[:5] != rounds[5:10]


def test_a_saved_index_ends_the_process_that_built_it(scripts: Path) -> None:
    told = told_by_the_worker("Kept", save_to=str(scripts))
    assert done(told)["index"] == "saved"
    assert "first query" not in steps(told)


def test_a_saved_index_is_loaded_and_no_document_is_read(scripts: Path) -> None:
    told_by_the_worker("Kept", save_to=str(scripts))
    found = steps(told_by_the_worker("Kept", load_from=str(scripts)))
    assert (found["model load"], found["index load"]) == (11, 6)
    assert not {"documents", "index build"} & set(found)


def test_judgements_on_units_ask_for_one_more_hit(scripts: Path) -> None:
    files = {
        "corpus.jsonl": '{"_id": "c1", "text": "벌", "metadata": {"page": "p"}}',
        "queries.jsonl": '{"_id": "q", "text": "벌"}',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\tp\t1",
        "dataset.yaml": "format: beir\nunit_key: page",
    }
    told_by_the_worker(dataset=str(save_all(scripts / "chunked", files)), steady_s=0.0)
    assert sys.modules["retriever_of_test_cold"].Plain.told_k == 6


def test_what_a_config_imports_is_imported_in_the_step_that_says_so() -> None:
    code = (
        "import sys, retrieval_bench_fresh.cold_worker\n"
        "print([name for name in ('numpy', 'retrieval_bench.experiment') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def started(given: Any = None, processes: int = 1, **options: Any) -> ColdStart:
    spec = LaunchSpec([config() if given is None else given], "science-mini", k=5)
    return cold_start(spec, processes, **options)


@pytest.mark.slow
def test_fresh_processes_are_timed_from_their_start(
    scripts: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, int]] = []
    start = started(processes=2, progress=lambda *numbers: seen.append(numbers))
    assert start.status == "complete"
    assert seen == [(1, 2), (2, 2)]
    assert list(start.steps_ms) == [
        *("interpreter", "import", "build", "model load", "documents", "index build"),
        *("first query", "second query"),
    ]
    assert all(1 < some(ms) < 60_000 for ms in start.steps_ms["interpreter"].values)
    document = start.as_dict()
    assert document["steps_ms"]["model load"]["reason"] is not None
    memory = document["peak_rss_bytes"]
    assert list(memory) == ["after import", "after index", "after queries"]
    assert memory["after queries"]["first"] > 10**7
    assert json.loads(json.dumps(document))["dataset"]["n_documents"] == 220
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.count("이것은 결과가 아님") == printed.err.count("nor is this") == 2


@pytest.mark.slow
def test_an_index_that_can_be_kept_is_built_once_and_loaded_by_all(scripts: Path) -> None:
    start = started(config("Kept"))
    assert some(start.saved).steps_ns["index build"] > 0
    assert [process.index for process in start.processes] == ["loaded"]
    assert start.index.disk_bytes == len("saved")
    assert start.index.documents_per_second is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "at", "says"),
    [
        ("raise", "index", "index build failed with TypeError: 자료가 이상함"),
        ("die", "index", "the process died without a word: exit code 3"),
        *also(
            (
                "raise",
                "search",
                "first query failed with TypeError: 자료가 이상함\n  where: query '",
            ),
            ("exit", "build", "SystemExit: 4"),
            ("kill", "search", "killed by SIGKILL"),
        ),
    ],
)
def test_a_first_process_that_fails_is_an_error_that_names_the_step(
    scripts: Path, act: str, at: str, says: str
) -> None:
    with pytest.raises((ContractError, ConfigError)) as failure:
        started(config(act=act, at=at), 3)
    assert says in str(failure.value)
    assert "process 1 of 3, step" in str(failure.value)


@pytest.mark.slow
def test_an_error_of_the_config_comes_back_as_it_is(scripts: Path) -> None:
    with pytest.raises(ConfigError, match="unknown retriever 'bm26'") as failure:
        started("bm26")
    assert "did you mean bm25" in failure.value.accepted
    assert "Traceback" in str(failure.value.__cause__)


@pytest.mark.slow
def test_a_process_that_hangs_is_ended_and_shows_where_it_was(
    scripts: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cold, "TIMEOUT_S", 6.0)
    with pytest.raises(ContractError, match="did not finish within 6 s"):
        started(config(act="hang", at="build"))
    assert "retriever_of_test_cold.py" in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal here")
@pytest.mark.slow
def test_a_process_that_cannot_even_end_itself_is_killed(
    scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold, "_GRACE_S", 0.1)
    monkeypatch.setattr(cold, "TIMEOUT_S", 1.5)
    with pytest.raises(ContractError, match=r"did not finish within 1\.5 s"):
        started(config(act="stop", at="index"))


@pytest.mark.slow
def test_a_later_process_that_fails_leaves_what_was_finished(scripts: Path) -> None:
    start = started(config(act="die", at="index", count=str(scripts / "runs")), 3)
    assert start.status == "partial"
    assert len(start.processes) == 1
    assert "exit code 3" in some(start.problem)
    assert "process 2 of 3" in some(start.problem)
    assert start.as_dict()["status"] == "partial"


@pytest.mark.slow
def test_a_failure_to_close_is_a_warning(scripts: Path) -> None:
    start = started(config(act="raise", at="close"))
    assert start.warnings == ["close failed with TypeError: 자료가 이상함"]


@pytest.mark.slow
def test_an_interruption_keeps_what_was_finished(scripts: Path) -> None:
    def stop(finished: int, planned: int) -> None:
        raise KeyboardInterrupt

    start = started(processes=3, progress=stop)
    assert start.interrupted
    assert len(start.processes) == 1


@pytest.mark.slow
def test_an_interruption_before_that_ends_the_process_too(
    scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[Child] = []

    def interrupted(process: Child) -> bool:
        children.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(Child, "running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        started(config(act="hang", at="build"))
    assert len(children) == 1
    assert children[0].process.returncode not in (None, 0)


def test_a_clock_that_is_not_shared_gives_no_time_for_the_interpreter() -> None:
    answer = {"index": "external", "peak_rss_bytes": {}, "imports_ns": {}, "steps_ns": {"build": 5}}

    def started_at(reading: int) -> ColdProcess:
        return cold._record({"started_ns": reading, "done": answer}, 100, 200)

    assert started_at(7).steps_ns == {"build": 5}
    assert started_at(130).steps_ns == {"interpreter": 30, "build": 5}
    readings = (started_at(130), started_at(7))
    start = ColdStart("one", DATASET, k=1, threads=1, planned=2, processes=readings)
    assert start.until_first_answer_ms.values == [5 / MS, 5 / MS]
    assert start.steps_ms["interpreter"].values == []
    assert "does not read the same" in some(start.steps_ms["interpreter"].reason)


def test_the_first_process_is_kept_out_of_the_others_median() -> None:
    def process(ms: int, *repeats: int) -> ColdProcess:
        wall = {"build": ms * MS, "index build": ms * MS, "first query": 2 * MS}
        imports = {"index build": ms * MS // 2}
        return ColdProcess(wall, imports, "built", {}, calls=ms, steady=ms > 1, repeats_ns=repeats)

    start = ColdStart(
        retriever="one",
        dataset=DATASET,
        k=1,
        threads=1,
        planned=4,
        processes=(process(900), process(1), process(2, 5 * MS, 7 * MS), process(3)),
    )
    document = start.as_dict()
    build = document["steps_ms"]["build"]
    assert (build["first"], build["median"], build["min"], build["max"]) == (900, 2, 1, 3)
    assert document["until_first_answer_ms"]["values"] == [1802, 4, 6, 8]
    assert document["calls_until_steady"]["values"] == [900, None, 2, 3]
    assert document["calls_until_steady"]["median"] == 2.5
    assert document["same_query_warm_ms"]["values"] == [None, None, 6, None]
    assert document["same_query_warm_ms"]["first"] is None
    assert document["index"]["documents_per_second"] == pytest.approx(10_000)


class Silent(Retriever):
    """Has nothing to prepare."""

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking([])


class Leg(Silent):
    """Notes what is done to it."""

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self) -> None:
        self.prepared += 1


def test_a_hybrid_prepares_every_leg() -> None:
    legs = [Leg(), Leg()]
    Hybrid(legs=legs).prepare()
    assert [leg.prepared for leg in legs] == [1, 1]


def test_what_a_retriever_does_of_its_own_is_seen_through_what_is_around_it() -> None:
    plain, leg = (WithoutSelf(one, None) for one in (Silent(), Leg()))
    assert [cold_worker._overrides(one, "prepare") for one in (plain, leg)] == [False, True]
    assert cold_worker._overrides(plain, "search")


@pytest.mark.slow
@pytest.mark.dense
def test_a_prepared_dense_retriever_loads_its_model_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval_bench_retrievers.dense.dense import Dense
    from retrieval_bench_retrievers.encoders.encoder import Encoder
    from tests.builders.tiny_encoder import build_tiny_model

    opened: list[str] = []
    open_model = Encoder._open

    def counted(encoder: Encoder, what: str, *, local_files_only: bool) -> Any:
        opened.append(what)
        return open_model(encoder, what, local_files_only=local_files_only)

    monkeypatch.setattr(Encoder, "_open", counted)
    retriever = Dense(model=str(build_tiny_model(tmp_path / "tiny")), device="cpu")
    retriever.prepare()
    assert len(opened) == 1
    retriever.index([Document("d", "birds and bees")])
    retriever.prepare()
    assert len(opened) == 1
    retriever.close()
