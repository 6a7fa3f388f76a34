"""What the functions give: records that show themselves as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from retrieval_bench.comparison.analysis import comparison_document
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.recommendation import Recommendation
from retrieval_bench.comparison.verdicts import Delta
from retrieval_bench.core.types import Dataset
from retrieval_bench.reports.page.report import write_report
from retrieval_bench.reports.render import html, terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables import run as run_tables
from retrieval_bench.reports.tables.comparison import comparison_tables
from retrieval_bench.reports.tables.score import score_tables
from retrieval_bench.reports.tables.tuning import tuning_tables
from retrieval_bench.runs.evaluation import Evaluation
from retrieval_bench.runs.find import find_run
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run
from retrieval_bench.scoring.scorecard import ScoreCard
from retrieval_bench.tuning import Tuning


class _Shown:
    """Shows itself as a table: HTML in a notebook, text with ``print``."""

    def _tables(self) -> list[Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return terminal.plain(self._tables())

    def _repr_html_(self) -> str:
        return html.render(self._tables())


Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Result(_Shown, Generic[Value]):
    """What came of a function, shown as tables.

    Attributes:
        value: the record of it, with every figure.
        as_dict: gives the document that the command of the same name prints as JSON.
    """

    value: Value
    as_dict: Callable[..., dict[str, Any]] = field(repr=False)
    _make_tables: Callable[[], list[Table]] = field(repr=False)

    def _tables(self) -> list[Table]:
        return self._make_tables()


@dataclass(frozen=True, eq=False)
class BenchResult(_Shown):
    """What :func:`bench` gives: the run, shown as a table."""

    run: Run

    @property
    def summary(self) -> Mapping[str, Any]:
        """The content of ``summary.json``."""
        return self.run.summary

    @property
    def evaluation(self) -> Evaluation:
        """Values per query and means."""
        return self.run.evaluation

    @property
    def folder(self) -> Path | None:
        """Where the run was saved, None when it was not."""
        return self.run.folder

    def _tables(self) -> list[Table]:
        return run_tables.run_tables(self.run)


@dataclass(frozen=True, eq=False)
class ComparisonResult(_Shown):
    """What :func:`compare` gives: runs side by side with verdicts, shown as tables."""

    comparison: Comparison

    @property
    def runs(self) -> tuple[Run, ...]:
        """The compared runs."""
        return self.comparison.runs

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """Every pair on every metric."""
        return self.comparison.deltas

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """Which system to take on each dataset, and why."""
        return self.comparison.recommendations

    def write_report(
        self,
        path: str | Path,
        dataset: str | Path | Dataset | Sequence[str | Path | Dataset] = (),
        *,
        with_text: bool = True,
    ) -> Path:
        """Everything as one HTML file, which replaces an earlier one; gives its path.

        Args:
            dataset: where those of the runs are, unless the runs say it; without one the page has
                no slices and no single queries.
            with_text: False leaves out the texts of queries and documents.

        Raises:
            HarnessError: it cannot be written, or ``dataset`` is not that of the runs.
        """
        named = [dataset] if isinstance(dataset, str | Path | Dataset) else dataset
        return write_report(self.comparison, Path(path), named, with_text=with_text).path

    def as_dict(self) -> dict[str, Any]:
        """The document of ``compare --format json``."""
        return comparison_document(self.comparison)

    def _tables(self) -> list[Table]:
        return comparison_tables(self.comparison)


@dataclass(frozen=True, eq=False)
class TuneResult(_Shown):
    """What :func:`tune` gives: which parameters, and what they are worth on other queries."""

    tuning: Tuning

    @property
    def recommended(self) -> dict[str, Any]:
        """The retriever with the values of the winner, as :func:`bench` takes it."""
        config = self.tuning.recommended
        return {"name": config.name, "target": config.target, "params": dict(config.params)}

    @property
    def delta(self) -> Delta:
        """Tuned minus default on held-out queries, with a verdict."""
        return self.tuning.delta

    def as_dict(self) -> dict[str, Any]:
        """The document of ``tune --format json``."""
        return self.tuning.as_dict()

    def _tables(self) -> list[Table]:
        return tuning_tables(self.tuning)


@dataclass(frozen=True, eq=False)
class ScoreResult(_Shown):
    """What :func:`evaluate` gives: the means of one run, shown as tables."""

    card: ScoreCard

    @property
    def means(self) -> dict[str, float]:
        """Metric name -> mean."""
        evaluation = self.card.scored.evaluation
        return {
            str(metric): mean.mean
            for metric, mean in zip(evaluation.metrics, evaluation.means, strict=True)
        }

    @property
    def evaluation(self) -> Evaluation:
        """Values per query and means with intervals."""
        return self.card.scored.evaluation

    def as_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The document of ``evaluate --format json``."""
        return self.card.as_dict(per_query=per_query)

    def _tables(self) -> list[Table]:
        return score_tables(self.card)


def run_of(given: Any) -> Run:
    """The run that a result holds, or that lies in a folder."""
    if isinstance(given, BenchResult):
        return given.run
    return given if isinstance(given, Run) else read_run(find_run(given))
