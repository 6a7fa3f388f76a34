"""What judgements can carry: how many there are, of what, and whom they favour.

Everything here is a pure function of a dataset, of rankings and of what the texts say; a finding is
a sentence with what to do. A warning changes what may be concluded; all else is a fact.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, coded, with_text
from retrieval_bench.core.types import KEEP, Dataset
from retrieval_bench.data.needs_judgements import TO_JUDGE
from retrieval_bench.data.self_queries import ASK, selves_in
from retrieval_bench.experiment.warnings import without_relevant
from retrieval_bench.runs.dataset import alike, n_alike, told_alike
from retrieval_bench_doctor.copies import Copies, Twins
from retrieval_bench_doctor.pools import Held, JudgedAt, Pool

ENOUGH = 0.8
"""Where the interval of Judged@k lies below this, too much of the top hits is unjudged."""

_SPARSE = 2
"""Judgements of the median query up to which they are sparse, if all of them are relevant."""

FEWEST_CLUSTERS = 6
"""Signs without which no test can fall below .05."""

_MANY, _SOME = 0.1, 3
"""From this share of the queries on, and so many of them, copies change what a comparison says."""

_NO_POOL = (
    "There is nothing to do, unless the judged documents were taken from the results of one system."
)

_NOTHING = (
    "Quality can't be measured. Compare your systems, for speed and for where they differ, then "
    f"judge what they find: `{TO_JUDGE}`."
)


@dataclass(frozen=True, slots=True)
class Grade:
    """Number of judgements with a grade.

    Attributes:
        grade: the grade; 1 or more is relevant, below 0 counts as not judged.
        n: judgements.
    """

    grade: int
    n: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The judgements of the evaluated queries.

    Attributes:
        queries: that are evaluated.
        judgements: of these.
        median: judgements of the median query.
        relevant: judgements of grade 1 or more.
        grades: each that was given, lowest first.
        nothing_relevant: queries without a relevant document.
        known_items: queries that were made from a document that answers them.
        copied: mean share of the words of these that stand in that document; None = not told.
    """

    queries: int
    judgements: int
    median: float
    relevant: int
    grades: tuple[Grade, ...]
    nothing_relevant: int
    known_items: int
    copied: float | None

    @property
    def not_relevant(self) -> int:
        """Judgements of grade 0."""
        return sum(grade.n for grade in self.grades if grade.grade == 0)


@dataclass(frozen=True, slots=True)
class Judgements(Documented):
    """Facts on the judgements of a dataset.

    Attributes:
        counts: of the judgements.
        judged: how much of the retriever's top k is judged; None where nothing is known.
        pool: the retriever beside another system; None where they were not compared.
        no_pool: why they were not; empty where they were.
        copies: queries that stand in documents; None without a corpus.
        twins: documents with the same text that are judged differently; None without one.
        unjudged_copies: documents with the text of a relevant one that are not judged; likewise.
    """

    counts: Counts
    judged: JudgedAt | None = None
    pool: Pool | None = None
    no_pool: str = ""
    copies: Copies | None = None
    twins: Twins | None = None
    unjudged_copies: Twins | None = None

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts, in sentences."""
        if not self.counts.queries:
            return ("No query has a judgement.",)
        facts = [_counts(self.counts)]
        if self.judged is not None:
            facts.append(_judged(self.judged))
        if self.no_pool:
            facts.append(f"Pooling bias was not checked: {self.no_pool}. {_NO_POOL}")
        elif self.pool is not None and not self.pool.favours:
            facts.append(_held(self.pool))
        return (*facts, *self._few_copies())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of what changes how figures must be read, with what to do."""
        if not self.counts.queries:
            return (_NOTHING,)
        favoured = self.pool is not None and bool(self.pool.favours)  # this says the shares
        warnings = (
            _depth(self.counts, None if favoured else self.judged),
            _favoured(self.pool),
            _known_items(self.counts),
            _copied(self.copies),
            _elsewhere(self.copies),
            _twins(self.twins),
            _unjudged_copies(self.unjudged_copies, self.counts.queries),
        )
        return tuple(text for text in warnings if text)

    def _few_copies(self) -> list[str]:
        """Copies that are too few to change anything."""
        found, told = self.copies, []
        if found is not None:
            of = f"of {counted(found.checked, 'longer query')}"
            places = ((found.relevant, "a relevant document"), (found.elsewhere, "another one"))
            for n, where in places:
                if n and not _many(n, found.checked):
                    stand = "stands" if n == 1 else "stand"
                    told.append(f"{n:,} {of} {stand} word for word in {where}.")
        equal, queries = self.unjudged_copies, self.counts.queries
        if equal is not None and equal.queries and not _many(equal.queries, queries):
            told.append(f"{_have_copies(equal.queries, queries)}.")
        return told


def counts(data: Dataset) -> Counts:
    """The judgements of the evaluated queries of ``data``, counted."""
    queries = data.evaluated
    rows = [data.qrels[query.id] for query in queries]
    grades = Counter(grade for row in rows for grade in row.values())
    made, copied = data.known_items or (0, math.nan)
    return Counts(
        len(queries),
        grades.total(),
        float(np.median([len(row) for row in rows])) if rows else 0.0,
        sum(n for grade, n in grades.items() if grade > 0),
        tuple(Grade(grade, n) for grade, n in sorted(grades.items())),
        len(data.without_relevant),
        made,
        None if math.isnan(copied) else copied,
    )


def nothing_relevant(data: Dataset) -> list[str]:
    """The warning of every run on queries without a relevant document, with what to do."""
    remedy = "Judge more of what is found, or set `answerable: false` if there is no answer."
    return [with_text(text, f"{text} {remedy}") for text in without_relevant(data)]


def queries_in_corpus(data: Dataset) -> list[str]:
    """Warn of queries that are documents, unless hits on these are left out."""
    found, n = [], len(data.evaluated)
    by_id, by_text = selves_in(data)
    if data.self_hits == KEEP and _many(len(by_id), n):
        found.append(
            f"{len(by_id):,} of {counted(n, 'query')} are documents of the corpus (of the same id "
            f"and text, such as {by_id[0]!r}): most systems rank them first, and they count as "
            "wrong, as trec_eval has it. BEIR leaves out hits with the id of their query, and so "
            f"count its published figures: {ASK} does the same. The documents stay: they answer "
            "other queries."
        )
    if _many(len(by_text), n):
        found.append(
            f"{len(by_text):,} of {counted(n, 'query')} have the very text of a document that is "
            f"not judged relevant, such as {by_text[0]!r} of {data.selves.copies[by_text[0]]!r}"
            ": most systems rank it first, and it counts as wrong. If it answers, judge it; if it "
            f"is the query itself, give the query its id: {ASK} goes by id, as BEIR does."
        )
    return list(coded(found, Code.SELF_HITS))


def one_question(data: Dataset) -> list[str]:
    """Warn where evaluated queries are nearly the same question, and nothing says so."""
    queries = data.evaluated
    n = n_alike(alike(queries)) if data.cluster_key is None else 0
    if not n:
        return []
    wider = f"intervals are about {math.sqrt(len(queries) / n):.2g} times as wide"
    change = wider if n >= FEWEST_CLUSTERS else "no test can show a difference: it takes 6"
    return [told_alike(len(queries), n, change)]


def _many(n: int, of: int) -> bool:
    return n >= _SOME and n >= _MANY * of


def _percent(share: float) -> str:
    """A share that is not all is not rounded to all, nor one that is something to nothing."""
    text = f"{share:.0%}".replace("%", " %")
    if share < 1 and text == "100 %":
        return "over 99 %"
    return "under 1 %" if share > 0 and text == "0 %" else text


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]"


def _counts(counts: Counts) -> str:
    grades = ", ".join(f"{grade.n:,} of grade {grade.grade}" for grade in counts.grades)
    a_query = counts.relevant / counts.queries
    return (
        f"{counted(counts.judgements, 'judgement')} ({grades}): {a_query:.1f} relevant documents a "
        "query."
    )


def _judged(judged: JudgedAt) -> str:
    return (
        f"Judged@{judged.k} of {judged.retriever} is {judged.mean:.2f}{_interval(judged.ci95)} "
        "over "
        f"{counted(judged.n, 'query')} with hits."
    )


def _held(pool: Pool) -> str:
    one, other = pool.held
    depth = pool.judged[0].k

    def shares(held: Held) -> str:
        return f"{_percent(held.judged)} of all judged documents"

    text = (
        f"The hits of {one.retriever} hold {shares(one)} ({_percent(one.relevant)} of the relevant "
        f"ones), those of {other.retriever} {_percent(other.judged)} "
        f"({_percent(other.relevant)})"
    )
    first, second = pool.judged
    judged = f"; Judged@{depth} is {first.mean:.2f} and {second.mean:.2f}"
    return f"{text}{judged}: no sign of a pool of one system."


def _depth(counts: Counts, judged: JudgedAt | None) -> str:
    """Warn of judgements that do not reach what systems return; one warning, whatever
    shows it."""
    seen = []
    if not counts.not_relevant:
        none = "no document is judged as not relevant"
        sparse = f"Judgements are sparse: the median query has {counts.median:g}, and {none}."
        many = f"All judgements are of relevant documents: {none}."
        seen.append(sparse if counts.median <= _SPARSE else many)
    if judged is not None and judged.ci95 is not None and judged.ci95[1] < ENOUGH:
        share = _percent(judged.mean)
        seen.append(f"Only {share} of the top {judged.k} of {judged.retriever} is judged.")
    if not seen:
        return ""
    useless = "" if counts.not_relevant else "; bpref and infAP, should you use them, say nothing"
    return (
        f"{' '.join(seen)} Whatever is unjudged counts as not relevant: unless people read the "
        "whole collection for each query, precision and MRR are lower bounds, and a system that "
        "finds documents which nobody judged is underrated, in nDCG and recall, too"
        f"{useless}. Compare your systems, then judge what they find: `{TO_JUDGE}`."
    )


def _favoured(pool: Pool | None) -> str:
    if pool is None or not pool.favours:
        return ""
    first = pool.judged[0].retriever == pool.favours
    (better, worse) = pool.judged if first else pool.judged[::-1]
    held = pool.held[0 if first else 1]
    depth = f"top {better.k}"
    unequal = (
        f"{_percent(better.mean)} of the {depth} of {better.retriever} is judged, and "
        f"{_percent(worse.mean)} of that of {worse.retriever}"
    )
    if pool.alone:
        said = (
            f"The judgements look pooled from {better.retriever} alone: {_percent(held.judged)} of "
            f"the {counted(pool.documents, 'judged document')} are among its hits; {unequal}."
        )
    else:
        said = f"The judgements cover {better.retriever} better: {unequal}."
    return (
        f"{said} Whatever is unjudged counts as not relevant, so a comparison favours "
        f"{better.retriever}. Compare your systems, then judge what all of them find: "
        f"`{TO_JUDGE}`."
    )


def _known_items(counts: Counts) -> str:
    if 2 * counts.known_items <= counts.queries:
        return ""
    shared = "" if counts.copied is None else f" ({_percent(counts.copied)} of them on average)"
    return (
        f"{counts.known_items:,} of {counted(counts.queries, 'evaluated query')} were made from a "
        f"document that answers them and share words with it{shared}: this favours lexical search, "
        "and other documents that answer count as not relevant. Add questions that people asked "
        "before you choose between lexical and dense search."
    )


def _copied(copies: Copies | None) -> str:
    if copies is None or copies.in_relevant is None or not _many(copies.relevant, copies.checked):
        return ""
    place = copies.in_relevant
    return (
        f"{copies.relevant:,} of {counted(copies.checked, 'longer query')} stand word for word "
        "in a "
        f"relevant document, for example {place.query} in {place.document}: this favours "
        "lexical search. Ask in the words of people who have not read the document."
    )


def _elsewhere(copies: Copies | None) -> str:
    if copies is None or copies.in_other is None or not _many(copies.elsewhere, copies.checked):
        return ""
    place = copies.in_other
    return (
        f"{copies.elsewhere:,} of {counted(copies.checked, 'longer query')} stand word for word "
        "in a "
        f"document that is not judged relevant, for example {place.query} in {place.document}: "
        "most systems rank it first, and it counts as wrong. Judge these documents."
    )


def _twins(twins: Twins | None) -> str:
    if twins is None or twins.example is None:
        return ""
    example = twins.example
    return (
        f"{counted(twins.pairs, 'pair')} of documents with the same text "
        f"{'is' if twins.pairs == 1 else 'are'} judged differently, in "
        f"{counted(twins.queries, 'query')}: for {example.query}, {example.relevant} is relevant "
        f"and {example.other} is not. Which one a system finds is luck: give both the same grade, "
        "or keep one of them."
    )


def _have_copies(n: int, of: int) -> str:
    have = "has" if n == 1 else "have"
    whose = "of whose text there are copies that are not judged"
    return f"{n:,} of {counted(of, 'query')} {have} a relevant document {whose}"


def _unjudged_copies(twins: Twins | None, queries: int) -> str:
    if twins is None or twins.example is None or not _many(twins.queries, queries):
        return ""
    example = twins.example
    return (
        f"{_have_copies(twins.queries, queries)} and count as not relevant: for {example.query}, "
        f"{example.relevant} is relevant, and {example.other}, with the same text, is not "
        "judged. Which "
        "one a system finds is luck: judge copies alike, or take them out of the corpus."
    )
