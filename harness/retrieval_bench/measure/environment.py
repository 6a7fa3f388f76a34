"""What a measurement ran on: machine, libraries, threads, clock and code revision."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from retrieval_bench.core.git import changed, run_git
from retrieval_bench.measure.clock import clock_facts
from retrieval_bench.measure.machine import machine
from retrieval_bench.measure.threads import imported_before, numpy_blas

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
    "tokenizers",
    "torch",
    "faiss-cpu",
)
"""Distributions whose version can move a result or a time."""

_POOL = (
    "user_api",
    "internal_api",
    "prefix",
    "version",
    "num_threads",
    "threading_layer",
    "architecture",
)
_VARIABLES = frozenset(
    {
        "TOKENIZERS_PARALLELISM",
        "PYTHONHASHSEED",
        "PYTHONMALLOC",
        "MALLOC_ARENA_MAX",
        "LD_PRELOAD",
        "OMP_PROC_BIND",
        "OMP_WAIT_POLICY",
        "KMP_AFFINITY",
        "KMP_BLOCKTIME",
        "OPENBLAS_CORETYPE",
        "VECLIB_MAXIMUM_THREADS",
    }
)


def environment(threads: int, root: Path = Path("/")) -> dict[str, Any]:
    """Everything about the surroundings of a run, for its manifest.

    Call it within :func:`.search_threads`: ``thread_pools`` then says what
    timed searches really use.
    """
    from threadpoolctl import threadpool_info

    return {
        "machine": machine(root),
        "packages": packages(),
        "blas": numpy_blas(),
        "threads": threads,
        "thread_pools": [
            {name: pool[name] for name in _POOL if name in pool} for pool in threadpool_info()
        ],
        "variables": {name: os.environ[name] for name in sorted(os.environ) if _matters(name)},
        "imported_before": imported_before(),
        "clock": clock_facts(),
        "git": git_revision(),
    }


def _matters(variable: str) -> bool:
    """Whether an environment variable can move a time."""
    return variable.endswith(("_NUM_THREADS", "_MAX_THREADS")) or variable in _VARIABLES


def packages() -> dict[str, str]:
    """Versions of the installed packages that matter; absent ones are left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_revision(
    folder: Path | None = None, *, besides: Path | None = None
) -> Mapping[str, Any] | None:
    """Commit of the repository that the user stands in, and whether files differ from it, as
    :func:`retrieval_bench.core.git.changed` says; None outside a repository.

    Args:
        besides: a further folder whose files may differ.
    """

    try:
        done = run_git("rev-parse", "HEAD", folder=folder, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return {"commit": done.stdout.strip(), "dirty": changed(folder, besides=besides)}


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
