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
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import found_at
from retrieval_bench.experiment.candidate import Candidate, close_all
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.planned_run import PlannedRun, Trial
from retrieval_bench.experiment.preparation import Problems, prepare
from retrieval_bench.experiment.until import asking_once
from retrieval_bench.measure.calls import OK
from retrieval_bench.runs.run import Run

FEW = 20
"""Documents that a dry run indexes."""


def prepare_several(
    retrievers: Sequence[Any],
    datasets: Sequence[str | Path | Dataset],
    check: Callable[[Experiment], None],
    **options: Any,
) -> list[Experiment]:
    """One experiment for each dataset; the faults of all of them at once.

    Args:
        check: raises what would be refused after the measurement.
        options: as of :func:`.prepare`.

    Raises:
        HarnessError: everything that is wrong with them, or a dataset that is given twice.
    """
    named = [dataset for dataset in datasets if not isinstance(dataset, Dataset)]
    check_distinct([found_at(dataset) for dataset in named], "dataset")
    problems, experiments = Problems(), list[Experiment]()
    for dataset in datasets:
        with problems.kept():
            experiments.append(prepare(retrievers, dataset, **options))
    try:
        problems.raise_if_any()
        for experiment in experiments:
            check(experiment)
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
    if data.documents is not None and not _elsewhere(candidate.retriever):
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


def _elsewhere(retriever: Retriever) -> bool:
    """Return whether something that it asks holds a corpus of its own, of all documents."""
    inside = [getattr(retriever, name, None) for name in ("inner", "retriever")]
    own = (part for part in inside if isinstance(part, Retriever) and part is not retriever)
    parts = [*retriever.named_legs().values(), *own]
    return retriever.capabilities.external or any(map(_elsewhere, parts))


def _not_tried(experiment: Experiment, trials: Sequence[Trial]) -> list[str]:
    """Say what a plan with ``trials`` leaves open."""
    asked = {trial.retriever for trial in trials}
    left = [c.name for c in experiment.candidates if c.name not in asked]
    messages = [f"{name} was built, not asked: whether it answers" for name in left]
    total = experiment.dataset.n_documents
    if any(trial.documents is not None and trial.documents < total for trial in trials):
        messages.append(f"whether all {counted(total, 'document')} can be indexed")
    return [*messages, "where the run would be saved"]
