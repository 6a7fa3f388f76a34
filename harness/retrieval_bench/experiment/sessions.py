"""A checked measurement that runs in this process, or in launches: fresh processes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from retrieval_bench.core.types import Dataset
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.launches import LaunchSpec, run_launches
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.experiment.summary import resummarize
from retrieval_bench.measure.protocol import Protocol


class Asked(TypedDict, total=False):
    """What else :func:`retrieval_bench.experiment.preparation.prepare` takes."""

    split: str
    k: int
    metrics: Sequence[str]
    overrides: Sequence[str]
    out: Path | None
    save: bool


def prepared(
    retrievers: Sequence[Any],
    dataset: str | Path | Dataset,
    protocol: Protocol | None = None,
    **asked: Unpack[Asked],
) -> Experiment:
    """As :func:`.prepare`; with launches in the protocol, measured in them.

    Raises:
        HarnessError: every problem that was found; with launches also a retriever or a dataset that
            only exists as an object in this process.
    """
    if protocol is None or not protocol.launches:
        return prepare(retrievers, dataset, protocol=protocol, **asked)
    told: dict[str, Any] = {name: given for name, given in asked.items() if name in _TOLD}
    spec = LaunchSpec(retrievers, dataset, protocol=protocol, **told)
    experiment = prepare(retrievers, dataset, protocol=protocol, **asked)
    experiment.elsewhere = partial(run_launches, spec, resummarize=resummarize)
    return experiment


_TOLD = ("split", "k", "metrics", "overrides")
"""What a launch is told; saving is the business of the process that started it."""
