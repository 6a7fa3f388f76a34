"""A checked measurement that runs in this process, or in launches: fresh processes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from harness.experiment import Experiment
from harness.launches import LaunchSpec, run_launches
from harness.measure.protocol import Protocol
from harness.preparation import prepare
from harness.summary import resummarize
from harness.types import Dataset


class Asked(TypedDict, total=False):
    """What else :func:`harness.preparation.prepare` takes."""

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
    """As :func:`harness.preparation.prepare`; with launches in the protocol, measured in them.

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
