"""Commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.measure.machine.kernel import usable_cpus

if TYPE_CHECKING:
    from retrieval_bench_duet.sides import Place


def completed(
    *command: str | Path, cwd: Path | None = None, check: bool = True, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end; ``variables`` are added to those of the environment."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        encoding="utf-8",
        check=check,
    )


def python(code: str, *words: str, cwd: Path | None = None, **variables: str) -> str:
    """What ``code`` prints in a fresh Python."""
    command = (sys.executable, "-c", code, *words)
    return completed(*command, cwd=cwd, check=True, **variables).stdout.strip()


def loads(code: str, *names: str) -> set[str]:
    """Say which of these modules a fresh Python has loaded after ``code``."""
    end = f"\nimport sys\nprint('loaded:', *({set(names)!r} & set(sys.modules)))"
    return set(python(code + end).rpartition("loaded:")[2].split())


def printed(place: Place, code: str) -> str:
    """What ``code`` prints at ``place`` as a worker runs it, or its last word on stderr."""
    start = f"import sys; sys.path[:] = {list(place.sys_path)!r}; "
    command = (str(place.python), "-P", "-c", start + code)
    done = completed(*command, cwd=place.folder, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def within(seconds: float, fulfilled: Callable[[], bool]) -> bool:
    """Whether it is fulfilled in time."""
    end = time.monotonic() + seconds
    while not fulfilled() and time.monotonic() < end:
        time.sleep(0.01)
    return fulfilled()


def several_cores() -> bool:
    """Say whether these tests may run on more than one core."""
    return len(usable_cpus(Path("/")) or range(os.cpu_count() or 1)) > 1


def alive(pid: int) -> bool:
    """A zombie, which waits for a process that is not ours to look at it, is not alive."""
    state = completed("ps", "-o", "stat=", "-p", str(pid), check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")
