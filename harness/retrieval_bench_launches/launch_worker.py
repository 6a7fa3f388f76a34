"""What a launch does: it measures what :mod:`.launches` asks for, tells how far it is, and hands
the runs over in a file."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import pickle
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.core.progress import Phase, Task
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.run import Run
from retrieval_bench_launches.channel import Say
from retrieval_bench_launches.child import run_in_child
from retrieval_bench_launches.launches import ANSWER, BOARD, SIGNS


def main(spec: Mapping[str, Any]) -> int:
    """Measure what ``spec`` says and write the answer; gives the exit code."""
    return run_in_child(lambda say: _measure(spec, say))


def _measure(spec: Mapping[str, Any], say: Say) -> None:
    if hasattr(faulthandler, "register"):  # not on Windows
        faulthandler.register(signal.SIGUSR1, all_threads=False)
    folder = Path(spec["folder"])
    (folder / BOARD).write_bytes(bytes(SIGNS.size))
    with (folder / BOARD).open("r+b") as board, mmap.mmap(board.fileno(), 0) as shared:
        runs = prepare_told(spec).run(Pulse(say, shared), save=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was measured is handed over in any case
    unfinished = folder / f"{ANSWER}.part"
    unfinished.write_bytes(pickle.dumps([_plain(run) for run in runs]))
    unfinished.replace(folder / ANSWER)


class Pulse:
    """The reporter of a launch: tells the parent what is done, and that something is done."""

    def __init__(self, say: Say, board: mmap.mmap) -> None:
        self._say = say
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
        SIGNS.pack_into(self._board, 0, self._phase, self._beats, int(done), int(total))


def _plain(run: Run) -> Run:
    """The same run without objects of the retriever's own, which the parent could not read."""
    return replace(run, manifest=json.loads(to_json(run.manifest)))
