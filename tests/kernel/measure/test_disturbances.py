"""Warnings about a measurement: each for its cause alone, with a remedy; none when it is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from retrieval_bench.measure.machine.disturbances import disturbances

QUIET: Mapping[str, Any] = {
    "seconds": 60.0,
    "cpu_seconds": 58.0,
    "helper_cpu_seconds": 0.0,
    "context_switches": {"voluntary": 40, "involuntary": 300},
    "page_faults": {"major": 2, "minor": 90_000},
    "cores": {"seconds": 120.0, "own": 0.485, "others": 0.03, "idle": 0.48, "stolen": 0.005},
    # indexing has just used both cores
    "load_average": {"before": [2.2, 1.5, 1.0], "after": [1.4, 1.4, 1.0]},
    "throttled": {"times": 0, "seconds": 0.0},
    "mhz": {"before": 4200.0, "after": 3900.0},
    "swapped_in_pages": 3,
    "memory_share": 0.8,
    "suspended_seconds": 0.0,
}
MACHINE: Mapping[str, Any] = {
    "cores": 2,
    "usable_cores": 2,
    "cpu_limit": None,
    "governor": "schedutil",
    "governor_driver": "acpi-cpufreq",
    "energy_preference": None,
}


def noise(**changes: Any) -> dict[str, Any]:
    """The quiet record with other values; a mapping changes the entries that it names."""
    record = deepcopy(dict(QUIET))
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(record[name], dict)
        record[name] = record[name] | value if both else value
    return record


def test_a_quiet_machine_gives_no_warning() -> None:
    assert disturbances(QUIET, MACHINE) == []
    assert disturbances(QUIET, MACHINE, threads=2) == []


def test_a_machine_that_tells_nothing_gives_no_warning() -> None:
    assert disturbances({}, {}) == []
    nothing = {name: None for name in QUIET if name != "seconds"} | {"seconds": 60.0}
    assert disturbances(nothing, dict.fromkeys(MACHINE)) == []


def test_own_use_of_every_core_is_no_noise() -> None:
    busy = noise(
        cores={"own": 0.99, "others": 0.01, "idle": 0.0},
        load_average={"before": [2.0, 2, 2], "after": [2.0, 2, 2]},
    )
    assert disturbances(busy, MACHINE, threads=2) == []


@pytest.mark.parametrize(
    ("changes", "told", "remedy"),
    [
        (
            {"cores": {"others": 0.38}},
            "Other processes used 38 % of the cores while searches were timed",
            "(the measuring process was interrupted 300 times), so that times are too long.",
        ),
        ({"cores": {"stolen": 0.023}}, "2.3 % of the cores' time went to other", "another time"),
        ({"throttled": {"times": 12, "seconds": 0.6}}, "stopped the process 12 times", "raise the"),
        ({"page_faults": {"major": 10}, "swapped_in_pages": 0}, "10 times a page", "run again"),
        ({"page_faults": {"major": 99}}, "the machine was swapping", "more memory"),
        ({"memory_share": 0.97}, "97 % of the memory is in use", "raise the limit"),
        ({"mhz": {"after": 3000.0}}, "fell from 4,200 to 3,000 MHz", "cool down"),
        ({"suspended_seconds": 90.0}, "slept for 90 s", "keep it awake"),
        (
            {"load_average": {"before": [2.0, 2, 2], "after": [8.0, 2, 2]}},
            "About 11 tasks wanted to run or to read a disk at a time, on 2 cores",
            "close other programs",
        ),
    ],
)
def test_each_disturbance_is_told_alone_and_with_a_remedy(
    changes: dict[str, Any], told: str, remedy: str
) -> None:
    [sentence] = disturbances(noise(**changes), MACHINE)
    assert told in sentence
    assert remedy in sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"cores": {"others": 0.099}},
        {"cores": {"stolen": 0.0099}},
        {"page_faults": {"major": 9}},
        {"memory_share": 0.94},
        {"mhz": {"after": 3400.0}},
        {"suspended_seconds": 0.9},
        # the load of the indexing before: 8 tasks an instant ago, one during the measurement
        {"load_average": {"before": [8.0, 4, 2], "after": [3.6, 3, 2]}},
    ],
)
def test_below_the_threshold_nothing_is_told(changes: dict[str, Any]) -> None:
    assert disturbances(noise(**changes), MACHINE) == []


def test_a_short_measurement_is_not_judged_by_single_ticks() -> None:
    short = {"seconds": 0.2, "cores": {"seconds": 0.4, "others": 0.3, "stolen": 0.1}}
    assert disturbances(noise(**short), MACHINE) == []
    two_ticks = {"seconds": 0.5, "cores": {"seconds": 1.0, "stolen": 0.02}}
    assert disturbances(noise(**two_ticks), MACHINE) == []
    load = {"before": [2.0, 2, 2], "after": [9.0, 2, 2]}
    assert disturbances(noise(seconds=29.0, load_average=load), MACHINE) == []


def test_other_processes_and_the_load_that_they_make_are_told_once() -> None:
    both = noise(cores={"others": 0.5}, load_average={"after": [9.0, 2, 2]})
    assert len(disturbances(both, MACHINE)) == 1


@pytest.mark.parametrize(
    ("machine", "threads", "told"),
    [
        ({}, 3, "3 threads on 2 usable cores"),
        ({"cpu_limit": 1.5}, 2, "2 threads on 1.5 usable cores"),
        ({"cpu_limit": 0.5}, 1, "1 thread on 0.5 usable cores"),
        ({"usable_cores": 1}, 1, None),
    ],
)
def test_more_threads_than_cores_are_told(
    machine: dict[str, Any], threads: int, told: str | None
) -> None:
    found = disturbances(QUIET, {**MACHINE, **machine}, threads)
    assert [told in sentence for sentence in found if told] == ([True] if told else [])
    assert bool(found) is bool(told)


@pytest.mark.parametrize(
    ("driver", "governor", "preference", "command"),
    [
        ("acpi-cpufreq", "powersave", None, "scaling_governor"),
        ("intel_cpufreq", "performance, powersave", None, "scaling_governor"),
        (None, "powersave", None, "scaling_governor"),
        ("acpi-cpufreq", "ondemand", None, None),
        ("intel_pstate", "powersave", "balance_performance", None),
        ("intel_pstate", "performance", "performance", None),
        ("intel_pstate", "powersave", "balance_power", "energy_performance_preference"),
        ("amd-pstate-epp", "powersave", "power", "energy_performance_preference"),
        (None, None, None, None),
    ],
)
def test_a_governor_that_saves_energy_is_told_with_the_command_that_helps(
    driver: str | None, governor: str | None, preference: str | None, command: str | None
) -> None:
    facts = {"governor_driver": driver, "governor": governor, "energy_preference": preference}
    found = disturbances(QUIET, {**MACHINE, **facts})
    assert bool(found) is bool(command)
    for sentence in found:
        assert f"sudo tee /sys/devices/system/cpu/cpu*/cpufreq/{command}" in sentence


def test_the_limit_that_stopped_the_process_is_named() -> None:
    stopped = noise(throttled={"times": 2, "seconds": 0.12})
    [sentence] = disturbances(stopped, {**MACHINE, "cpu_limit": 1.5})
    assert "The CPU limit of 1.5 cores stopped the process 2 times, for 0.12 s in all" in sentence
