"""Tables of ``doctor``: each thing that was looked at, and what to run next."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import Table, next_step, result, warning
from retrieval_bench_doctor.doctor import Diagnosis


def doctor_tables(diagnosis: Diagnosis) -> list[Table]:
    """The answer, then a block for each check."""
    n = diagnosis.n_warnings
    answer = "Ready to measure." if not n else f"{counted(n, 'thing')} to know before you measure."
    if not diagnosis.answered:
        answer = "Not ready: the retriever answered no query."
    checks = [
        Table(
            check.subject, (), (), lead=[*map(result, check.facts), *map(warning, check.warnings)]
        )
        for check in diagnosis.checks
    ]
    checks[-1] = checks[-1].with_notes(
        [
            next_step(f"next:  {diagnosis.next}"),
            next_step("more:  retrieval-bench doctor --selftest (what a duet can see here, 2 min)"),
        ]
    )
    return [Table(answer, (), ()), *checks]
