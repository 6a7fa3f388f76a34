"""Functions for Python users: runs that were made elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.api.results import AsTables, Result
from retrieval_bench.core.types import EMPTY, Dataset, Qrels

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.metrics.names import Param
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench.runs.evaluation import Evaluation
    from retrieval_bench_score.audit import Audit
    from retrieval_bench_score.conventions import Duplicates, Missing
    from retrieval_bench_score.scorecard import ScoreCard


@dataclass(frozen=True, eq=False, repr=False)
class ScoreResult(AsTables):
    """Result of :func:`evaluate`: the means of one run, shown as tables.

    Attributes:
        card: every figure, with counts and warnings.
        means: metric name -> mean.
        evaluation: values per query, and means with intervals.
    """

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
        return (self.card.with_queries() if per_query else self.card).as_dict()

    def _tables(self) -> list[Table]:
        from retrieval_bench_score.tables.score import score_tables

        return score_tables(self.card)


def evaluate(
    run: str | Path | Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]],
    judged_by: str | Path | Qrels | Dataset,
    *,
    metrics: Sequence[str] = (),
    convention: str = "trec",
    dev_ids: Collection[str] | None = None,
    missing: Missing | None = None,
    also: Mapping[str, Param] = EMPTY,
    repeats: Duplicates | None = None,
    self_hits: str | None = None,
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
        missing: ``"zero"`` or ``"left out"``: what a query counts that the run does not have; None
            = as the convention has it.
        also: parameters of every metric that knows them, such as ``{"rel": 2, "depth": 1000,
            "judged_only": True}`` (trec_eval -l, -M and -J).
        repeats: ``"first"``, ``"counted again"`` or ``"error"``: what a document counts that a
            ranking has more than once; None = as the convention has it.
        self_hits: ``"drop"`` leaves out hits with the id of their query, as BEIR does; None = as
            the dataset has it, or keep.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    from retrieval_bench_score import score as scoring
    from retrieval_bench_score.scorecard import Truth

    return ScoreResult(
        scoring.evaluate(
            run,
            partial(Truth.needed, judged_by, self_hits=self_hits),
            metrics=metrics,
            rules=convention,
            dev_ids=dev_ids,
            missing=missing,
            also=also,
            repeats=repeats,
        )
    )


def audit(
    runs: Sequence[str | Path],
    judged_by: str | Path | Qrels | Dataset,
    *,
    conventions: Sequence[str] = (),
    k: int = 10,
    self_hits: str | None = None,
) -> Result[Audit]:
    """Say whether the order of systems depends on the convention.

    Args:
        runs: files or folders of runs.
        judged_by, self_hits: as in :func:`evaluate`.
        conventions: the first is what the others are compared with; empty = all, trec first.
        k: cut-off where a convention has none of its own.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    from retrieval_bench_score import score as scoring
    from retrieval_bench_score.scorecard import Truth
    from retrieval_bench_score.tables.audit import audit_tables

    truth = partial(Truth.needed, judged_by, self_hits=self_hits)
    value = scoring.audit_runs(runs, truth, conventions=conventions, k=k)
    return Result(value, value.as_dict, lambda: audit_tables(value))
