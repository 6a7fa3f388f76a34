"""Protocol of what is run how often: the numbers of a measurement, decided before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import document
from retrieval_bench.core.config import read_yaml, validate
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.stats.resampling import SEED

WARM_UP_CALLS = 50
"""The warm-up makes at least so many calls, and one full pass."""

_MOST = 1_000_000_000
"""Calls, rounds, launches or threads: more are a slip of the key, and beyond all arithmetic."""

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"rounds": 1, "warm_up_s": 1.0},
    "default": {},
    "release": {"min_calls": 10_000, "launches": 5},
}
"""Name -> the parameters in which a profile differs from the defaults below: does it run at all;
everyday figures; figures to be published, with several processes and a p99 that may gate."""

RANKINGS_ONLY = "rankings"
"""Profile of a run whose times say nothing: every query is asked once, cold, for its ranking."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Parameters of a measurement; the defaults support p50, p95 and p99.

    Attributes:
        profile: which set of parameters these were taken from.
        min_calls: measured calls per retriever, all launches together, reached by repeating all
            queries in rounds.
        rounds: measured rounds of each launch, instead of ``min_calls``.
        max_calls: never make more calls than this per retriever, warm-up included.
        launches: fresh processes, one after the other, each with its share of the calls; 0 =
            measure in this process.
        warm_up_s: the warm-up ends after so many seconds for each system, steady or not.
        timeout_s: a call that takes longer is a failed one; None = no limit.
        max_s: no round begins after so many seconds, warm-up included; a first round that takes
            longer ends the measurement where it is. None = no limit.
        max_cost: no call is made that might take the money spent above this, warm-up included, in
            the currency of the usage that is reported; None = no limit.
        threads: threads that numerical libraries may use during timed searches.
        collector: leave Python's garbage collector on during timed calls, as a server has it.
        levels: percentiles to report.
        seed: of the order of queries.
    """

    profile: str = "default"
    min_calls: int = 1_000
    rounds: int | None = None
    max_calls: int | None = None
    launches: int = 0
    warm_up_s: float = 10.0
    timeout_s: float | None = 60.0
    max_s: float | None = None
    max_cost: float | None = None
    threads: int = 1
    collector: bool = False
    levels: tuple[float, ...] = (50.0, 95.0, 99.0)
    seed: int = SEED

    def __post_init__(self) -> None:
        above = ("min_calls", "rounds", "max_calls", "timeout_s", "max_s", "max_cost", "threads")
        for name in above:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise _refused(name, value, "a number above 0")
        for name in ("launches", "warm_up_s", "seed"):
            if not getattr(self, name) >= 0:
                raise _refused(name, getattr(self, name), "0 or more")
        for name in ("min_calls", "rounds", "max_calls", "launches", "threads"):
            value = getattr(self, name)
            if value is not None and value > _MOST:
                raise _refused(name, f"{str(value)[:12]}...", f"up to {_MOST:,}")
        wrong = [level for level in self.levels if not 0 < level < 100]
        if wrong or not self.levels:
            raise _refused("levels", wrong or "none", "percentiles above 0 and below 100")

    @classmethod
    def of(cls, profile: str = "default", **given: Any) -> Protocol:
        """The protocol of a profile, with what is ``given`` and not None in place of its own.

        Args:
            profile: a name of :data:`PROFILES`, or a YAML file with parameters of this class.

        Raises:
            ConfigError: no such profile; an unknown key; a number that makes no sense.
        """
        file = Path(profile) if profile.endswith((".yaml", ".yml")) else None
        own = dict(_named(profile)) if file is None else parameters(read_yaml(file), str(file))
        chosen = {name: value for name, value in given.items() if value is not None}
        if "min_calls" in chosen:
            own.pop("rounds", None)
        return cls(profile=profile, **own | chosen)

    def as_dict(self) -> dict[str, Any]:
        """All parameters, for the manifest."""
        return document(self) | {"warm_up_calls": WARM_UP_CALLS}


@dataclass(frozen=True, slots=True)
class Plan:
    """Number of calls that a measurement makes per retriever.

    Attributes:
        rounds: of each launch.
        warm_up: least calls of a launch's warm-up, fewer only where ``max_calls`` forbids them.
        warm_up_most: most calls of it, None where only the clock ends it.
        launches: processes, at least 1.
    """

    n_queries: int
    rounds: int
    warm_up: int
    warm_up_most: int | None = None
    launches: int = 1

    @property
    def measured(self) -> int:
        """Timed calls of a launch."""
        return self.rounds * self.n_queries

    @property
    def total(self) -> int:
        """Calls of a launch, with the least warm-up."""
        return self.measured + self.warm_up


def plan(protocol: Protocol, n_queries: int) -> Plan:
    """The calls that ``protocol`` makes over ``n_queries`` queries.

    One round comes first, since without it there is no ranking; then more rounds; what
    ``max_calls`` leaves after that goes into the warm-up of at least one full pass and 50 calls.

    Raises:
        ConfigError: ``max_calls`` does not allow one call per query and launch.
    """
    launches = max(1, protocol.launches)
    per_launch = -(-protocol.min_calls // launches)
    rounds = protocol.rounds or max(1, -(-per_launch // n_queries))
    warm_up = max(n_queries, WARM_UP_CALLS)
    if protocol.max_calls is None:
        return Plan(n_queries, rounds, warm_up, None, launches)
    allowed = protocol.max_calls // launches
    if allowed < n_queries:
        raise ConfigError(
            f"max-calls = {protocol.max_calls} for {n_queries} queries"
            + (f" in {launches} launches" if launches > 1 else ""),
            accepted=f"at least {n_queries * launches}, one call per query and launch",
            fix="raise --max-calls, or use a dataset with fewer queries",
        )
    rounds = min(rounds, allowed // n_queries)
    most = allowed - rounds * n_queries
    return Plan(n_queries, rounds, min(warm_up, most), most, launches)


def _named(profile: str) -> Mapping[str, Any]:
    if profile in PROFILES:
        return PROFILES[profile]
    raise ConfigError(
        f"profile {profile!r}",
        where="--profile",
        kind="unknown-name",
        accepted=f"{near_names(profile, PROFILES)}; or a YAML file",
        fix="correct the name",
    )


def parameters(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """``content`` as parameters of :class:`Protocol`, each of its type.

    Raises:
        ConfigError: an unknown key, or a value of another type.
    """
    from pydantic import ConfigDict, create_model

    known: dict[str, Any] = {
        field.name: (field.type, field.default)
        for field in fields(Protocol)
        if field.name != "profile"
    }
    checks = create_model("Profile", __config__=ConfigDict(extra="forbid"), **known)
    checked = validate(checks, content, where=where)
    return {name: getattr(checked, name) for name in checked.model_fields_set}


def _refused(name: str, value: Any, accepted: str) -> ConfigError:
    shown = {"levels": "percentiles", "warm_up_s": "warm-up"}.get(name, name.removesuffix("_s"))
    option = shown.replace("_", "-")
    return ConfigError(f"{option} = {value}", accepted=accepted, fix=f"correct --{option}")
