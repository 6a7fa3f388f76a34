"""What is told of data that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.data import load_dataset


def faults_of(reading: Callable[..., Any], *given: Any, **named: Any) -> tuple[str, ...]:
    """All faults that ``reading`` tells of at once."""
    with pytest.raises(DataError) as caught:
        reading(*given, **named)
    return caught.value.faults


def dataset_faults(folder: Path, split: str = "test") -> tuple[str, ...]:
    """The faults of a dataset, by paths below ``folder``."""
    begin = f"{folder.absolute()}/"
    return tuple(fault.removeprefix(begin) for fault in faults_of(load_dataset, folder, split))
