"""Acknowledged writes that are lost when the server is killed, where it is a process of ours."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import HarnessError
from retrieval_bench_writes.delays import Share
from retrieval_bench_writes.probes import Probe
from retrieval_bench_writes.study import Wire

_LOOKED_FOR = 50
"""Of what was written before a kill, the last ones and as many others: each is asked for."""

LONGEST_S = 0.5
"""A server is killed at a moment that is drawn from so many seconds of writing."""


@dataclass(frozen=True, slots=True)
class Kills(Documented):
    """Acknowledged writes after the server was killed.

    Attributes:
        kills: by SIGKILL, at times that are drawn.
        additions, deletions: acknowledged before a kill, and asked for after it.
        lost: of these additions, those that are not found within the limit.
        back: of these deletions, those whose document is still found when the limit is over.
        undoing: kills that undid a write, of those after an acknowledged one; writes before the
            same kill are not independent.
        restart_s: from a kill to the first answer: the longest.
    """

    kills: int
    additions: int
    deletions: int
    lost: int
    back: int
    undoing: Share
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
        for what was acknowledged.

        Raises:
            HarnessError: a kill killed nothing, or it does not answer again within the limit.
        """
        undone, made = {True: 0, False: 0}, {True: 0, False: 0}
        undoing, tried, longest = 0, 0, 0.0
        for at in range(kills):
            server, killed_s = self.pid(), math.nan

            def kill(server: int | None = server) -> None:
                nonlocal killed_s
                killed_s = self.clock() if _killed(server) else math.nan

            timer = threading.Timer(self.rng.uniform(0.0, LONGEST_S), kill)
            timer.start()
            of = self._written(timer)
            again_s = self.until(lambda: self.asked("after a kill", "after a kill") is not None)
            if math.isinf(again_s):
                raise HarnessError(
                    f"no answer within {self.limit_s:g} s after the server was killed",
                    fix="see why it does not start again, or raise --write-limit",
                )
            if math.isnan(killed_s) or self.pid() in (None, server):
                raise HarnessError(
                    "a kill did not end the server: the same one answers, or it was not there",
                    accepted="a server that ends by SIGKILL to its process group, and starts anew",
                    fix="let the command be the server itself, or leave --write-kills out",
                )
            longest = max(longest, self.clock() - killed_s)
            before, tried = sum(undone.values()), tried + any(of.values())
            for there, probes in of.items():
                made[there] += len(probes)
                undone[there] += sum(not self._becomes(probe, there) for probe in probes)
            undoing += sum(undone.values()) > before
            self.progress(at + 1, kills)
        of_kills = Share.of(undoing, tried)
        return Kills(kills, made[True], made[False], undone[True], undone[False], of_kills, longest)

    def _becomes(self, probe: Probe, there: bool) -> bool:
        """Say whether a probe is found, or is not, before the limit is over."""
        text = probe.texts[0]
        return math.isfinite(
            self.until(lambda: (probe.id in self.asked("after a kill", text).doc_ids) is there)
        )

    def _written(self, timer: threading.Timer) -> dict[bool, list[Probe]]:
        """Add documents, and delete every third, until the server is killed; gives some of what was
        acknowledged to be there and to be gone. What was under way is neither."""
        there, gone = dict[str, Probe](), list[Probe]()
        for number, probe in enumerate(self.probes):
            try:
                self.keep(probe.document(0))
                self.writer.add([probe.document(0)])
                if not timer.is_alive():
                    break
                there[probe.id] = probe
                if number % 3 == 2 and there:
                    oldest = there.pop(next(iter(there)))
                    self.writer.delete([oldest.id])
                    if not timer.is_alive():
                        break
                    gone.append(oldest)
            except HarnessError:
                timer.join()
                raise
            except Exception:  # the one that was under way
                if not timer.is_alive():
                    break
        return {True: self._some([*there.values()]), False: self._some(gone)}

    def _some(self, probes: list[Probe]) -> list[Probe]:
        """The last ones, and others that are drawn."""
        others = probes[:-_LOOKED_FOR]
        drawn = self.rng.permutation(len(others))[:_LOOKED_FOR]
        return [others[at] for at in drawn] + probes[-_LOOKED_FOR:]


def _killed(server: int | None) -> bool:
    """Kill a server that is ours, with its whole group where it leads one: it may be a shell that
    started it. Says whether there was something to kill."""
    if server is None or not is_ours(server):
        return False
    try:
        if os.getpgid(server) == server:
            os.killpg(server, signal.SIGKILL)
        else:
            os.kill(server, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
