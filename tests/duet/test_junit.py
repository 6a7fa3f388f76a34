from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet import junit


@dataclass(frozen=True)
class Gate:
    verdict: Verdict
    reason: str = ""


def test_a_gate_is_a_case_that_failed_was_skipped_or_passed() -> None:
    gates = [
        ("nDCG@10", Gate(Verdict.WORSE, "dropped by <more> & more\x1b")),
        ("p50", Gate(Verdict.UNDECIDED)),
        ("p95", Gate(Verdict.MISSING, "too few queries")),
        ("p99", Gate(Verdict.EQUIVALENT)),
        ("mean", Gate(Verdict.BETTER)),
    ]
    root = ElementTree.fromstring(junit.render("regress 검색", gates))
    assert root.attrib == {
        "name": "regress 검색", "tests": "5", "failures": "1", "skipped": "2",
    }  # fmt: skip
    outcomes = {case.attrib["name"]: [(e.tag, e.attrib["message"]) for e in case] for case in root}
    assert outcomes == {
        "nDCG@10": [("failure", "FAIL: dropped by <more> & more\ufffd")],
        "p50": [("skipped", "INCONCLUSIVE: see the output")],
        "p95": [("skipped", "NOT MEASURED: too few queries")],
        "p99": [],
        "mean": [],
    }
