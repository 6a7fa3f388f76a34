"""Gates as a JUnit report, which every CI service shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from xml.etree import ElementTree

from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.table import one_line
from retrieval_bench_duet.result import WORDS


class Gate(Protocol):
    """Gate that was judged: a metric or a percentile."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def reason(self) -> str: ...


def render(suite: str, gates: Sequence[tuple[str, Gate]]) -> str:
    """One test case a gate: failed, skipped where nothing could be decided, or passed.

    Args:
        suite: what was judged.
        gates: each with its name.
    """
    failed = [name for name, gate in gates if gate.verdict is Verdict.WORSE]
    open_ = [n for n, gate in gates if gate.verdict.open or gate.verdict is Verdict.MISSING]
    root = ElementTree.Element(
        "testsuite",
        name=one_line(suite),
        tests=str(len(gates)),
        failures=str(len(failed)),
        skipped=str(len(open_)),
    )
    for name, gate in gates:
        case = ElementTree.SubElement(root, "testcase", classname=one_line(suite), name=name)
        if name in failed or name in open_:
            message = one_line(f"{WORDS[gate.verdict]}: {gate.reason or 'see the output'}")
            kind = "failure" if name in failed else "skipped"
            ElementTree.SubElement(case, kind, message=message)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
