"""Launches: real processes that measure scripted retrievers, and the merging of what they give."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.types import Ranking
from retrieval_bench.measure.calls import NOT_RUN, OK, Timings
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.evaluation import averaged
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.runs.summary import Summary
from retrieval_bench_launches import launches
from retrieval_bench_launches.launch_merge import Launch, hash_seed, merge
from retrieval_bench_launches.launches import LaunchSpec, run_launches
from tests.builders.launched import SCRIPTED, bad, resummarize
from tests.builders.marks import also
from tests.builders.processes import alive, within
from tests.builders.reporters import Remembering
from tests.cli.project import make_project

ROOT = Path(__file__).parents[2]

SHORT = Protocol(rounds=3, warm_up_s=0.5, launches=2)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    (tmp_path / "scripted.py").write_text(SCRIPTED, encoding="utf-8")
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    monkeypatch.setattr(Kept, "started", [])
    monkeypatch.setattr("subprocess.Popen", Kept)
    return tmp_path


def measured(
    *retrievers: Any, protocol: Protocol = SHORT, reporter: Any = None, **options: Any
) -> list[Run]:
    spec = LaunchSpec(retrievers, "data", k=2, protocol=protocol, **options)
    return run_launches(spec, reporter, resummarize=resummarize)


class Kept(subprocess.Popen[bytes]):
    """Processes that were started, for :func:`nothing_is_left`."""

    started: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.started.append(self)


def nothing_is_left(project: Path) -> bool:
    """No process, running or as a zombie, nor its group; no open pipe, no temporary file."""
    assert Kept.started
    for process in Kept.started:
        assert process.returncode is not None
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
        assert all(pipe is None or pipe.closed for pipe in (process.stdout, process.stderr))
    return not list((project / "tmp").iterdir())


@pytest.mark.slow
def test_every_launch_measures_all_retrievers_together(project: Path) -> None:
    phases = Remembering()
    runs = measured("scripted:Normal", "scripted:Second", reporter=phases)
    assert [run.name for run in runs] == ["Normal", "Second"]
    for run in runs:
        assert run.summary.status == "complete"
        assert run.summary.latency_ms.n == 24
        assert np.bincount(run.timings.launch).tolist() == [12, 12]
        assert run.manifest["protocol"]["launches"] == 2
        entries = run.manifest["launches"]
        assert [entry["launch"] for entry in entries] == [0, 1]
        assert [entry["status"] for entry in entries] == ["complete", "complete"]
        assert all(entry["index"]["seconds"] > 0 for entry in entries)
    orders = [runs[0].timings.query[runs[0].timings.launch == i].tolist() for i in (0, 1)]
    assert orders[0] != orders[1]
    assert runs[0].manifest["session"] == runs[1].manifest["session"]
    assert phases.events == [
        *("launch 1 of 2: indexing Normal", "end", "launch 1 of 2: indexing Second", "end"),
        *("launch 1 of 2: searching with Normal, Second", "end"),
        *("launch 2 of 2: indexing Normal", "end", "launch 2 of 2: indexing Second", "end"),
        *("launch 2 of 2: searching with Normal, Second", "end"),
    ]
    assert nothing_is_left(project)


@pytest.mark.slow
def test_a_launch_has_one_hash_seed_for_all_retrievers() -> None:
    runs = measured("scripted:Normal", "scripted:Second", protocol=Protocol(rounds=1, warm_up_s=0))
    facts = [run.manifest["retriever"]["facts"] for run in runs]
    assert [one["hash seed"] for one in facts] == [str(hash_seed(0))] * 2
    assert facts[0]["hash"] == facts[1]["hash"] != hash("word")
    assert hash_seed(0) != hash_seed(1)


def test_calls_are_shared_between_launches() -> None:
    protocol = Protocol(min_calls=1_000, max_calls=1_500, launches=3, seed=7)
    spec = LaunchSpec(["bm25"], "data", protocol=protocol)
    shares = [spec.message(number)["protocol"] for number in range(3)]
    assert [share["min_calls"] for share in shares] == [334] * 3
    assert [share["max_calls"] for share in shares] == [500] * 3
    assert [share["seed"] for share in shares] == [7, 8, 9]
    assert {share["launches"] for share in shares} == {0}


@pytest.mark.slow
def test_a_config_beside_its_code_in_another_folder_is_found(project: Path) -> None:
    other = project / "elsewhere"
    other.mkdir()
    (other / "beside.py").write_text((project / "own.py").read_text("utf-8"), "utf-8")
    (other / "그.yaml").write_text("target: beside:Overlap\nname: 겹침\n", "utf-8")
    (run,) = measured("elsewhere/그.yaml", protocol=Protocol(rounds=1, warm_up_s=0, launches=1))
    assert run.name == "겹침"


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_launch_only(project: Path) -> None:
    protocol = Protocol(rounds=2, warm_up_s=0.5, launches=4)
    (run,) = measured(bad("exit", "kill", "segfault", "none"), protocol=protocol)
    *lost, kept = run.manifest["launches"]
    assert [entry["status"] for entry in lost] == ["lost"] * 3
    reasons = [entry["reason"] for entry in lost]
    busy = "while searching with bad (call 5 of 5"
    assert reasons[0].startswith(f"launch 1 of 4 died: exit code 3 {busy}")
    assert reasons[1].startswith(
        f"launch 2 of 4 died: killed by SIGKILL (perhaps for lack of memory) {busy}"
    )
    assert reasons[2].startswith(f"launch 3 of 4 died: killed by SIGSEGV {busy}")
    assert "last words: Fatal Python error: Segmentation fault" in reasons[2]
    assert run.summary.warnings[-3:] == reasons
    assert kept["status"] == run.summary.status == "complete"
    assert run.timings.launch.tolist() == [3] * 8  # the number that the manifest has
    assert nothing_is_left(project)


@pytest.mark.slow
@pytest.mark.long
def test_native_code_that_never_returns_is_killed_and_its_place_told(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "SILENCE_S", 0.5)
    protocol = Protocol(rounds=1, warm_up_s=0.5, timeout_s=0.3, launches=2)
    (run,) = measured(bad("none", "hang"), protocol=protocol)
    assert [entry["status"] for entry in run.manifest["launches"]] == ["complete", "lost"]
    reason = run.manifest["launches"][1]["reason"]
    assert reason.startswith(
        "launch 2 of 2 was killed: no sign of life for 1 s while searching with bad (call 5 of 5"
    )
    assert "scripted.py" in reason
    assert reason.endswith("in search")
    assert nothing_is_left(project)


@pytest.mark.slow
def test_when_every_launch_is_lost_that_is_an_error(project: Path) -> None:
    with pytest.raises(ContractError, match="no launch of 1 ended with a result") as caught:
        measured(bad("exit"), protocol=Protocol(rounds=2, warm_up_s=0, launches=1))
    assert "exit code 3" in caught.value.where
    assert caught.value.fix
    assert nothing_is_left(project)


@pytest.mark.slow
def test_what_a_launch_finds_wrong_is_raised_as_in_this_process(project: Path) -> None:
    with pytest.raises(ContractError) as caught:
        measured(bad("contract"), protocol=Protocol(rounds=2, warm_up_s=0, launches=1))
    assert "retriever 'bad', query " in caught.value.where
    assert "Traceback" in str(caught.value.__cause__)
    (project / "broken.py").write_text("import not_there", "utf-8")
    with pytest.raises(PluginError, match="not_there") as broken:
        measured("broken:Thing")
    assert "launch" not in broken.value.where
    assert nothing_is_left(project)


@pytest.mark.slow
def test_what_a_retriever_prints_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    (run,) = measured("scripted:Loud", protocol=Protocol(rounds=1, warm_up_s=0, launches=1))
    assert len(run.timings.wall_ns) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert "소리 소리" in err
    assert "raw\n" in err


def press_ctrl_c_when(path: Path) -> threading.Thread:
    def press() -> None:
        assert within(240, path.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.slow
def test_ctrl_c_gives_what_was_measured_as_partial(project: Path) -> None:
    pressed = press_ctrl_c_when(project / "searching")
    protocol = Protocol(rounds=100, warm_up_s=0, launches=3)
    (run,) = measured({"target": "scripted:Waits"}, protocol=protocol)
    pressed.join()
    assert run.summary.status == "partial"
    assert "interrupted in launch 2 of 3" in run.summary.warnings
    assert [entry["status"] for entry in run.manifest["launches"]] == ["complete", "partial"]
    first, second = np.bincount(run.timings.launch).tolist()
    assert (first, 0 < second < 400) == (400, True)
    assert set(run.status) == {OK}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert nothing_is_left(project)


DRIVER = """
from retrieval_bench_launches.launches import LaunchSpec, run_launches
from retrieval_bench.measure.protocol import Protocol
spec = LaunchSpec([{"target": "scripted:Waits", "params": {"launch": 1}}], "data",
                  protocol=Protocol(rounds=1000, warm_up_s=0))
run_launches(spec, resummarize=lambda summary, timings: summary)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, *also(signal.SIGTERM)])
def test_a_launch_does_not_outlive_its_parent(project: Path, number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env=os.environ | {"TMPDIR": str(project / "tmp"), "PYTHONPATH": str(ROOT)},
    )
    try:
        assert within(240, (project / "searching").exists)
        child = int((project / "searching").read_text("utf-8"))
    finally:
        parent.send_signal(number)
        code = parent.wait(30)
    assert code == (128 + number if number == signal.SIGTERM else -number)
    assert within(60, lambda: not alive(child))
    if number == signal.SIGTERM:
        assert not list((project / "tmp").iterdir())


@pytest.mark.slow
def test_ctrl_c_before_anything_was_measured_is_raised(project: Path) -> None:
    (project / "slow.py").write_text(
        "import time\nfrom pathlib import Path\nfrom own import Overlap\n"
        "class Slow(Overlap):\n"
        "    def index(self, documents):\n"
        "        Path('searching').touch()\n"
        "        time.sleep(60)\n",
        "utf-8",
    )
    pressed = press_ctrl_c_when(project / "searching")
    with pytest.raises(KeyboardInterrupt):
        measured("slow:Slow")
    pressed.join()
    assert nothing_is_left(project)


def test_objects_cannot_be_sent() -> None:
    def answer(text: str, k: int) -> list[str]:
        return []

    with pytest.raises(ConfigError, match="a retriever that is a function object") as caught:
        LaunchSpec([answer], "data")
    assert "a retriever must come from a config" in caught.value.where
    with pytest.raises(ConfigError, match="a dataset that is a dict"):
        LaunchSpec(["bm25"], {})
    with pytest.raises(ConfigError, match="a parameter that is a object"):
        LaunchSpec([{"target": "bm25", "params": {"legs": [{"inner": object()}]}}], "data")
    with pytest.raises(ConfigError, match="a parameter that is a int64"):
        LaunchSpec(["bm25"], "data", k=np.int64(3))  # type: ignore[arg-type]


def made(
    answers: Sequence[Sequence[str] | None],
    *,
    status: str = "complete",
    warnings: Sequence[str] = (),
    stages: Mapping[str, Sequence[int]] | None = None,
    calls: int = 3,
) -> Run:
    """A run by hand; None is a failed query, an answer of "-" one that was not reached."""
    ids = [f"q{i}" for i in range(len(answers))]
    rankings = [None if one is None or one == "-" else Ranking(tuple(one)) for one in answers]
    states = [
        NOT_RUN if one == "-" else "RuntimeError: no" if one is None else OK for one in answers
    ]
    number = np.arange(calls, dtype=np.int32)
    metrics = parse_metrics(["R@2"])
    return Run(
        Summary.model_validate(
            {
                "retriever": "made",
                "dataset": {},
                "k": 5,
                "status": status,
                "warnings": list(warnings),
                "index": {"seconds": 1.0},
                "latency_ms": {"warm_up_calls": 50},
            }
        ),
        {"retriever": {"name": "made"}, "noise": {"steal": 0.1}},
        pack_rankings(ids, rankings, 5),
        tuple(states),
        Timings(
            number.astype(np.int64),
            number,
            number,
            number,
            np.zeros(calls, dtype=bool),
            {name: np.array(ns, dtype=np.int64) for name, ns in (stages or {}).items()},
        ),
        averaged(ids, metrics, np.zeros((len(ids), 1))),
    )


def merged(*runs: Run | str, interrupted: bool = False) -> Run:
    """A string is a lost launch."""
    launched = [
        Launch(i, lost=run) if isinstance(run, str) else Launch(i, [run])
        for i, run in enumerate(runs)
    ]
    protocol = Protocol(launches=len(runs))
    return merge(launched, protocol, resummarize, interrupted=interrupted)[0]


@pytest.mark.slow
def test_rankings_that_differ_between_launches_are_told() -> None:
    base = made(["ab", "cd", "ef", "", None])
    same = made(["ab", "cd", "ef", "", None])
    assert merged(base, same).summary.warnings == []
    # Another order, one document less, one that the base never returned, one that now answers.
    other = made(["ba", "c", "efx", "", "a"])
    wider = made(["ab", "cd", "ef", "", None])
    told = merged(base, other, wider).summary.warnings
    assert told[0].startswith("3 queries got another ranking in another launch")
    assert told[1].startswith("1 query failed in some launches and not in others")
    assert len(told) == 2


def test_a_query_that_was_not_reached_is_no_difference() -> None:
    run = merged(made(["ab", "cd"]), made(["ab", "-"], status="partial"), interrupted=True)
    assert run.summary.warnings == ["interrupted in launch 2 of 2"]
    assert run.summary.status == "partial"
    assert run.status == (OK, OK)


def test_quality_is_that_of_the_first_complete_launch() -> None:
    run = merged("launch 1 died", made(["-"], status="partial"), made(["ab"]))
    assert run.rankings.row(0).doc_ids == ["a", "b"]
    assert run.timings.launch.tolist() == [1, 1, 1, 2, 2, 2]
    entries = run.manifest["launches"]
    assert [entry["status"] for entry in entries] == ["lost", "partial", "complete"]
    assert entries[0]["reason"] == "launch 1 died"
    assert entries[2]["noise"] == {"steal": 0.1}
    assert run.summary.status == "partial"
    assert run.summary.warnings == ["launch 1 died"]


def test_stages_that_a_launch_did_not_report_stay_unknown() -> None:
    run = merged(
        made(["a"], stages={"encode": [1, 2, 3]}), made(["a"], calls=2, stages={"fuse": [4, 5]})
    )
    assert run.timings.stages["encode"].tolist() == [1, 2, 3, -1, -1]
    assert run.timings.stages["fuse"].tolist() == [-1, -1, -1, 4, 5]
    assert run.timings.wall_ns.tolist() == [0, 1, 2, 0, 1]


def test_warnings_of_other_launches_are_told_once() -> None:
    run = merged(
        made(["a"], warnings=["load was 1.5"]),
        made(["a"], warnings=["load was 2.25", "3 repeated calls failed"]),
        made(["a"], warnings=["4 repeated calls failed"]),
    )
    assert run.summary.warnings == ["load was 1.5", "launch 2: 3 repeated calls failed"]
