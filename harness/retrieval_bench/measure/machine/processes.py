"""Processes as ``/proc`` tells them: who started whom, and their counters."""

from __future__ import annotations

import os
from pathlib import Path

from retrieval_bench.measure.machine.kernel import read_text


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


def after_name(stat: str | None) -> list[str]:
    """Fields 3 and up of a ``stat`` file; the name before them may hold blanks and brackets."""
    return (stat or "").rpartition(")")[2].split()


def ticks_a_second() -> int:
    """Return the ticks a second of the kernel's books."""
    try:
        return os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):
        return 100
