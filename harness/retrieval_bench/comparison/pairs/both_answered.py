"""What is left of a difference where one of the two systems failed on some queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.calls import OK
from retrieval_bench.runs.run import Run


@dataclass(frozen=True, slots=True)
class Answered(Documented):
    """A paired difference without the queries that failed on either side.

    Attributes:
        n: queries that both answered.
        failed_a, failed_b: queries that each of them failed on.
        difference, ci, level, p: as those of :class:`.Delta`; None where there is no such query,
            the interval also where the mean is geometric.
        verdict: what these queries say.
    """

    n: int
    failed_a: int
    failed_b: int
    difference: float | None = None
    ci: tuple[float, float] | None = None
    level: float | None = None
    p: float | None = None
    verdict: Verdict = Verdict.MISSING

    def reason(self, a: str, b: str) -> str:
        """Return why a verdict over all queries does not stand: it rests on those that failed."""
        sides = ((a, self.failed_a), (b, self.failed_b))
        failed = " and ".join(f"{name} failed on {counted(n, 'query')}" for name, n in sides if n)
        if self.difference is None:
            return f"{failed}, and no query was answered by both"
        return (
            f"{failed}; on the {counted(self.n, 'query')} that both answered the difference is "
            f"{signed(self.difference)}"
        )


def answered_queries(run: Run) -> NDArray[np.bool_]:
    """Return which evaluated queries were answered, in the order of their ids."""
    status = dict(zip(run.rankings.query_ids, run.status, strict=True))
    return np.array([status.get(query, OK) == OK for query in sorted(run.evaluation.query_ids)])
