"""A metric is a value: it parses from its name, prints back exactly, compares and hashes.

Grammar: ``NAME[(parameter=value, ...)][@k]``, such as ``nDCG@10``, ``AP``, ``AP(rel=2)@3``. A
metric of one's own is ``module:name`` or ``file.py:name`` in place of NAME. Names that other tools
use for the same thing are read, but never printed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import offered, service
from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import AsText
from retrieval_bench.core.calls.foreign import failing, folder_kept, foreign_code
from retrieval_bench.core.errors import ConfigError, PluginError, near_names
from retrieval_bench.core.types import EMPTY, Qrels, kind_of_truth
from retrieval_bench.metrics import truths
from retrieval_bench.metrics.definitions import DEFINITIONS, Definition, Kind
from retrieval_bench.metrics.judged import JudgedRun, Judgements, judge_lists
from retrieval_bench.metrics.trec_names import Row, expanded
from retrieval_bench.stats.intervals import Scale

_FORM = re.compile(
    r"(?P<name>([^():@,\s]+:)?[A-Za-z_][A-Za-z0-9_.\-]*?)"
    r"(\((?P<params>[^()]*)\))?(@(?P<cut>-?[\d.]+))?"
)

_LARGEST = 1_000_000_000
_NUMBER = re.compile(r"\d*\.?\d+")
_SIGNED = re.compile(r"-?\d*\.?\d+")
_PART = re.compile(r"(?:[^,\[{]|\[[^]]*\]|\{[^}]*\}|[\[{])+")
_RANX_RBP = re.compile(r"rbp\.(\d+)")
_RETURNED_RELEVANT = re.compile(r"NumRet\((?=[^)]*\brel\b)")

EVERYWHERE: Mapping[str, Kind] = {"depth": int, "judged_only": bool}
"""Parameters of every metric: as if no more hits had been returned, and of these only judged ones
(trec_eval -M and -J)."""

Param = str | int | float | tuple[float, ...] | tuple[tuple[int, float], ...]

ALIASES: Mapping[str, str] = {
    **{name.lower(): name for name in DEFINITIONS},
    "gm_bpref": "GMBpref",
    "gm_map": "GMAP",
    "hit_rate": "Success",
    "hitrate": "Success",
    "map": "AP",
    "map_cut": "AP",
    "mrr": "RR",
    "ndcg_burges": "nDCG(gain=exp)",
    "ndcg_cut": "nDCG",
    "precision": "P",
    "r-precision": "Rprec",
    "recall": "R",
    "recip_rank": "RR",
    "set_recall": "set_R",
    "setap": "set_AP",
    "setf": "set_F",
    "setp": "set_P",
    "setr": "set_R",
}
"""Our names, and those of ir_measures, trec_eval, ranx and of articles, in lower case -> ours."""

_LABELS = {"AP": "MAP", "RR": "MRR", "R": "recall", "Success": "success", "P": "precision"}
_LABELLED = re.compile(rf"^({'|'.join(_LABELS)})(?=[@(]|$)")

_PARAM_ALIASES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("dcg", "exp-log2"): ("gain", "exp"),
    ("dcg", "log2"): ("gain", "linear"),
}
"""The same for a parameter and its value, as ir_measures writes them."""


@dataclass(frozen=True, slots=True)
class Metric(AsText):
    """One metric with its cut-off and parameters; ``str()`` gives the name that parses back.

    Attributes:
        name: such as "nDCG".
        cut: the rank that it looks down to; None = the whole list.
        params: names with values, such as ``(("rel", 2),)``.
    """

    name: str
    cut: int | None = None
    params: tuple[tuple[str, Param], ...] = ()

    def __str__(self) -> str:
        params, at = dict(self.params), None if self.cut is None else str(self.cut)
        if self.name in DEFINITIONS and DEFINITIONS[self.name].cut == "recall":
            at = _written(params.pop("recall"))
        inner = ", ".join(f"{key}={_written(value)}" for key, value in params.items())
        return self.name + (f"({inner})" if inner else "") + (f"@{at}" if at is not None else "")

    def compute(self, run: JudgedRun) -> NDArray[np.float64]:
        """The value of every query, float64 (queries,).

        Raises:
            ConfigError: it, or a parameter of it, is not defined where slots are judged.
        """
        if run.defined and self.name == "Judged":  # a slot says of every hit what it is
            return np.asarray(run.lengths > 0, dtype=np.float64)
        if run.defined and self.name not in run.defined:
            raise truths.of_documents(str(self), run.kind, run.defined)
        params: dict[str, Any] = dict(self.params)
        definition = _definition(self.name)
        own = () if self.name in DEFINITIONS else definition.params
        if run.defined and (graded := [key for key in params if key not in ("depth", *own)]):
            raise truths.of_grades(str(self), self.name, graded, run.kind)
        if not run.defined and self.name in of_slots():
            raise truths.of_slots(str(self))
        cut = () if definition.cut in ("refused", "recall") else (self.cut,)
        general = {
            key: params.pop(key) for key in EVERYWHERE.keys() - definition.params if key in params
        }
        run = run.as_if(general.get("depth"), judged_only=general.get("judged_only", False))
        if run.defined or self.name in DEFINITIONS:
            return definition.compute(run, *cut, **params)

        fix = "correct the function that the plug-in registers"
        with folder_kept(), foreign_code(failing(f"metric {self}", ConfigError, fix=fix)):
            return definition.compute(run, *cut, **params)

    @property
    def meaning(self) -> str:
        """The meaning of a value, as the end of a sentence; empty where nothing is known of it."""
        hits = "the hits" if self.cut is None else f"the first {self.cut:,} hits"
        hits = "the first hit" if self.cut == 1 else hits
        return _definition(self.name).meaning.format(hits=hits)

    @property
    def geometric(self) -> bool:
        """True if the mean over queries is the geometric one."""
        return _definition(self.name).mean == "geometric"

    @property
    def scale(self) -> Scale | None:
        """The range of the value of a query; None = not known."""
        given = dict(self.params)
        return None if self.geometric or "gains" in given else _definition(self.name).scale

    @property
    def counts(self) -> bool:
        """True if values of queries are summed."""
        return _definition(self.name).mean == "sum"

    @property
    def compared(self) -> bool:
        """True if more is better."""
        return _definition(self.name).compared

    def also(self, params: Mapping[str, Param]) -> Metric:
        """Return the metric with those of ``params`` that it knows and does not have yet."""
        definition = _definition(self.name)
        known = {key: value for key, value in params.items() if key in _kinds(definition)}
        return replace(self, params=_kept({**known, **dict(self.params)}, definition))

    def additive(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """``values`` on the scale whose arithmetic mean counts: their logarithms for a geometric
        mean. Differences and tests belong there; :meth:`from_additive` leads back."""
        return np.log(values) if self.geometric else values

    def from_additive(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value that a mean on that scale stands for."""
        return np.exp(mean) if self.geometric else mean


def parse_metric(text: str) -> Metric:
    """The metric that ``text`` names.

    Raises:
        ConfigError: unknown name (close ones are offered), unknown parameter, cut-off missing,
            refused or below 1.
    """
    match = _FORM.fullmatch(_spelled_out(text.strip()))
    if match is None:
        accepted = "NAME, NAME@k or NAME(parameter=value)@k, such as nDCG@10"
        raise _error(text, _offered(text) + accepted)
    name, params = match["name"], match["params"] or ""
    if name not in DEFINITIONS and (alias := _alias(name)):
        name, _, implied = alias.rstrip(")").partition("(")
        params = ", ".join(part for part in (implied, params) if part)
    definition = _definition(name, given=text)
    if definition.cut == "recall":
        at = match["cut"] or ""
        if not _NUMBER.fullmatch(at) or float(at) > 1:
            raise _error(text, f"{name}@r with a share r from 0 to 1, such as {name}@0.1")
        params = ", ".join(part for part in (f"recall={at}", params) if part)
        return Metric(name, None, _parse_params(text, params, definition))
    cut = None if match["cut"] is None else _whole_number(match["cut"])
    if match["cut"] is not None and cut is None:
        raise _error(text, f"a cut-off from 1 to {_LARGEST:,}")
    if cut is None and definition.cut == "required":
        raise _error(text, f"{name}@k, such as {name}@10")
    if cut is not None and definition.cut == "refused":
        raise _error(text, f"{name} without a cut-off")
    return Metric(name, cut, _parse_params(text, params, definition))


def _alias(name: str) -> str | None:
    """Ours that a name of another tool, or one in other letters, stands for; None where a plug-in
    or a slot's metric has exactly these letters."""
    low = name.lower()
    ours = ALIASES.get(low)
    if ours is not None and ours.lower() != low:
        return ours
    if name in (slots := of_slots()) or name in plugins.names("metric"):
        return None
    return ours or {slot.lower(): slot for slot in slots}.get(low)


def label_of(metric: Metric | str) -> str:
    """The name that people use on a screen: MRR@10 for RR@10, MAP for AP, recall@100 for R@100;
    :func:`parse_metric` reads it, too."""
    return _LABELLED.sub(lambda name: _LABELS[name[0]], str(metric), count=1)


def named(names: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics that ``names`` stand for, repeated ones once, in the given order; a name of
    trec_eval's may stand for several."""
    rows = (expanded(name) or (Row(name, name),) for name in names)
    given = (row.metric for several in rows for row in several)
    return tuple(dict.fromkeys(parse_metric(name) for name in given if name))


def parse_metrics(names: Sequence[str], where: str = "--metrics") -> tuple[Metric, ...]:
    """:func:`named` for what is compared.

    Raises:
        ConfigError: also for a metric of which more is not better.
    """
    metrics = named(names)
    for metric in metrics:
        if not metric.compared:
            raise ConfigError(
                f"metric {str(metric)!r}",
                where=where,
                accepted="metrics of which more is better: it counts, or describes, and ranks none",
                fix="leave it out, or ask `retrieval-bench score run` for it",
            )
    return metrics


def one_metric(name: str) -> Metric:
    """The metric that systems are compared by, where there is one.

    Raises:
        ConfigError: as :func:`parse_metrics`; also for a name of several, such as ``P.5,10``.
    """
    metrics = parse_metrics([name], "--metric")
    if len(metrics) != 1:
        these = ", ".join(map(str, metrics)) or "none"
        raise ConfigError(
            f"metric {name!r}",
            where="--metric",
            accepted=f"one metric, such as nDCG@10; this names {these}",
            fix="name one",
        )
    return metrics[0]


def check_defined(
    metrics: Iterable[Metric], qrels: Qrels, where: str = "--metrics", fix: str = ""
) -> None:
    """Refuse metrics that have no meaning for these judgements.

    Args:
        where, fix: of the error.

    Raises:
        ConfigError: one is of documents, and truth is by rule, or the other way round.
    """
    nothing = judge_lists({}, (), Judgements(dict(islice(qrels.items(), 1))))
    try:
        for metric in metrics:
            if nothing.defined or metric.name in of_slots():
                metric.compute(nothing)
    except ConfigError as problem:
        given, accepted, fix = problem.given, problem.accepted, fix or problem.fix
        raise ConfigError(given, where=where, accepted=accepted, fix=fix) from None


def default_metrics(k: int, qrels: Qrels = EMPTY) -> tuple[Metric, ...]:
    """Choose the metrics where none are asked for: quality near the top, and recall at k; where
    truth is by rule, what is defined for slots."""
    if kind := kind_of_truth(qrels):
        return parse_metrics(service(f"choose metrics of {kind}")(k, qrels))
    names = [f"nDCG@{min(k, 10)}", f"AP@{k}", f"RR@{k}", f"R@{k}", "Success@1"]
    if k >= 100:
        names.append("R@100")
    return parse_metrics(names)


def of_slots() -> Mapping[str, Definition]:
    """Metrics that are defined where truth is by rule or by spans, and nowhere else."""
    return {
        name: definition
        for kind in truths.TRUTHS
        for name, definition in (offered(f"metrics of {kind}") or {}).items()
    }


def _definition(name: str, given: str | None = None) -> Definition:
    known = DEFINITIONS.get(name)
    if known is not None:
        return known
    if name in (slots := of_slots()):
        return slots[name]
    if ":" in name:
        with folder_kept():
            return _as_definition(plugins.load(name), given or name)
    try:
        with folder_kept():
            metric: Any = plugins.resolve("metric", name)
    except PluginError:
        names = {*DEFINITIONS, *of_slots(), *plugins.names("metric")}
        offered = _offered(given or name)
        near = f"{offered}all: {', '.join(sorted(names))}" if offered else near_names(name, names)
        raise _error(given or name, near) from None
    return _as_definition(metric, given or name)


def _as_definition(metric: Any, given: str) -> Definition:
    """Define the metric that a plug-in or ``module:name`` leads to; a plain function takes a
    cut-off or none."""
    if isinstance(metric, Definition):
        return metric
    if callable(metric) and not inspect.isclass(metric):
        return Definition(metric, "optional")
    raise _error(
        given, "a retrieval_bench.metrics.Definition, or a function (run, cut) -> one value a query"
    )


def _spelled_out(text: str) -> str:
    """trec_eval writes ``recall_100``, its option -m ``recall.100``, all others ``recall@100``;
    ranx writes ``rbp.95``; ir_measures counts relevant hits as ``NumRet(rel=1)``."""
    if match := _RANX_RBP.fullmatch(text):
        return f"RBP(p=0.{match[1]})"
    rows = [row.metric for row in expanded(text) if row.metric]
    if len(rows) > 1:
        raise _error(text, f"one metric, such as {rows[0]}: this names {len(rows)}")
    return rows[0] if rows else _RETURNED_RELEVANT.sub("NumRelRet(", text)


def _kinds(definition: Definition) -> Mapping[str, Kind]:
    return {**definition.params, **EVERYWHERE, **definition.params}


def _parse_params(text: str, params: str, definition: Definition) -> tuple[tuple[str, Param], ...]:
    parsed: dict[str, Param] = {}
    kinds = _kinds(definition)
    for part in filter(None, map(str.strip, _PART.findall(params))):
        key, equals, value = (piece.strip().strip("'\"") for piece in part.partition("="))
        key, value = _PARAM_ALIASES.get((key, value), (key, value))
        kind = kinds.get(key)
        if not equals or kind is None:
            raise _error(text, "parameters " + ", ".join(kinds))
        if key in parsed:
            raise _error(text, f"{key} once")
        parsed[key] = _parse_value(text, key, value, kind)
    of_compute = inspect.signature(definition.compute).parameters
    for key in definition.params:
        needed = key in of_compute and of_compute[key].default is inspect.Parameter.empty
        if needed and key not in parsed:
            raise _error(text, f"a value for {key}, such as {_example(text, key)}")
    return _kept(parsed, definition)


def _kept(params: Mapping[str, Param], definition: Definition) -> tuple[tuple[str, Param], ...]:
    """Return them in their order; equal metrics are equal: a default that is written out is not
    kept."""
    defaults = {
        key: parameter.default
        for key, parameter in inspect.signature(definition.compute).parameters.items()
    }
    defaults.setdefault("judged_only", False)
    return tuple(
        (key, value)
        for key, value in sorted(params.items())
        if key not in defaults or defaults[key] != value
    )


def _parse_value(text: str, key: str, value: str, kind: Kind) -> Param:
    if isinstance(kind, tuple):
        if value not in kind:
            raise _error(text, f"{key} = {' or '.join(kind)}")
        return value
    read, accepted = _READERS[kind]
    parsed = read(value)
    if parsed is None:
        raise _error(text, f"{key} = {accepted}")
    return parsed


def _share(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) and 0 < float(text) < 1 else None


def _yes_or_no(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _numbers(text: str) -> tuple[float, ...] | None:
    inner = re.fullmatch(r"\[(.*)\]", text)
    parts = [part.strip() for part in inner[1].split(",")] if inner else [""]
    return tuple(map(float, parts)) if all(map(_SIGNED.fullmatch, parts)) else None


def _grade_gains(text: str) -> tuple[tuple[int, float], ...] | None:
    inner = re.fullmatch(r"\{(.*)\}", text)
    pairs = [part.partition(":")[::2] for part in inner[1].split(",")] if inner else []
    gains: dict[int, float] = {}
    for grade, gain in ((grade.strip(), gain.strip()) for grade, gain in pairs):
        if not re.fullmatch(r"[0-9]{1,9}", grade) or not _SIGNED.fullmatch(gain):
            return None
        gains[int(grade)] = float(gain)
    return tuple(sorted(gains.items())) if len(gains) == len(pairs) > 0 else None


def _whole_number(text: str) -> int | None:
    """A number that a cut-off or a grade can be, None for any other."""
    digits = text.lstrip("0")
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_LARGEST))
    return int(digits) if fits and int(digits) <= _LARGEST else None


_READERS: Mapping[Kind, tuple[Callable[[str], Param | None], str]] = {
    int: (_whole_number, f"a whole number from 1 to {_LARGEST:,}"),
    float: (_share, "a number between 0 and 1"),
    bool: (_yes_or_no, "True or False"),
    "number": (_number, "a number from 0 on"),
    "numbers": (_numbers, "numbers in brackets, such as [1,-1,0,0]"),
    "gains": (_grade_gains, "gains of grades, such as {1:3.5,2:9}"),
}


def _written(value: Param) -> str:
    """Write it without an exponent, which names do not have."""
    if isinstance(value, float):
        return np.format_float_positional(value, trim="-")
    if not isinstance(value, tuple):
        return str(value)
    pairs = [part if isinstance(part, tuple) else (part,) for part in value]
    inner = ",".join(":".join(map(_written, pair)) for pair in pairs)
    return f"{{{inner}}}" if any(len(pair) > 1 for pair in pairs) else f"[{inner}]"


def _example(text: str, key: str) -> str:
    name, at, cut = text.strip().partition("@")
    return f"{name.partition('(')[0]}({key}=0.8){at}{cut}"


def _offered(text: str) -> str:
    """The question whether what another tool calls ``text`` is meant; empty where none does."""
    meant = offered("say which metric is meant")
    return f"did you mean {ours}? " if meant and (ours := meant(text)) else ""


def _error(text: str, accepted: str) -> ConfigError:
    return ConfigError(
        f"metric {text!r}", where="--metrics", accepted=accepted, fix="write it as accepted"
    )
