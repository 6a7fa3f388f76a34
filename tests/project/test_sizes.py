"""How large each part may be, so that growth is a decision and not what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers")
"""With a line for each of their rooms."""
BESIDE = sorted((ROOT / "harness").glob("retrieval_bench_*"))
"""The packages of capabilities."""
FROZEN = ("tests/golden/frozen",)

MOST: Mapping[str, int] = {
    "retrieval_bench": 350,
    "retrieval_bench/api": 650,
    "retrieval_bench/cli": 1_950,
    "retrieval_bench/comparison": 3_150,
    "retrieval_bench/core": 5_650,
    "retrieval_bench/data": 4_900,
    "retrieval_bench/experiment": 2_500,
    "retrieval_bench/measure": 3_100,
    "retrieval_bench/metrics": 2_650,
    "retrieval_bench/reports": 3_000,
    "retrieval_bench/runs": 2_750,
    "retrieval_bench/stats": 1_700,
    "retrieval_bench_retrievers": 600,
    "retrieval_bench_retrievers/dense": 1_050,
    "retrieval_bench_retrievers/encoders": 2_600,
    "retrieval_bench_retrievers/engines": 2_500,
    "retrieval_bench_retrievers/functions": 1_100,
    "retrieval_bench_retrievers/http": 2_050,
    "retrieval_bench_retrievers/hybrid": 1_950,
    "retrieval_bench_retrievers/lexical": 1_400,
    "retrieval_bench_retrievers/libraries": 2_200,
    "retrieval_bench_retrievers/mcp": 2_100,
    "retrieval_bench_retrievers/pipeline": 1_250,
    "retrieval_bench_retrievers/programs": 1_350,
    "retrieval_bench_retrievers/rerank": 750,
    "retrieval_bench_retrievers/sql": 2_050,
    "retrieval_bench_retrievers/text": 800,
    "the kernel": 32_000,
    "a package beside the kernel": 5_600,
    "product": 122_000,
    "tests": 101_500,
    "frozen data": 11_550,
}
"""Lines of each room of the kernel and of the retrievers (without one: loose modules), of the
kernel, of the largest capability, of all of them, of the tests, and of the data that tests are held
against: in steps of 50 and 500, so that a metric, a column or a test needs no other number."""


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def sizes() -> Counter[str]:
    found: Counter[str] = Counter()
    for name in PACKAGES:
        package = ROOT / name
        for path in package.rglob("*.py"):
            room = path.relative_to(package).parts[:-1][:1]
            found["/".join([package.name, *room])] += lines_of(path)
    found["the kernel"] = sum(n for name, n in found.items() if name.startswith("retrieval_bench/"))
    found["the kernel"] += found["retrieval_bench"]
    beside = {package.name: sum(map(lines_of, package.rglob("*.py"))) for package in BESIDE}
    found["product"] = found.total() - found["the kernel"] + sum(beside.values())
    found["a package beside the kernel"] = max(beside.values())
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
