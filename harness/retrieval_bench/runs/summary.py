"""The account of a run as types: what ``summary.json`` holds, and all that is shown is made from.

Times are in milliseconds. A fact that is not there was not said: it has its default here, and is
not written. What another version has beside is kept and written back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator

from retrieval_bench.core.as_json.document import MISSING, SPREAD, WHOLE
from retrieval_bench.core.notices import from_document, with_text
from retrieval_bench.core.types import KEEP, Usage
from retrieval_bench.metrics.tied import TieEffect
from retrieval_bench.runs.timing_facts import (
    Facts,
    LatencyFacts,
    LegsFacts,
    Level,
    Levels,
    Maybe,
    StageFacts,
    Text,
    Whole,
)


def _coded(entries: Any) -> Any:
    return from_document(entries) if isinstance(entries, list | tuple) else entries


class DatasetFacts(Facts):
    """Facts on the queries and judgements.

    Attributes:
        name, split: of the dataset.
        language: of its texts; None where nothing says it.
        n_without_relevant: queries that count, and have no relevant document.
        self_hits: "drop" where hits on the query itself were dropped; None where they were kept.
        fingerprint: of its documents, queries and judgements.
        n_unanswerable: queries that no document answers.
        n_documents: None where there is no corpus.
        n_queries: that count in means.
        judges: who made the judgements -> "person", "model" or "dataset".
        known_items: of how many questions one document is known to be right, and the share of their
            words that it has.
        drawn_from: queries from which these were chosen by how much systems differ on them; None
            where they were not.
        n_not_run: queries of the dataset that this run had no reason to ask.
        cluster_key: of the queries: clusters are the unit of tests and intervals.
        n_clusters: of the queries that count: by ``cluster_key``, or, without it, how many
            different questions they are; None where each is one by itself.
    """

    name: Text = "?"
    split: Text = "?"
    language: Text | None = None
    fingerprint: str = "?"
    n_documents: int | None = None
    n_queries: int = 0
    n_unanswerable: int = 0
    n_without_relevant: int = 0
    judges: Annotated[dict[Text, str], MISSING] = {}
    known_items: Maybe[dict[str, float]] = None
    drawn_from: Maybe[int] = None
    self_hits: Annotated[str, MISSING] = KEEP
    n_not_run: int = 0
    cluster_key: Maybe[str] = None
    n_clusters: Maybe[int] = None


class MeanFacts(Facts):
    """The mean of a metric over ``n`` queries, with its 95 % interval.

    Attributes:
        mean: None when nothing counts.
        ci95: 95 % interval; None below two queries.
        n: queries.
    """

    mean: float | None
    ci95: tuple[float, float] | None = None
    n: int = 0


class HitFacts(Facts):
    """Hits where nothing is judged: those of the ``n`` answered queries.

    Attributes:
        n: answered queries.
        mean: number of hits.
        fewer_than_k, none: queries with fewer hits than were asked for, and with none.
    """

    n: int
    mean: float | None
    fewer_than_k: int
    none: int


class Unanswerable(Facts):
    """Queries that no document answers: ``n`` were run, ``returned_hits`` of them got hits; and how
    well empty lists tell them from the others.

    Attributes:
        n: that were run.
        returned_hits: of these, queries that got hits.
        false_empty: answerable queries that got none.
        precision, recall, f1: of empty lists; None where not defined.
    """

    n: int = 0
    returned_hits: int = 0
    false_empty: Annotated[int | None, MISSING] = None
    precision: Annotated[float | None, MISSING] = None
    recall: Annotated[float | None, MISSING] = None
    f1: Annotated[float | None, MISSING] = None


class UsageFacts(Facts):
    """Amounts that answers used up; see :func:`.usage_document`. A kind that nobody tells is None.

    Attributes:
        spent: all of the measurement, its warm-up included; None for several launches.
        n: answered calls.
        silent: of these, calls that said nothing: they count as nothing.
        per_query: means of tokens_in, tokens_out, calls and money; None where not known.
        money_per_1000_queries: None where not known.
        stages: the same means by stage; "call" is of no stage.
    """

    n: int
    silent: int
    per_query: dict[str, float | None]
    money_per_1000_queries: float | None
    stages: dict[Text, dict[str, float | None]]
    spent: Maybe[Usage] = None


class PartFacts(Facts):
    """A part of the retriever that was left out; see :class:`.Part`.

    Attributes:
        name: of it.
        kind: leg, fusion, rewriting, expansion, weighting, reranker, filter, depth or chunker.
        instead: what stands in its place; empty where nothing does.
        stages: whose time and usage go with it.
        beside: stages that run at the same time.
        share: of the time of ``stages``.
        timed: whether stages say what it takes.
        gets, gives: names of kept lists.
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
    """Cost of indexing; None where it is not known, or nothing was indexed.

    Attributes:
        seconds: that indexing took.
        peak_rss_bytes: memory at most.
        disk_bytes: of its files.
        opened: a saved index was opened, and none built.
    """

    seconds: float | None = None
    peak_rss_bytes: int | None = None
    disk_bytes: int | None = None
    opened: Annotated[bool, MISSING] = False


class ServerFacts(Facts):
    """Resources that a service's process took while calls were timed.

    Attributes:
        pid: of the process that the config names.
        processes: that it is made of.
        memory_bytes: after the timed calls; None where it is not told.
        cpu_seconds: of these calls, those of other systems that it answered included.
        cpu_ms_per_call: the same of a call.
    """

    pid: int
    processes: int
    memory_bytes: int | None
    cpu_seconds: float | None
    cpu_ms_per_call: float | None


class FilterFacts(Facts):
    """Effect of filters.

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
    included.

    Attributes:
        n: answers.
        mean, max: milliseconds.
    """

    n: int
    mean: float | None
    max: float | None
    levels: Annotated[dict[Level, float | None], SPREAD] = {}


class AttemptFacts(Facts):
    """Calls that failed, by kind, and what became of their queries.

    Attributes:
        failed: how many calls of each kind: 429, 5xx, connection, timeout, partial, other.
        recovered: queries that were answered when they were asked again, in all launches together.
        asked_again: of these, those that were only after the last round.
        given_up: how often a call failed as often as ``retry`` allows.
        to_answer_ms: time until there was an answer; None of several launches.
    """

    failed: dict[str, int]
    recovered: int
    asked_again: int
    given_up: int
    to_answer_ms: ToAnswerFacts | None


class AnsweredFacts(Facts):
    """Means without the queries that failed.

    Attributes:
        n: evaluated queries that did not fail.
        metrics: name -> its mean over them.
    """

    n: int
    metrics: dict[Text, MeanFacts]


class UntilFacts(Facts):
    """State of a measurement until decided, and of what (``target``) something was decided.

    Attributes:
        target: "split" or "population".
        queries, asked: of the queries that count, all, and those that were asked.
        interrupted: whether it ended before something was decided.
    """

    target: str
    queries: int
    asked: int
    interrupted: bool = True


class Summary(Facts):
    """Content of ``summary.json``.

    Attributes:
        k: hits asked for.
        convention: whose definitions.
        metrics_version: raised by every change of a metric that moves a value.
        n_failed, n_unreached: queries that failed; queries that an interrupted run, or one until
            decided, did not reach.
        unanswerable: queries that no document answers.
        latency_ms: milliseconds over all measured calls.
        usage: what answers used up, where they say it.
        parts: of a retriever that is made of parts, each that can be left out.
        index: what indexing took.
        server: of a service what its process took; of several launches, of one.
        filters: what filters did, where queries have some.
        attempts: where calls failed, how often.
        answered: where evaluated queries failed, means over those that did not.
        warnings: what makes the figures less than they seem.
        run_id: name of the run; empty while it is not saved.
        schema_version: version 1, whose warnings are plain sentences, is still read; a newer one is
            refused.
        status: "complete" or "partial": there are queries that were not asked.
        retriever: its name.
        dataset: what the queries and judgements are.
        metrics: name -> its mean.
        tie_rule: how equal scores are ordered, in words.
        judged: ``Judged@k`` -> its mean; empty where truth is by rule.
        ties: what equal scores decide; None where that is little, or not known.
        hits: None where queries are judged.
        stages_ms: name -> stage of a call.
        legs: of a hybrid; None for any other retriever.
        n_collapsed: hits that were not kept since another one of their document was there.
        n_self_hits: hits on the query itself that were dropped.
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
    ties: Maybe[TieEffect] = None
    hits: Maybe[HitFacts] = None
    unanswerable: Unanswerable = Unanswerable()
    latency_ms: LatencyFacts = LatencyFacts()
    stages_ms: Whole[dict[Text, StageFacts]] = {}
    legs: Whole[Maybe[LegsFacts]] = None
    usage: Maybe[UsageFacts] = None
    parts: Annotated[tuple[PartFacts, ...], MISSING, WHOLE] = ()
    index: IndexFacts = IndexFacts()
    server: Maybe[ServerFacts] = None
    filters: Maybe[FilterFacts] = None
    n_collapsed: int = 0
    n_self_hits: Annotated[int, MISSING] = 0
    n_failed: int = 0
    n_unreached: int = 0
    attempts: Maybe[AttemptFacts] = None
    answered: Maybe[AnsweredFacts] = None
    health: list[Text] = []
    warnings: Annotated[list[Text], BeforeValidator(_coded)] = []
    until_decided: Maybe[UntilFacts] = None

    def with_texts(self, changed: Callable[[str], str]) -> Summary:
        """The same with all that is free text ``changed``: what the retriever says of itself, and
        the warnings, which keep their codes."""
        health = [with_text(text, changed(str(text))) for text in self.health]
        warnings = [with_text(text, changed(str(text))) for text in self.warnings]
        return self.replace(health=health, warnings=warnings)
