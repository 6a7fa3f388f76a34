"""The account of a run: what its facts are, and those on its times.

A fact keeps its name, and is left out where nobody said it. Times are in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    InstanceOf,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from retrieval_bench.core.as_json.document import (
    LEFT_OUT,
    MISSING,
    SPREAD,
    WHOLE,
    Spelt,
    is_abridged,
    plain,
)

Text = InstanceOf[str]
"""A name or a sentence as it was given: with its code if it has one, whatever characters it has."""

_LEVEL = re.compile(r"p[\d.]+")

Level = Annotated[str, Spelt(rf"^{_LEVEL.pattern}$")]
"""The name of a percentile."""

T = TypeVar("T")

Whole = Annotated[T, WHOLE]
"""A fact that ``--format json`` has with ``--full``."""

Maybe = Annotated[T | None, LEFT_OUT]
"""A fact that is not said where there is none."""


class Facts(BaseModel):
    """Facts under names that stay."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what was said, in the order of the fields."""
        fields = type(self).model_fields.items() if is_abridged() else ()
        hidden = {name for name, field in fields if WHOLE in field.metadata}
        return dict(plain(self.model_dump(exclude_unset=True, exclude=hidden)))

    def replace(self, **facts: Any) -> Self:
        """The same with other ``facts``."""
        said = {name: vars(self)[name] for name in self.model_fields_set if name in vars(self)}
        return type(self).model_validate(said | (self.model_extra or {}) | facts)


class Levels(Facts):
    """Facts among which percentiles stand under their names (``p50``, ``p99.9``); here they are the
    field ``levels``, which each class has in its place."""

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "levels" in given:
            return given
        levels = {name: given[name] for name in given if _LEVEL.fullmatch(name)}
        return {**{name: given[name] for name in given if name not in levels}, "levels": levels}

    @model_serializer(mode="wrap")
    def _spread(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        spread: dict[str, Any] = {}
        for name, fact in handler(self).items():
            spread.update(fact if name == "levels" else {name: fact})
        return spread


class PercentileFacts(Facts):
    """A percentile in milliseconds; None for the ``reason``. It ``gates`` a regression where its
    interval holds for any launch.

    Attributes:
        value: in milliseconds; None for the ``reason``.
        ci95: its 95 % interval.
        gates: whether the sample is large enough to decide a regression.
        reason: why there is no value.
    """

    value: float | None = None
    ci95: tuple[float, float] | None = None
    gates: bool = False
    reason: Annotated[str, MISSING] = ""


class FirstVisitFacts(Facts):
    """The first call of a query as a multiple of its later ones, the median over ``n``.

    Attributes:
        ratio: of a query's first call to its later ones, the median.
        n: queries.
    """

    ratio: float | None = None
    n: int = 0


class MixFacts(Levels):
    """Percentiles over ``n`` queries, each by its median.

    Attributes:
        n: queries.
    """

    n: int = 0
    levels: Annotated[dict[Level, PercentileFacts], SPREAD] = {}


class LatencyFacts(Levels):
    """Times of calls, failed ones included. All are None where they say nothing.

    Attributes:
        warm_up_calls, steady_after: calls before the measured ones; after how many of them times
            had settled, None when they had not.
        overhead: what the same measurement says of a retriever that does nothing; not subtracted.
        family: "call": what follows is over all measured calls.
        n, rounds, launches, failed_calls: measured calls, rounds of a launch, processes, calls that
            failed.
        mean, min, max, sd: of calls.
        throughput: calls a second of one client.
        stalls: calls that took far longer than their query does; None where no query has three
            calls.
        first_visit: a query's first call beside its later ones.
        intervals: what the intervals hold for, in words.
        mix: the percentiles over queries.
        levels: of family "call", over all calls.
    """

    family: str = "call"
    n: int = 0
    rounds: int = 0
    launches: int = 0
    failed_calls: int = 0
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    sd: float | None = None
    throughput: float | None = None
    stalls: int | None = None
    first_visit: FirstVisitFacts = FirstVisitFacts()
    levels: Annotated[dict[Level, PercentileFacts], SPREAD] = {}
    intervals: str = ""
    mix: MixFacts = MixFacts()
    warm_up_calls: int = 0
    steady_after: int | None = None
    overhead: float | None = None

    def at(self, level: str) -> PercentileFacts:
        """Return the facts on a percentile, ``p50``; nothing of one that was not asked for."""
        return self.levels.get(level, PercentileFacts())


class TimesFacts(Facts):
    """Milliseconds over ``n`` calls.

    Attributes:
        mean, p50, p95: milliseconds; a percentile is None of too few calls.
        n: calls.
    """

    mean: float
    p50: float
    p95: float | None = None
    n: int = 0


class StageFacts(TimesFacts):
    """A stage over the calls that report it: its ``share`` of the time of all calls, and whether
    calls are ``direct``ly made of it.

    Attributes:
        share: of total time; a stage that few calls have has a small one.
        direct: the call is made of it directly, not as a part of another stage.
    """

    share: float = 0.0
    direct: bool = True


class LegFacts(TimesFacts):
    """The call of a leg.

    Attributes:
        longest, longest_in_tail: calls in which no other leg takes longer, of all and of those in
            the tail; a tie goes to the leg named first.
        extra_in_tail: milliseconds that the leg takes in the tail above its own median, on average;
            None where it is not known.
    """

    longest: int = 0
    longest_in_tail: int = 0
    extra_in_tail: float | None = None


class LegsFacts(Facts):
    """Legs one after the other against side by side, call by call.

    One of the two was measured. The other is computed from it: the call without its legs, plus
    their sum (serial) or the longest of them (parallel). It takes the legs as they were measured:
    legs that run together slow each other down and wait for threads, so that a computed
    ``parallel`` is what cannot be beaten, and a computed ``serial`` is too high.

    Attributes:
        n, tail: calls in which every leg answered, and those among them above the 95th percentile.
        overlapping: calls whose legs ran at the same time.
        decisive: the leg that decides the tail; None where none does.
        measured: how the legs ran.
        serial, parallel: the call with its legs one after the other, and side by side; one of them
            is computed.
        of: leg -> its calls.
    """

    n: int
    tail: int
    overlapping: int
    decisive: Text | None
    measured: Literal["parallel", "serial"]
    serial: TimesFacts
    parallel: TimesFacts
    of: dict[Text, LegFacts]
