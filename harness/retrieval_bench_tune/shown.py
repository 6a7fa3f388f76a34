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
        tuning: mean on the queries that chose the values.
        held_out: mean on queries that chose nothing.
        ci95: 95 % interval of ``held_out``.
        gap: ``tuning`` minus ``held_out``.
        gaps: the gap of each repeat.
    """

    tuning: float
    held_out: float
    ci95: tuple[float, float] | None
    gap: float | None
    gaps: list[float]


@dataclass(frozen=True, slots=True)
class DefaultFigures:
    """The default.

    Attributes:
        values: of its parameters.
        tuning: mean on the queries that chose the values.
        held_out: mean on queries that chose nothing.
        ci95: 95 % interval of ``held_out``.
        gap: ``tuning`` minus ``held_out``.
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
        values: of the parameters, those with the highest mean on all queries.
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
        tuning: mean on the queries that chose the values.
        target, params, chunk: of the config that has them; ``chunk`` is null without a chunker.
    """

    values: Values
    is_default: bool
    tuning: float
    target: str
    params: Values
    chunk: Values | None


@dataclass(frozen=True, slots=True)
class ChosenValues:
    """Choice of one fold.

    Attributes:
        repeat, fold: of the cross-validation, from 0.
        values: of the parameters that were chosen.
        tuning: mean on the queries that chose the values.
        held_out: mean on queries that chose nothing.
        n_held_out: number of these.
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
        values: of the parameters.
        is_default: whether they are those of the default.
        tuning: mean on the queries that chose the values.
        chosen: number of folds that chose it.
    """

    values: Values
    is_default: bool
    tuning: float
    chosen: int


@dataclass(frozen=True, slots=True)
class ValueMean:
    """A value of a parameter.

    Attributes:
        value: of the parameter.
        tuning: mean on the queries that chose the values.
    """

    value: Any
    tuning: float


@dataclass(frozen=True, slots=True)
class QueryBeforeAndAfter:
    """A held-out query.

    Attributes:
        id: of the query.
        default: its value by the default.
        held_out: its value by what was chosen without it.
    """

    id: str
    default: float
    held_out: float
