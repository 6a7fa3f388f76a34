"""How large each part may be, so that growth is a decision and not what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]

PACKAGES = ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers")
FROZEN = ("tests/golden/frozen",)

MOST: Mapping[str, int] = {
    "retrieval_bench": 80,
    "retrieval_bench/api": 1_090,
    "retrieval_bench/approximate": 950,
    "retrieval_bench/cli": 4_440,
    "retrieval_bench/comparison": 6_120,
    "retrieval_bench/core": 5_050,
    "retrieval_bench/data": 7_770,
    "retrieval_bench/duets": 4_240,
    "retrieval_bench/experiment": 5_340,
    "retrieval_bench/labels": 4_440,
    "retrieval_bench/load": 2_800,
    "retrieval_bench/measure": 3_550,
    "retrieval_bench/metrics": 3_300,
    "retrieval_bench/regression": 4_370,
    "retrieval_bench/reports": 12_230,
    "retrieval_bench/reproduction": 880,
    "retrieval_bench/runs": 3_240,
    "retrieval_bench/scoring": 5_340,
    "retrieval_bench/shards": 1_100,
    "retrieval_bench/stats": 1_720,
    "retrieval_bench/testing": 1_170,
    "retrieval_bench/tuning": 1_940,
    "retrieval_bench_retrievers": 540,
    "retrieval_bench_retrievers/dense": 1_020,
    "retrieval_bench_retrievers/encoders": 2_560,
    "retrieval_bench_retrievers/engines": 2_220,
    "retrieval_bench_retrievers/functions": 850,
    "retrieval_bench_retrievers/http": 1_530,
    "retrieval_bench_retrievers/hybrid": 1_810,
    "retrieval_bench_retrievers/lexical": 1_330,
    "retrieval_bench_retrievers/libraries": 2_130,
    "retrieval_bench_retrievers/pipeline": 1_200,
    "retrieval_bench_retrievers/rerank": 670,
    "retrieval_bench_retrievers/sql": 1_780,
    "retrieval_bench_retrievers/text": 760,
    "product": 99_400,
    "tests": 84_870,
    "frozen data": 11_480,
}
"""Lines of each package and room (without one: its loose modules), of all of them, of the tests,
and of the data that tests hold results against."""


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def sizes() -> Counter[str]:
    found: Counter[str] = Counter()
    for name in PACKAGES:
        package = ROOT / name
        for path in package.rglob("*.py"):
            room = path.relative_to(package).parts[:-1][:1]
            found["/".join([package.name, *room])] += lines_of(path)
    found["product"] = found.total()
    found["tests"] = sum(map(lines_of, (ROOT / "tests").rglob("*.py")))
    data = [path for name in FROZEN for path in (ROOT / name).rglob("*") if path.is_file()]
    found["frozen data"] = sum(lines_of(path) for path in data if path.suffix != ".npz")
    return found


def test_no_part_is_larger_than_it_may_be() -> None:
    found = sizes()
    assert set(found) == set(MOST), "MOST has a line for each part that is there, and no other"
    too_large = [
        f"{name} has {n:,} lines, {n - MOST[name]:,} more than it may"
        for name, n in found.items()
        if n > MOST[name]
    ]
    assert not too_large, (
        f"{'; '.join(too_large)}. Take out what nobody needs any more; or raise the number in "
        f"{Path(__file__).name}, and give the reason in the commit."
    )
