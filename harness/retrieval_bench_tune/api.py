"""Functions for Python users: parameters chosen on some queries, reported on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.api.results import AsTables
from retrieval_bench.core.types import Dataset

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.comparison.pairs.delta import Delta
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench_tune.tuned import Tuning


@dataclass(frozen=True, eq=False, repr=False)
class TuneResult(AsTables):
    """Result of :func:`tune`: which parameters, and what they are worth on other queries.

    Attributes:
        tuning: every figure.
        recommended: the retriever with the values of the winner, as :func:`bench` takes it.
        delta: tuned minus default on held-out queries, with a verdict.
    """

    tuning: Tuning

    @property
    def recommended(self) -> dict[str, Any]:
        """The retriever with the values of the winner, as :func:`bench` takes it."""
        return self.tuning.inline

    @property
    def delta(self) -> Delta:
        """Tuned minus default on held-out queries, with a verdict."""
        return self.tuning.delta

    def as_dict(self) -> dict[str, Any]:
        """The document of ``tune --format json``."""
        return self.tuning.as_dict()

    def _tables(self) -> list[Table]:
        from retrieval_bench_tune.tables.tuning import tuning_tables

        return tuning_tables(self.tuning)


def tune(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path | Dataset = "science-mini",
    **options: Any,
) -> TuneResult:
    """Choose parameters on some queries, and say what they are worth on others.

    Args:
        retriever: whose parameters to choose: name of a config, YAML file, or inline mapping.
        dataset: as in :func:`bench`.
        options: as of :func:`.tune`: split, language, dev, folds, repeats, k, metric, grid,
            overrides, sample, seed, margin, price, out, reporter.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    from retrieval_bench.reports.progress_bar import in_notebook
    from retrieval_bench_tune.tune import tune as run_tuning

    reporter = in_notebook(options.pop("reporter", None))
    return TuneResult(run_tuning(retriever, dataset, reporter=reporter, **options))
