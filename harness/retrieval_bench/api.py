"""The same work from Python: what notebooks and scripts import from `retrieval_bench`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.comparison.analysis import analyse
from retrieval_bench.comparison.comparison import Comparison, compare_runs
from retrieval_bench.comparison.recommendation import Recommendation, recommend
from retrieval_bench.comparison.verdicts import Delta
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset, Qrels
from retrieval_bench.data import load_dataset
from retrieval_bench.experiment.sessions import prepared
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import conventions
from retrieval_bench.reports.page import report_page
from retrieval_bench.reports.page.file import check_place, write_page
from retrieval_bench.reports.render import html, terminal
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables import run as tables
from retrieval_bench.reports.tables.comparison import comparison_tables
from retrieval_bench.reports.tables.score import score_tables
from retrieval_bench.reports.tables.tuning import tuning_tables
from retrieval_bench.runs.dataset import datasets_of
from retrieval_bench.runs.evaluation import Evaluation
from retrieval_bench.runs.foreign import read_rankings
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run
from retrieval_bench.scoring.scorecard import ScoreCard, Truth, score_file, score_mapping
from retrieval_bench.stats.power import MARGIN
from retrieval_bench.tuning import Tuning
from retrieval_bench.tuning import tune as run_tuning

__all__ = [
    "BenchResult",
    "ComparisonResult",
    "ScoreResult",
    "TuneResult",
    "bench",
    "compare",
    "evaluate",
    "load_dataset",
    "tune",
]


class _Shown:
    """Shows itself as a table: HTML in a notebook, text with ``print``."""

    def _tables(self) -> list[Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return terminal.plain(self._tables())

    def _repr_html_(self) -> str:
        return html.render(self._tables())


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
        return tables.run_tables(self.run)


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
        return recommend(self.comparison)

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
        place = Path(path)
        check_place(place)
        named = [dataset] if isinstance(dataset, str | Path | Dataset) else dataset
        sources = datasets_of([group.runs for group in self.comparison.groups], named)
        write_page(place, report_page(analyse(self.comparison, sources), with_text=with_text))
        return place

    def _tables(self) -> list[Table]:
        return comparison_tables(self.comparison)


@dataclass(frozen=True, eq=False)
class TuneResult(_Shown):
    """What :func:`tune` gives: which parameters, and what they are worth on other queries."""

    found: Tuning

    @property
    def recommended(self) -> dict[str, Any]:
        """The retriever with the values of the winner, as :func:`bench` takes it."""
        config = self.found.recommended
        return {"name": config.name, "target": config.target, "params": dict(config.params)}

    @property
    def delta(self) -> Delta:
        """Tuned minus default on held-out queries, with a verdict."""
        return self.found.delta

    def as_dict(self) -> dict[str, Any]:
        """The document of ``tune --format json``."""
        return self.found.as_dict()

    def _tables(self) -> list[Table]:
        return tuning_tables(self.found)


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


def bench(
    retriever: Any,
    dataset: str | Path | Dataset = "science-mini",
    *,
    split: str = "test",
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: Protocol | None = None,
    out: str | Path | None = None,
    save: bool = False,
    reporter: Reporter | None = None,
) -> BenchResult:
    """Measure one retriever on one dataset.

    Args:
        retriever: name of a config, YAML file, inline mapping, a :class:`Retriever`,
            LangChain retriever or runnable, or function (query, k).
        dataset: name, folder, or a :class:`Dataset`.
        split: of a dataset that is given by name or folder.
        k: hits asked for per query.
        metrics: such as ``["nDCG@10", "R@100"]``; empty = the defaults for k.
        overrides: ``dotted.path=value`` into the parameters.
        protocol: how often to call; None = warm-up, then 1,000 calls.
        out: folder to save the run in; implies ``save``.
        save: write the run to a new folder under ``results/runs``.

    Returns:
        The run; in a notebook it shows itself as a table, and ``print`` shows the same as text.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    experiment = prepared(
        [retriever],
        dataset,
        split=split,
        k=k,
        metrics=metrics,
        overrides=overrides,
        protocol=protocol,
        out=Path(out) if out is not None else None,
        save=save or out is not None,
    )
    return BenchResult(experiment.run(reporter, save=save or out is not None)[0])


def compare(
    systems: Sequence[Any],
    dataset: str | Path | Dataset | Sequence[str | Path | Dataset] | None = None,
    *,
    split: str = "test",
    k: int = 10,
    metrics: Sequence[str] = (),
    protocol: Protocol | None = None,
    save: bool = False,
    reporter: Reporter | None = None,
    margin: float = MARGIN,
    baseline: str | None = None,
    tests: Sequence[str] = (),
) -> ComparisonResult:
    """Put two or more systems side by side, with paired differences and verdicts.

    Args:
        systems: without ``dataset``: runs, or folders of saved runs; with it: retrievers as in
            :func:`bench`, which are measured together, alternating query by query.
        dataset: one or several, as in :func:`bench`.
        margin: up to this absolute difference of means two systems are as good as equal.
        baseline: compare all others with this system only; None = every pair.
        tests: further tests beside the randomisation test: "t", "wilcoxon".

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    if dataset is None:
        runs = [_run(system) for system in systems]
    else:
        if len(systems) < 2:
            raise ConfigError(
                f"{len(systems)} retriever to compare",
                accepted="two or more",
                fix="use bench for a single one",
            )
        several = [dataset] if isinstance(dataset, str | Path | Dataset) else dataset
        runs = []
        for data in several:
            experiment = prepared(
                systems, data, split=split, k=k, metrics=metrics, protocol=protocol, save=save
            )
            runs += experiment.run(reporter, save=save)
    return ComparisonResult(compare_runs(runs, margin=margin, baseline=baseline, tests=tests))


def tune(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path | Dataset = "science-mini",
    **asked: Any,
) -> TuneResult:
    """Choose parameters on some queries, and say what they are worth on others.

    Args:
        asked: as of :func:`.tune`: split, dev, folds, repeats, k, metric, grid,
            overrides, sample, seed, margin, out, reporter.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    return TuneResult(run_tuning(retriever, dataset, **asked))


def evaluate(
    run: str | Path | Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]],
    judged_by: str | Path | Qrels | Dataset,
    *,
    metrics: Sequence[str] = (),
    convention: str = "trec",
    dev_ids: Collection[str] | None = None,
) -> ScoreResult:
    """Score a run that was made elsewhere.

    Args:
        run: a file (TREC text, BEIR table, JSON, submission lines), the folder of a run, or
            query id -> document id -> score, or query id -> document ids, best first.
        judged_by: a file of judgements, query id -> document id -> grade, or a dataset or its
            folder; a query with nothing in it is one that no document answers.
        metrics: such as ``["nDCG@10", "AP"]``; empty = what the convention shows.
        convention: whose definitions.
        dev_ids: queries to choose an abstention threshold on; None draws half of them, seeded.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    rules = conventions.convention(convention)
    rules.parse(metrics)
    truth = Truth.of(judged_by)
    if isinstance(run, str | Path):
        return ScoreResult(score_file(read_rankings(run), truth, metrics, rules, dev_ids=dev_ids))
    return ScoreResult(score_mapping(run, truth, metrics, rules, dev_ids=dev_ids))


def _run(given: Any) -> Run:
    if isinstance(given, BenchResult):
        return given.run
    return given if isinstance(given, Run) else read_run(Path(given))
