"""Results of the functions: records that show themselves as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from retrieval_bench.capabilities import offered, service
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Dataset

if TYPE_CHECKING:  # a function that is called loads what it needs
    from pandas import DataFrame

    from retrieval_bench.comparison.comparison import Comparison
    from retrieval_bench.comparison.group import Recommendation
    from retrieval_bench.comparison.pairs.delta import Delta
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench.runs.evaluation import Evaluation
    from retrieval_bench.runs.run import Run


class AsTables:
    """Shows itself as tables: HTML in a notebook, text with ``print``; in one line as ``repr``.

    What is shown is what the command of the same name prints; ``details`` shows what it prints
    with ``-v``.
    """

    def _tables(self) -> list[Table]:
        """All there is."""
        raise NotImplementedError

    def _brief(self) -> list[Table]:
        return self._tables()

    def _line(self) -> str:
        return self._brief()[0].title

    @property
    def details(self) -> Shown:
        """The same with all tables and notes."""
        return Shown(self._line(), tuple(self._tables()))

    def __str__(self) -> str:
        from retrieval_bench.reports.render import terminal

        return terminal.plain(self._brief())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._line()}>"

    def _repr_html_(self) -> str:
        render = offered("show tables in a notebook") or _as_text
        return str(render(self._brief()))


def _as_text(tables: Sequence[Table]) -> str:
    from html import escape

    from retrieval_bench.reports.render import terminal

    return f"<pre>{escape(terminal.plain(tables))}</pre>"


@dataclass(frozen=True, eq=False, repr=False)
class Shown(AsTables):
    """Tables to be shown.

    Attributes:
        line: what they are about.
        tables: in their order.
    """

    line: str
    tables: tuple[Table, ...]

    def _tables(self) -> list[Table]:
        return list(self.tables)

    def _line(self) -> str:
        return self.line


VEGA_LITE = "application/vnd.vegalite.v5+json"
"""The type of a specification that notebooks know."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture that a notebook shows.

    Attributes:
        spec: its specification in the words of Vega-Lite, which Altair and vl-convert take, too.
        svg: the picture itself, as text.
    """

    spec: dict[str, Any]
    svg: str

    def save(self, path: str | Path) -> Path:
        """Write it to ``path``, which is replaced; gives the path.

        Raises:
            RecordError: it cannot be written.
        """
        from retrieval_bench.reports.file import write_page

        write_page(Path(path), self.svg, "picture")
        return Path(path)

    def __repr__(self) -> str:
        return f"<Picture of {len(self.svg):,} characters of SVG>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The specification for a notebook that draws it itself, and the picture for any other."""
        return {VEGA_LITE: self.spec, "image/svg+xml": self.svg, "text/plain": repr(self)}


Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, repr=False)
class Result(AsTables, Generic[Value]):
    """Result of a function, shown as tables.

    Attributes:
        value: the record of it, with every figure.
        as_dict: gives the document that the command of the same name prints as JSON.
    """

    value: Value
    as_dict: Callable[..., dict[str, Any]] = field(repr=False)
    _make_tables: Callable[[], list[Table]] = field(repr=False)

    def _tables(self) -> list[Table]:
        return self._make_tables()


@dataclass(frozen=True, eq=False, repr=False)
class BenchResult(AsTables):
    """Result of :func:`bench`: one run.

    Attributes:
        run: rankings, times and values as they were measured.
        summary: the content of ``summary.json``.
        evaluation: values per query and means.
        folder: where it was saved.
        finished: the run with what its parts buy.
    """

    finished: Finished

    @property
    def run(self) -> Run:
        """Rankings, times and values as they were measured."""
        return self.finished.run

    @property
    def summary(self) -> Mapping[str, Any]:
        """The content of ``summary.json``."""
        return self.run.summary.as_dict()

    @property
    def evaluation(self) -> Evaluation:
        """Values per query and means."""
        return self.run.evaluation

    @property
    def folder(self) -> Path | None:
        """The folder where the run was saved, None when it was not."""
        return self.run.folder

    def as_dict(self) -> dict[str, Any]:
        """The document of ``bench --format json``."""
        return self.finished.as_dict()

    def to_frame(self, what: str = "means") -> DataFrame:
        """Return the measurements as a pandas DataFrame, figures unrounded.

        Args:
            what: "means" (metrics and percentiles with intervals), "queries" (one value a query
                and metric, with text and tags where the dataset is found), "calls" (every measured
                call in ms) or "hits".

        Raises:
            ConfigError: ``what`` is something else.
            MissingDependencyError: pandas is not installed.
        """
        from retrieval_bench.reports import frames

        return frames.frame(what, [(self.run.name, self.run)])

    def plot(self, what: str = "latency") -> Picture:
        """A picture of the times.

        Args:
            what: "latency" (share of calls done within a time), "queries" (from fast to slow),
                "rounds" (drift) or "stages".

        Raises:
            ConfigError: ``what`` is something else, or nothing can be drawn.
            MissingDependencyError: vl-convert-python is not installed.
        """
        return _picture(what, service("draw a run")(self.run))

    def _tables(self) -> list[Table]:
        return self.finished.tables()

    def _brief(self) -> list[Table]:
        return _for_python([self.finished.brief()])


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(AsTables):
    """Result of :func:`compare`: runs side by side with verdicts.

    Attributes:
        comparison: all figures, dataset by dataset.
        runs: the compared runs.
        deltas: every pair on every metric.
        recommendations: which system to take on each dataset, and why.
    """

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
        """The system to take on each dataset, and why."""
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
        written = service("write a report")(self.comparison, Path(path), named, with_text=with_text)
        return Path(written.path)

    def as_dict(self) -> dict[str, Any]:
        """The document of ``compare --format json``."""
        from retrieval_bench.comparison.compared import Compared

        return Compared(self.comparison).as_dict()

    def to_frame(self, what: str = "means") -> DataFrame:
        """Return the measurements as a pandas DataFrame, figures unrounded.

        Args:
            what: "means" (metrics and percentiles with intervals), "pairs" (differences with p and
                verdict; where nothing is judged, overlap and RBO), "queries" (one value a system,
                query and metric, with text and tags where the dataset is found), "calls" (every
                measured call in ms) or "hits".

        Raises:
            ConfigError: ``what`` is something else.
            MissingDependencyError: pandas is not installed.
        """
        from retrieval_bench.reports import frames

        groups = self.comparison.groups
        named = [pair for group in groups for pair in zip(group.names, group.runs, strict=True)]
        return frames.frame(what, named, pairs=lambda: frames.pairs(groups))

    def plot(self, what: str = "pareto") -> Picture:
        """A picture of the systems.

        Args:
            what: "pareto" (quality against time), "quality" (metric by metric) or "latency"; of
                several datasets the first.

        Raises:
            ConfigError: ``what`` is something else, or nothing can be drawn.
            MissingDependencyError: vl-convert-python is not installed.
        """
        group, answer = self.comparison.groups[0], self.recommendations[0]
        return _picture(
            what,
            {
                "pareto": lambda: service("draw quality against time")(group, answer.leaders),
                "quality": lambda: service("draw quality metric by metric")(group),
                "latency": lambda: service("draw times side by side")(group.names, group.runs),
            },
        )

    def _tables(self) -> list[Table]:
        from retrieval_bench.reports.tables.understand.comparison import comparison_tables

        return comparison_tables(self.comparison)

    def _brief(self) -> list[Table]:
        from retrieval_bench.reports.tables.brief import comparison_brief

        return _for_python(comparison_brief(self.comparison))

    def _line(self) -> str:
        return " ".join(answer.sentence for answer in self.recommendations)


def _for_python(tables: Sequence[Table]) -> list[Table]:
    """``tables`` with what stands for ``-v`` in Python."""
    from retrieval_bench.reports.render.table import Note, NoteKind, kind_of

    *first, last = [
        replace(table, notes=[n for n in table.notes if kind_of(n) is not NoteKind.MORE])
        for table in tables
    ]
    return [*first, last.with_notes([Note(".details shows all there is.", NoteKind.MORE)])]


def _picture(what: str, pictures: Mapping[str, Callable[[], dict[str, Any] | None]]) -> Picture:
    """The one of ``pictures`` that ``what`` names; no other is drawn."""
    spec = pictures[what]() if what in pictures else None
    if spec is None:
        raise ConfigError(
            f"no picture of {what!r}",
            kind="unknown-name",
            accepted=near_names(what, list(pictures)),
            fix="name one of them; pictures of times take measured calls",
        )
    return Picture(spec, service("draw")(spec))


def run_of(given: Any) -> Run:
    """The run that a result holds, or that lies in a folder."""
    from retrieval_bench.runs.find import find_run
    from retrieval_bench.runs.records import read_run
    from retrieval_bench.runs.run import Run

    if isinstance(given, BenchResult):
        return given.run
    return given if isinstance(given, Run) else read_run(find_run(given))
