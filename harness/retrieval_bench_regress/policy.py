"""``configs/policy.yaml``: by how much a figure may get worse, and what undecided means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import read_yaml, validate
from retrieval_bench.core.errors import ConfigError, check_known, near_names
from retrieval_bench.core.installed.installation import config_folders, packaged_configs
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench_duet.decision import GATES, acceptable, percent

FILE = "policy.yaml"

OF_SLOTS: Mapping[str, float] = {"SlotR": 0.01, "RR": 0.01, "Clean": 0.001, "Within": 0.001}
"""Largest acceptable drops where truth is by rule, by the names of metrics: a forbidden hit that is
new, or a slot that is filled too late, is one too many."""

OF_WRITES = ("visible_p95", "zombies")
"""Gates of ``regress --writes``, which judges by nothing else. Their limits are shares such as 25%:
by how much the time to visible may be longer, and how many more deleted documents may answer."""

_NO_METRICS = (*GATES, *OF_WRITES)
_PERCENTILE = re.compile(r"p[\d.]+")


class Undecided(StrEnum):
    """Meaning of an undecided gate for the whole."""

    INCONCLUSIVE = "inconclusive"
    PASS = "pass"
    FAIL = "fail"


class Rise(StrEnum):
    """Meaning of a figure of quality that rose on these queries, where nothing more is shown."""

    PASS = "pass"
    UNDECIDED = "undecided"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Policy(Documented):
    """Limits of what is acceptable.

    Attributes:
        quality: metric -> largest acceptable drop of its mean, above 0.
        latency: name of :data:`.GATES` -> largest acceptable slow-down, a share.
        undecided: what an undecided gate means for the whole.
        source: where it stands.
        rise: whether a gate of quality whose figure rose here is undecided at all; "shown": unless
            it is shown to be better, also where it fell on no query.
        writes: name of :data:`OF_WRITES` -> its limit.
    """

    KEYS = "source limits undecided rise"

    quality: Mapping[Metric, float]
    latency: Mapping[str, float]
    undecided: Undecided = Undecided.INCONCLUSIVE
    source: str = ""
    rise: Rise = Rise.PASS
    writes: Mapping[str, float] = field(default_factory=dict)

    def require(self, *limits: Mapping[Any, float], of: str) -> None:
        """Refuse to judge by none of these limits.

        Raises:
            ConfigError: all are empty.
        """
        if not any(limits):
            raise ConfigError(
                "a policy by whose limits nothing would be judged",
                where=self.source,
                accepted=f"limits on {of}",
                fix="add one, or name another --policy",
            )

    def for_slots(self, defined: Sequence[Metric]) -> Policy:
        """The policy that came with this project, with limits of what slots have in place of those
        on documents; a user's own stays as it is."""
        if not Path(self.source).is_relative_to(packaged_configs()):
            return self
        quality = {m: OF_SLOTS[m.name] for m in defined if m.name in OF_SLOTS}
        return replace(self, quality=quality if self.quality else {})

    @property
    def limits(self) -> dict[str, float]:
        """Limits by gate: of a metric its largest acceptable drop (below 0), of latency its largest
        slow-down, then those of writes."""
        drops = {str(metric): -drop for metric, drop in self.quality.items()}
        return drops | dict(self.latency) | dict(self.writes)


class _File(BaseModel):
    """The file, as it stands; all of its faults are told at once."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    limits: dict[str, Any]
    undecided: str = Undecided.INCONCLUSIVE.value
    rise: str = Rise.PASS.value

    @field_validator("limits")
    @classmethod
    def _limits_make_sense(cls, limits: dict[str, Any]) -> dict[str, Any]:
        wrong = {name: fault for name, limit in limits.items() if (fault := _fault(name, limit))}
        faults = [*wrong.values()]
        if not limits:
            faults.append("none: nothing would be judged")
        if not faults:
            metrics = [str(parse_metric(name)) for name in limits if name not in _NO_METRICS]
            twice = sorted({name for name in metrics if metrics.count(name) > 1})
            faults += [f"{name} is there twice, under two names" for name in twice]
        if faults:
            listed = "".join(f"\n    - {fault}" for fault in faults)
            keys = [*wrong][:1]  # the place of the first
            raise PydanticCustomError("limits", "{listed}", {"listed": listed, "keys": keys})
        return limits

    @field_validator("undecided", "rise")
    @classmethod
    def _known_word(cls, word: str, of: ValidationInfo) -> str:
        known = list(Undecided if of.field_name == "undecided" else Rise)
        if word not in known:
            near = near_names(word, known)
            raise PydanticCustomError(
                "word", "{given}: {near}", {"given": repr(word), "near": near}
            )
        return word


def find_policy(name: str | None = None) -> Path | None:
    """``configs/policy.yaml``, or ``configs/policy-NAME.yaml``: the user's, or the one that came
    with this project; None where there is none."""
    file = FILE if name is None else f"policy-{name}.yaml"
    folders = (folder / file for folder in config_folders(""))
    return next((path for path in folders if path.is_file()), None)


def load_policy(path: Path | None = None, *, k: int | None) -> Policy:
    """The policy in ``path``, or the one that :func:`find_policy` gives.

    Args:
        path: a file, or the NAME of a ``configs/policy-NAME.yaml``.
        k: hits per query; a metric that looks deeper cannot be judged; None = none is.

    Raises:
        ConfigError: unreadable, or all that is wrong in it.
    """
    named = path is None or (len(path.parts) == 1 and not path.suffix and not path.is_file())
    policy_file = find_policy(None if path is None else path.name) if named else None
    if named and path is not None and policy_file is None:
        files = (file for folder in config_folders("") for file in folder.glob("policy-*.yaml"))
        known = sorted({file.stem.removeprefix("policy-") for file in files})
        fix = "name one of these, or a YAML file"
        check_known(path.name, known, f"no policy {path.name!r}", where="--policy", fix=fix)
    path = policy_file or user_path(path or FILE)
    read = validate(_File, read_yaml(path), where=str(path))
    quality = {
        parse_metric(name): -float(limit)
        for name, limit in read.limits.items()
        if name not in _NO_METRICS
    }
    deep = [metric for metric in quality if k is not None and (metric.cut or 0) > k]
    if deep:
        raise ConfigError(
            f"limits for {', '.join(map(str, deep))} with k = {k}",
            where=str(path),
            accepted=f"cut-offs up to k = {k}",
            fix=f"raise --k to {max(metric.cut or 0 for metric in deep)}, or name another --policy",
        )
    latency = {name: acceptable(name, read.limits[name]) for name in GATES if name in read.limits}
    writes = {name: percent(read.limits[name]) or 0.0 for name in OF_WRITES if name in read.limits}
    how = (Undecided(read.undecided), str(path), Rise(read.rise))
    return Policy(quality, latency, *how, writes)


def _fault(name: str, limit: Any) -> str:
    """Say what is wrong with one limit; empty when nothing is."""
    if name in GATES:
        return _latency_fault(name, limit)
    if name in OF_WRITES:
        wrong = f"{name}: {limit!r} is no share: write one such as 25%"
        return wrong if percent(limit) is None else ""
    if _PERCENTILE.fullmatch(name):
        return (
            f"{name}: no gate of that name: {', '.join(GATES)}. Other percentiles take more "
            "queries and calls than a gate can make"
        )
    try:
        metric = parse_metric(name)
    except ConfigError as problem:
        plain = name.partition("@")[0].partition("(")[0]
        if plain in DEFINITIONS:
            return f"{name}: {problem.accepted}"
        return f"unknown limit {name!r}: {near_names(plain, [*_NO_METRICS, *DEFINITIONS])}"
    return _quality_fault(metric, limit)


def _quality_fault(metric: Metric, limit: Any) -> str:
    if not metric.compared:
        return f"{metric}: it counts, or describes, and more of it is not better"
    if metric.geometric:
        return f"{metric}: its mean is geometric, so that no drop means the same everywhere"
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not -1 < limit < 0:
        return (
            f"{metric}: {limit!r} is no largest acceptable drop: write a number below 0 and above "
            "-1, such as -0.01"
        )
    return ""


def _latency_fault(name: str, limit: Any) -> str:
    try:
        acceptable(name, limit)
    except ValueError as problem:
        return f"{name}: {problem}"
    return ""
