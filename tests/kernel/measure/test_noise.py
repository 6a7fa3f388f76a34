"""The noise record: differences of counters, on trees of files and a clock wound by hand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.measure.machine.noise import NoiseRecorder, Usage, process_usage
from tests.builders.fake_system import V2, allowed, frequency, lay_out, stat


class Hand:
    """A clock and a process, both moved by the test."""

    def __init__(self, root: Path) -> None:
        self.ns = 5_000_000_000
        self.asleep_ns = 0
        self.usage = Usage(10.0, 0.0, 100, 20, 3, 400)
        self.recorder = NoiseRecorder(
            root=root,
            clock=lambda: self.ns,
            boot_clock=lambda: self.ns + self.asleep_ns,
            usage=lambda: self.usage,
        )


def ticks(seconds: float) -> int:
    return round(seconds * os.sysconf("SC_CLK_TCK"))


def cores(*seconds: tuple[float, float, float]) -> dict[str, str]:
    """Seconds (busy, idle, stolen) of each core since the start."""
    return stat(*((ticks(a), ticks(b), ticks(c)) for a, b, c in seconds))


def helper(busy: float, pid: int = 77, parent: str = "self") -> dict[str, str]:
    """A process that ``parent`` started, with a name that makes its line hard to read."""
    quarter = ticks(busy / 4)  # user, system, and both of children that ended
    return {
        f"proc/{parent}/task/{parent}/children": f"{pid} ",
        f"proc/{pid}/stat": f"{pid} (a ) b) S 1 1 1 0 -1 0 0 0 0 0 {f'{quarter} ' * 4}20 0 1",
    }


def test_the_counters_of_the_process_are_differences(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    with hand.recorder as noise:
        hand.ns += 2_500_000_000
        hand.usage = Usage(11.5, 0.25, 130, 25, 4, 900)
    record = noise.record
    assert record["seconds"] == 2.5
    assert record["cpu_seconds"] == 1.5
    assert record["helper_cpu_seconds"] == 0.25
    assert record["context_switches"] == {"voluntary": 30, "involuntary": 5}
    assert record["page_faults"] == {"major": 1, "minor": 500}
    assert record["suspended_seconds"] == 0
    with hand.recorder as noise:
        hand.ns += 1_000_000_000
        hand.asleep_ns += 60_000_000_000
    assert noise.record["seconds"] == 1
    assert noise.record["suspended_seconds"] == 60, "what only the clock since the start saw"


def test_own_time_is_told_apart_from_that_of_others(tmp_path: Path) -> None:
    hand = Hand(lay_out(tmp_path, allowed("0-1"), cores((1, 1, 0), (1, 1, 0))))
    hand.recorder.start()
    hand.usage = replace(hand.usage, cpu_s=12.0)
    lay_out(tmp_path, cores((4, 2, 0), (1, 4, 1)))
    shares = hand.recorder.stop()["cores"]
    assert shares == pytest.approx(
        {"seconds": 8.0, "own": 0.25, "others": 0.125, "idle": 0.5, "stolen": 0.125}
    )
    assert sum(share for name, share in shares.items() if name != "seconds") == pytest.approx(1)


def test_own_time_that_is_not_booked_yet_is_not_taken_from_others(tmp_path: Path) -> None:
    hand = Hand(lay_out(tmp_path, allowed("0"), cores((1, 1, 0))))
    with hand.recorder as noise:
        hand.usage = replace(hand.usage, cpu_s=10.52)
        lay_out(tmp_path, cores((1.5, 1.5, 0)))
    assert noise.record["cores"]["others"] == 0
    assert noise.record["cores"]["own"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("usable", "before", "after", "share", "value"),
    [
        (allowed("1"), [(0, 0, 0), (1, 1, 0)], [(9, 0, 0), (1, 3, 0)], "others", 0),
        ({}, [(1, 1, 0), (1, 1, 0)], [(2, 1, 0), (1, 2, 0)], "others", 0.5),
        (allowed("0"), [(1, 5, 0)], [(2, 4.99, 0)], "idle", 0),
    ],
    ids=["only usable cores count", "usable cores not known", "idle time booked backwards"],
)
def test_shares_are_those_of_the_usable_cores(
    tmp_path: Path, *, usable: Any, before: Any, after: Any, share: str, value: float
) -> None:
    root = lay_out(tmp_path, usable, cores(*before))
    with Hand(root).recorder as noise:
        lay_out(root, cores(*after))
    assert noise.record["cores"][share] == pytest.approx(value)


def test_helper_processes_are_no_others(tmp_path: Path) -> None:
    grandchild = helper(1.0, pid=78, parent="77")
    root = lay_out(tmp_path, allowed("0"), cores((1, 1, 0)), helper(3.0), grandchild)
    with Hand(root).recorder as noise:
        lay_out(root, cores((3, 1, 0)), helper(4.5), helper(1.5, pid=78, parent="77"))
    assert noise.record["helper_cpu_seconds"] == pytest.approx(2.0)
    assert noise.record["cores"]["own"] == pytest.approx(1.0)
    assert noise.record["cores"]["others"] == pytest.approx(0.0)


def test_a_helper_that_ends_in_between_counts_once(tmp_path: Path) -> None:
    hand = Hand(lay_out(tmp_path, helper(3.0)))
    hand.recorder.start()
    (tmp_path / "proc/self/task/self/children").write_text("", encoding="utf-8")
    hand.usage = replace(hand.usage, children_s=3.5)
    assert hand.recorder.stop()["helper_cpu_seconds"] == pytest.approx(0.5)


def test_stops_at_the_limit_memory_load_and_clock_rate_are_recorded(tmp_path: Path) -> None:
    on_core_3 = "9 (py thon) R " + " ".join(["0"] * 35) + " 3 0 0"
    job, box = "sys/fs/cgroup/box/job", "sys/fs/cgroup/box"
    root = lay_out(
        tmp_path,
        V2,
        frequency(3, scaling_cur_freq="3000000"),
        {
            "proc/self/stat": on_core_3,
            "proc/loadavg": "0.50 0.40 0.30 1/99 1234",
            "proc/vmstat": "nr_free 1\npswpin 40\npswpout 2",
            "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 100 kB",
            f"{job}/memory.current": "1000000",
            f"{box}/cpu.stat": "nr_throttled 3\nthrottled_usec 100000",
        },
    )
    with Hand(root).recorder as noise:
        lay_out(
            root,
            frequency(3, scaling_cur_freq="2400000"),
            {
                "proc/loadavg": "1.50 0.40 0.30 1/99 1234",
                "proc/vmstat": "pswpin 45",
                f"{box}/cpu.stat": "nr_throttled 8\nthrottled_usec 600000",
            },
        )
    record = noise.record
    assert record["throttled"] == {"times": 5, "seconds": 0.5}
    assert record["mhz"] == {"before": 3000.0, "after": 2400.0}
    assert record["load_average"] == {"before": [0.5, 0.4, 0.3], "after": [1.5, 0.4, 0.3]}
    assert record["swapped_in_pages"] == 5
    assert record["memory_share"] == pytest.approx(0.9), "the machine is fuller than the group"


def test_a_system_that_tells_nothing_gives_a_record_of_none(tmp_path: Path) -> None:
    recorder = NoiseRecorder(
        root=tmp_path, clock=lambda: 0, boot_clock=lambda: None, usage=lambda: Usage(1.0)
    )
    with recorder:
        pass
    record = recorder.record
    for name in ("cores", "throttled", "swapped_in_pages", "memory_share", "suspended_seconds"):
        assert record[name] is None
    assert record["context_switches"] == {"voluntary": None, "involuntary": None}
    assert record["mhz"] == {"before": None, "after": None}


@pytest.mark.parametrize("text", ["", "cpu", "cpu x y z", "cpu0 0 0 0 0", "\x00\x01"])
def test_odd_books_of_the_cores_are_none(tmp_path: Path, text: str) -> None:
    with Hand(lay_out(tmp_path, {"proc/stat": text})).recorder as noise:
        pass
    assert noise.record["cores"] is None


def test_the_record_is_there_after_an_interrupt(tmp_path: Path) -> None:
    hand = Hand(tmp_path)

    def interrupted_rounds() -> None:
        with hand.recorder:
            hand.ns += 1_000_000_000
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_rounds()
    assert hand.recorder.record["seconds"] == 1


def test_a_second_start_measures_from_there_and_stopping_what_never_started_records_nothing(
    tmp_path: Path,
) -> None:
    assert Hand(tmp_path).recorder.stop()["seconds"] == 0
    hand = Hand(tmp_path)
    hand.recorder.start()
    hand.ns += 9_000_000_000
    hand.recorder.start()
    hand.ns += 1_000_000_000
    assert hand.recorder.stop()["seconds"] == 1


def test_this_machine_can_be_recorded_and_the_record_can_be_written() -> None:
    before = process_usage().cpu_s
    with NoiseRecorder() as noise:
        sum(range(200_000))
    record = json.loads(json.dumps(noise.record, allow_nan=False))
    assert record == noise.record
    assert 0 < record["cpu_seconds"] <= process_usage().cpu_s - before
    assert record["seconds"] > 0
