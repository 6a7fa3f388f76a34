"""Facts of the machine, read from trees of files; and which of them make two machines differ."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.measure.environment import FINGERPRINTED, fingerprint, machine
from retrieval_bench.measure.machine.kernel import ControlGroup, cpu_list, cpus_of_one_node
from tests.builders.fake_system import CPUINFO, MOUNT_V2, V1, V2, allowed, frequency, lay_out

LINUX = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal:        4194304 kB\nMemAvailable:    1048576 kB",
    "proc/sys/kernel/ostype": "Linux",
    "proc/sys/kernel/osrelease": "6.1.0-test",
    "sys/devices/system/cpu/online": "0-7",
    "etc/os-release": 'NAME="Test"\nPRETTY_NAME="Tëst OS 한국 1"',
}


def test_facts_are_read_from_the_files_of_the_kernel(tmp_path: Path) -> None:
    facts = machine(lay_out(tmp_path, LINUX, allowed("0-2,5"), V2))
    assert facts["processor"] == "Test CPU @ 2.00GHz"
    assert facts["processor_model"] == "cpu family 6, model 143, stepping 8"
    assert facts["virtual"] is True
    assert (facts["cores"], facts["usable_cores"], facts["cpu_limit"]) == (8, 4, 1.5)
    assert (facts["memory_bytes"], facts["memory_gib"]) == (4 * 2**30, 4)
    assert facts["memory_limit_bytes"] == 2_000_000
    assert facts["system"] == "Linux 6.1.0-test"
    assert facts["distribution"] == "Tëst OS 한국 1"
    assert facts["python"].endswith(platform.python_version())


def test_an_arm_processor_has_no_name_but_a_part(tmp_path: Path) -> None:
    arm = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\nCPU revision : 1"
    facts = machine(lay_out(tmp_path, {"proc/cpuinfo": arm}))
    assert facts["processor_model"] == "CPU implementer 0x41, CPU part 0xd0c, CPU revision 1"
    assert facts["processor"]
    assert facts["virtual"] is None


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_a_system_without_these_files_tells_less_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    mac = "14.5" if system == "Darwin" else ""
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "release", lambda: "23.5")
    monkeypatch.setattr(platform, "mac_ver", lambda: (mac, ("", "", ""), ""))
    monkeypatch.setattr(platform, "platform", lambda **_: "Windows-11")
    facts = machine(tmp_path)
    for name in ("processor_model", "cpu_limit", "memory_limit_bytes", "governor", "boost"):
        assert facts[name] is None
    assert facts["system"] == f"{system} 23.5"
    assert facts["distribution"] == ("macOS 14.5" if mac else "Windows-11")
    assert len(facts["fingerprint"]) == 12


def test_odd_files_are_no_facts(tmp_path: Path) -> None:
    odd = {
        "proc/meminfo": "MemTotal: lots kB",
        "sys/devices/system/cpu/online": "all of them",
        "proc/self/status": "Cpus_allowed_list:\t",
        "proc/self/cgroup": "nonsense",
        "proc/self/mountinfo": f"- cgroup\n{MOUNT_V2[:20]}",
        "sys/devices/system/cpu/cpufreq/boost": "?",
    }
    facts = machine(lay_out(tmp_path, odd))
    (tmp_path / "proc/cpuinfo").write_bytes(b"model name : \xff\xfe")
    assert machine(tmp_path)["processor"]
    assert facts["cpu_limit"] is None
    assert facts["boost"] is None
    assert facts["cores"] is None or facts["cores"] > 0


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", None), ("a", None), (None, None)],
)
def test_lists_of_cores(text: str | None, cores: set[int] | None) -> None:
    assert cpu_list(text) == cores


# Who decides on the clock rate


def test_the_governor_is_that_of_the_usable_cores(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        allowed("0-1"),
        frequency(0, scaling_governor="schedutil", scaling_driver="acpi-cpufreq"),
        frequency(1, scaling_governor="powersave", scaling_driver="acpi-cpufreq"),
        frequency(2, scaling_governor="performance"),
    )
    facts = machine(root)
    assert facts["governor"] == "powersave, schedutil"
    assert facts["governor_driver"] == "acpi-cpufreq"
    assert facts["energy_preference"] is None


@pytest.mark.parametrize(
    ("file", "text", "boost"),
    [
        ("cpufreq/boost", "1", True),
        ("cpufreq/boost", "0", False),
        ("intel_pstate/no_turbo", "1", False),
        ("intel_pstate/no_turbo", "0", True),
        ("other", "1", None),
    ],
)
def test_boost_is_told_by_either_driver(
    tmp_path: Path, file: str, text: str, boost: bool | None
) -> None:
    root = lay_out(tmp_path, {f"sys/devices/system/cpu/{file}": text})
    assert machine(root)["boost"] is boost


# Limits of a container


def test_limits_are_found_below_the_mount_of_a_container_and_are_the_tightest_of_all_levels(
    tmp_path: Path,
) -> None:
    group = ControlGroup.of_this_process(lay_out(tmp_path, V1))
    assert (group.cpu_limit(), group.memory_limit()) == (0.5, 3_000_000)
    root = lay_out(tmp_path, V2, {"sys/fs/cgroup/cpu.max": "400000 100000"})
    group = ControlGroup.of_this_process(root)
    assert (group.cpu_limit(), group.memory_limit()) == (1.5, 2_000_000)


@pytest.mark.parametrize("path", ["/", "/../../elsewhere"])
def test_in_a_namespace_of_its_own_the_mount_point_is_the_group(tmp_path: Path, path: str) -> None:
    files = {
        "proc/self/cgroup": f"0::{path}",
        "proc/self/mountinfo": MOUNT_V2,
        "sys/fs/cgroup/cpu.max": "200000 100000",
    }
    group = ControlGroup.of_this_process(lay_out(tmp_path, files))
    assert group.cpu_limit() == 2.0
    assert group.cpu == (tmp_path / "sys/fs/cgroup",)


def test_no_group_no_limit_and_one_above_the_memory_of_the_machine_are_none(tmp_path: Path) -> None:
    assert ControlGroup.of_this_process(tmp_path) == ControlGroup()
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    }
    group = ControlGroup.of_this_process(lay_out(tmp_path, V1, files))
    assert (group.cpu_limit(), group.memory_limit(), group.throttled()) == (None, None, None)
    assert group.memory_share() is None
    more = {"sys/fs/cgroup/box/job/memory.max": str(5 * 2**30)}
    assert machine(lay_out(tmp_path, LINUX, V2, more))["memory_limit_bytes"] is None


def test_files_that_can_be_dropped_do_not_fill_a_group(tmp_path: Path) -> None:
    job = "sys/fs/cgroup/box/job"
    usage = {
        f"{job}/memory.current": "1900000",
        f"{job}/memory.stat": "anon 1000000\ninactive_file 500000\nactive_file 400000",
    }
    assert ControlGroup.of_this_process(lay_out(tmp_path, V2, usage)).memory_share() == 0.5
    old = {
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "2400000",
        "sys/fs/cgroup/memory/memory.stat": "cache 7\ntotal_inactive_file 600000",
    }
    assert ControlGroup.of_this_process(lay_out(tmp_path, V1, old)).memory_share() == 0.6


def test_being_stopped_at_the_limit_is_counted_where_the_limit_is(tmp_path: Path) -> None:
    text = "nr_periods 90\nnr_throttled 7\nthrottled_usec 250000"
    noise = {f"sys/fs/cgroup/box{at}/cpu.stat": text for at in ("", "/job")}
    group = ControlGroup.of_this_process(lay_out(tmp_path, V2, noise))
    assert group.throttled() == (7, 0.25)
    old = {"sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_throttled 3\nthrottled_time 1500000000"}
    assert ControlGroup.of_this_process(lay_out(tmp_path, V1, old)).throttled() == (3, 1.5)


# The fingerprint


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, Any]:
    return machine(lay_out(tmp_path, LINUX, allowed("0-2,5"), V2))


def test_every_fact_of_the_fingerprint_exists(facts: dict[str, Any]) -> None:
    assert set(FINGERPRINTED) <= set(facts)
    assert facts["fingerprint"] == fingerprint(facts)


@pytest.mark.parametrize("name", FINGERPRINTED)
def test_what_changes_times_changes_the_fingerprint(facts: dict[str, Any], name: str) -> None:
    assert fingerprint(facts | {name: "other"}) != facts["fingerprint"]


def test_what_changes_by_itself_is_the_same_machine(facts: dict[str, Any], tmp_path: Path) -> None:
    moved = {"energy_preference": "power", "distribution": "x", "memory_bytes": 1, "virtual": None}
    assert fingerprint(facts | moved) == facts["fingerprint"]
    less = {"proc/meminfo": "MemTotal:        4190000 kB"}
    known = [machine(lay_out(tmp_path, LINUX, files))["fingerprint"] for files in ({}, less)]
    assert known[0] == known[1]


NODES = {
    "sys/devices/system/node/node0/cpulist": "0-3",
    "sys/devices/system/node/node1/cpulist": "4-7",
    "sys/devices/system/node/node2/cpulist": "",  # memory alone
}


@pytest.mark.parametrize(
    ("nodes", "mine", "cores"),
    [(NODES, "1-3", {1, 2, 3}), (NODES, "2-5", set()), ({}, "0,2", {0, 2})],
)
def test_cores_of_one_node_of_memory(
    tmp_path: Path, nodes: dict[str, str], mine: str, cores: set[int]
) -> None:
    assert cpus_of_one_node(lay_out(tmp_path, nodes, allowed(mine))) == cores


def test_where_the_system_tells_no_cores_there_are_none_of_one_node(tmp_path: Path) -> None:
    assert cpus_of_one_node(tmp_path) == frozenset()
