"""The dataset that runs were made on, found again: a run keeps ids, not texts, grades and tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.data import load_dataset
from harness.errors import ConfigError, DataError, HarnessError
from harness.run import Run
from harness.types import Dataset


def dataset_of(runs: Sequence[Run], given: str | Path | Dataset | None = None) -> Dataset:
    """What all of ``runs`` were measured on, checked by its fingerprint.

    Args:
        runs: at least one.
        given: name, folder or dataset; None = where the first run found it.

    Raises:
        ConfigError: the runs are on different datasets or splits, or nothing says where it is.
        DataError: what was found is another dataset, or has changed since.
    """
    first = runs[0]
    wanted, split = first.summary["dataset"]["fingerprint"], first.summary["dataset"]["split"]
    kinds = {(r.summary["dataset"]["fingerprint"], r.summary["dataset"]["split"]) for r in runs}
    if len(kinds) > 1:
        raise ConfigError(
            f"runs on {len(kinds)} datasets or splits",
            where=", ".join(str(run.folder or run.name) for run in runs),
            accepted="runs on one dataset and split",
            fix="give those of one dataset at a time",
        )
    found = given if isinstance(given, Dataset) else _loaded(first, given, split)
    if found.fingerprint != wanted or found.split != split:
        raise DataError(
            f"dataset {found.name!r} ({found.split}) is not the one of the runs",
            where=f"fingerprint {found.fingerprint[:12]}, in the runs {wanted[:12]} ({split})",
            accepted="the documents, queries and judgements that were measured, unchanged",
            fix="name the right folder with --dataset, or measure again",
        )
    return found


def _loaded(run: Run, given: str | Path | None, split: str) -> Dataset:
    """Raises:
    ConfigError: nothing says where the dataset is, or it is there no more.
    """
    if given is not None:
        return load_dataset(given, split)
    name = run.summary["dataset"]["name"]
    source = run.manifest.get("dataset", {}).get("source")
    try:
        return load_dataset(source or name, split)
    except HarnessError as problem:
        raise ConfigError(
            f"the dataset {name!r} of the run was not found again: {problem.given}",
            where=str(run.folder or run.name),
            accepted="its name or folder",
            fix="say where it is with --dataset",
        ) from problem
