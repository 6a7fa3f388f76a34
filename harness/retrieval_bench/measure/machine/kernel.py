"""Small files of the kernel, read or None: a file that is missing, empty or odd is no error.

Every function takes a full path, so that a test can lay out a tree of its own. Among them are the
limits of the control group that this process runs in, version 1 or 2: what a container may use. A
group can only lower what the groups above it allow, so the tightest of all visible levels counts.
Sources: cgroups(7) and the kernel's cgroup-v1 and cgroup-v2 pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


def read_text(path: Path) -> str | None:
    """The text of ``path`` without blanks at its ends; None where it cannot be read or is empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def read_int(path: Path) -> int | None:
    """The one whole number that ``path`` holds."""
    return as_int(read_text(path))


def as_int(text: str | None) -> int | None:
    """``text`` as a whole number, None where it is none ("max", "")."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def read_table(path: Path) -> Mapping[str, str]:
    """Lines of ``name value`` or ``name: value``; empty where there are none.

    Where a name comes again (``/proc/cpuinfo`` repeats them for each core) the first line counts.
    """
    table: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            name, _, value = line.partition(" ")
        table.setdefault(name.strip(), value.strip())
    return table


def cpu_list(text: str | None) -> frozenset[int] | None:
    """Cores of a list such as ``0-3,8``; None where it is none."""
    cores: set[int] = set()
    try:
        for part in (text or "").split(","):
            first, _, last = part.partition("-")
            cores |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        return None
    return frozenset(cores) or None


def usable_cpus(root: Path) -> frozenset[int] | None:
    """Cores that this process may run on; None where the system does not tell."""
    return cpu_list(read_table(root / "proc/self/status").get("Cpus_allowed_list"))


def cpus_of_one_node(root: Path) -> frozenset[int]:
    """Cores that this process may run on, if memory is as near to one as to another; none where
    they belong to several nodes of memory, or the system does not tell."""
    usable = usable_cpus(root) or frozenset()
    lists = (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
    nodes = [node & usable for file in lists if (node := cpu_list(read_text(file)))]
    return usable if sum(map(bool, nodes)) <= 1 else frozenset()


_NO_LIMIT = 1 << 60
"""Bytes from which on version 1 means "no limit" (it says 2^63 rounded down to whole pages)."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folders of this process' group, innermost first; empty where a controller is not there.

    Attributes:
        cpu: of the cpu controller.
        memory: of the memory controller.
    """

    cpu: tuple[Path, ...] = ()
    memory: tuple[Path, ...] = ()

    @classmethod
    def of_this_process(cls, root: Path = Path("/")) -> ControlGroup:
        """The group that ``/proc/self/cgroup`` names, below where it is mounted."""
        return cls(_folders(root, "cpu"), _folders(root, "memory"))

    def cpu_limit(self) -> float | None:
        """Cores' worth of time that the group may use; None = no limit."""
        limits = [limit for folder in self.cpu if (limit := _cores(folder)) is not None]
        return min(limits, default=None)

    def memory_limit(self) -> int | None:
        """Bytes that the group may use; None = no limit."""
        limits = [limit for folder in self.memory if (limit := _bytes(folder)) is not None]
        return min(limits, default=None)

    def memory_share(self) -> float | None:
        """Return how full the fullest level with a limit is, 0 to 1; None = no limit.

        File pages that the kernel can drop at once are not counted: a large dataset that was read
        is no shortage.
        """
        shares = []
        for folder in self.memory:
            limit = _bytes(folder)
            used = _used_bytes(folder) if limit else None
            if limit and used is not None:
                shares.append(used / limit)
        return max(shares, default=None)

    def throttled(self) -> tuple[int, float] | None:
        """Return how often the group was stopped at its limit so far, and for how many seconds;
        None = no limit that could stop it."""
        times, seconds, limited = 0, 0.0, False
        for folder in self.cpu:
            if _cores(folder) is None:
                continue
            limited = True
            table = read_table(folder / "cpu.stat")
            times += as_int(table.get("nr_throttled")) or 0
            seconds += (as_int(table.get("throttled_usec")) or 0) / 1e6
            seconds += (as_int(table.get("throttled_time")) or 0) / 1e9  # version 1, nanoseconds
        return (times, seconds) if limited else None


def _folders(root: Path, controller: str) -> tuple[Path, ...]:
    """Folder of the group and those above it, up to the mount point."""
    paths = _paths(root)
    # A controller belongs to one version at a time; version 1 names those that it has.
    name = controller if controller in paths else ""
    if name not in paths:
        return ()
    for kind, options, mounted, point in _mounts(root):
        if (kind == "cgroup2") if name == "" else (kind == "cgroup" and name in options):
            parts = _below(paths[name], mounted)
            top = root / point.lstrip("/")
            return tuple(top.joinpath(*parts[:n]) for n in range(len(parts), -1, -1))
    return ()


def _paths(root: Path) -> dict[str, str]:
    """Controller -> path of the group; "" stands for version 2."""
    paths = {}
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _mounts(root: Path) -> Iterator[tuple[str, list[str], str, str]]:
    """Type, options, mounted part and mount point of every control group that is mounted."""
    for line in (read_text(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        here, there = left.split(), right.split()
        if len(here) >= 5 and len(there) >= 3 and there[0] in {"cgroup", "cgroup2"}:
            yield there[0], there[2].split(","), _plain(here[3]), _plain(here[4])


def _plain(path: str) -> str:
    """``path`` with the blanks that mountinfo writes in octal."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _below(path: str, mounted: str) -> tuple[str, ...]:
    """``path`` as seen from the mount point, which shows the group ``mounted``.

    In a container the mount point often is the group itself, under another name than the path says.
    """
    group = PurePosixPath(path)
    if ".." in group.parts or not group.is_relative_to(mounted):
        return ()
    return group.relative_to(mounted).parts


def _cores(folder: Path) -> float | None:
    words = (read_text(folder / "cpu.max") or "").split()
    if len(words) == 2:
        quota, period = as_int(words[0]), as_int(words[1])
    else:
        quota = read_int(folder / "cpu.cfs_quota_us")
        period = read_int(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _bytes(folder: Path) -> int | None:
    limit = read_int(folder / "memory.max")
    if limit is None:
        limit = read_int(folder / "memory.limit_in_bytes")
    return limit if limit is not None and 0 < limit < _NO_LIMIT else None


def _used_bytes(folder: Path) -> int | None:
    used = read_int(folder / "memory.current")
    prefix = ""
    if used is None:
        used, prefix = read_int(folder / "memory.usage_in_bytes"), "total_"
    if used is None:
        return None
    table = read_table(folder / "memory.stat")
    droppable = sum(
        as_int(table.get(f"{prefix}{name}")) or 0 for name in ("inactive_file", "active_file")
    )
    return max(used - droppable, 0)
