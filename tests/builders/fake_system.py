"""A machine in a folder: the files of /proc and /sys that the measurement reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.builders.files import save_all

CPUINFO = """\
processor\t: 0
cpu family\t: 6
model\t\t: 143
model name\t: Test CPU @ 2.00GHz
stepping\t: 8
flags\t\t: fpu sse2 hypervisor

processor\t: 1
model name\t: Another name
"""

MOUNT_V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate"

V2 = {
    "proc/self/cgroup": "0::/box/job",
    "proc/self/mountinfo": f"22 1 0:5 / /proc rw - proc proc rw\n{MOUNT_V2}",
    "sys/fs/cgroup/box/job/cpu.max": "max 100000",
    "sys/fs/cgroup/box/cpu.max": "150000 100000",
    "sys/fs/cgroup/box/job/memory.max": "2000000",
    "sys/fs/cgroup/box/memory.max": "max",
}
"""Version 2: the limit of cores is one level above the process, that of memory at its own."""

V1 = {
    "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc",
    "proc/self/mountinfo": (
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    ),
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000",
}
"""Version 1 in a container: the mount point is the group itself."""


def lay_out(root: Path, *files: Mapping[str, str]) -> Path:
    """Write ``files`` (path below ``root`` -> text) and return ``root``."""
    for some in files:
        save_all(root, {name: text + "\n" for name, text in some.items()})
    return root


def allowed(cores: str) -> dict[str, str]:
    """Which cores the process may run on."""
    return {"proc/self/status": f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{cores}"}


def stat(*cores: tuple[int, int, int]) -> dict[str, str]:
    """Ticks (busy, idle, stolen) of each core, half of the busy ones in the system."""
    rows = [(b // 2, 0, b - b // 2, i, 0, 0, 0, s, 0, 0) for b, i, s in cores]
    total = [sum(row[at] for row in rows) for at in range(10)]
    lines = ["cpu  " + " ".join(map(str, total))]
    lines += [f"cpu{n} " + " ".join(map(str, row)) for n, row in enumerate(rows)]
    return {"proc/stat": "\n".join([*lines, "intr 1 2 3", "ctxt 99"])}


def frequency(cpu: int, **files: str) -> dict[str, str]:
    """Files of the clock rate of one core."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
    return {f"{folder}/{name}": text for name, text in files.items()}
