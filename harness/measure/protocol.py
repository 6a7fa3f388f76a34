"""What is run how often: the numbers of a measurement, decided before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import ConfigError
from harness.stats import SEED

WARM_UP_CALLS = 50
WARM_UP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """Parameters of a measurement; the defaults support p50, p95 and p99.

    Attributes:
        min_calls: measured calls per retriever, reached by repeating all queries in rounds.
        rounds: measured rounds, instead of ``min_calls``.
        max_calls: never make more calls than this per retriever, warm-up included.
        timeout_s: a call that takes longer is a failed one; None = no limit.
        threads: threads that numerical libraries may use during timed searches.
        seed: of the order of queries.
    """

    min_calls: int = 1_000
    rounds: int | None = None
    max_calls: int | None = None
    timeout_s: float | None = 60.0
    threads: int = 1
    seed: int = SEED

    def __post_init__(self) -> None:
        for name in ("min_calls", "rounds", "max_calls", "timeout_s", "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(
                    f"{name.replace('_', '-')} = {value}",
                    accepted="a number above 0",
                    fix=f"correct --{name.removesuffix('_s').replace('_', '-')}",
                )

    def as_dict(self) -> dict[str, Any]:
        """All parameters, for the manifest."""
        return asdict(self) | {"warm_up_calls": WARM_UP_CALLS, "warm_up_seconds": WARM_UP_SECONDS}


@dataclass(frozen=True, slots=True)
class Plan:
    """How many calls a measurement makes per retriever; ``warm_up`` is an upper bound."""

    n_queries: int
    rounds: int
    warm_up: int

    @property
    def measured(self) -> int:
        """Timed calls."""
        return self.rounds * self.n_queries

    @property
    def total(self) -> int:
        """All calls, at most."""
        return self.measured + self.warm_up


def plan(protocol: Protocol, n_queries: int) -> Plan:
    """The calls that ``protocol`` makes over ``n_queries`` queries.

    One round comes first, since without it there is no ranking; then more rounds; what
    ``max_calls`` leaves after that goes into the warm-up of at least one full pass and 50 calls.

    Raises:
        ConfigError: ``max_calls`` does not allow one call per query.
    """
    rounds = protocol.rounds or max(1, -(-protocol.min_calls // n_queries))
    warm_up = max(n_queries, WARM_UP_CALLS)
    if protocol.max_calls is not None:
        if protocol.max_calls < n_queries:
            raise ConfigError(
                f"max-calls = {protocol.max_calls} for {n_queries} queries",
                accepted=f"at least {n_queries}, one call per query",
                fix="raise --max-calls, or use a dataset with fewer queries",
            )
        rounds = min(rounds, protocol.max_calls // n_queries)
        warm_up = min(warm_up, protocol.max_calls - rounds * n_queries)
    return Plan(n_queries, rounds, warm_up)
