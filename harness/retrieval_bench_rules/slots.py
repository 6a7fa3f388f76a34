"""Slots of queries: which hits fill them, decided by the text and the source that a hit came with,
or else by the document of its id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import DataError, NothingMeasuredError
from retrieval_bench.core.types import Document, Qrels, Query, Ranking, by_rule
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.source import Source, Stream
from retrieval_bench.metrics.truths import Decided
from retrieval_bench_rules.facts import beyond, notices
from retrieval_bench_rules.matching import Text, forms
from retrieval_bench_rules.metrics import DEFINED
from retrieval_bench_rules.rules import EARLY, FORBIDDEN, Rule, has_rules, rules_of

_OF_FAILED: Mapping[str, int] = {"an answer": EARLY, "a failure": FORBIDDEN}
"""Slots of a query that failed, so that it counts 0 in every metric, also where nothing is
forbidden: an empty answer is clean, and none is not."""


_DECIDED = Text("", "")
"""In place of a text that nobody needs any more."""


class Texts:
    """Texts of documents, of which only those are held that were hits."""

    def __init__(self, documents: Stream[Document] | None) -> None:
        self._documents = documents
        self._known: dict[str, Text | None] = {}

    @property
    def there(self) -> bool:
        """True if there is a corpus."""
        return self._documents is not None

    def look_up(self, doc_ids: Iterable[str]) -> None:
        """Read those that are not known yet, in one walk."""
        wanted = {doc_id for doc_id in doc_ids if doc_id not in self._known}
        if not wanted or self._documents is None:
            return
        self._known |= dict.fromkeys(wanted)
        for _, document in self._documents.read(Faults()):
            if document.id in wanted:
                self._known[document.id] = forms(document.contents)
                wanted.discard(document.id)
                if not wanted:
                    break

    def of(self, doc_id: str) -> Text | None:
        """The text of one that was looked up; None where nothing is known of it."""
        return self._known.get(doc_id)


class Ruled(dict[str, int]):
    """The slots of a query; as a mapping of documents it is empty, for none is judged.

    Attributes:
        rules: those for slots, then what must not come.
        seen: hit -> the rules that it met with what it came with; other hits are looked up.
        decided: whether hits were decided with what they came with: then one that is not among
            ``seen`` and has no document has no text, and else nobody can tell.
        failed: whether the query got no answer.
    """

    kind = "rules"

    def __init__(
        self,
        rules: Sequence[Rule],
        texts: Texts,
        seen: Mapping[str, tuple[Rule, ...]] | None = None,
        *,
        failed: bool = False,
    ) -> None:
        super().__init__()
        self.failed = failed
        self.decided = seen is not None
        self.rules = tuple(rules)
        self.texts = texts
        self.seen = dict(seen or {})

    @property
    def slots(self) -> Mapping[str, int]:
        """Name -> grade."""
        of_rules = {rule.label: rule.grade for rule in self.rules}
        return {**of_rules, **_OF_FAILED} if self.failed else of_rules

    @property
    def defined(self) -> Collection[str]:
        """Names of the metrics of slots."""
        return DEFINED

    def look_up(self, doc_ids: Iterable[str]) -> None:
        """Get the texts of documents."""
        self.texts.look_up(doc_ids)

    def met(self, doc_id: str) -> tuple[Rule, ...]:
        """The rules that a hit meets, at whatever rank.

        Raises:
            DataError: it may have come with a text, which is not known here.
        """
        if doc_id not in self.seen:
            text = self.texts.of(doc_id)
            if not (self.decided or self.texts.there) and any(r.reads_text for r in self.rules):
                raise DataError(
                    f"rules on the text of hit {doc_id!r}, which is not known any more",
                    where="truth by rule, without a corpus",
                    accepted="bench, compare and regress, which look at texts as they come",
                    fix="name the documents in dataset.yaml, which then stand for its texts",
                )
            self.seen[doc_id] = tuple(r for r in self.rules if r.holds(doc_id, doc_id, text))
        return self.seen[doc_id]

    def filled(self, doc_ids: Sequence[str]) -> list[tuple[int, str]]:
        """Ranks with the slots that are filled there."""
        if self.failed:
            return [(1, "a failure")]
        return [
            (rank, rule.label)
            for rank, doc_id in enumerate(doc_ids, start=1)
            for rule in self.met(doc_id)
            if rule.within is None or rank <= rule.within
        ]


def read_rules(source: Source, queries: Mapping[str, Query], faults: Faults) -> Qrels:
    """The rules of queries as judgements; none where documents are judged, or no query has any."""
    ruled = [query for query in queries.values() if has_rules(query)]
    report = faults.of(source.queries.label)
    if ruled and source.judgements is not None and any(source.judgements.read(Faults())):
        for query in ruled:
            report.warn(
                "queries whose expect or forbid is not read beside judgements", None, query.id
            )
        return {}
    texts = Texts(source.documents)
    rules = {query.id: rules_of(query, report) for query in ruled}
    return {query_id: Ruled(of, texts) for query_id, of in rules.items() if of}


def decide(
    qrels: Qrels,
    query_ids: Sequence[str],
    rankings: Sequence[Ranking | None],
    rows: Sequence[int],
    k: int,
) -> Decided:
    """Hold what came against the rules; a hit has its own text and source, or else those of its
    document: the text there, and its id.

    The manifest keeps, under ``slots``, query -> slot -> the ranks of the hits that meet its rule,
    whatever ``within`` says; None where the query failed.

    Args:
        rows: places of the queries that count.
        k: hits that were asked for.

    Raises:
        NothingMeasuredError: rules read texts, and nothing has one.
    """
    rules: Any = by_rule(qrels)
    failed = {query_ids[at] for at in rows if rankings[at] is None}
    asked = [(query_ids[at], ranking) for at in rows if (ranking := rankings[at]) is not None]
    texts: Texts = next(iter(rules.values())).texts
    texts.look_up(doc_id for _, ranking in asked for doc_id in _needed(ranking))
    decided, unknown, reading = _with_failed(rules, failed), 0, 0
    record: dict[str, Mapping[str, Sequence[int] | None]] = {
        query_id: {rule.label: None for rule in rules[query_id].rules} for query_id in failed
    }
    for query_id, ranking in asked:
        of: Ruled = rules[query_id]
        seen: dict[str, tuple[Rule, ...]] = {}
        kept: dict[str, list[int]] = {rule.label: [] for rule in of.rules}
        reads = any(rule.reads_text for rule in of.rules)
        own, sources = ranking.texts or (), ranking.sources or ()
        ids = frozenset(ranking.doc_ids)
        for at, doc_id in enumerate(ranking.doc_ids):
            given = own[at] if own else None
            text = texts.of(doc_id) if given is None else forms(given)
            source = sources[at] if sources else None
            if given is None and source is None and doc_id in of.seen:  # decided when it came
                seen[doc_id], text = of.seen[doc_id], text or _DECIDED
            else:
                name = doc_id if texts.of(doc_id) is not None else _as_it_came(doc_id, ids)
                seen[doc_id] = tuple(r for r in of.rules if r.holds(name, source or name, text))
            for rule in seen[doc_id]:
                kept[rule.label].append(at + 1)
            unknown, reading = unknown + (reads and text is None), reading + reads
        decided[query_id] = Ruled(of.rules, texts, seen)
        record[query_id] = kept
    if unknown and unknown == reading and not texts.there:
        raise NothingMeasuredError(
            "no hit came with a text, and there is no corpus to look one up",
            where="rules with any, all or matches",
            accepted="a retriever that returns texts (Ranking.texts), or documents with its ids",
            fix="let it return texts, or name the documents in dataset.yaml",
        )
    told = beyond({query_id: rules[query_id].rules for query_id in record}, k)
    return Decided(decided, {"slots": record}, told + notices(record, unknown, corpus=texts.there))


def _as_it_came(doc_id: str, ids: Collection[str]) -> str:
    """The id of a hit that has a number behind it (``a#2``) since another one has the same."""
    name, _, number = doc_id.rpartition("#")
    return name if name in ids and number.isdecimal() else doc_id


def _with_failed(rules: Mapping[str, Ruled], failed: Collection[str]) -> dict[str, Ruled]:
    return {
        query_id: Ruled(of.rules, of.texts, {}, failed=True) if query_id in failed else of
        for query_id, of in rules.items()
    }


def _needed(ranking: Ranking) -> list[str]:
    """The hits whose documents are looked up: those without a text, and those of which it must be
    known whether a document has that id, or they got a number."""
    texts, ids = ranking.texts or [None] * len(ranking), frozenset(ranking.doc_ids)
    return [
        doc_id
        for doc_id, text in zip(ranking.doc_ids, texts, strict=True)
        if text is None or _as_it_came(doc_id, ids) != doc_id
    ]


def with_decided(qrels: Qrels, runs: Sequence[Any]) -> Qrels:
    """The rules, which know all hits of saved runs as they were decided when they came; of a hit of
    several runs, as the first of them has it."""
    rules: Any = by_rule(qrels)
    if not rules:
        return qrels
    seen: dict[str, dict[str, tuple[Rule, ...]]] = {query_id: {} for query_id in rules}
    for run in reversed(runs):
        kept: Any = as_kept(qrels, run)
        for query_id, of in kept.items():
            if query_id in run.manifest.get("slots", {}):
                seen[query_id] |= of.seen
    return {query_id: Ruled(of.rules, of.texts, seen[query_id]) for query_id, of in rules.items()}


def as_kept(qrels: Qrels, run: Any) -> Qrels:
    """The rules, which know the hits of a saved run as they were decided then."""
    record, rankings = run.manifest.get("slots"), run.rankings
    rules: Any = by_rule(qrels)
    if record is None or not rules:
        return qrels
    answered = {query_id for query_id, kept in record.items() if None not in kept.values()}
    known = _with_failed(rules, {*rankings.query_ids} - answered)
    rows = {query_id: at for at, query_id in enumerate(rankings.query_ids)}
    for query_id in record.keys() & answered:
        kept = record[query_id]
        of, doc_ids = rules[query_id], rankings.row(rows[query_id]).doc_ids
        met: dict[str, list[Rule]] = {doc_id: [] for doc_id in doc_ids}
        for rule in of.rules:
            for rank in kept.get(rule.label, ()):
                met[doc_ids[rank - 1]].append(rule)
        seen = {doc_id: tuple(own) for doc_id, own in met.items()}
        known[query_id] = Ruled(of.rules, of.texts, seen)
    return known
