"""``load`` against servers of this machine whose own stamps are known: ``python -m
tests.benchmarks.load_live STUDY [N]``, of ``stall``, ``loadgen``, ``starved``, ``slo``, ``duets``
(equal; ``duets 5 1.1``: b is 10 % slower), ``gates``. Nothing else may run meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.controller import DuetProtocol
from retrieval_bench_duet.decision import GATES
from retrieval_bench_duet.duet import Request
from retrieval_bench_load import load_duet
from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.levels import LevelResult, State
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.stamps import ANSWERED, Calls
from retrieval_bench_load.load_duet import duet_under_load
from retrieval_bench_load.loads import regress_load
from retrieval_bench_load.refusals import REFUSALS
from retrieval_bench_regress.regress import Request as Regression
from tests.builders.load_service import answering, loadable, refusing, well
from tests.builders.queue_server import Running, connect, running

DATASET = "science-mini"


def loaded(
    server: Running, plan: Plan, latencies: list[NDArray[np.float64]] | None = None, **given: Any
) -> LoadResult:
    """A load of the server; ``latencies`` gets the milliseconds of each call of a level's window,
    also where they are too few for a printed percentile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "load"
        result = load(server.config, DATASET, plan, out=folder, **given)
        if latencies is not None:
            for number in range(1, len(result.levels) + 1):
                calls = Calls(*np.load(folder / f"calls-{number}.npy").T)
                took = np.where(calls.status == ANSWERED, calls.done - calls.due, np.inf)
                latencies.append(took[calls.due >= 1e9 * plan.warm_up_s] / 1e6)
        return result


def ms(level: LevelResult, p: float) -> float:
    """A percentile of latency; infinite where none was printed."""
    for tail in level.latency:
        if tail.level == p:
            return tail.ms if tail.ms is not None else float("inf")
    return float("inf")


def stall(n: int = 1) -> None:
    """A server that stands still for 500 ms each 10 s: seen by calls that are due, hardly by
    clients that wait."""
    for seed in range(n):
        with running(seed=seed, mean_s=0.002, stall_s=0.5, each_s=10.0) as server:
            opened = loaded(server, Plan(rates=[100.0], seconds=210.0, slots=128)).levels[0].result
            closed = loaded(server, Plan(clients=[1], seconds=210.0)).levels[0].result
        print(f"open: p99 {ms(opened, 99):.1f} ms; closed, 1 client: p99 {ms(closed, 99):.1f} ms")


def loadgen(n: int = 20) -> None:
    """MLPerf's generator beside ours: the same arrivals and service times by number of the call."""
    near = agree = 0
    for seed in range(n):
        rate = (150.0, 250.0, 350.0)[seed % 3]
        limit_ms = (8.0, 15.0, 30.0)[seed // 3 % 3]
        with running(seed=seed, mean_s=0.002) as server, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            theirs = _in_process(_mlperf, server.port, rate, limit_ms, seed, str(folder))
            came, _ = server.stamps(folder)
            (folder / "times").write_text("".join(f"{t / 1e9:.9f}\n" for t in came - came[0]))
            recorded = tuple(((came - came[0]) / 1e9).tolist())
        for _attempt in range(2):
            with running(seed=seed, mean_s=0.002) as server:
                plan = Plan(recorded=recorded, seconds=recorded[-1] + 0.1, warm_up_s=0.0)
                ours, took = _after_unloaded(server, plan)
            if ours.state is State.MEASURED:
                break
        p50, p99 = np.percentile(took, [50, 99])
        close = abs(p50 - theirs["p50"]) <= max(0.1, 0.03 * theirs["p50"])
        close &= abs(p99 - theirs["p99"]) <= max(1.0, 0.1 * theirs["p99"])
        keeps = p99 <= limit_ms
        near += close
        agree += keeps == theirs["keeps"]
        print(
            f"{rate:g}/s {ours.state.value}: p50 {p50:.3f}, {theirs['p50']:.3f} theirs; p99 "
            f"{p99:.3f}{'' if np.isfinite(ms(ours, 99)) else ' (not printed)'}, "
            f"{theirs['p99']:.3f}; keeps {limit_ms} ms: {keeps}, {theirs['keeps']}",
            flush=True,
        )
    print(f"near in {near} of {n}; the same word on the limit in {agree} of {n}")


def _after_unloaded(server: Running, plan: Plan) -> tuple[LevelResult, NDArray[np.float64]]:
    """The level, whose first call has number 0 at the server: what came before is forgotten; and
    the milliseconds of its calls."""
    took: list[NDArray[np.float64]] = []
    with tempfile.TemporaryDirectory() as name:

        class Forgetting:
            @contextmanager
            def phase(self, phase: Any) -> Iterator[Callable[[int, int], None]]:
                if "recorded" in phase.text:
                    server.stamps(Path(name))
                yield lambda done, total: None

        result = loaded(server, plan, took, reporter=Forgetting()).levels[0].result
        return result, took[0]


def _mlperf(port: int, rate: float, limit_ms: float, seed: int, folder: str) -> dict[str, Any]:
    import mlperf_loadgen as lg  # type: ignore[import-not-found]

    free: list[Any] = [connect(port) for _ in range(64)]
    lock = threading.Lock()

    def ask(sample: Any) -> None:
        with lock:
            connection = free.pop()
        connection.sendall(b"?")
        connection.recv(1)
        with lock:
            free.append(connection)
        lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0)])

    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(64)
    settings = lg.TestSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps = rate
    settings.server_target_latency_ns = int(limit_ms * 1e6)
    settings.server_target_latency_percentile = 0.99
    settings.min_duration_ms = settings.max_duration_ms = 20_000
    settings.min_query_count = 100
    settings.schedule_rng_seed = seed + 1
    sut = lg.ConstructSUT(lambda samples: [pool.submit(ask, one) for one in samples], lambda: None)
    qsl = lg.ConstructQSL(64, 64, lambda _: None, lambda _: None)
    logs = lg.LogSettings()
    logs.log_output.outdir = folder
    lg.StartTestWithLogSettings(sut, qsl, settings, logs)
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)
    said = {}
    for line in (Path(folder) / "mlperf_log_summary.txt").read_text().splitlines():
        name, _, value = line.partition(":")
        said[name.strip()] = value.strip()
    return {
        "p50": int(said["50.00 percentile latency (ns)"]) / 1e6,
        "p99": int(said["99.00 percentile latency (ns)"]) / 1e6,
        "keeps": int(said["99.00 percentile latency (ns)"]) <= limit_ms * 1e6,
    }


def _in_process(function: Callable[..., Any], *given: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, given)


def starved(n: int = 20) -> None:
    """A generator that is stopped for 100 ms each second."""
    rightly = 0
    for seed in range(n):
        over = threading.Event()
        with running(seed=seed, mean_s=0.002) as server:
            stopper = threading.Thread(target=_stop_and_go, args=(over,))
            stopper.start()
            result = loaded(server, Plan(rates=[100.0], seconds=10.0, seed=seed))
            over.set()
            stopper.join()
        level = result.levels[0].result
        rightly += level.state is State.NOT_MEASURED
        print(level.state.value, *level.reasons, flush=True)
    print(f"not measured in {rightly} of {n}")


def _stop_and_go(over: threading.Event) -> None:
    """Wait for the process of the generator, and stop it now and then."""
    command = ["pgrep", "-P", str(os.getpid()), "-f", "load.calling"]
    while not (listed := subprocess.run(command, capture_output=True, check=False).stdout.split()):
        if over.wait(0.1):
            return
    while not over.wait(0.9):
        try:
            os.kill(int(listed[0]), signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(int(listed[0]), signal.SIGCONT)
        except ProcessLookupError:
            return


@contextmanager
def _beside(n: int) -> Iterator[None]:
    """So many processes that are busy until the end of the block."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def slo(n: int = 4, minutes: float = 6.0) -> None:
    """The bracket beside theory; two busy processes stand beside every second search, of which the
    worker of the service wakes up late, too: theory is of the times that its own stamps tell."""
    limit = Limit.parse("p99<20ms")
    for seed in range(n):
        plan = Plan(limit=limit, seconds=20.0, seed=seed, max_minutes=minutes)
        with (
            tempfile.TemporaryDirectory() as name,
            _beside(2 * (seed % 2)),
            running(seed=seed, mean_s=0.002) as server,
        ):
            one = loaded(server, plan).capacity
            came, done = server.stamps(Path(name))
        assert one is not None
        took_s = np.mean(done[1:] - np.maximum(came[1 : len(done)], done[:-1])) / 1e9
        # M/M/1: the share above t is exp(-(mu - rate) t).
        theory = 1 / took_s - np.log(100) / 0.020
        upper = one.breaks or one.generator_ends
        held = (one.keeps or 0.0) <= theory <= (one.breaks or np.inf)
        print(
            f"{2 * (seed % 2)} busy beside: {one.keeps} to {upper} a second, theory {theory:.0f}, "
            f"{'held' if held else 'not held'}; {one.levels} levels, {one.not_measured} not "
            f"measured; rough: {one.rough}; {one.reason}",
            flush=True,
        )


def duets(
    n: int = 10,
    slower: float = 1.0,
    minutes: float = 5.0,
    block_s: float = load_duet.BLOCK_S,
    first: int = 0,
) -> None:
    """Two servers at half of what they can take, the second slower by that factor."""
    load_duet.BLOCK_S, load_duet._WARM_UP_S = block_s, min(1.0, block_s / 5)
    protocol = DuetProtocol(block_s, limits={"p50": GATES["p50"].limit}, most_s=60 * minutes)
    words = Counter[str]()
    for seed in range(first, first + n):
        with (
            running(seed=2 * seed, mean_s=0.002) as a,
            running(seed=2 * seed + 1, mean_s=0.002 * slower) as b,
            tempfile.TemporaryDirectory() as name,
        ):
            paths = [Path(name) / f"{side}.yaml" for side in "ab"]
            for path, server in zip(paths, (a, b), strict=True):
                path.write_text(json.dumps(server.config | {"name": path.stem}), encoding="utf-8")
            request = Request(a=str(paths[0]), b=str(paths[1]))
            result = duet_under_load(
                request,
                DATASET,
                250.0,
                protocol=replace(protocol, seed=seed),
                out=Path(name) / "duet",
            )
        gate = result.gates[0]
        words[result.word] += 1
        print(
            result.word,
            gate.ratio,
            gate.interval,
            f"{result.launches} pairs",
            *result.lost,
            dict(words),
            flush=True,
        )


def gates(n: int = 20, then: int = 0, now: int = 20, seconds: float = 5.0) -> None:
    """A load of a service that refuses each ``then``-th request (0 = none), kept, and made again
    when it refuses each ``now``-th: ``gates 20 0 20``, ``gates 20 20 20``."""
    plan = Plan(rates=[100.0], seconds=seconds, warm_up_s=0.5, timeout_s=3.0)
    words = Counter[str]()
    for seed in range(n):
        with (
            tempfile.TemporaryDirectory() as name,
            chdir(name),
            _refusing_apart(Path(name), then, now) as (config, change),
        ):
            kept = load(config, DATASET, replace(plan, seed=seed))
            change()
            found = regress_load(Regression(config), str(kept.folder))
        assert found.latency is not None
        of_refusals = [gate for gate in found.latency.gates if REFUSALS in gate.gate]
        worse = [gate.gate for gate in found.latency.gates if gate.verdict is Verdict.WORSE]
        verdicts = [f"refusals {gate.verdict}" for gate in of_refusals] or ["not measured"]
        words[f"{verdicts[0]}, all {found.latency.verdict}"] += 1
        why = [] if found.latency.verdict is Verdict.EQUIVALENT else [found.latency.reason]
        print(*(gate.reason for gate in of_refusals), *worse, *why, dict(words), flush=True)


@contextmanager
def _refusing_apart(folder: Path, then: int, now: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """A service in a process of its own, which would take processor time of the generator's: the
    path of its config, and what makes it refuse as ``now``."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_refuse, args=(folder, then, now, there), daemon=True)
    process.start()
    config = here.recv()

    def change() -> None:
        here.send("now")
        here.recv()

    try:
        yield config, change
    finally:
        here.send("end")
        process.join()


def _refuse(folder: Path, then: int, now: int, told: Connection) -> None:
    with loadable(folder, refusing(then) if then else well) as (service, config):
        told.send(config)
        while told.recv() == "now":
            service.answer = answering(refusing(now) if now else well)
            told.send("done")


STUDIES: dict[str, Callable[..., None]] = {
    study.__name__: study for study in (stall, loadgen, starved, slo, duets, gates)
}

if __name__ == "__main__":
    STUDIES[sys.argv[1]](*(float(one) if "." in one else int(one) for one in sys.argv[2:]))
