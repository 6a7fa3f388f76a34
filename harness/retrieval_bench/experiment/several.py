"""The same retrievers on several datasets: all of it checked first, then planned or measured one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError, RecordError, check_distinct, counted
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import found_at
from retrieval_bench.data.needs_judgements import require_all_judged, require_judged
from retrieval_bench.experiment.candidate import Candidate, close_all
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.planned_run import PlannedRun, Trial
from retrieval_bench.experiment.preparation import Problems, prepare
from retrieval_bench.experiment.until import Target, Until, asking_once, target_of
from retrieval_bench.measure.calls import OK
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.sequential import Watch

FEW = 20
"""Documents that a dry run indexes."""


def prepare_several(
    retrievers: Sequence[Any],
    datasets: Sequence[str | Path | Dataset],
    check: Callable[[Experiment], None],
    *,
    until: str | None = None,
    watch: Callable[[Sequence[str], Metric, int | None], Watch] | None = None,
    protocol: Protocol | None = None,
    **options: Any,
) -> list[Experiment]:
    """One experiment for each dataset; the faults of all of them at once.

    Args:
        check: raises what would be refused after the measurement.
        until: a :class:`.Target`: each query is asked once, until enough is known of it.
        watch: with ``until``, makes what decides that; of the names of the systems, the first
            metric, and the queries whose mean is meant (None = of queries like these).
        protocol, options: as of :func:`.prepare`.

    Raises:
        HarnessError: everything that is wrong with them, or a dataset that is given twice.
    """
    target = None if until is None else target_of(until)
    if target is not None:
        protocol = asking_once(protocol or Protocol())
    named = [dataset for dataset in datasets if not isinstance(dataset, Dataset)]
    check_distinct([found_at(dataset) for dataset in named], "dataset")
    problems, experiments = Problems(), list[Experiment]()
    for dataset in datasets:
        with problems.kept():
            experiments.append(prepare(retrievers, dataset, protocol=protocol, **options))
    try:
        problems.raise_if_any()
        for at, experiment in enumerate(experiments):
            if target is not None:
                require_judged(experiment.dataset, "--until-decided")
                require_all_judged(experiment.dataset, "--until-decided")
            check(experiment)
            if target is not None and watch is not None:
                total = len(experiment.counted) if target is Target.SPLIT else None
                see = watch(experiment.names, experiment.metrics[0], total)
                _check_independent(experiment.dataset, target)
                experiments[at] = experiment.ending(Until(target, see))
    except BaseException:
        for experiment in experiments:
            experiment.close()
        raise
    return experiments


def run_each(
    experiments: Sequence[Experiment], reporter: Reporter | None = None, *, save: bool = True
) -> Generator[list[Run]]:
    """Measure one after the other, and give the runs of each; an interrupted one is the last.

    Raises:
        RecordError: runs cannot be saved; ``runs`` has them behind those that were measured before.
    """
    waiting, measured = list(experiments), list[Run]()
    try:
        while waiting and not any(run.interrupted for run in measured):
            try:
                runs = waiting.pop(0).run(reporter, save=save)
            except RecordError as problem:
                problem.runs = [*measured, *problem.runs] if problem.runs else ()
                raise
            measured += runs
            yield runs
    finally:
        close_all([candidate for item in waiting for candidate in item.candidates])


def _check_independent(dataset: Dataset, target: Target) -> None:
    """Raise where bets on queries like these would be on clusters; the mean of a split is that of
    these very queries, drawn one by one."""
    if dataset.cluster_key is not None and target is Target.POPULATION:
        raise ConfigError(
            f"--until-decided on {dataset.name!r}, whose queries come in clusters "
            f"(cluster_key: {dataset.cluster_key})",
            accepted="queries that are independent: a bet on each of a cluster would count one "
            "question several times",
            fix="measure without --until-decided, or ask for the mean of these very queries alone: "
            "--until-decided split",
        )


def planned(
    experiments: Sequence[Experiment], *, calls: bool, reporter: Reporter | None = None
) -> list[PlannedRun]:
    """The documents of ``--dry-run``: what each of ``experiments`` would do, once every retriever
    was asked one query; one that indexes does so with :data:`FEW` documents. All are closed.

    Args:
        calls: whether external retrievers, whose calls may cost, are asked.

    Raises:
        ConfigError: the call failed.
        HarnessError: the retriever cannot index, or broke the contract.
    """
    waiting = [candidate for experiment in experiments for candidate in experiment.candidates]
    plans = []
    try:
        for experiment in experiments:
            trials = []
            for candidate in experiment.candidates:
                if calls or not candidate.capabilities.external:
                    waiting.remove(candidate)  # the search closes it
                    trials.append(_tried(experiment, candidate, reporter))
            not_checked = _not_tried(experiment, trials)
            plans.append(replace(experiment.dry_run(), tried=trials, not_checked=not_checked))
    finally:
        close_all(waiting)
    return plans


def _tried(experiment: Experiment, candidate: Candidate, reporter: Reporter | None) -> Trial:
    data, external = experiment.dataset, candidate.capabilities.external
    if data.documents is not None and not external:
        data = replace(data, documents=list(islice(data.documents, FEW)))
    once = asking_once(experiment.protocol)
    small = replace(experiment, candidates=[candidate], dataset=data, protocol=once)
    searched = small.search(reporter, first=1)
    (status,), (ranking,) = searched.status, searched.rankings
    if status != OK or ranking is None:
        raise ConfigError(
            f"the first call failed: {status}",
            where=f"retriever {candidate.name!r}, query {experiment.queries[0].id!r}",
            accepted="an answer",
            fix="correct the retriever, or plan without calls: --no-calls",
        )
    return Trial(candidate.name, None if external else data.n_documents, len(ranking))


def _not_tried(experiment: Experiment, trials: Sequence[Trial]) -> list[str]:
    """Say what a plan with ``trials`` leaves open."""
    asked = {trial.retriever for trial in trials}
    left = [c.name for c in experiment.candidates if c.name not in asked]
    messages = [f"{name} was built, not asked: whether it answers" for name in left]
    total = experiment.dataset.n_documents
    if any(trial.documents is not None and trial.documents < total for trial in trials):
        messages.append(f"whether all {counted(total, 'document')} can be indexed")
    return [*messages, "where the run would be saved"]
