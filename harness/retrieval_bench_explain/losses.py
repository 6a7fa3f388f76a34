"""What a retriever loses between an exact form of itself and what is served, step by step.

Each step is measured together with all those before it, on the same queries, and held against the
step before: differences of neighbours, so that they add up to the whole. Holm's family are the
steps; the whole is tested by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.retriever import Rung
from retrieval_bench.experiment.candidate import unused_indexes, with_legs
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.power import check_margin
from retrieval_bench.stats.recall import Recall
from retrieval_bench.stats.resampling import RESAMPLES


class Seen(StrEnum):
    """What is known of a step."""

    MEASURED = "measured"
    SAME = "same"
    UNKNOWN = "cannot be told apart"


@dataclass(frozen=True, slots=True)
class LossStep(Documented):
    """One step on the way from an exact search to what is served.

    Attributes:
        name: ``exact`` of the first; further ones are those of the retriever, such as tokens,
            dimensions, int8, index, filter, depth.
        what: it does here, in words.
        state: measured; the same as in the exact search; or not to be told apart from it.
        means: of each metric with this step and all before it; empty where nothing was measured.
        differences: of each metric, beside the measured step before; empty of the first.
        changed: queries whose first k hits are not those of that step.
        found: how much it finds of the first k of the exact search, and for how many queries 0.9
            of it; of the first none. Which of equal scores come first counts.
        p50_ms: of a call.
        index_bytes: of vectors and index; None where nobody says.
    """

    name: str
    what: str
    state: Seen
    means: Mapping[str, float | None] = field(default_factory=dict)
    differences: tuple[Delta, ...] = ()
    changed: int | None = None
    found: Recall | None = None
    p50_ms: float | None = None
    index_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Losses(Documented):
    """What each step costs.

    Attributes:
        retriever: its name.
        dataset: its name.
        k: hits asked for.
        margin: up to this absolute difference a step is as good as none.
        n: queries.
        metrics: by what; the first one leads.
        steps: in their order.
        whole: of each metric, what is served beside the exact search; empty where they are one.
        warnings: of what is served: what a reader of the figures should know.
    """

    retriever: str
    dataset: str
    k: int
    margin: float
    n: int
    metrics: tuple[Metric, ...]
    steps: tuple[LossStep, ...]
    whole: tuple[Delta, ...]
    warnings: tuple[str, ...] = ()

    @property
    def measured(self) -> list[LossStep]:
        """The steps that were measured, the exact search first."""
        return [step for step in self.steps if step.state is Seen.MEASURED]


def losses(
    retriever: str, rungs: Sequence[Rung], runs: Sequence[Run], *, margin: float = MARGIN
) -> Losses:
    """What each of ``rungs`` costs, by all metrics of ``runs``.

    Args:
        runs: of those with a retriever, in their order, measured together.

    Raises:
        ConfigError: a margin that is none.
    """
    check_margin(margin)
    first, last = runs[0], len(runs) - 1
    names = [rung.name for rung in rungs if rung.retriever is not None]
    dataset, metrics = first.summary.dataset.name, first.evaluation.metrics
    judge, rules = PairJudge.of_runs(dataset, runs, names, metrics), Rules(margin, (), RESAMPLES)
    deltas = judge.judged([(at, at + 1) for at in range(last)], rules)
    steps: list[LossStep] = []
    for rung in rungs:
        if rung.retriever is None:
            state = Seen.SAME if rung.known else Seen.UNKNOWN
            steps.append(LossStep(rung.name, rung.what, state))
            continue
        at = names.index(rung.name)
        run = runs[at]
        steps.append(
            LossStep(
                rung.name,
                rung.what,
                Seen.MEASURED,
                {name: mean.known for name, mean in run.evaluation.by_metric.items()},
                tuple(deltas[(at - 1) * len(metrics) : at * len(metrics)]) if at else (),
                _changed(runs[at - 1], run) if at else None,
                _found(first, run) if at else None,
                run.summary.latency_ms.at("p50").value,
                _index_bytes(run.manifest["retriever"]["facts"]),
            )
        )
    whole = tuple(judge.judged([(0, last)], rules)) if last else ()
    told = [*runs[-1].summary.warnings]
    facts = runs[-1].manifest["retriever"]["facts"]
    told += [f"The index is {used}." for used in unused_indexes(facts)]
    n = len(first.evaluation.query_ids)
    return Losses(
        retriever, dataset, first.summary.k, margin, n, metrics, tuple(steps), whole, tuple(told)
    )


def _changed(before: Run, after: Run) -> int:
    pairs = zip(_hits(before), _hits(after), strict=True)
    return sum(one != other for one, other in pairs)


def _found(exact: Run, served: Run) -> Recall:
    """How much of the first k of ``exact`` is among those of ``served``, where there are any."""
    pairs = zip(served.rankings.query_ids, map(set, _hits(exact)), _hits(served), strict=True)
    counted = set(exact.evaluation.query_ids)
    recalls = {q: len(own & {*hits}) / len(own) for q, own, hits in pairs if own and q in counted}
    clusters = Clusters.of_queries(served.clusters, [*recalls])
    return Recall.of([*recalls.values()], clusters=clusters)


def _hits(run: Run) -> list[list[str]]:
    """The first k of each query, by their ids."""
    ids, rankings = run.rankings.doc_ids, run.rankings.ranking[:, : run.summary.k]
    return [[ids[place] for place in row if place >= 0] for row in rankings.tolist()]


def _index_bytes(facts: Mapping[str, Any]) -> int | None:
    """As the retriever says, or the sum over its legs that do."""
    known = [one["index_bytes"] for one in with_legs(facts) if "index_bytes" in one]
    return sum(known) if known else None
