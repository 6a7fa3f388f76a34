"""Types of ``tune --format json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""Of parameters, by their paths: whatever a config may hold."""


@dataclass(frozen=True, slots=True)
class TunedDataset:
    """A dataset, and the split on which settings are chosen: null with cross-validation."""

    name: str
    fingerprint: str
    split: str
    dev_split: str | None


@dataclass(frozen=True, slots=True)
class TunedFigures:
    """Means on tuning and on held-out queries, the interval of the latter, and the gap between the
    two, in the mean and for each of the ``gaps`` of the repeats."""

    tuning: float
    held_out: float
    ci95: tuple[float, float] | None
    gap: float | None
    gaps: list[float]


@dataclass(frozen=True, slots=True)
class DefaultFigures:
    """The same of the default, with the values of its parameters."""

    values: Values
    tuning: float
    held_out: float
    ci95: tuple[float, float] | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class NaiveFigures:
    """The best values on all queries, and the mean on these same queries."""

    values: Values
    mean: float


@dataclass(frozen=True, slots=True)
class RecommendedValues:
    """Values, whether they are those of the default, their mean on the tuning queries, and the
    config that has them."""

    values: Values
    is_default: bool
    tuning: float
    target: str
    params: Values


@dataclass(frozen=True, slots=True)
class ChosenValues:
    """Choice of one fold; see :class:`.Choice`."""

    repeat: int
    fold: int
    values: Values
    tuning: float
    held_out: float
    n_held_out: int


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """A setting, its mean on the tuning queries, and how often it was chosen."""

    values: Values
    is_default: bool
    tuning: float
    chosen: int


@dataclass(frozen=True, slots=True)
class ValueMean:
    """A value of a parameter, and the mean with it."""

    value: Any
    tuning: float


@dataclass(frozen=True, slots=True)
class QueryBeforeAndAfter:
    """The value of a held-out query by the default, and by what was chosen without it."""

    id: str
    default: float
    held_out: float
