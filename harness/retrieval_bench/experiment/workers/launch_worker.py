"""What a launch does: it measures what :mod:`.launches` asks for, tells how far it is, and hands
the runs over in a file."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.progress import Phase, Task
from retrieval_bench.experiment.fresh.launches import BOARD
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.measure.child import described
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.run import Run

INTERRUPTED, DIED = 130, 70


def main(spec: Mapping[str, Any]) -> int:
    """Measure what ``spec`` says and write the answer; gives the exit code."""
    secrets.redact_tracebacks()
    channel = os.dup(1)  # not inherited by what a retriever starts
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    faulthandler.enable()
    if hasattr(faulthandler, "register"):  # not on Windows
        faulthandler.register(signal.SIGUSR1, all_threads=False)
    answer: dict[str, Any]
    try:
        with Path(spec["board"]).open("r+b") as board, mmap.mmap(board.fileno(), 0) as shared:
            answer = {"runs": _measured(spec, Pulse(channel, shared))}
    except HarnessError as problem:
        answer = {"error": described(problem)}
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as problem:  # told by this launch's last words
        sys.stderr.write(secrets.redact("".join(traceback.format_exception(problem))))
        return DIED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was measured is handed over in any case
    target = Path(spec["answer"])
    unfinished = target.with_suffix(".part")
    unfinished.write_bytes(pickle.dumps(answer))
    unfinished.replace(target)
    return 0


class Pulse:
    """The reporter of a launch: tells the parent what is done, and that something is done."""

    def __init__(self, channel: int, board: mmap.mmap) -> None:
        self._channel = channel
        self._board = board
        self._own, self._parent = os.getpid(), os.getppid()
        self._phase = self._beats = 0

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        """Told when it begins and when it ends."""
        self._phase += 1
        self._beat(0, 0)
        self._say({"step": phase.step, "about": phase.about, "number": self._phase})
        try:
            yield self._beat
        finally:
            self._say({"step": None})

    def _beat(self, done: int, total: int) -> None:
        if os.getppid() != self._parent:
            if os.getpid() != self._own:
                return  # in a process that the retriever forked
            os._exit(1)  # nobody waits for the answer any more
        self._beats += 1
        BOARD.pack_into(self._board, 0, self._phase, self._beats, int(done), int(total))

    def _say(self, message: Mapping[str, Any]) -> None:
        os.write(self._channel, (json.dumps(message) + "\n").encode())


def _measured(spec: Mapping[str, Any], pulse: Pulse) -> list[Run]:
    experiment = prepare_told(spec)
    return [_plain(run) for run in experiment.run(pulse, save=False)]


def _plain(run: Run) -> Run:
    """The same run without objects of the retriever's own, which the parent could not read."""
    return replace(run, manifest=json.loads(to_json(run.manifest)))
