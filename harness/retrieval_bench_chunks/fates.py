"""Fates of spans: what becomes of each when the chunker changes, and what that costs in tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrieval_bench.comparison.pairs.comparability import not_comparable
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, distinct_names
from retrieval_bench.core.types import Dataset, kind_of_truth
from retrieval_bench.runs.run import Run
from retrieval_bench_chunks.chunked import BUILT_IN, VERSION, ChunkConfig, built_in
from retrieval_bench_chunks.judging import as_kept
from retrieval_bench_chunks.ranges import Place, Stretches, common, length, union
from retrieval_bench_chunks.spans import Spans

WHOLE, CUT, PART, GONE = "whole", "cut", "part", "gone"

_QUOTE = 60


@dataclass(frozen=True, slots=True)
class Fate(Documented):
    """What became of a span in a run.

    Attributes:
        fate: whole in one hit, cut (whole in several together), part of it there, or gone.
        hits: that hold a part of it, up to where it is whole; 1 where one of them has all of it.
        rank: of the last of these; 0 where there is none.
        share: of its characters, found.
        tokens: of all hits up to that rank, which a reader pays to have it.
    """

    KEYS = "fate hits rank share tokens"

    fate: str
    hits: int
    rank: int
    share: float
    tokens: float


@dataclass(frozen=True, slots=True)
class SpanFates(Documented):
    """A span whose fates differ.

    Attributes:
        query_id: of the query.
        span: its range.
        quote: its beginning.
        fates: one for each run, in their order.
    """

    KEYS = "query_id span quote fates"

    query_id: str
    span: str
    quote: str
    fates: tuple[Fate, ...]


@dataclass(frozen=True, slots=True)
class PricedRun(Documented):
    """What a run makes of all spans, and its price.

    Attributes:
        name: of the run.
        counts: fate -> spans.
        tokens: of all hits of a query, mean.
        tokens_whole, tokens_cut: until a span is whole, median of those in one hit, and in several;
            None where there are none.
        best_precision: of a retriever that returned all chunks that hold or touch truth, and no
            other, mean; None
            where the documents were not cut here.
        money: for the tokens of 1,000 queries; None without a price.
    """

    KEYS = "name counts tokens tokens_whole tokens_cut best_precision money"

    name: str
    counts: Mapping[str, int]
    tokens: float
    tokens_whole: float | None
    tokens_cut: float | None
    best_precision: float | None
    money: float | None


@dataclass(frozen=True, slots=True)
class Fates(Documented):
    """Fates of spans in several runs.

    Attributes:
        counted: how tokens are counted.
        queries: that count.
        runs: in the order given.
        spans: those whose fate is not the same in all runs.
    """

    KEYS = "counted queries runs spans"

    counted: str
    queries: int
    runs: tuple[PricedRun, ...]
    spans: tuple[SpanFates, ...]


def fates_of(runs: Sequence[Run], dataset: Dataset, price: float | None = None) -> Fates:
    """Work out the fates of all spans in saved runs.

    Args:
        price: money for a million tokens that a reader gets.

    Raises:
        ConfigError: truth is not by spans, or the runs have other questions.
    """
    if kind_of_truth(dataset.qrels) != "spans":
        raise ConfigError(
            f"--spans on dataset {dataset.name!r}",
            accepted="runs on a dataset whose truth is by spans",
            fix="leave --spans out",
        )
    for run in runs[1:]:
        if reason := not_comparable(runs[0], run):
            raise ConfigError(
                f"runs that cannot be compared: {reason}", accepted="runs on the same queries"
            )
    names = distinct_names([run.name for run in runs])
    fates: list[list[Fate]] = []
    priced: list[PricedRun] = []
    query_ids = runs[0].evaluation.query_ids
    for name, run in zip(names, runs, strict=True):
        spans: Any = as_kept(dataset.qrels, run)
        at = {query_id: row for row, query_id in enumerate(run.rankings.query_ids)}
        of_query = {q: spans[q].delivery(run.rankings.row(at[q]).doc_ids) for q in query_ids}
        of_run = [_fate(place, of) for q, of in of_query.items() for place in spans[q].truth]
        fates.append(of_run)
        deliveries = of_query.values()
        tokens = float(np.mean([sum(map(d.tokens_of, range(len(d.hits)))) for d in deliveries]))
        counts = {way: sum(f.fate == way for f in of_run) for way in (WHOLE, CUT, PART, GONE)}
        whole, cut = (_median(f.tokens for f in of_run if f.fate == way) for way in (WHOLE, CUT))
        best = _best_precision(run, dataset, [spans[q] for q in query_ids])
        money = None if price is None else price * tokens * 1_000 / 1e6
        priced.append(PricedRun(name, counts, tokens, whole, cut, best, money))
    first: Any = dataset.qrels
    truth = [(q, place) for q in query_ids for place in first[q].truth]
    changed = [
        SpanFates(q, place.id, _quote(first[q], place), each)
        for (q, place), each in zip(truth, zip(*fates, strict=True), strict=True)
        if len({(fate.fate, fate.hits) for fate in each}) > 1
    ]
    counter = next(iter(first.values())).counter
    return Fates(counter.name, len(query_ids), tuple(priced), tuple(changed))


def _fate(span: Place, delivery: Any) -> Fate:
    own: Stretches = [(span.start, span.end)]
    covered: Stretches = []
    hits, last, tokens, until = 0, 0, 0.0, 0.0
    for at, hit in enumerate(delivery.hits):
        tokens += delivery.tokens_of(at)
        ranges = [(p.start, p.end) for p in hit.places if p.doc_id == span.doc_id]
        now = union([*covered, *ranges])
        if common(now, own) > common(covered, own):
            hits, last, covered, until = hits + 1, at + 1, now, tokens
        if common(covered, own) == length(own):
            whole = common(union(ranges), own) == length(own)
            return Fate(WHOLE if whole else CUT, 1 if whole else hits, last, 1.0, until)
    share = common(covered, own) / length(own)
    return Fate(PART if share else GONE, hits, last, share, until)


def _median(values: Iterable[float]) -> float | None:
    held = list(values)
    return float(np.median(held)) if held else None


def _quote(spans: Spans, place: Place) -> str:
    text = spans.corpus.texts[place.doc_id][place.start : place.end]
    return text if len(text) <= _QUOTE else f"{text[: _QUOTE - 1]}…"


def _best_precision(run: Run, dataset: Dataset, spans: Sequence[Spans]) -> float | None:
    given = run.manifest["retriever"].get("chunk")
    if given is None or given["by"] not in BUILT_IN or dataset.documents is None:
        return None
    facts = run.manifest["retriever"]["facts"].get("chunk", {})
    if facts.get("version") != VERSION:
        return None
    chunker = built_in(ChunkConfig(**given), facts.get("counted", "auto"))
    wanted = {doc_id for of in spans for doc_id in of.of_document}
    chunks = {d.id: chunker.cut(d.text) for d in dataset.documents if d.id in wanted}
    return float(np.mean([full_precision(of.of_document, chunks) for of in spans]))


def full_precision(
    truth: Mapping[str, Stretches], chunks: Mapping[str, Sequence[tuple[int, int]]]
) -> float:
    """The precision of all chunks that hold or touch truth, each character counted once, as if what
    no chunk has had been delivered, too: what a chunker allows a perfect retriever.

    Args:
        truth: the spans of a query, by document.
        chunks: all chunks of these documents.
    """
    covered = whole = 0
    for doc_id, of in truth.items():
        touching = [
            (start, end)
            for start, end in chunks.get(doc_id, ())
            if any(start <= last and first <= end for first, last in of)
        ]
        covered += common(union(touching), of)
        whole += length(union([*touching, *of]))
    return covered / whole if whole else 0.0
