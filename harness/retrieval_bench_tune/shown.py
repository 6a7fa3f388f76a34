"""Types of ``tune --format json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""Of parameters, by their paths: whatever a config may hold."""


@dataclass(frozen=True, slots=True)
class TunedDataset:
    """A dataset.

    Attributes:
        name, fingerprint, split: of it.
        dev_split: on which settings are chosen: null with cross-validation.
    """

    name: str
    fingerprint: str
    split: str
    dev_split: str | None


@dataclass(frozen=True, slots=True)
class TunedFigures:
    """The retriever with what was chosen.

    Attributes:
        tuning, held_out: means on tuning and on held-out queries.
        ci95: interval of the latter.
        gap: between the two.
        gaps: likewise of each repeat.
    """

    tuning: float
    held_out: float
    ci95: tuple[float, float] | None
    gap: float | None
    gaps: list[float]


@dataclass(frozen=True, slots=True)
class DefaultFigures:
    """The same of the default.

    Attributes:
        values: of its parameters.
        tuning, held_out, ci95, gap: as of :class:`TunedFigures`.
    """

    values: Values
    tuning: float
    held_out: float
    ci95: tuple[float, float] | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class NaiveFigures:
    """The setting that would be chosen, and reported, on the same queries.

    Attributes:
        values: the best on all queries.
        mean: on these same queries.
    """

    values: Values
    mean: float


@dataclass(frozen=True, slots=True)
class RecommendedValues:
    """The setting to use.

    Attributes:
        values: of the parameters.
        is_default: whether they are those of the default.
        tuning: their mean on the tuning queries.
        target, params: of the config that has them.
    """

    values: Values
    is_default: bool
    tuning: float
    target: str
    params: Values


@dataclass(frozen=True, slots=True)
class ChosenValues:
    """Choice of one fold.

    Attributes:
        repeat, fold: which.
        values: that were chosen.
        tuning, held_out, n_held_out: as of :class:`.Choice`.
    """

    repeat: int
    fold: int
    values: Values
    tuning: float
    held_out: float
    n_held_out: int


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """A setting that was tried.

    Attributes:
        values, is_default: as of :class:`RecommendedValues`.
        tuning: mean on the tuning queries.
        chosen: how often it was.
    """

    values: Values
    is_default: bool
    tuning: float
    chosen: int


@dataclass(frozen=True, slots=True)
class ValueMean:
    """A value of a parameter.

    Attributes:
        value: of it.
        tuning: the mean with it.
    """

    value: Any
    tuning: float


@dataclass(frozen=True, slots=True)
class QueryBeforeAndAfter:
    """A held-out query.

    Attributes:
        id: of it.
        default: value by the default.
        held_out: by what was chosen without it.
    """

    id: str
    default: float
    held_out: float
