"""What a named server process costs, with the processes that it started: processor and memory.

Read from ``/proc``, so on Linux alone, and of processes that this user may look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.machine.kernel import as_int, read_text
from retrieval_bench.measure.machine.processes import cpu_ticks, descendants, ticks_a_second

_LISTENS = "0A"
"""State of a socket in proc_net_tcp(5)."""

_PAGE = 4096


class Server(BaseModel):
    """``server`` of a retriever's config: the process that answers, by its number or by the port
    that it listens at.

    Attributes:
        pid: number of the process.
        port: of TCP.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pid: Annotated[int, Field(gt=0)] | None = None
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Server:
        if (self.pid is None) == (self.port is None):
            raise ValueError("give either pid or port")
        return self

    def find(self, root: Path = Path("/")) -> int:
        """The number of the process.

        Raises:
            ConfigError: there is none, or none that can be seen.
        """
        if not (root / "proc/self").exists():
            raise self._nobody("a server's cost can be read on Linux alone")
        if self.pid is not None:
            if not (root / "proc" / str(self.pid) / "stat").exists():
                raise self._nobody(f"no process {self.pid} runs here")
            return self.pid
        inodes = _listening(root, self.port or 0)
        if not inodes:
            raise self._nobody(f"nothing listens at port {self.port} of this machine")
        pids = [int(path.name) for path in (root / "proc").iterdir() if path.name.isdecimal()]
        owners = [pid for pid in pids if _holds(root, pid, inodes)]
        if not owners:
            raise self._nobody(f"the process at port {self.port} is another user's, or elsewhere")
        return min(owners)  # a parent is older than the workers that share its socket

    def _nobody(self, why: str) -> ConfigError:
        return ConfigError(
            why,
            where="server",
            accepted="pid or port of a process on this machine that you may look at",
            fix="correct it, or leave `server` out",
        )


@dataclass(frozen=True, slots=True)
class ServerUse:
    """One reading of a server.

    Attributes:
        processes: it and those that it started.
        cpu_s: core seconds so far, of processes that ended, too.
        memory_bytes: resident, memory that they share counted once; None where that is not told.
    """

    processes: int
    cpu_s: float
    memory_bytes: int | None


def server_use(pid: int, root: Path = Path("/")) -> ServerUse:
    """Sum the use of the server so far; nothing where it is gone."""
    pids = [str(pid), *descendants(root, str(pid))]
    ticks = {process: cpu_ticks(root, process) for process in pids}
    there = [process for process, used in ticks.items() if used is not None]
    memory = sum(_memory(root / "proc" / process) for process in there)
    cpu_s = sum(ticks[process] or 0 for process in there) / ticks_a_second()
    return ServerUse(len(there), cpu_s, memory or None)


def _memory(process: Path) -> int:
    """Its share of the pages that it has in memory; where that may not be read, all of them."""
    for line in (read_text(process / "smaps_rollup") or "").splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            return 1024 * (as_int(rest.split()[0]) or 0)
    words = (read_text(process / "statm") or "").split()
    return _PAGE * (as_int(words[1]) or 0) if len(words) > 1 else 0


def _listening(root: Path, port: int) -> set[str]:
    """Inodes of the sockets that listen at ``port``."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for line in (read_text(root / "proc/net" / table) or "").splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                sockets.add(words[9])
    return sockets


def _holds(root: Path, pid: int, inodes: set[str]) -> bool:
    """Return whether the process has one of these sockets open."""
    try:
        links = list((root / "proc" / str(pid) / "fd").iterdir())
    except OSError:
        return False
    for link in links:
        try:
            target = str(link.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:[") and target[8:-1] in inodes:
            return True
    return False
