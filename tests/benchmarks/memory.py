"""Memory of this process, as the system sees it.

``ru_maxrss`` does not do here: a process inherits it from the one that started it, and it cannot be
set back. Linux tells more under ``/proc``; elsewhere memory is not measured.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_STATUS = Path("/proc/self/status")
Result = TypeVar("Result")


def resident_bytes() -> int | None:
    """Resident memory now; None where the system does not tell."""
    return _status("VmRSS")


def peak_bytes() -> int | None:
    """The most resident memory since :func:`reset_peak`; None where the system does not tell."""
    return _status("VmHWM")


def collect() -> None:
    """Give free memory back to the system: Python's, and the C library's where it is glibc."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def reset_peak() -> None:
    """Let :func:`peak_bytes` start from now."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return  # then the peak is that of the whole process: never too low


def grown(work: Callable[[], Result]) -> tuple[Result, int | None]:
    """Result of ``work``, and the most memory that it added, where the system tells."""
    collect()
    reset_peak()
    before = resident_bytes()
    result = work()
    peak = peak_bytes()
    return result, None if peak is None or before is None else peak - before


def _status(key: str) -> int | None:
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)
