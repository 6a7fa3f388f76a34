"""The account of a run as types: what ``summary.json`` holds, and all that is shown is made from.

Times are in milliseconds. A fact that is not there was not said: it has its default here, and is
not written. What another version has beside is kept and written back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    InstanceOf,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from retrieval_bench.core.document import plain
from retrieval_bench.core.notices import from_document, with_text
from retrieval_bench.core.selves import KEEP
from retrieval_bench.core.types import Usage
from retrieval_bench.metrics.tied import TieEffect

Text = InstanceOf[str]
"""A name or a sentence as it was given: with its code if it has one, whatever characters it has."""


def _coded(entries: Any) -> Any:
    return from_document(entries) if isinstance(entries, list | tuple) else entries


_LEVEL = re.compile(r"p[\d.]+")


class Facts(BaseModel):
    """Facts under names that stay."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    def document(self) -> dict[str, Any]:
        """For JSON: what was said, in the order of the fields."""
        return dict(plain(self.model_dump(exclude_unset=True)))

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
        found: dict[str, Any] = {}
        for name, fact in handler(self).items():
            found.update(fact if name == "levels" else {name: fact})
        return found


class DatasetFacts(Facts):
    """Of what the queries and judgements are.

    Attributes:
        n_documents: None where there is no corpus.
        n_queries: that count in means.
        n_without_relevant: of these, queries without a relevant document.
        judges: who made the judgements -> "person", "model" or "dataset".
        known_items: of how many questions one document is known to be right, and the share of their
            words that it has.
        drawn_from: queries from which these were chosen by how much systems differ on them; None
            where they were not.
        n_not_run: queries of the dataset that this run had no reason to ask.
    """

    name: Text = "?"
    split: Text = "?"
    language: Text | None = None
    fingerprint: str = "?"
    n_documents: int | None = None
    n_queries: int = 0
    n_unanswerable: int = 0
    n_without_relevant: int = 0
    judges: dict[Text, str] = {}
    known_items: dict[str, float] | None = None
    drawn_from: int | None = None
    self_hits: str = KEEP
    n_not_run: int = 0


class MeanFacts(Facts):
    """The mean of a metric over ``n`` queries, with its 95 % interval."""

    mean: float | None
    ci95: tuple[float, float] | None = None
    n: int = 0


class HitFacts(Facts):
    """Where nothing is judged: hits of the ``n`` answered queries."""

    n: int
    mean: float | None
    fewer_than_k: int
    none: int


class Unanswerable(Facts):
    """Queries that no document answers: ``n`` were run, ``returned_hits`` of them got hits; and how
    well empty lists tell them from the others."""

    n: int = 0
    returned_hits: int = 0
    false_empty: int | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None


class PercentileFacts(Facts):
    """A percentile in milliseconds; None for the ``reason``. It ``gates`` a regression where its
    interval holds for any launch."""

    value: float | None = None
    ci95: tuple[float, float] | None = None
    gates: bool = False
    reason: str = ""


class FirstVisitFacts(Facts):
    """The first call of a query as a multiple of its later ones, the median over ``n``."""

    ratio: float | None = None
    n: int = 0


class MixFacts(Levels):
    """Percentiles over ``n`` queries, each by its median."""

    n: int = 0
    levels: dict[str, PercentileFacts] = {}


class LatencyFacts(Levels):
    """Times of calls; see :class:`.LatencyReport`. All are None where they say nothing.

    Attributes:
        levels: of family "call", over all calls.
        warm_up_calls: before the measured ones.
        steady_after: calls after which times no longer fell; None where they still did.
        overhead: of one measured call, by the clock and the loop.
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
    levels: dict[str, PercentileFacts] = {}
    intervals: str = ""
    mix: MixFacts = MixFacts()
    warm_up_calls: int = 0
    steady_after: int | None = None
    overhead: float | None = None

    def at(self, level: str) -> PercentileFacts:
        """What is said of a percentile, ``p50``; nothing of one that was not asked for."""
        return self.levels.get(level, PercentileFacts())


class TimesFacts(Facts):
    """Milliseconds over ``n`` calls."""

    mean: float
    p50: float
    p95: float | None = None
    n: int = 0


class StageFacts(TimesFacts):
    """A stage: its ``share`` of the time of all calls, and whether calls are ``direct``ly made of
    it."""

    share: float = 0.0
    direct: bool = True


class LegFacts(TimesFacts):
    """The call of a leg; see :class:`.Leg`."""

    longest: int = 0
    longest_in_tail: int = 0
    extra_in_tail: float | None = None


class LegsFacts(Facts):
    """Legs one after the other against side by side; see :class:`.Legs`."""

    n: int
    tail: int
    overlapping: int
    decisive: Text | None
    measured: Literal["parallel", "serial"]
    serial: TimesFacts
    parallel: TimesFacts
    of: dict[Text, LegFacts]


class UsageFacts(Facts):
    """What answers used up; see :func:`.usage_document`. A kind that nobody tells is None."""

    n: int
    silent: int
    per_query: dict[str, float | None]
    money_per_1000_queries: float | None
    stages: dict[Text, dict[str, float | None]]
    spent: Usage | None = None


class PartFacts(Facts):
    """A part of the retriever that was left out; see :class:`.Part`.

    Attributes:
        known: whether the rankings without it are.
        asked: calls that were made for it.
        why: it is not known; empty where it is.
    """

    name: Text
    kind: str
    instead: Text = ""
    stages: tuple[Text, ...] = ()
    beside: tuple[Text, ...] = ()
    share: float = 1.0
    timed: bool = True
    gets: Text = ""
    gives: Text = ""
    known: bool = True
    asked: int = 0
    why: Text = ""


class IndexFacts(Facts):
    """What indexing took; None where it is not known, or nothing was indexed."""

    seconds: float | None = None
    peak_rss_bytes: int | None = None
    disk_bytes: int | None = None


class ServerFacts(Facts):
    """What the process of a service took while calls were timed."""

    pid: int
    processes: int
    memory_bytes: int | None
    cpu_seconds: float | None
    cpu_ms_per_call: float | None


class FilterFacts(Facts):
    """What filters did.

    Attributes:
        queries: that have a filter, of those that were answered.
        leaked: hits of these that their filter does not allow; None where there is no corpus to
            tell by.
        leaking: queries with such a hit; None likewise.
        applied: the retriever says that it applies filters.
    """

    queries: int
    leaked: int | None
    leaking: int | None
    applied: bool


class ToAnswerFacts(Levels):
    """Milliseconds from a question to its answer, over ``n`` queries, failed calls and waiting
    included."""

    n: int
    mean: float | None
    max: float | None
    levels: dict[str, float | None] = {}


class AttemptFacts(Facts):
    """Calls that failed, by kind, and what became of their queries."""

    failed: dict[str, int]
    recovered: int
    asked_again: int
    given_up: int
    to_answer_ms: ToAnswerFacts | None


class AnsweredFacts(Facts):
    """Means without the queries that failed."""

    n: int
    metrics: dict[Text, MeanFacts]


class UntilFacts(Facts):
    """How far a measurement until decided came, and of what (``target``) something was decided."""

    target: str
    queries: int
    asked: int
    interrupted: bool = True


class Summary(Facts):
    """What ``summary.json`` holds.

    Attributes:
        run_id: empty while it is not saved.
        status: "complete" or "partial": there are queries that were not asked.
        k: hits asked for.
        tie_rule: how equal scores are ordered, in words.
        metrics: name -> its mean.
        judged: ``Judged@k`` -> its mean.
        ties: what equal scores decide; None where that is little, or not known.
        hits: None where queries are judged.
        stages_ms: name -> stage of a call.
        legs: of a hybrid; None for any other retriever.
        n_collapsed: hits that were not kept since another one of their document was there.
        n_self_hits: hits on the query itself that were dropped.
        n_failed: queries.
        n_unreached: queries of a partial run.
        health: facts that the retriever says of itself.
        until_decided: None for a run that asked all.
    """

    run_id: Text = ""
    schema_version: int = 0
    status: str = "complete"
    retriever: Text
    dataset: DatasetFacts
    k: int
    convention: str = "?"
    tie_rule: str = "?"
    metrics_version: int = 0
    metrics: dict[Text, MeanFacts] = {}
    judged: dict[str, float] = {}
    ties: TieEffect | None = None
    hits: HitFacts | None = None
    unanswerable: Unanswerable = Unanswerable()
    latency_ms: LatencyFacts = LatencyFacts()
    stages_ms: dict[Text, StageFacts] = {}
    legs: LegsFacts | None = None
    usage: UsageFacts | None = None
    parts: tuple[PartFacts, ...] = ()
    index: IndexFacts = IndexFacts()
    server: ServerFacts | None = None
    filters: FilterFacts | None = None
    n_collapsed: int = 0
    n_self_hits: int = 0
    n_failed: int = 0
    n_unreached: int = 0
    attempts: AttemptFacts | None = None
    answered: AnsweredFacts | None = None
    health: list[Text] = []
    warnings: Annotated[list[Text], BeforeValidator(_coded)] = []
    until_decided: UntilFacts | None = None

    def with_texts(self, changed: Callable[[str], str]) -> Summary:
        """The same with all that is free text ``changed``: what the retriever says of itself, and
        the warnings, which keep their codes."""
        health = [with_text(text, changed(str(text))) for text in self.health]
        warnings = [with_text(text, changed(str(text))) for text in self.warnings]
        return self.replace(health=health, warnings=warnings)
