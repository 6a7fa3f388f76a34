"""One process of the generator: it has retrievers of its own, and makes the calls of one level
after the other as :mod:`.generator` says. No module imports it; it is started by name."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.capabilities import offered
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.notices import Code, coded, to_document
from retrieval_bench.experiment.candidate import Candidate, ask
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.measure.environment import peak_rss_bytes
from retrieval_bench.measure.machine import observers
from retrieval_bench.measure.threads import thread_faults
from retrieval_bench_launches.channel import Say
from retrieval_bench_launches.child import run_in_child
from retrieval_bench_load.engine.clients import (
    NANOSECONDS,
    Answers,
    CoreWaits,
    InFlight,
    Slots,
    call_in_turn,
    call_when_due,
    join,
)
from retrieval_bench_load.engine.schedule import Pace, due_ns, visits
from retrieval_bench_load.engine.soak import watch
from retrieval_bench_load.engine.stamps import CallFile

_SWITCH_S = 0.0005
"""Python's lock goes to another thread after so long at the latest: for the usual 5 ms a call that
is due would wait for one that computes."""


def main(spec: Mapping[str, Any]) -> int:
    """Prepare, say so, and make the calls of each level that a line on stdin asks for."""
    return run_in_child(lambda say: _made(spec, say))


def _made(spec: Mapping[str, Any], say: Say) -> None:
    experiment = prepare_told(spec)
    (candidate,) = experiment.candidates
    own = candidate.capabilities
    with experiment.ready():
        can = {"external": own.external, "threads": own.external or own.threads}
        say({"ready": can | {"fingerprint": experiment.dataset.fingerprint}})
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(_SWITCH_S)
        _levels(spec, experiment, say)
    os._exit(0)  # a slot that still waits for an answer must not keep it


def _levels(spec: Mapping[str, Any], experiment: Experiment, say: Say) -> None:
    shared: list[Any] = [experiment.candidates[0].retriever]
    copies: list[Candidate] = []
    stages: list[Mapping[str, int]] = []

    def armed() -> int:
        say({"armed": {"zero": time.time_ns() - time.perf_counter_ns()}})
        return int(json.loads(sys.stdin.readline())["start"])

    for line in iter(sys.stdin.readline, ""):
        level = json.loads(line)
        if "health" in level:
            told = _health(experiment, level["health"], stages)
            say({"health": to_document({"warnings": told})})
            continue
        retrievers = shared
        if experiment.candidates[0].capabilities.external:
            # A connection of its own for each slot: none waits for another one's.
            more = level["slots"] - 1 - len(copies)
            copies += _more(spec, max(0, more))
            retrievers = [*shared, *(copy.retriever for copy in copies)]
        try:
            say({"finished": _level(level, experiment, retrievers, armed, stages)})
        except OSError as problem:
            where, words = str(level["folder"]), problem.strerror or str(problem)
            raise HarnessError(
                f"the stamps of the calls cannot be written: {words}",
                where=where,
                accepted="about 80 bytes a call on the disk",
                fix="make room there, or name another folder with --out",
            ) from None


def _health(
    experiment: Experiment, took_ns: Sequence[int], stages: Sequence[Mapping[str, int]]
) -> list[str]:
    """Ask the first retriever about itself, and see what is switched on beside it, and where calls
    that took so long, or had these stages, spent their time."""
    (candidate,) = experiment.candidates
    messages: list[str] = []
    health = ask(candidate, "health", messages, (), experiment.queries)
    beside = [observer.warning for observer in observers.seen()]
    facts = ask(candidate, "describe", messages, {})
    names = dict.fromkeys(name for of in stages for name in of)
    times = {name: np.array([of.get(name, -1) for of in stages]) for name in names}
    told = [*candidate.indexed.warnings, *coded(health, Code.RETRIEVER), *messages, *beside]
    told += coded(thread_faults(experiment.protocol.threads), Code.THREADS)
    if outside := offered("warn of time outside a server"):
        told += outside(candidate, experiment, times, facts, took_ns)
    return told


def _more(spec: Mapping[str, Any], n: int) -> Sequence[Candidate]:
    if not n:
        return ()
    candidates = prepare_told(spec, n).candidates
    for candidate in candidates:
        candidate.retriever.use_k(spec["k"])
    return candidates


def _level(
    level: Mapping[str, Any],
    experiment: Experiment,
    retrievers: Sequence[Any],
    armed: Callable[[], int],
    stages: list[Mapping[str, int]],
) -> dict[str, Any]:
    """Make the calls of one level; what only this process knows of them.

    Args:
        armed: called when all is prepared; gives the start, by the clock of the stamps.
        stages: gets those of the first calls.
    """
    folder, number, n = Path(level["folder"]), level["process"], level["slots"]
    seed = level["seed"] + number
    queries, clock = experiment.queries, time.perf_counter_ns
    answers = Answers(folder / f"answers-{number}.jsonl")
    due = None
    if level["pace"] is not None:
        pace = Pace(**level["pace"])
        seconds = sum(level["seconds"]) - pace.ramp_s
        due = due_ns(pace, seconds, seed, share=level["processes"], number=number)
    order = visits(len(due) if due is not None else 1 << 16, len(queries), seed)
    if level["once"] and due is not None:
        first, *others = level["once"]
        before = int(np.searchsorted(due, level["seconds"][0] * NANOSECONDS))
        order = np.array([first] * before + others, np.int64)[: len(due)]
        due = due[: len(order)]
    file = CallFile(folder / f"calls-{number}.bin", 0 if due is None else len(due))
    start = armed()
    begin, end = (start + int(sum(level["seconds"][:n]) * NANOSECONDS) for n in (1, 2))
    flight = InFlight(begin, end)
    if due is not None:
        due += start
        file.fill(due, order)
    retry = experiment.candidates[0].retry
    waits = CoreWaits() if experiment.candidates[0].capabilities.external else None
    slots = Slots(
        retrievers,
        queries,
        experiment.k,
        file=file,
        answers=answers,
        flight=flight,
        retry=retry,
        waits=waits,
        stages=stages,
    )
    over = threading.Event()
    memory = watch(over, experiment.candidates[0].server) if level["watched"] else []
    cpu = time.process_time()
    if due is None:
        left = iter(level["once"][1:])

        def query(i: int, now: int) -> int | None:
            if not level["once"]:
                return int(order[i % len(order)])
            return level["once"][0] if now < begin else next(left, None)

        threads = call_in_turn(start, end, query, slots, n)
    else:
        threads = call_when_due(due, slots, level["begins_with"], n)
    join(threads, end, clock)
    # By now: a call that hangs would make a busy process look like one that waits.
    cpu, took_ns = time.process_time() - cpu, clock() - start
    still = join(threads, end + int(level["timeout"] * NANOSECONDS), clock)
    slots.stopped.set()
    over.set()
    faults = list(slots.faults)  # what comes later has nowhere to be written to
    integral = flight.total()
    answers.close()
    file.close()
    if faults:
        raise faults[0]
    return {
        "still": still,
        "integral": integral,
        "most": flight.most,
        "cpu_s": cpu,
        "took_s": took_ns / NANOSECONDS,
        "waited_s": waits.seconds() if waits else 0.0,
        "peak_rss_bytes": peak_rss_bytes(),
        "memory": memory,
    }
