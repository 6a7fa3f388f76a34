"""Processes as ``/proc`` tells them: who started whom, and their counters."""

from __future__ import annotations

import os
from pathlib import Path

from retrieval_bench.measure.machine.kernel import as_int, read_text


def descendants(root: Path, pid: str) -> set[str]:
    """The running processes that ``pid`` started, and theirs."""
    todo, seen = [pid], set[str]()
    while todo:
        try:
            threads = list((root / "proc" / todo.pop() / "task").iterdir())
        except OSError:
            continue
        for thread in threads:
            children = (read_text(thread / "children") or "").split()
            seen.update(children)
            todo += children
    return seen


def fields_from_3(root: Path, pid: str) -> list[str]:
    """Fields 3 and up of proc(5)'s ``stat``; the name before them may hold blanks and brackets."""
    return (read_text(root / "proc" / pid / "stat") or "").rpartition(")")[2].split()


def cpu_ticks(root: Path, pid: str) -> int | None:
    """The ticks that a process used so far, with its children that ended; None where it is gone."""
    words = fields_from_3(root, pid)
    # fields 14 to 17 of proc(5): user, system, and the same of children that ended
    return sum(as_int(word) or 0 for word in words[11:15]) if words else None


def ticks_a_second() -> int:
    """Return the ticks a second of the kernel's books."""
    try:
        return os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):
        return 100
