"""Environment of a measurement: machine, libraries, threads, clock and code revision; and the
fingerprint that says whether the times of two machines may be compared.

All files are looked up below ``root``, and a fact that cannot be read is None: Linux tells all of
them, macOS and Windows some.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from retrieval_bench.core.installed.git import changed, run_git
from retrieval_bench.measure.machine.clock import clock_facts
from retrieval_bench.measure.machine.kernel import (
    ControlGroup,
    cpu_list,
    read_int,
    read_table,
    read_text,
    usable_cpus,
)
from retrieval_bench.measure.threads import imported_before, numpy_blas

FINGERPRINTED = (
    "processor",
    "processor_model",
    "cores",
    "usable_cores",
    "cpu_limit",
    "memory_gib",
    "memory_limit_bytes",
    "governor",
    "boost",
    "system",
    "libc",
    "python",
)
"""Facts in the fingerprint: what changes times and does not change by itself.

* ``processor_model`` beside the name: virtual machines hide the number of a processor, and two
  generations of it share one name.
* ``cpu_limit``, ``memory_limit_bytes``: a container with two cores' worth of time stalls where the
  bare machine does not, and one that is short of memory reads its pages from disk.
* ``governor``, ``boost``: up to a factor of two in clock rate, and somebody chose them.
* ``memory_gib`` is rounded: a kernel update or a balloon moves the exact number by megabytes.
* ``system`` (with the kernel) and ``libc``: system calls, page tables, the allocator. The name of
  the distribution adds nothing to them.

Not in it: ``energy_preference`` (desktops switch it with the battery; a warning tells),
load, free memory and clock rate (they belong to a moment: see :mod:`.measure.noise`), and
versions of packages (they are what is being measured; a manifest lists them).
"""


def machine(root: Path = Path("/")) -> dict[str, Any]:
    """The facts, with ``fingerprint`` over those of :data:`FINGERPRINTED`.

    ``cpu_limit`` is in cores, memory in bytes; None = no limit, or the system does not tell.
    """
    group = ControlGroup.of_this_process(root)
    processor = read_table(root / "proc/cpuinfo")
    memory = _memory(root)
    facts: dict[str, Any] = {
        "processor": processor.get("model name") or platform.processor() or platform.machine(),
        "processor_model": _model(processor),
        "cores": _count(cpu_list(read_text(root / "sys/devices/system/cpu/online")), os.cpu_count),
        "usable_cores": _count(usable_cpus(root), usable_cores),
        "cpu_limit": group.cpu_limit(),
        "memory_bytes": memory,
        "memory_gib": None if memory is None else round(memory / 2**30),
        "memory_limit_bytes": _below_memory(group.memory_limit(), memory),
        **_frequency(root),
        "virtual": "hypervisor" in processor["flags"].split() if "flags" in processor else None,
        "system": _system(root),
        "distribution": _distribution(root),
        "libc": _libc(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    return facts | {"fingerprint": fingerprint(facts)}


def fingerprint(facts: Mapping[str, Any]) -> str:
    """12 hexadecimal digits over the facts that decide whether times are comparable."""
    text = "\n".join(f"{name}={facts.get(name)}" for name in FINGERPRINTED)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _model(processor: Mapping[str, str]) -> str | None:
    """Family, model and stepping (x86), or implementer, part and revision (ARM)."""
    for names in (
        ("cpu family", "model", "stepping"),
        ("CPU implementer", "CPU part", "CPU revision"),
    ):
        if names[0] in processor:
            return ", ".join(f"{name} {processor[name]}" for name in names if name in processor)
    return None


def _frequency(root: Path) -> dict[str, Any]:
    """Return who decides on the clock rate of the usable cores: ``governor``, its
    ``governor_driver`` and ``energy_preference``, each "a, b" where cores differ; and whether
    ``boost`` is on."""
    system = root / "sys/devices/system/cpu"
    cpus = usable_cpus(root) or frozenset(range(os.cpu_count() or 1))

    def all_cores(name: str) -> str | None:
        values = {read_text(system / f"cpu{cpu}/cpufreq/{name}") for cpu in cpus} - {None}
        return ", ".join(sorted(map(str, values))) or None

    boost, no_turbo = read_int(system / "cpufreq/boost"), read_int(system / "intel_pstate/no_turbo")
    if no_turbo is not None:
        boost = 1 - no_turbo
    return {
        "governor": all_cores("scaling_governor"),
        "governor_driver": all_cores("scaling_driver"),
        "energy_preference": all_cores("energy_performance_preference"),
        "boost": None if boost is None else bool(boost),
    }


def _count(cpus: frozenset[int] | None, otherwise: Callable[[], int | None]) -> int | None:
    return otherwise() if cpus is None else len(cpus)


def usable_cores() -> int | None:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory(root: Path) -> int | None:
    words = read_table(root / "proc/meminfo").get("MemTotal", "").split()
    if words and words[0].isdigit():
        return int(words[0]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _below_memory(limit: int | None, memory: int | None) -> int | None:
    """A limit that the machine cannot reach is none."""
    return None if limit is None or (memory is not None and limit >= memory) else limit


def _system(root: Path) -> str:
    kernel = root / "proc/sys/kernel"
    name = read_text(kernel / "ostype") or platform.system()
    return f"{name} {read_text(kernel / 'osrelease') or platform.release()}"


def _distribution(root: Path) -> str | None:
    """Name the system as it calls itself ("Debian GNU/Linux 12 (bookworm)", "macOS 14.5")."""
    for line in (read_text(root / "etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip("\"'") or None
    mac = platform.mac_ver()[0]
    if mac:
        return f"macOS {mac}"
    return platform.platform(terse=True) if platform.system() == "Windows" else None


def _libc() -> str | None:
    """C library and its version ("glibc 2.36")."""
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        version = None
    return version or " ".join(platform.libc_ver()).strip() or None


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
    "llama-index-core",
    "haystack-ai",
    "sentence-transformers",
    "transformers",
    "tokenizers",
    "torch",
    "onnxruntime",
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
    """Return whether an environment variable can move a time."""
    return variable.endswith(("_NUM_THREADS", "_MAX_THREADS")) or variable in _VARIABLES


def packages() -> dict[str, str]:
    """Versions of the installed packages that matter; absent ones are left out."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return packages


def git_revision(
    folder: Path | None = None, *, besides: Path | None = None
) -> Mapping[str, Any] | None:
    """Commit of the repository that the user stands in, and whether files differ from it, as
    :func:`retrieval_bench.core.installed.git.changed` says; None outside a repository.

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
