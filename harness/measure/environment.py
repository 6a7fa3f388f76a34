"""What a measurement ran on: machine, libraries, threads and code revision.

The machine fingerprint joins only what changes times and does not change by itself (processor,
cores, memory, operating system, Python); latencies are comparable only where it is the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "retrieval-bench",
    "numpy",
    "scipy",
    "rank-bm25",
    "bm25s",
    "numba",
    "PyStemmer",
    "kiwipiepy",
    "langchain-core",
    "sentence-transformers",
    "transformers",
    "torch",
    "faiss-cpu",
)
"""Distributions whose version can move a result or a time."""


def machine() -> dict[str, Any]:
    """The machine in plain facts, with ``fingerprint`` over them."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": _usable_cores(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    text = "\n".join(f"{key}={facts[key]}" for key in sorted(facts))
    return facts | {"fingerprint": hashlib.sha256(text.encode()).hexdigest()[:12]}


def environment(threads: int) -> dict[str, Any]:
    """Everything about the surroundings of a run, for its manifest."""
    from threadpoolctl import threadpool_info

    return {
        "machine": machine(),
        "packages": packages(),
        "threads": threads,
        "thread_pools": [
            {key: pool.get(key) for key in ("user_api", "internal_api", "version", "num_threads")}
            for pool in threadpool_info()
        ],
        "variables": {
            name: os.environ[name]
            for name in sorted(os.environ)
            if name.endswith("_NUM_THREADS") or name in {"TOKENIZERS_PARALLELISM", "PYTHONHASHSEED"}
        },
        "git": git_revision(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def packages() -> dict[str, str]:
    """Versions of the installed packages that matter; absent ones are left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_revision(folder: Path | None = None) -> Mapping[str, Any] | None:
    """Commit of the repository that the user stands in, and whether files differ from it; None
    outside a repository."""

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *words], capture_output=True, text=True, cwd=folder, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--untracked-files=no"))}


def peak_rss_bytes() -> int | None:
    """Highest resident memory of this process so far, None where the system does not tell."""
    try:
        # Not getrusage on Linux: its peak is inherited from the process that started this one.
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _usable_cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
