"""A metric is a value: it parses from its name, prints back exactly, compares and hashes.

Grammar: ``NAME[(parameter=value, ...)][@k]``, such as ``nDCG@10``, ``AP``, ``AP(rel=2)@3``.
Names that other tools use for the same thing are read, but never printed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness import plugins
from harness.errors import ConfigError, PluginError, near_names
from harness.metrics import ranking
from harness.metrics.judged import JudgedRun

_FORM = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_\-]*?)(\((?P<params>[^()]*)\))?(@(?P<cut>-?\d+))?")

_TREC_EVAL = re.compile(r"(ndcg_cut|map_cut|recall|P|success)[_.](\d+)")

_ALIASES: Mapping[str, str] = {
    "ap": "AP",
    "f1": "F1",
    "hit_rate": "Success",
    "hitrate": "Success",
    "hits": "Success",
    "map": "AP",
    "map_cut": "AP",
    "mrr": "RR",
    "ndcg": "nDCG",
    "ndcg_burges": "nDCG(gain=exp)",
    "ndcg_cut": "nDCG",
    "p": "P",
    "precision": "P",
    "r": "R",
    "recall": "R",
    "recip_rank": "RR",
    "rr": "RR",
    "success": "Success",
}
"""Names of ir_measures, trec_eval, ranx and of articles, in lower case -> ours."""


@dataclass(frozen=True, slots=True)
class Definition:
    """How a metric is computed and which parameters it knows; what a plug-in registers.

    Attributes:
        compute: called as ``compute(run, cut, **params)``, gives float64 (queries,). A parameter
            that has its default is left out of the name and of the call.
        cut: whether a cut-off is needed, allowed or refused.
        params: parameter name -> the values it may take, or ``int`` for any whole number from 1.
    """

    compute: Callable[..., NDArray[np.float64]]
    cut: Literal["required", "optional", "refused"]
    params: Mapping[str, tuple[str, ...] | type[int]] = field(default_factory=dict)


DEFINITIONS: Mapping[str, Definition] = {
    "nDCG": Definition(ranking.ndcg, "optional", {"gain": ("linear", "exp")}),
    "AP": Definition(ranking.average_precision, "optional", {"rel": int}),
    "RR": Definition(ranking.reciprocal_rank, "optional", {"rel": int}),
    "P": Definition(ranking.precision, "required", {"rel": int}),
    "R": Definition(ranking.recall, "required", {"rel": int}),
    "F1": Definition(ranking.f1, "required", {"rel": int}),
    "Success": Definition(ranking.success, "required", {"rel": int}),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its cut-off and parameters; ``str()`` gives the name that parses back."""

    name: str
    cut: int | None = None
    params: tuple[tuple[str, str | int], ...] = ()

    def __str__(self) -> str:
        params = ", ".join(f"{key}={value}" for key, value in self.params)
        return (
            self.name
            + (f"({params})" if params else "")
            + (f"@{self.cut}" if self.cut is not None else "")
        )

    def compute(self, run: JudgedRun) -> NDArray[np.float64]:
        """The value of every query, float64 (queries,)."""
        return _definition(self.name).compute(run, self.cut, **dict(self.params))


def parse_metric(text: str) -> Metric:
    """The metric that ``text`` names.

    Raises:
        ConfigError: unknown name (close ones are offered), unknown parameter, cut-off missing,
            refused or below 1.
    """
    match = _FORM.fullmatch(_spelled_out(text.strip()))
    if match is None:
        raise _error(text, "NAME, NAME@k or NAME(parameter=value)@k, such as nDCG@10")
    name, params = match["name"], match["params"] or ""
    alias = _ALIASES.get(name.lower())
    if name not in DEFINITIONS and alias is not None:
        name, _, implied = alias.rstrip(")").partition("(")
        params = ", ".join(part for part in (implied, params) if part)
    definition = _definition(name, given=text)
    cut = None if match["cut"] is None else int(match["cut"])
    if cut is not None and cut < 1:
        raise _error(text, "a cut-off of at least 1")
    if cut is None and definition.cut == "required":
        raise _error(text, f"{name}@k, such as {name}@10")
    if cut is not None and definition.cut == "refused":
        raise _error(text, f"{name} without a cut-off")
    return Metric(name, cut, _parse_params(text, params, definition))


def parse_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics that ``names`` stand for, repeated ones once, in the given order."""
    return tuple(dict.fromkeys(parse_metric(name) for name in names))


def default_metrics(k: int) -> tuple[Metric, ...]:
    """What is reported when nothing is asked for: quality near the top, and recall at k."""
    names = [f"nDCG@{min(k, 10)}", f"AP@{k}", f"RR@{k}", f"R@{k}", "Success@1"]
    if k >= 100:
        names.append("R@100")
    return parse_metrics(names)


def _definition(name: str, given: str | None = None) -> Definition:
    known = DEFINITIONS.get(name)
    if known is not None:
        return known
    try:
        found: Any = plugins.resolve("metric", name)
    except PluginError:
        names = {*DEFINITIONS, *plugins.names("metric")}
        raise _error(given or name, near_names(name, names)) from None
    if not isinstance(found, Definition):
        raise _error(given or name, "a plug-in that registers a harness.metrics.names.Definition")
    return found


def _spelled_out(text: str) -> str:
    """trec_eval writes ``recall_100``, its option -m ``recall.100``, all others ``recall@100``."""
    match = _TREC_EVAL.fullmatch(text)
    return f"{match[1]}@{match[2]}" if match else text


def _parse_params(
    text: str, params: str, definition: Definition
) -> tuple[tuple[str, str | int], ...]:
    parsed: dict[str, str | int] = {}
    for part in filter(None, (part.strip() for part in params.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        allowed = definition.params.get(key)
        if not equals or allowed is None:
            raise _error(text, "parameters " + (", ".join(definition.params) or "(none)"))
        if key in parsed:
            raise _error(text, f"{key} once")
        if isinstance(allowed, tuple):
            if value not in allowed:
                raise _error(text, f"{key} = {' or '.join(allowed)}")
            parsed[key] = value
        elif value.isdecimal() and int(value) >= 1:
            parsed[key] = int(value)
        else:
            raise _error(text, f"{key} = a whole number of at least 1")
    # Equal metrics are equal: a default that is written out is not kept.
    of_compute = inspect.signature(definition.compute).parameters
    return tuple(
        (key, value)
        for key, value in sorted(parsed.items())
        if key not in of_compute or of_compute[key].default != value
    )


def _error(text: str, accepted: str) -> ConfigError:
    return ConfigError(
        f"metric {text!r}", where="--metrics", accepted=accepted, fix="correct the name"
    )
