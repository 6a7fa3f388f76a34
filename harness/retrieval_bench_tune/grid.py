"""The settings that tuning tries: every combination of the values of some parameters.

The retriever as it is, the default, is always one of them and the first, so that nothing that was
tried wins against it by its place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import yaml

from retrieval_bench.core.config import parse_value
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.experiment.preparation import Problems

MOST_SETTINGS = 2000
"""Larger grids are sampled: trying more finds little, and the best of many is luck."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Values of parameters, by dotted path.

    Attributes:
        values: parameter -> value.
        as_is: the default: the retriever is built as its config says, whatever the values, which
            are told where they are known.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    as_is: bool = False

    @property
    def overrides(self) -> list[str]:
        """The values as ``--set`` takes them."""
        return [] if self.as_is else [f"{p}={as_yaml(value)}" for p, value in self.values.items()]

    def __str__(self) -> str:
        return " ".join(f"{p}={as_yaml(value)}" for p, value in self.values.items()) or "as it is"


@dataclass(frozen=True, slots=True)
class Grid:
    """Settings that are tried.

    Attributes:
        parameters: dotted path -> its values.
        settings: the default first, then combinations in the order of their values, the last
            parameter changing fastest.
        n_combinations: of all values; more than the settings when these are a sample.
        default_on_grid: whether the default is one of the combinations. If not, its values are
            not told in its setting.
    """

    parameters: Mapping[str, tuple[Any, ...]]
    settings: tuple[Setting, ...]
    n_combinations: int
    default_on_grid: bool

    @property
    def sampled(self) -> bool:
        """True if some combinations are left out."""
        return len(self.settings) - (not self.default_on_grid) < self.n_combinations


def parse_grid(given: Sequence[str], problems: Problems) -> dict[str, tuple[Any, ...]]:
    """The values of each parameter, from ``path=[v1, v2]`` or ``path=v1,v2``, values in YAML.

    A single value that is no list stands for itself; a single list is the list of values, so one
    value that is a list stands in a list: ``fusion.weights=[[1, 2]]``.

    Args:
        problems: takes everything that is wrong; the other parameters come back.
    """
    parsed: dict[str, tuple[Any, ...]] = {}
    for text in given:
        with problems.kept():
            path, values = _parsed(text)
            if path in parsed:
                raise _bad(text, f"each parameter once; {path!r} is there already")
            parsed[path] = values
    return checked_grid(parsed, problems)


def checked_grid(
    given: Mapping[str, Sequence[Any]], problems: Problems
) -> dict[str, tuple[Any, ...]]:
    """``given`` with repeated values once, numbers of numpy as those of Python.

    Args:
        problems: takes everything that is wrong: no values, or a parameter inside another; the
            other parameters come back.
    """
    checked: dict[str, tuple[Any, ...]] = {}
    for path, values in {path: _plain(values) for path, values in given.items()}.items():
        inside = [other for other in given if path.startswith(f"{other}.")]
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            problems.add(_bad(f"{path}={values!r}", "a list of one value or more"))
        elif inside:
            problems.add(_bad(path, f"either {inside[0]!r} as a whole or what is inside it"))
        else:
            kinds = [_kind(v) for v in values]
            checked[path] = tuple(v for i, v in enumerate(values) if kinds[i] not in kinds[:i])
    return checked


def make_grid(
    parameters: Mapping[str, tuple[Any, ...]],
    current: Mapping[str, Any],
    *,
    sample: int | None = None,
    seed: int,
) -> Grid:
    """The settings of ``parameters``.

    Args:
        current: the retriever's own value of each parameter, as far as it is known.
        sample: so many combinations are drawn, seeded, besides the default; None = all.

    Raises:
        ConfigError: more than :data:`MOST_SETTINGS`, or a sample below 1.
    """
    total = math.prod(len(values) for values in parameters.values())
    wanted = total if sample is None else min(sample, total)
    if wanted < 1:
        raise ConfigError(
            f"--sample {sample}", accepted="a number of settings, at least 1", fix="leave it out"
        )
    if wanted > MOST_SETTINGS:
        sizes = " x ".join(f"{len(values)} {path}" for path, values in parameters.items())
        raise ConfigError(
            f"{wanted:,} settings of {total:,} ({sizes})",
            where="--grid" if sample is None else "--sample",
            accepted=f"up to {MOST_SETTINGS:,}",
            fix="give fewer values, or try some of the combinations only, such as --sample 200",
        )
    # As the grid writes it: 1 may stand there as 1.0.
    own = {
        path: [v for v in values if path in current and _kind(v) == _kind(_plain(current[path]))]
        for path, values in parameters.items()
    }
    on_grid = all(own.values())
    default = Setting({p: same[0] for p, same in own.items()} if on_grid else {}, as_is=True)
    if wanted == total:
        every = product(*parameters.values())
        chosen = [Setting(dict(zip(parameters, vs, strict=True))) for vs in every]
    else:
        places = sorted(random.Random(seed).sample(range(total), wanted))
        chosen = [Setting(_combination(parameters, place)) for place in places]
    settings = [default, *(s for s in chosen if s.values != default.values)]
    return Grid(dict(parameters), tuple(settings), total, on_grid)


def ordered(values: Sequence[Any]) -> list[Any]:
    """``values`` from low to high when they are numbers, or lists of as many numbers each;
    otherwise as they are."""
    return sorted(values) if numeric(values) else list(values)


def numeric(values: Sequence[Any]) -> bool:
    """Return whether all of ``values`` are numbers, or all are lists of as many numbers each."""
    if all(isinstance(value, list | tuple) for value in values):
        lengths = {len(value) for value in values}
        return len(lengths) == 1 and all(_is_number(part) for value in values for part in value)
    return all(_is_number(value) for value in values)


def as_yaml(value: Any) -> str:
    """``value`` as YAML in one line."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=math.inf, sort_keys=False
    )
    return text.strip().removesuffix("\n...")


def _kind(value: Any) -> tuple[bool, Any]:
    """What tells values apart: 1 and true are equal, and not the same value."""
    return isinstance(value, bool), value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parsed(text: str) -> tuple[str, tuple[Any, ...]]:
    path, equals, written = text.partition("=")
    if not equals or not path.strip(".") or ".." in path or path != path.strip():
        raise _bad(text, "key=[value, value], key may be dotted")
    where = f"--grid {text}"
    try:
        values = parse_value(written, where)
    except HarnessError:  # [1, 2],[1, 1] is no value, but a list of two
        values = None
    if not isinstance(values, list):
        values = parse_value(f"[{written}]", where)
    if not isinstance(values, list) or not values:
        raise _bad(text, "a list of one value or more, such as fusion.k=[10,60]")
    return path, tuple(values)


def _bad(given: str, accepted: str) -> ConfigError:
    return ConfigError(repr(given), where="--grid", accepted=accepted, fix="correct the grid")


def _combination(parameters: Mapping[str, tuple[Any, ...]], place: int) -> dict[str, Any]:
    """The combination at ``place`` in the order of all, which may be too many to be listed."""
    values: dict[str, Any] = {}
    for path, choices in reversed(list(parameters.items())):
        place, at = divmod(place, len(choices))
        values[path] = choices[at]
    return {path: values[path] for path in parameters}
