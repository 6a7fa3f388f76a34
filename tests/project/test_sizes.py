"""How large each part may be, so that growth is a decision and not what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = ("harness/retrieval_bench", "retrievers/retrieval_bench_retrievers")
"""With a line for each of their rooms; a capability has one of its own."""
FROZEN = ("tests/golden/frozen",)

MOST: Mapping[str, int] = {
    "retrieval_bench": 300,
    "retrieval_bench/api": 600,
    "retrieval_bench/cli": 1_950,
    "retrieval_bench/comparison": 3_250,
    "retrieval_bench/core": 5_530,
    "retrieval_bench/data": 5_700,
    "retrieval_bench/experiment": 3_200,
    "retrieval_bench/measure": 3_750,
    "retrieval_bench/metrics": 3_050,
    "retrieval_bench/reports": 4_920,
    "retrieval_bench/runs": 3_220,
    "retrieval_bench/stats": 1_920,
    "retrieval_bench_answers": 5_350,
    "retrieval_bench_labels": 5_600,
    "retrieval_bench_conformance": 1_250,
    "retrieval_bench_doctor": 1_700,
    "retrieval_bench_scale": 2_870,
    "retrieval_bench_score": 3_880,
    "retrieval_bench_tune": 2_500,
    "retrieval_bench_modes": 1_110,
    "retrieval_bench_duet": 4_700,
    "retrieval_bench_regress": 5_100,
    "retrieval_bench_load": 5_320,
    "retrieval_bench_explain": 4_550,
    "retrieval_bench_pages": 2_800,
    "retrieval_bench_exchange": 2_650,
    "retrieval_bench_fresh": 1_050,
    "retrieval_bench_retrievers": 550,
    "retrieval_bench_retrievers/dense": 1_050,
    "retrieval_bench_retrievers/encoders": 2_600,
    "retrieval_bench_retrievers/engines": 2_350,
    "retrieval_bench_retrievers/functions": 900,
    "retrieval_bench_retrievers/http": 1_550,
    "retrieval_bench_retrievers/hybrid": 1_850,
    "retrieval_bench_retrievers/lexical": 1_350,
    "retrieval_bench_retrievers/libraries": 2_150,
    "retrieval_bench_retrievers/pipeline": 1_200,
    "retrieval_bench_retrievers/rerank": 700,
    "retrieval_bench_retrievers/sql": 1_850,
    "retrieval_bench_retrievers/text": 800,
    "product": 105_750,
    "tests": 88_600,
    "frozen data": 11_500,
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
    for package in (ROOT / "harness").glob("retrieval_bench_*"):
        found[package.name] = sum(map(lines_of, package.rglob("*.py")))
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
