"""Runs against spans: hits that are no ranges are aligned by their texts, and what that leaves is
told."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, NothingMeasuredError, counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Qrels, Ranking, by_rule
from retrieval_bench.metrics.truths import Decided
from retrieval_bench.reports.finish import Finished
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.delivery import Hit
from retrieval_bench_chunks.metrics import BUDGETS, CURVE
from retrieval_bench_chunks.ranges import Place, as_range, by_document, common
from retrieval_bench_chunks.relocation import AMBIGUOUS, LOST
from retrieval_bench_chunks.spans import Spans

_SHARE = 0.9
"""Share of the recall of all hits, to be reached by :attr:`SpanFacts.tokens_to_90`."""


def decide(
    qrels: Qrels,
    query_ids: Sequence[str],
    rankings: Sequence[Ranking | None],
    rows: Sequence[int],
    k: int,
) -> Decided:
    """Align hits that are no ranges to documents, by the texts that they came with.

    Args:
        rows: places of the queries that count.
        k: hits that were asked for.

    Raises:
        NothingMeasuredError: no hit is a range or a document, and none came with a text.
    """
    spans: Any = by_rule(qrels)
    first: Spans = next(iter(spans.values()))
    asked = {query_ids[at]: ranking for at in rows if (ranking := rankings[at]) is not None}
    foreign, ways, unknown = _aligned(first, asked)
    decided = {q: Spans(of.truth, of.corpus, foreign.get(q)) for q, of in spans.items()}
    hits = sum(map(len, asked.values()))
    if unknown and unknown == hits:
        raise NothingMeasuredError(
            "no hit is a document or a range of one, and none came with a text",
            where="truth by spans",
            accepted="ids of documents, chunks made here, or hits with texts (Ranking.texts)",
            fix="let the retriever return the texts of its hits",
        )
    filled = _facts(decided, asked, len(rows) - len(asked))
    notices = _told(ways, unknown, hits)
    short = [budget for budget in BUDGETS if filled["filled"][str(budget)] < len(asked)]
    if asked and short:
        n = len(asked) - filled["filled"][str(short[0])]
        more = " Ask for more with --k." if any(len(of) == k for of in asked.values()) else ""
        notices.append(
            f"The hits hold fewer than {short[0]:,} tokens for {n:,} of "
            f"{counted(len(asked), 'query')}: figures at such a budget are of what came.{more}"
        )
    record = {
        "tokens": first.counter.name,
        "foreign": {
            query_id: {h: [len(hit.text), [*map(list, hit.places)]] for h, hit in hits.items()}
            for query_id, hits in foreign.items()
        },
        "ways": dict(ways),
        "unknown": unknown,
        **filled,
    }
    return Decided(decided, {"spans": record}, notices)


def _aligned(
    spans: Spans, asked: Mapping[str, Ranking]
) -> tuple[dict[str, dict[str, Hit]], Counts[str], int]:
    """Hits of each query with their places, how often each way was gone, and the number of hits
    that nobody knows. An id may be that of another text in another query."""
    texts = spans.corpus.texts
    foreign: dict[str, dict[str, Hit]] = {}
    known: dict[tuple[str, str, str | None], tuple[str, Hit]] = {}
    ways, unknown = Counts[str](), 0
    for query_id, ranking in asked.items():
        came = ranking.texts or [None] * len(ranking)
        sources = ranking.sources or [None] * len(ranking)
        for hit_id, text, source in zip(ranking.doc_ids, came, sources, strict=True):
            place = as_range(hit_id)
            if hit_id in texts or (place and place.doc_id in texts):
                continue
            if text is None:
                unknown += 1
                continue
            if (own := (hit_id, text, source)) not in known:
                sought = spans.corpus.finder.anywhere(text, source or "")
                known[own] = sought.way, Hit(sought.places, text)
            way, foreign.setdefault(query_id, {})[hit_id] = known[own]
            ways[way] += 1
    return foreign, ways, unknown


def _facts(
    decided: Mapping[str, Spans], asked: Mapping[str, Ranking], failed: int
) -> dict[str, Any]:
    """Count the queries that use each budget up, and the tokens that a reader gets and needs; those
    that failed get none, and find nothing."""
    filled, all_, needed = Counts[str](), [0.0] * failed, list[float]()
    recalls = [[0.0] * len(CURVE)] * failed
    for query_id, ranking in asked.items():
        delivery = decided[query_id].delivery(list(ranking.doc_ids))
        all_.append(sum(map(delivery.tokens_of, range(len(ranking)))))
        to_share = delivery.tokens_to(_SHARE)
        needed += [] if to_share is None else [to_share]
        recalls.append([delivery.within(tokens=budget).recall for budget in CURVE])
        for budget in BUDGETS:
            filled[str(budget)] += all_[-1] >= budget
    curve = np.mean(recalls, axis=0).tolist() if recalls else []
    return {
        "filled": {str(budget): filled[str(budget)] for budget in BUDGETS},
        "tokens_delivered": float(np.mean(all_)) if all_ else None,
        "tokens_to_90": float(np.median(needed)) if needed else None,
        "curve": dict(zip(map(str, CURVE), curve, strict=False)),
    }


def _told(ways: Mapping[str, int], unknown: int, hits: int) -> list[str]:
    notices = list[str]()
    n = sum(ways.values())
    if n:
        words = ", ".join(f"{count:,} {way}" for way, count in ways.items())
        text = f"{counted(n, 'hit')} of a foreign cut, looked for in the documents: {words}."
        if ways.get(AMBIGUOUS):
            text += " All places of an ambiguous one count as the same."
        notices.append(text if ways.get(LOST) else Notice(text, Code.NOTE))
    if ways.get(LOST):
        notices.append(
            f"{ways[LOST]:,} of {counted(n, 'hit')} stood nowhere in the documents, or everywhere "
            "for want of letters: that text is paid for, and finds nothing."
        )
    if unknown:
        notices.append(
            f"{unknown:,} of {counted(hits, 'hit')} are neither documents nor ranges, and came "
            "without a text: they count as empty. Let the retriever return texts."
        )
    return notices


def as_kept(qrels: Qrels, run: Any) -> Qrels:
    """The spans, which know the hits of a saved run as they were aligned then; of a text that is
    not kept its length counts, and its tokens are those of the place that it was found in."""
    spans: Any = by_rule(qrels)
    record = run.manifest.get("spans")
    if record is None or not spans:
        return qrels
    corpus = next(iter(spans.values())).corpus
    foreign: dict[str, dict[str, Hit]] = {}
    for query_id, hits in record["foreign"].items():
        for hit_id, (n, places) in hits.items():
            kept = tuple(Place(*place) for place in places)
            text = corpus.texts[kept[0].doc_id][kept[0].start : kept[0].end] if kept else ""
            foreign.setdefault(query_id, {})[hit_id] = Hit(kept, text[:n].ljust(n))
    counting = Counter(record["tokens"])
    return {
        q: Spans(of.truth, of.corpus, foreign.get(q), counting=counting) for q, of in spans.items()
    }


def with_decided(qrels: Qrels, runs: Sequence[Any]) -> Qrels:
    """The spans, which know the hits of all these saved runs.

    Raises:
        ConfigError: an id of two runs is that of two texts, which would be fused into one.
    """
    spans: Any = by_rule(qrels)
    foreign: dict[str, dict[str, Hit]] = {query_id: {} for query_id in spans}
    for run in runs:
        kept: Any = as_kept(qrels, run)
        for query_id, of in kept.items():
            for hit_id, hit in of.foreign.items():
                first = foreign[query_id].setdefault(hit_id, hit)
                if first.places and hit.places and not _meet(first, hit):
                    raise ConfigError(
                        f"hit {hit_id!r} of query {query_id!r} is another text in another run",
                        accepted="runs whose ids name the same texts",
                        fix="let each service return ids of its own",
                    )
    return {q: Spans(of.truth, of.corpus, foreign[q]) for q, of in spans.items()}


def _meet(a: Hit, b: Hit) -> bool:
    """Say whether two texts have a character in common."""
    of_b = by_document(b.places)
    return any(common(of, of_b.get(d, ())) for d, of in by_document(a.places).items())


@dataclass(frozen=True, slots=True)
class SpanFacts(Documented):
    """Summed-up spans of a run.

    Attributes:
        tokens: how they are counted: ``o200k_base``, or ``estimate``.
        tokens_delivered: of all hits of a query, mean.
        tokens_to_90: that 90 % of what all hits find take, median over queries that find anything.
        curve: budget in tokens -> mean recall.
        filled: budget in tokens -> queries whose hits use it up.
        ways: way that hits of a foreign cut were found again -> how many.
        unknown: hits that are no ranges, and came without a text.
    """

    KEYS = "tokens tokens_delivered tokens_to_90 curve filled ways unknown"

    tokens: str
    tokens_delivered: float | None
    tokens_to_90: float | None
    curve: Mapping[str, float]
    filled: Mapping[str, int]
    ways: Mapping[str, int]
    unknown: int


@dataclass(frozen=True, slots=True)
class SpansOfRun(Documented):
    """Keys beside those of a measured run.

    Attributes:
        finished: the run.
    """

    KEYS = "spans?=facts"

    finished: Finished

    @property
    def facts(self) -> SpanFacts | None:
        """None where truth is not by spans."""
        record = self.finished.run.manifest.get("spans")
        if record is None:
            return None
        return SpanFacts(**{name: record[name] for name in SpanFacts.KEYS.split()})


def look_at_spans(data: Any, k: int, _answers: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Facts on the spans of a dataset, and warnings, as ``doctor`` shows them."""
    spans: list[Spans] = [data.qrels[query.id] for query in data.evaluated]
    lengths = [place.end - place.start for of in spans for place in of.truth]
    several = sum(len(of.truth) > 1 for of in spans)
    summed_up = (
        f"Truth is by spans: {counted(len(lengths), 'span')} of {counted(len(spans), 'query')}, "
        f"{several:,} of them with several; {int(np.median(lengths)):,} characters in the "
        f"middle, {max(lengths):,} at most."
    )
    facts = (
        summed_up,
        f"Tokens are counted as {spans[0].counter.name}; {k:,} hits are asked for.",
    )
    return facts, ()
