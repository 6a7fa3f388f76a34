"""What a noise record and the facts of the machine mean: warnings in plain words, with a remedy.

A quiet machine gives none. What a system does not tell gives none either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

OTHERS = 0.10
"""Share of the usable cores' time. Services in the background take a few per cent; one tick of the
kernel's books (10 ms) in half a second of core time is 2 %."""
STOLEN = 0.01
"""Share of the usable cores' time: as much as lies above the p99."""
SHORTEST = 0.5
"""Seconds of core time; shares of less than this are a matter of single ticks of 10 ms."""
TICKS = 3
"""Ticks of 10 ms that are no rounding of the kernel's books."""
LOAD_SECONDS = 30.0
"""The load average is brought up to date every 5 s; over less than 30 s it says too little."""
LOAD_MARGIN = 1.0
"""Tasks above the number of cores: the mean of a load that was rounded and sampled."""
MAJOR_FAULTS = 10
"""Ten slow calls are what it takes to move the p99 of 1,000."""
MEMORY = 0.95
"""Share of the memory in use from which on the kernel is about to take pages away."""
SLOWER = 0.20
"""Drop of the clock rate; turbo moves it by 10 % from one moment to the next."""
SUSPENDED = 1.0
"""Seconds asleep; below this the difference of two clocks is not meant."""

_LOAD_PERIOD = 60.0
"""Seconds: time constant of the first load average."""


def disturbances(
    noise: Mapping[str, Any],
    machine: Mapping[str, Any],
    threads: int = 1,
    during: str = "while searches were timed",
) -> list[str]:
    """List why the times are less than they should be, one sentence each with what to do.

    Args:
        noise: ``record`` of a :class:`NoiseRecorder`.
        machine: facts of :func:`retrieval_bench.measure.environment.machine`.
        threads: that libraries may use in a timed search.
        during: when the noise was recorded, in words.

    Returns:
        Empty on a quiet machine.
    """
    told = [
        _others(noise, during) or _overload(noise, machine),
        _stolen(noise),
        _throttled(noise, machine),
        _few_cores(machine, threads),
        _governor(machine),
        _slowed(noise, during),
        _paging(noise),
        _memory_full(noise),
        _slept(noise, during),
    ]
    return [sentence for sentence in told if sentence]


def _others(noise: Mapping[str, Any], during: str) -> str | None:
    cores = noise.get("cores") or {}
    if cores.get("seconds", 0.0) < SHORTEST or cores["others"] <= OTHERS:
        return None
    switches = (noise.get("context_switches") or {}).get("involuntary")
    interrupted = f" (the measuring process was interrupted {_times(switches)})" if switches else ""
    return (
        f"Other processes used {_percent(cores['others'])} of the cores {during}"
        f"{interrupted}, so that times are too long. Close them, or measure again when they are "
        "done."
    )


def _overload(noise: Mapping[str, Any], machine: Mapping[str, Any]) -> str | None:
    """Tasks that waited for a core or a disk, where the books of the cores show nothing."""
    load, seconds = noise.get("load_average") or {}, noise.get("seconds", 0.0)
    before, after, cores = load.get("before"), load.get("after"), machine.get("cores")
    if not before or not after or not cores or seconds < LOAD_SECONDS:
        return None
    # Indexing has just used all cores: take what is left of that out of the average.
    left = math.exp(-seconds / _LOAD_PERIOD)
    tasks = (after[0] - left * before[0]) / (1 - left)
    if tasks <= cores + LOAD_MARGIN:
        return None
    return (
        f"About {tasks:.0f} tasks wanted to run or to read a disk at a time, on {cores} cores: "
        "close other programs or wait until they are done, then measure again"
    )


def _stolen(noise: Mapping[str, Any]) -> str | None:
    cores = noise.get("cores") or {}
    if cores.get("seconds", 0.0) < SHORTEST or cores["stolen"] <= STOLEN:
        return None
    if cores["stolen"] * cores["seconds"] * 100 < TICKS:
        return None
    return (
        f"{_percent(cores['stolen'])} of the cores' time went to other guests of the host: this "
        "virtual machine shares its processor; measure at another time or on a machine of your "
        "own, and compare retrievers only within one `compare`"
    )


def _throttled(noise: Mapping[str, Any], machine: Mapping[str, Any]) -> str | None:
    throttled = noise.get("throttled") or {}
    if not throttled.get("times"):
        return None
    limit = machine.get("cpu_limit")
    allowed = f" of {limit:g} cores" if limit else ""
    return (
        f"The CPU limit{allowed} stopped the process {_times(throttled['times'])}, for "
        f"{throttled['seconds']:.3g} s in all, and each stop makes a call slow: raise the limit of "
        "the container, or use fewer threads"
    )


def _few_cores(machine: Mapping[str, Any], threads: int) -> str | None:
    usable, limit = machine.get("usable_cores"), machine.get("cpu_limit")
    cores = min((value for value in (usable, limit) if value), default=None)
    # Less than one core's worth is a limit that even one thread runs into.
    if cores is None or threads <= cores:
        return None
    return (
        f"{threads} thread{'s' if threads > 1 else ''} on {cores:g} usable cores: they wait for "
        "each other; use fewer threads, or give the process more cores (taskset, limit of the "
        "container)"
    )


def _governor(machine: Mapping[str, Any]) -> str | None:
    governor, driver = machine.get("governor") or "", machine.get("governor_driver") or ""
    preference = machine.get("energy_preference") or ""
    place = "/sys/devices/system/cpu/cpu*/cpufreq"
    # These drivers call their dynamic mode "powersave"; what it aims at is the preference.
    if driver in {"intel_pstate", "amd-pstate-epp"}:
        if "power" not in preference.replace("balance_power", "power").split(", "):
            return None
        return (
            f"The processor is set to save energy (preference {preference}), its clock rate "
            "follows the load: plug the machine in, or run "
            f"`echo performance | sudo tee {place}/energy_performance_preference`"
        )
    if "powersave" not in governor.split(", "):
        return None
    return (
        f"The processor runs at its lowest clock rate (governor {governor}): run "
        f"`echo performance | sudo tee {place}/scaling_governor`"
    )


def _slowed(noise: Mapping[str, Any], during: str) -> str | None:
    mhz = noise.get("mhz") or {}
    before, after = mhz.get("before"), mhz.get("after")
    if not before or not after or after >= (1 - SLOWER) * before:
        return None
    return (
        f"The clock rate fell from {before:,.0f} to {after:,.0f} MHz {during}: "
        "let the machine cool down, plug it in, then measure again"
    )


def _paging(noise: Mapping[str, Any]) -> str | None:
    major = (noise.get("page_faults") or {}).get("major")
    if not major or major < MAJOR_FAULTS:
        return None
    if noise.get("swapped_in_pages"):
        return (
            f"{major:,} times memory had to be read back from disk, and the machine was swapping: "
            "close other programs, use a smaller dataset, or a machine with more memory"
        )
    return (
        f"{major:,} times a page had to be read from disk: calls that met one are slow; "
        "run again when the files are cached, unless the retriever reads from disk by design"
    )


def _memory_full(noise: Mapping[str, Any]) -> str | None:
    share = noise.get("memory_share")
    if share is None or share <= MEMORY:
        return None
    return (
        f"{_percent(share)} of the memory is in use: close other programs, raise the limit of the "
        "container, or use a smaller dataset before the system starts to swap"
    )


def _slept(noise: Mapping[str, Any], during: str) -> str | None:
    seconds = noise.get("suspended_seconds")
    if seconds is None or seconds < SUSPENDED:
        return None
    return f"The machine slept for {seconds:,.0f} s {during}: keep it awake and measure again"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
