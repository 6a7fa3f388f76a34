"""A run with its starts from nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrieval_bench.reports.finish import Finished
from retrieval_bench.reports.render.table import Table
from retrieval_bench_fresh.cold import ColdStart
from retrieval_bench_fresh.tables.cold import cold_brief, cold_tables


@dataclass(frozen=True, slots=True)
class StartedCold(Finished):
    """A run, what its parts buy, and its starts from nothing.

    Attributes:
        cold: the content of ``cold.json``.
    """

    KEYS = f"{Finished.KEYS} cold"

    cold: ColdStart = field(kw_only=True)

    def further(self, *, full: bool = True) -> list[Table]:
        """Tables of the starts."""
        return (cold_tables if full else cold_brief)(self.cold)

    @property
    def stopped(self) -> bool:
        """True if they were interrupted."""
        return self.cold.interrupted
