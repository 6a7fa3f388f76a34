"""Small files of the kernel, read or None: a file that is missing, empty or odd is no error.

Every function takes a full path, so that a test can lay out a tree of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


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
