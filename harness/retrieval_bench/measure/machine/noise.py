"""The noise record of a measurement: what process and machine counted during the timed rounds.

The harness' own use of the processor is no noise: it is told apart from that of other processes,
helper processes included. What a system does not tell is None. What a record means is said by
:mod:`retrieval_bench.measure.machine.disturbances`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from retrieval_bench.core.as_json.document import document
from retrieval_bench.measure.machine.kernel import (
    ControlGroup,
    as_int,
    read_int,
    read_table,
    read_text,
    usable_cpus,
)
from retrieval_bench.measure.machine.processes import (
    cpu_ticks,
    descendants,
    fields_from_3,
    ticks_a_second,
)
from retrieval_bench.measure.machine.servers import ServerUse, server_use


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that this process used so far; None where the system does not count it.

    ``children_s`` are processes that ended and were waited for. Times in seconds of one core.
    """

    cpu_s: float
    children_s: float | None = None
    voluntary: int | None = None
    involuntary: int | None = None
    major: int | None = None
    minor: int | None = None


def process_usage() -> Usage:
    """Return the process usage of this process, with all its threads."""
    if sys.platform == "win32":
        return Usage(time.process_time())
    import resource

    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        own.ru_utime + own.ru_stime,
        ended.ru_utime + ended.ru_stime,
        own.ru_nvcsw,
        own.ru_nivcsw,
        own.ru_majflt,
        own.ru_minflt,
    )


def _boot_clock() -> int | None:
    """Nanoseconds since the start, sleep included."""
    which = getattr(time, "CLOCK_BOOTTIME", None)
    return None if which is None else time.clock_gettime_ns(which)


class NoiseRecorder:
    """Reads the counters of process and machine when it starts and when it stops.

    A context manager around the timed rounds; ``record`` then holds what changed in between, also
    when the rounds ended with an exception. Two readings take a fraction of a millisecond and
    belong outside of every timed call. Arguments but ``servers``, numbers of processes whose use of
    the processor is no noise either, are for tests.
    """

    def __init__(
        self,
        *,
        root: Path = Path("/"),
        clock: Callable[[], int] = time.monotonic_ns,
        boot_clock: Callable[[], int | None] = _boot_clock,
        usage: Callable[[], Usage] = process_usage,
        servers: Sequence[int] = (),
    ) -> None:
        self._servers = tuple(servers)
        self.record: dict[str, Any] = {}
        self._root, self._clock, self._boot_clock, self._usage = root, clock, boot_clock, usage
        self._group = ControlGroup.of_this_process(root)
        self._cpus = usable_cpus(root)
        self._before: _Reading | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Take the first reading; again: measure from here."""
        self._before = self._read()

    def stop(self) -> dict[str, Any]:
        """Take the second reading and return the record; all zero if it was never started."""
        after = self._read()
        self.record = _record(self._before or after, after)
        return self.record

    def _read(self) -> _Reading:
        root = self._root
        throttled = self._group.throttled()
        return _Reading(
            clock_ns=self._clock(),
            boot_ns=self._boot_clock(),
            usage=self._usage(),
            helpers_s=_helpers_seconds(root),
            servers={pid: server_use(pid, root) for pid in self._servers},
            helpers=descendants(root, "self") if self._servers else set(),
            ticks=_ticks(root, self._cpus),
            load=_load(root),
            throttled=throttled,
            mhz=_mhz(root),
            swapped_in=as_int(read_table(root / "proc/vmstat").get("pswpin")),
            memory_share=_fullest(self._group.memory_share(), _memory_share(root)),
        )


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Seconds of core time that the kernel booked."""

    busy: float
    idle: float
    stolen: float


@dataclass(frozen=True, slots=True)
class _Reading:
    clock_ns: int
    boot_ns: int | None
    usage: Usage
    helpers_s: float
    servers: Mapping[int, ServerUse]
    helpers: set[str]
    ticks: _Ticks | None
    load: list[float] | None
    throttled: tuple[int, float] | None
    mhz: float | None
    swapped_in: int | None
    memory_share: float | None


def _record(before: _Reading, after: _Reading) -> dict[str, Any]:
    """Compare two readings for the manifest; shares are of the usable cores' time."""
    seconds = (after.clock_ns - before.clock_ns) / 1e9
    used, first = after.usage, before.usage
    helpers = (used.children_s or 0.0) - (first.children_s or 0.0)
    helpers = max(helpers + after.helpers_s - before.helpers_s, 0.0)
    own = used.cpu_s - first.cpu_s
    asked = sum(  # one that this process started is among the helpers
        _more_s(use, before.servers[pid])
        for pid, use in after.servers.items()
        if str(pid) not in after.helpers
    )
    asleep = None
    if after.boot_ns is not None and before.boot_ns is not None:
        asleep = max((after.boot_ns - before.boot_ns) / 1e9 - seconds, 0.0)
    throttled = None
    if after.throttled and before.throttled:
        throttled = {
            "times": after.throttled[0] - before.throttled[0],
            "seconds": after.throttled[1] - before.throttled[1],
        }
    return {
        "seconds": seconds,
        "cpu_seconds": own,
        "helper_cpu_seconds": helpers,
        "context_switches": {
            "voluntary": _more(used.voluntary, first.voluntary),
            "involuntary": _more(used.involuntary, first.involuntary),
        },
        "page_faults": {
            "major": _more(used.major, first.major),
            "minor": _more(used.minor, first.minor),
        },
        "cores": _shares(before.ticks, after.ticks, own + helpers, asked),
        "servers": {
            str(pid): document(use) | {"cpu_s": _more_s(use, before.servers[pid])}
            for pid, use in after.servers.items()
        },
        "load_average": {"before": before.load, "after": after.load},
        "throttled": throttled,
        "mhz": {"before": before.mhz, "after": after.mhz},
        "swapped_in_pages": _more(after.swapped_in, before.swapped_in),
        "memory_share": after.memory_share,
        "suspended_seconds": asleep,
    }


def _more_s(after: ServerUse, before: ServerUse) -> float:
    """Core seconds in between; a server that is gone tells nothing."""
    return max(after.cpu_s - before.cpu_s, 0.0)


def _more(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _shares(
    before: _Ticks | None, after: _Ticks | None, own: float, servers: float = 0.0
) -> dict[str, float] | None:
    """``own``, ``others``, ``idle`` and ``stolen`` of the usable cores' time, and ``servers`` where
    some are named; they add up to 1."""
    if before is None or after is None:
        return None
    # A core that sleeps may have its idle time booked late, even backwards by a tick.
    busy, idle = max(after.busy - before.busy, 0.0), max(after.idle - before.idle, 0.0)
    stolen = max(after.stolen - before.stolen, 0.0)
    total = busy + idle + stolen
    if not total > 0:
        return None
    own = min(own, busy)
    servers = min(servers, busy - own)
    return {
        "seconds": total,
        "own": own / total,
        "others": (busy - own - servers) / total,
        "idle": idle / total,
        "stolen": stolen / total,
        **({"servers": servers / total} if servers else {}),
    }


def _ticks(root: Path, cpus: frozenset[int] | None) -> _Ticks | None:
    """Return the ticks of the cores in ``cpus``, or of all where they are not known."""
    wanted = {f"cpu{cpu}" for cpu in cpus} if cpus else {"cpu"}
    busy = idle = stolen = 0
    for line in (read_text(root / "proc/stat") or "").splitlines():
        name, *words = line.split()
        if name not in wanted:
            continue
        # user nice system idle iowait irq softirq steal; guests are within user and nice
        counts = [as_int(word) or 0 for word in words[:8]]
        counts += [0] * (8 - len(counts))
        busy += sum(counts[:3]) + sum(counts[5:7])
        idle += sum(counts[3:5])
        stolen += counts[7]
    if busy + idle + stolen == 0:
        return None
    a_second = ticks_a_second()
    return _Ticks(busy / a_second, idle / a_second, stolen / a_second)


def _helpers_seconds(root: Path) -> float:
    """Core time of the processes that this one started and that still run, and of theirs."""
    pids = descendants(root, "self")
    return sum(cpu_ticks(root, pid) or 0 for pid in pids) / ticks_a_second()


def _load(root: Path) -> list[float] | None:
    """Mean number of tasks that run or want to, over 1, 5 and 15 minutes."""
    try:
        return [float(word) for word in (read_text(root / "proc/loadavg") or "").split()[:3]] or [
            *os.getloadavg()
        ]
    except (AttributeError, OSError, ValueError):
        return None


def _mhz(root: Path) -> float | None:
    """Clock rate of the core that this thread is on; the others may be asleep."""
    words = fields_from_3(root, "self")
    if len(words) < 37:
        return None
    cpu = words[36]  # field 39 of proc(5)
    khz = read_int(root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
    return None if khz is None else khz / 1000


def _memory_share(root: Path) -> float | None:
    """Return how full the machine's memory is, without what the kernel can drop at once."""
    table = read_table(root / "proc/meminfo")
    total, free = (
        as_int(table.get(name, "").partition(" ")[0]) for name in ("MemTotal", "MemAvailable")
    )
    return None if not total or free is None else 1 - free / total


def _fullest(*shares: float | None) -> float | None:
    return max((share for share in shares if share is not None), default=None)
