"""Output on a measured run, for the command and for Python: worked out once, shown,
and written beside its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_bench.capabilities import keys_added_to, offered
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Dataset
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.render.table import NOTHING, Findings, Table
from retrieval_bench.reports.tables.brief import run_brief
from retrieval_bench.reports.tables.measure.run import run_tables
from retrieval_bench.runs.records import TEXT, add_files
from retrieval_bench.runs.run import Run


@dataclass(frozen=True, slots=True)
class Finished(Documented):
    """A run, and what its parts buy.

    Attributes:
        run: rankings, times and values as they were measured.
        findings: on its parts, by a package.
    """

    KEYS = "*run.summary +"

    run: Run
    findings: Findings = NOTHING

    @staticmethod
    def added() -> Sequence[Any]:
        """Records of packages, made of a run, whose keys stand in its document."""
        return keys_added_to("run")

    def brief(self) -> Table:
        """The answer, and what changes how it must be read."""
        return run_brief(self.run, self.findings)

    def tables(self) -> list[Table]:
        """All there is."""
        return run_tables(self.run, self.findings)

    def further(self, *, full: bool = True) -> list[Table]:
        """Tables of what else was measured, all or those of the short output."""
        return []

    @property
    def stopped(self) -> bool:
        """True if what else was measured was interrupted."""
        return False


def finish(runs: Sequence[Run], data: Mapping[str, Dataset]) -> list[Finished]:
    """Find what the parts of each run buy, where a package can; of one asked until decided nothing
    is said.

    Args:
        data: fingerprint -> dataset that was measured.
    """
    explain = offered("explain a run")
    return [
        Finished(run)
        if explain is None or run.asked is not None
        else Finished(run, explain(run, data[run.summary.dataset.fingerprint]))
        for run in runs
    ]


def keep_text(done: Sequence[Finished]) -> None:
    """Put all tables as text into the folder of each run that has one.

    Raises:
        RecordError: it cannot be written; the figures are there.
    """
    runs = [(finished, finished.run.folder) for finished in done]
    texts = [(folder, terminal.plain(finished.tables())) for finished, folder in runs if folder]
    for folder, text in texts:
        add_files(folder, {TEXT: text})
