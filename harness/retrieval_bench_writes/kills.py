"""Acknowledged writes that are lost when the server is killed, where it is a process of ours."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import HarnessError
from retrieval_bench_writes.delays import Share
from retrieval_bench_writes.probes import Probe
from retrieval_bench_writes.study import Wire

_MOST = 100
"""Documents for a kill: each is looked for afterwards."""

LONGEST_S = 0.5
"""A server is killed at a moment that is drawn from so many seconds of writing."""


@dataclass(frozen=True, slots=True)
class Kills(Documented):
    """Acknowledged writes after the server was killed.

    Attributes:
        kills: by SIGKILL, at times that are drawn.
        lost: additions that were acknowledged before a kill, and are not found within the limit
            after it.
        back: deletions that were acknowledged before a kill, and whose document is still found when
            the limit is over.
        restart_s: from a kill to the first answer: the longest.
    """

    kills: int
    lost: Share
    back: Share
    restart_s: float


def is_ours(pid: int) -> bool:
    """Say whether a process descends from this one, by /proc; False where that does not tell."""
    with suppress(OSError, ValueError, IndexError):
        while pid > 1:
            if pid == os.getpid():
                return True
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            pid = int(stat.rpartition(")")[2].split()[1])
    return False


@dataclass(slots=True, kw_only=True)
class Killing(Wire):
    """Kills a server.

    Args:
        pid: gives the number of its process.
        probes: documents to write, each once.
    """

    pid: Callable[[], int | None]
    probes: Iterator[Probe]

    def run(self, kills: int) -> Kills:
        """Write until the server is killed at some moment, wait until it answers again, and look
        for everything that was acknowledged.

        Raises:
            HarnessError: it does not answer again within the limit.
        """
        undone, made, longest = {True: 0, False: 0}, {True: 0, False: 0}, 0.0
        for at in range(kills):
            stopped = threading.Event()
            timer = threading.Timer(self.rng.uniform(0.0, LONGEST_S), _kill, [self.pid(), stopped])
            timer.start()
            of = self._written(stopped)
            timer.join()
            again_s = self.until(lambda: self.asked("after a kill", "after a kill") is not None)
            if math.isinf(again_s):
                raise HarnessError(
                    f"no answer within {self.limit_s:g} s after the server was killed",
                    fix="see why it does not start again, or raise --write-limit",
                )
            longest = max(longest, again_s)
            for there, probes in of.items():
                made[there] += len(probes)
                undone[there] += sum(not self._becomes(probe, there) for probe in probes)
            self.progress(at + 1, kills)
        lost, back = (Share.of(undone[there], made[there]) for there in (True, False))
        return Kills(kills, lost, back, longest)

    def _becomes(self, probe: Probe, there: bool) -> bool:
        """Say whether a probe is found, or is not, before the limit is over."""
        text = probe.texts[0]
        return math.isfinite(
            self.until(lambda: (probe.id in self.asked("after a kill", text).doc_ids) is there)
        )

    def _written(self, stopped: threading.Event) -> dict[bool, list[Probe]]:
        """Add documents, and delete every third, until the server is killed; gives what was
        acknowledged to be there and to be gone. What was under way is neither."""
        there, gone = dict[str, Probe](), list[Probe]()
        try:
            for number, probe in enumerate(islice(self.probes, _MOST)):
                if stopped.is_set():
                    break
                self.keep(probe.document(0))
                self.writer.add([probe.document(0)])
                there[probe.id] = probe
                if number % 3 == 2:
                    oldest = there.pop(next(iter(there)))
                    self.writer.delete([oldest.id])
                    gone.append(oldest)
        except HarnessError:
            raise
        except Exception:  # the one that was under way
            pass
        stopped.wait()
        return {True: [*there.values()], False: gone}


def _kill(server: int | None, stopped: threading.Event) -> None:
    if server is not None and is_ours(server):
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
    stopped.set()
