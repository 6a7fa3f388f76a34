"""A checked measurement that runs in this process, or in launches: fresh processes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import RecordError
from harness.experiment import Candidate, Experiment, Reporter
from harness.launches import LaunchSpec, run_launches
from harness.measure.protocol import Plan, Protocol
from harness.preparation import prepare
from harness.records import write_run
from harness.run import Run
from harness.summary import resummarize
from harness.types import Dataset, Query


@dataclass(slots=True)
class LaunchedExperiment:
    """An experiment (see :mod:`harness.experiment`) checked here and measured elsewhere."""

    checked: Experiment
    spec: LaunchSpec

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The retrievers."""
        return self.checked.candidates

    @property
    def dataset(self) -> Dataset:
        """The data."""
        return self.checked.dataset

    @property
    def queries(self) -> Sequence[Query]:
        """The queries that are run."""
        return self.checked.queries

    @property
    def protocol(self) -> Protocol:
        """Of the whole measurement."""
        return self.checked.protocol

    @property
    def plan(self) -> Plan:
        """How many calls each retriever gets in each launch."""
        return self.checked.plan

    def close(self) -> None:
        """Close what was built for checking."""
        self.checked.close()

    def run(self, reporter: Reporter | None = None, *, save: bool = True) -> list[Run]:
        """Measure in all launches, and save; one run for each retriever, in their order."""
        self.close()  # every launch builds its own; two would disturb each other
        runs = run_launches(self.spec, reporter, resummarize=resummarize)
        if not save:
            return runs
        try:
            return [write_run(run, self.checked.out) for run in runs]
        except RecordError as problem:
            problem.runs = runs
            raise


def prepared(
    retrievers: Sequence[Any],
    dataset: str | Path | Dataset,
    *,
    split: str = "test",
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: Protocol | None = None,
    out: Path | None = None,
    save: bool = True,
) -> Experiment | LaunchedExperiment:
    """As :func:`harness.preparation.prepare`; with launches in the protocol, measured in them.

    Raises:
        HarnessError: every problem that was found; with launches also a retriever or a dataset that
            only exists as an object in this process.
    """
    protocol = protocol or Protocol()
    spec = None
    if protocol.launches:
        spec = LaunchSpec(retrievers, dataset, split, k, metrics, overrides, protocol)
    experiment = prepare(
        retrievers,
        dataset,
        split=split,
        k=k,
        metrics=metrics,
        overrides=overrides,
        protocol=protocol,
        out=out,
        save=save,
    )
    return experiment if spec is None else LaunchedExperiment(experiment, spec)
