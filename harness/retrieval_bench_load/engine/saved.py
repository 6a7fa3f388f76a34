"""Loads that were saved: found by the names that people give them, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from retrieval_bench.core.errors import RecordError
from retrieval_bench.core.plugins import describe_faults
from retrieval_bench.runs.checksums import check_sums
from retrieval_bench.runs.find import LOADS, find_run
from retrieval_bench.runs.records import LOAD, check_version, read_json
from retrieval_bench_load.engine.load import LoadResult


def find_load(given: str | Path) -> Path:
    """The folder of the load that ``given`` names: a folder, ``@load`` (the newest), ``NAME@load``,
    or the beginning of its id.

    Raises:
        ConfigError: no saved load is called that, or several begin with it.
    """
    return find_run(given, LOADS)


def read_load(folder: Path) -> LoadResult:
    """The load in ``folder``.

    Raises:
        RecordError: none there, of a newer version, or damaged.
    """
    document = read_json(folder / LOAD, "a folder of a load, as `retrieval-bench load`")
    check_version(document, LoadResult.schema_version, "load", folder / LOAD)
    check_sums(folder)
    try:
        levels = [
            {"result": one, "quality": one.get("quality"), "course": one.get("course")}
            for one in [document["unloaded"], *document["levels"]]
        ]
        document |= {"unloaded": levels[0], "levels": levels[1:], "folder": folder}
        return TypeAdapter(LoadResult).validate_python(document)
    except (ValidationError, KeyError, TypeError) as problem:
        faults = (
            describe_faults(problem) if isinstance(problem, ValidationError) else [str(problem)]
        )
        raise RecordError(
            f"{LOAD} lacks something: {faults[0]}",
            where=str(folder),
            accepted="a load of this version",
            fix="measure again",
        ) from None


def means_of(load: LoadResult, number: int) -> NDArray[np.float64] | None:
    """The quality of each query at a level (0: one call at a time), NaN where it was not called or
    is not judged; None where the load was not saved."""
    if load.folder is None:
        return None
    means: NDArray[np.float64] = np.load(load.folder / f"quality-{number}.npy")
    return means
