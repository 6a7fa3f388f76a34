from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet import junit
from retrieval_bench_duet.commands import duet
from retrieval_bench_duet.result import DuetDataset, DuetResult, GateResult, SideFacts


@dataclass(frozen=True)
class Gate:
    verdict: Verdict
    reason: str = ""


@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.NOT_COMPARABLE])
def test_a_duet_that_was_not_measured_is_skipped_whatever_its_gates_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict
) -> None:
    side = SideFacts("x", "x", "", None, [], None, {})
    gates = (GateResult("p50", Verdict.EQUIVALENT, 0.05, 0.01),)
    about = DuetDataset(None, None, "test", 10)
    found = DuetResult(side, side, about, verdict, gates, reason="side b fails more often")
    monkeypatch.setattr(duet, "show", lambda *_: None)
    path = tmp_path / "junit.xml"
    told: dict[str, Any] = dict.fromkeys(
        ("retriever", "rev_a", "rev_b", "extras", "setup", "dataset", "split", "k", "out")
    )
    told |= {"sides": ["a", "b"], "a": None, "b": None, "set": [], "set_a": [], "set_b": []}
    told |= {"junit": path, "quiet": True, "verbose": False, "format": "text"}
    protocol: Any = None
    options = argparse.Namespace(**told)
    assert duet.played(options, lambda *_, **__: found, protocol) == 4
    cases = ElementTree.fromstring(path.read_text("utf-8"))
    assert [case.attrib["name"] for case in cases if len(case)] == ["duet"]
    assert cases[-1][0].attrib["message"] == "NOT MEASURED: side b fails more often"


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
