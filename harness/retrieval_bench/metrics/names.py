"""A metric is a value: it parses from its name, prints back exactly, compares and hashes.

Grammar: ``NAME[(parameter=value, ...)][@k]``, such as ``nDCG@10``, ``AP``, ``AP(rel=2)@3``. A
metric of one's own is ``module:name`` or ``file.py:name`` in place of NAME. Names that other tools
use for the same thing are read, but never printed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, PluginError, near_names
from retrieval_bench.core.foreign import folder_kept, foreign_code, innermost, message_of
from retrieval_bench.metrics import ranking
from retrieval_bench.metrics.judged import JudgedRun

_FORM = re.compile(
    r"(?P<name>([^():@,\s]+:)?[A-Za-z_][A-Za-z0-9_.\-]*?)"
    r"(\((?P<params>[^()]*)\))?(@(?P<cut>-?\d+))?"
)

_TREC_EVAL = re.compile(r"(ndcg_cut|map_cut|recall|P|success)[_.](\d+)")
_LARGEST = 1_000_000_000
_NUMBER = re.compile(r"\d*\.?\d+")
_RANX_RBP = re.compile(r"rbp\.(\d+)")

_ALIASES: Mapping[str, str] = {
    "ap": "AP",
    "bpref": "Bpref",
    "err": "ERR",
    "f1": "F1",
    "gm_map": "GMAP",
    "hit_rate": "Success",
    "hitrate": "Success",
    "judged": "Judged",
    "map": "AP",
    "map_cut": "AP",
    "mrr": "RR",
    "ndcg": "nDCG",
    "ndcg_burges": "nDCG(gain=exp)",
    "ndcg_cut": "nDCG",
    "p": "P",
    "precision": "P",
    "r": "R",
    "r-precision": "Rprec",
    "rbp": "RBP",
    "recall": "R",
    "recip_rank": "RR",
    "rprec": "Rprec",
    "rr": "RR",
    "set_f": "set_F",
    "set_p": "set_P",
    "set_recall": "set_R",
    "setf": "set_F",
    "setp": "set_P",
    "setr": "set_R",
    "success": "Success",
}
"""Names of ir_measures, trec_eval, ranx and of articles, in lower case -> ours."""

_LABELS = {"AP": "MAP", "RR": "MRR", "R": "recall", "Success": "success", "P": "precision"}
_LABELLED = re.compile(rf"^({'|'.join(_LABELS)})(?=[@(]|$)")

_PARAM_ALIASES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("dcg", "exp-log2"): ("gain", "exp"),
    ("dcg", "log2"): ("gain", "linear"),
}
"""The same for a parameter and its value, as ir_measures writes them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """How a metric is computed and which parameters it knows; what a plug-in registers.

    Attributes:
        compute: called as ``compute(run, cut, **params)``, without ``cut`` where it is refused;
            gives float64 (queries,). A parameter that has its default is left out of the name and
            of the call; one without a default is required.
        cut: whether a cut-off is needed, allowed or refused.
        params: parameter name -> the values it may take, ``int`` for any whole number from 1, or
            ``float`` for any number between 0 and 1.
        mean: how values of queries become one; a geometric mean needs values above 0.
        meaning: a sentence on what a value says, for somebody who does not know it; ``{hits}``
            stands for the hits that count.
    """

    compute: Callable[..., NDArray[np.float64]]
    cut: Literal["required", "optional", "refused"]
    params: Mapping[str, tuple[str, ...] | type[int] | type[float]] = field(default_factory=dict)
    mean: Literal["arithmetic", "geometric"] = "arithmetic"
    meaning: str = ""


_REL: Mapping[str, type[int]] = {"rel": int}

DEFINITIONS: Mapping[str, Definition] = {
    "nDCG": Definition(
        ranking.ndcg,
        "optional",
        {"gain": ("linear", "exp"), "ideal": ("judged", "returned")},
        meaning="how good the order of {hits} is: 1 is the best possible, 0 means that nothing "
        "relevant is there",
    ),
    "AP": Definition(
        ranking.average_precision,
        "optional",
        {**_REL, "norm": ("relevant", "hits")},
        meaning="how early all relevant documents stand in {hits}: 1 means before all others, 0 "
        "that none is there",
    ),
    "RR": Definition(
        ranking.reciprocal_rank,
        "optional",
        _REL,
        meaning="how early the first relevant document stands in {hits}: 1 at the top, 0.5 in the "
        "second place, 0 where there is none",
    ),
    "P": Definition(
        ranking.precision, "required", _REL, meaning="the share of relevant documents in {hits}"
    ),
    "R": Definition(
        ranking.recall,
        "optional",
        _REL,
        meaning="the share of all relevant documents that are found in {hits}",
    ),
    "F1": Definition(
        ranking.f1, "required", _REL, meaning="the harmonic mean of precision and recall in {hits}"
    ),
    "Success": Definition(
        ranking.success,
        "optional",
        _REL,
        meaning="the share of the queries with a relevant document in {hits}",
    ),
    "Rprec": Definition(
        ranking.r_precision,
        "refused",
        _REL,
        meaning="the share of relevant documents in as many hits as there are such documents",
    ),
    "Bpref": Definition(
        ranking.bpref,
        "refused",
        _REL,
        meaning="how seldom a document that was judged not relevant stands before a relevant one",
    ),
    "RBP": Definition(
        ranking.rank_biased_precision,
        "optional",
        {**_REL, "p": float},
        meaning="how much a reader finds who goes on from hit to hit with a fixed probability",
    ),
    "ERR": Definition(
        ranking.expected_reciprocal_rank,
        "optional",
        {"highest": int},
        meaning="how early a reader who stops at a good hit is expected to stop: 1 at the top",
    ),
    "Judged": Definition(
        ranking.judged, "required", meaning="the share of documents with a judgement in {hits}"
    ),
    "GMAP": Definition(
        ranking.geometric_ap,
        "refused",
        _REL,
        mean="geometric",
        meaning="how early relevant documents stand, where the worst queries weigh most",
    ),
    "set_P": Definition(
        ranking.set_precision, "refused", _REL, meaning="the share of all hits that are relevant"
    ),
    "set_R": Definition(
        ranking.set_recall,
        "refused",
        _REL,
        meaning="the share of the relevant documents that are among all hits",
    ),
    "set_F": Definition(
        ranking.set_f, "refused", _REL, meaning="the mean of precision and recall over all hits"
    ),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its cut-off and parameters; ``str()`` gives the name that parses back.

    Attributes:
        name: such as "nDCG".
        cut: the rank that it looks down to; None = the whole list.
        params: names with values, such as ``(("rel", 2),)``.
    """

    name: str
    cut: int | None = None
    params: tuple[tuple[str, str | int | float], ...] = ()

    def __str__(self) -> str:
        params = ", ".join(f"{key}={_written(value)}" for key, value in self.params)
        return (
            self.name
            + (f"({params})" if params else "")
            + (f"@{self.cut}" if self.cut is not None else "")
        )

    def compute(self, run: JudgedRun) -> NDArray[np.float64]:
        """The value of every query, float64 (queries,)."""
        definition = _definition(self.name)
        cut = () if definition.cut == "refused" else (self.cut,)
        if self.name in DEFINITIONS:
            return definition.compute(run, *cut, **dict(self.params))

        def failed(problem: BaseException) -> ConfigError:
            return ConfigError(
                f"metric {self} failed with {message_of(problem)}",
                where=innermost(problem),
                fix="correct the function that the plug-in registers",
            )

        with folder_kept(), foreign_code(failed):
            return definition.compute(run, *cut, **dict(self.params))

    @property
    def meaning(self) -> str:
        """What a value says, as the end of a sentence; empty where nothing is known of it."""
        hits = "the hits" if self.cut is None else f"the first {self.cut:,} hits"
        hits = "the first hit" if self.cut == 1 else hits
        return _definition(self.name).meaning.format(hits=hits)

    @property
    def geometric(self) -> bool:
        """Whether the mean over queries is the geometric one."""
        return _definition(self.name).mean == "geometric"

    def additive(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """``values`` on the scale whose arithmetic mean counts: their logarithms for a geometric
        mean. Differences and tests belong there; :meth:`from_additive` leads back."""
        return np.log(values) if self.geometric else values

    def from_additive(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a mean on that scale stands for."""
        return np.exp(mean) if self.geometric else mean


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
    cut = None if match["cut"] is None else _whole_number(match["cut"])
    if match["cut"] is not None and cut is None:
        raise _error(text, f"a cut-off from 1 to {_LARGEST:,}")
    if cut is None and definition.cut == "required":
        raise _error(text, f"{name}@k, such as {name}@10")
    if cut is not None and definition.cut == "refused":
        raise _error(text, f"{name} without a cut-off")
    return Metric(name, cut, _parse_params(text, params, definition))


def label_of(metric: Metric | str) -> str:
    """The name that people use on a screen: MRR@10 for RR@10, MAP for AP, recall@100 for R@100;
    :func:`parse_metric` reads it, too."""
    return _LABELLED.sub(lambda name: _LABELS[name[0]], str(metric), count=1)


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
    if ":" in name:
        with folder_kept():
            return _as_definition(plugins.load(name), given or name)
    try:
        with folder_kept():
            found: Any = plugins.resolve("metric", name)
    except plugins.OldGroupError:
        raise
    except PluginError:
        names = {*DEFINITIONS, *plugins.names("metric")}
        raise _error(given or name, near_names(name, names)) from None
    return _as_definition(found, given or name)


def _as_definition(found: Any, given: str) -> Definition:
    """What a plug-in or ``module:name`` leads to; a plain function takes a cut-off or none."""
    if isinstance(found, Definition):
        return found
    if callable(found) and not inspect.isclass(found):
        return Definition(found, "optional")
    raise _error(
        given, "a retrieval_bench.metrics.Definition, or a function (run, cut) -> one value a query"
    )


def _spelled_out(text: str) -> str:
    """trec_eval writes ``recall_100``, its option -m ``recall.100``, all others ``recall@100``;
    ranx writes ``rbp.95``."""
    if match := _RANX_RBP.fullmatch(text):
        return f"RBP(p=0.{match[1]})"
    match = _TREC_EVAL.fullmatch(text)
    return f"{match[1]}@{match[2]}" if match else text


def _parse_params(
    text: str, params: str, definition: Definition
) -> tuple[tuple[str, str | int | float], ...]:
    parsed: dict[str, str | int | float] = {}
    for part in filter(None, (part.strip() for part in params.split(","))):
        key, equals, value = (piece.strip().strip("'\"") for piece in part.partition("="))
        key, value = _PARAM_ALIASES.get((key, value), (key, value))
        allowed = definition.params.get(key)
        if not equals or allowed is None:
            raise _error(text, "parameters " + (", ".join(definition.params) or "(none)"))
        if key in parsed:
            raise _error(text, f"{key} once")
        parsed[key] = _parse_value(text, key, value, allowed)
    of_compute = inspect.signature(definition.compute).parameters
    for key in definition.params:
        needed = key in of_compute and of_compute[key].default is inspect.Parameter.empty
        if needed and key not in parsed:
            raise _error(text, f"a value for {key}, such as {_example(text, key)}")
    # Equal metrics are equal: a default that is written out is not kept.
    return tuple(
        (key, value)
        for key, value in sorted(parsed.items())
        if key not in of_compute or of_compute[key].default != value
    )


def _parse_value(
    text: str, key: str, value: str, allowed: tuple[str, ...] | type[int] | type[float]
) -> str | int | float:
    if isinstance(allowed, tuple):
        if value not in allowed:
            raise _error(text, f"{key} = {' or '.join(allowed)}")
        return value
    if allowed is int:
        number = _whole_number(value)
        if number is None:
            raise _error(text, f"{key} = a whole number from 1 to {_LARGEST:,}")
        return number
    if not _NUMBER.fullmatch(value) or not 0 < float(value) < 1:
        raise _error(text, f"{key} = a number between 0 and 1")
    return float(value)


def _whole_number(text: str) -> int | None:
    """A number that a cut-off or a grade can be, None for any other."""
    digits = text.lstrip("0")
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_LARGEST))
    return int(digits) if fits and int(digits) <= _LARGEST else None


def _written(value: str | int | float) -> str:
    """Without an exponent, which names do not have."""
    return np.format_float_positional(value, trim="-") if isinstance(value, float) else str(value)


def _example(text: str, key: str) -> str:
    name, at, cut = text.strip().partition("@")
    return f"{name.partition('(')[0]}({key}=0.8){at}{cut}"


def _error(text: str, accepted: str) -> ConfigError:
    return ConfigError(
        f"metric {text!r}", where="--metrics", accepted=accepted, fix="write it as accepted"
    )
