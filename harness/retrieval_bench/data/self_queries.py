"""Queries that are documents themselves: found, told, and left out of rankings if that is asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from retrieval_bench.core.errors import ConfigError, DataError, counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import DROP, KEEP, Dataset, Document, Qrels, Query, SelfHits, Selves
from retrieval_bench.data.fingerprint import without_self_hits

MOST = 0.5
"""More than this share of the queries is most of them."""

OFTEN = 0.1
"""From this share of the queries on, hits on the query itself change a mean."""

TOP = 10
"""Hits of each query in which it is looked for."""

_ALIKE = 0.9
"""Share of the distinct words of one text in the other from which on both are one text: published
queries differ from their documents in a heading or a blank."""

_WORD = re.compile(r"\w+")

ASK = "`self_hits: drop` in dataset.yaml, or `--self-hits drop`,"
"""What leaves these hits out."""

_SAME = (
    "{are} found themselves: the document of their own id, such as {query!r}, has their text, and "
    "counts as a wrong hit. trec_eval counts so. BEIR leaves such hits out (ignore_identical_ids), "
    "and so do published figures: {ask} does the same."
)
_COPY = (
    "{are} found themselves: a document with their very text, such as {document!r} for {query!r}, "
    "counts as a wrong hit. trec_eval counts so; BEIR leaves out hits with the id of the query. "
    "For that protocol give these queries the ids of their documents: {ask} goes by id."
)


class SelfFinder:
    """Looks for the queries among the documents of one walk."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = queries
        self._of_text: dict[str, list[str]] = {}
        for query in queries.values():
            self._of_text.setdefault(query.text.strip(), []).append(query.id)
        self._same: set[str] = set()
        self._named: set[str] = set()
        self._copies: dict[str, list[str]] = {}

    def add(self, document: Document, unit: str) -> None:
        """Look at a document, which judgements know as ``unit``."""
        query = self._queries.get(unit)
        if query is not None:
            self._named.add(unit)
            if unit not in self._same and _is_alike(query.text, document):
                self._same.add(unit)
        for query_id in self._of_text.get(document.text.strip(), ()):
            if query_id != unit:
                self._copies.setdefault(query_id, []).append(unit)

    def result(self, qrels: Qrels) -> Selves:
        """Sum up; a document that is relevant to the query is an answer to it."""

        def relevant(query_id: str, doc_id: str) -> bool:
            return qrels.get(query_id, {}).get(doc_id, 0) > 0

        same = frozenset(query_id for query_id in self._same if not relevant(query_id, query_id))
        copies = {
            query_id: next((unit for unit in units if not relevant(query_id, unit)), "")
            for query_id, units in self._copies.items()
        }
        return Selves(
            same,
            frozenset(self._named) - same,
            {query_id: copy for query_id, copy in copies.items() if copy and query_id not in same},
        )


def _is_alike(query: str, document: Document) -> bool:
    """Return whether one of two texts stands in the other, but for a few words."""
    asked, text, whole = (
        _WORD.findall(text.casefold()) for text in (query, document.text, document.contents)
    )
    if f" {' '.join(asked)} " in f" {' '.join(whole)} ":
        return True
    return any(
        part and len(set(part).intersection(other)) >= _ALIKE * len(set(part))
        for part, other in ((asked, whole), (text, asked))
    )


def with_self_hits(dataset: Dataset, rule: SelfHits | str | None) -> Dataset:
    """``dataset`` with hits on the query itself as ``rule`` has them; as it is for None.

    Raises:
        ConfigError: no such rule.
        DataError: ids of queries and documents are equal by accident: dropping would lose answers.
    """
    check_rule(rule)
    if rule is None or rule == dataset.self_hits:
        return dataset
    if rule == DROP:
        _require_selves(dataset)
    other = without_self_hits(dataset.fingerprint)
    return replace(dataset, self_hits=DROP if rule == DROP else KEEP, fingerprint=other)


def check_rule(rule: str | None) -> None:
    """Refuse what is no rule for hits on the query itself; None is none.

    Raises:
        ConfigError: neither "keep" nor "drop".
    """
    if rule not in (None, *get_args(SelfHits)):
        raise ConfigError(
            f"self_hits {rule!r}",
            where="--self-hits",
            accepted="keep or drop",
            fix="keep counts hits with the id of their query, drop leaves them out, as BEIR does",
        )


def _require_selves(dataset: Dataset) -> None:
    queries = [query.id for query in dataset.evaluated or dataset.queries]
    if not dataset.selves.accidental(queries):
        return
    unlike = [query_id for query_id in queries if query_id in dataset.selves.unlike]
    named = len(dataset.selves.ids.intersection(queries))
    raise DataError(
        f"self_hits: drop, but {len(unlike):,} of the {counted(named, 'query')} with a document "
        "of the same id are not that document",
        where=f"dataset {dataset.name!r}: for example {unlike[0]!r}, whose document has another "
        "text, or is relevant to it",
        accepted="drop where queries are documents, as in ArguAna",
        fix="leave it out: the ids are equal by accident, and dropping would lose answers",
    )


def self_hit_warnings(
    selves: Selves, lists: Mapping[str, Sequence[str]], query_ids: Iterable[str]
) -> list[str]:
    """Warn where most queries are documents, and find themselves among their first hits.

    Args:
        lists: query id -> document ids, best first.
        query_ids: the queries that count.
    """
    if not selves.same and not selves.copies:
        return []
    queries = list(query_ids)
    top = {query_id: lists.get(query_id, ())[:TOP] for query_id in queries}
    same = {query_id: query_id for query_id in selves.same}
    for of, says in ((same, _SAME), (selves.copies, _COPY)):
        own = [query_id for query_id in queries if query_id in of]
        met = [query_id for query_id in own if of[query_id] in top[query_id]]
        if _often(own, met, queries):
            are, query = _share(met, queries), met[0]
            text = says.format(are=are, query=query, document=of[query], ask=ASK)
            return [Notice(text, Code.SELF_HITS)]
    return []


def own_id_warnings(
    qrels: Qrels, lists: Mapping[str, Sequence[str]], query_ids: Collection[str]
) -> list[str]:
    """Warn where most queries have their own id among their first hits and no judgement says that
    it is relevant, where the texts that would tell are not known.

    Args:
        lists, query_ids: as in :func:`self_hit_warnings`.
    """
    met = [q for q in query_ids if q in lists.get(q, ())[:TOP] and not qrels[q].get(q, 0) > 0]
    if not _often(met, met, query_ids):
        return []
    text = (
        f"{_share(met, query_ids)} found a document of their own id, such as {met[0]!r}, which "
        "counts as a wrong hit. If it is the query itself, BEIR leaves it out "
        "(ignore_identical_ids), and so do published figures: `--self-hits drop` does the same."
    )
    return [Notice(text, Code.SELF_HITS)]


def _often(own: Collection[str], met: Collection[str], queries: Collection[str]) -> bool:
    return len(own) > MOST * len(queries) and len(met) > OFTEN * len(queries)


def _share(some: Collection[str], every: Collection[str]) -> str:
    return f"{len(some):,} of {counted(len(every), 'query')}"


def selves_in(dataset: Dataset) -> tuple[list[str], list[str]]:
    """Evaluated queries that are a document of their own id, and those that are one of another."""
    ids = [query.id for query in dataset.evaluated]
    selves = dataset.selves
    return [q for q in ids if q in selves.same], [q for q in ids if q in selves.copies]


def left_out(own: Sequence[str], qrels: Qrels) -> list[str]:
    """Say how many hits were dropped from a run that was made elsewhere.

    Args:
        own: queries that had such a hit.

    Raises:
        DataError: most of these hits are judged relevant to their query: the ids are equal by
            accident.
    """
    relevant = [query_id for query_id in own if qrels.get(query_id, {}).get(query_id, 0) > 0]
    if len(relevant) > MOST * len(own):
        raise DataError(
            f"self_hits: drop, but {len(relevant):,} of the {counted(len(own), 'hit')} with the id "
            "of their query are judged relevant to it",
            where=f"for example query {relevant[0]!r}",
            accepted="drop where queries are documents, as in ArguAna",
            fix="leave it out: the ids are equal by accident, and dropping would lose answers",
        )
    return [Notice(dropped(len(own), relevant), Code.SELF_HITS)]


def dropped(n: int, relevant: Sequence[str] = ()) -> str:
    """Say that ``n`` hits were dropped, and of which queries such a hit was relevant."""
    if not n:
        return "self_hits: drop left nothing out: no query has a hit with its own id."
    text = f"{counted(n, 'hit')} with the id of their query left out (self_hits: drop, as BEIR)"
    if not relevant:
        return f"{text}."
    return f"{text}; {len(relevant):,} of them judged relevant, such as that of {relevant[0]!r}."
