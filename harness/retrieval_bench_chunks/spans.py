"""Spans as judgements: which characters of which documents answer a query.

A span is what ``spans`` in the metadata of a query holds: ``{document, start, end, quote, before,
after, hash}``; a range, or a quote, or both. A range that agrees with its quote is taken as it is.
Another one is looked for by its quote, and how it was found is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from retrieval_bench.core.types import Document, Qrels, Query
from retrieval_bench.data.faults import Faults, FileFaults, shown
from retrieval_bench.data.source import Source, Stream
from retrieval_bench_chunks.counting import Counter, counter
from retrieval_bench_chunks.delivery import Delivery, Hit
from retrieval_bench_chunks.ranges import Place, Stretches, as_range, by_document, covered, union
from retrieval_bench_chunks.relocation import AMBIGUOUS, EXACT, FUZZY, LOST, NORMALISED, Finder

KEY = "spans"
"""Key of a query's metadata that holds its spans."""

AROUND = 32
"""Characters before and behind a span that are kept with it."""

DEFINED = ("SpanR", "SpanP", "SpanIoU", "AllSpans", "R", "RR", "Success")
"""Names of all metrics that mean something where truth is spans."""

_ACCEPTED = "{document: ID, start: N, end: N} or {document: ID, quote: TEXT}"
_TOLD: Mapping[str, str] = {
    EXACT: "spans found again by their quote, exactly, but not at their range",
    NORMALISED: "spans found again by their quote, but for white space, case, accents or markup",
    FUZZY: "spans found again by a quote that differs in some characters",
    AMBIGUOUS: "spans left out, since their quote stands several times and nothing tells which "
    "place is meant",
    LOST: "spans left out, since their quote stands nowhere in the document",
}
_STALE = "spans taken by their range, though their document has changed, and they have no quote"


@lru_cache(256)
def hash_of(text: str) -> str:
    """The hash of a document that a span names: 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def span_of(doc_id: str, text: str, start: int, end: int) -> dict[str, Any]:
    """A span as the metadata of a query hold it, so that it is found again in another version of
    the document."""
    around = {"before": text[max(0, start - AROUND) : start], "after": text[end : end + AROUND]}
    span = {"document": doc_id, "start": start, "end": end, "quote": text[start:end]}
    return {**span, **around, "hash": hash_of(text)}


class Corpus:
    """Texts of documents, read when the first of them is asked for."""

    def __init__(self, documents: Stream[Document] | None) -> None:
        self._documents = documents

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """By id; none without a corpus."""
        read = () if self._documents is None else self._documents.read(Faults())
        return {document.id: document.text for _, document in read}

    @cached_property
    def finder(self) -> Finder:
        """Finder of texts in all documents."""
        return Finder(self.texts)


class Spans(dict[str, int]):
    """The spans of a query; as a mapping of documents it is empty, for none is judged.

    Attributes:
        truth: these.
        corpus: shared by all queries.
        foreign: hits of this query that are no ranges, as they were aligned.
    """

    kind = "spans"

    def __init__(
        self,
        truth: Sequence[Place],
        corpus: Corpus,
        foreign: Mapping[str, Hit] | None = None,
        *,
        counting: Counter | None = None,
    ) -> None:
        super().__init__()
        self.truth = tuple(truth)
        self.corpus = corpus
        self.foreign = foreign or {}
        self.counter = counting or counter()
        self._delivery: tuple[Sequence[str], Delivery] | None = None
        self.of_document = by_document(self.truth)

    @property
    def slots(self) -> Mapping[str, int]:
        """Name -> grade."""
        return {place.id: 1 for place in self.truth}

    @property
    def defined(self) -> Collection[str]:
        """Names of the metrics of spans."""
        return DEFINED

    def look_up(self, doc_ids: Iterable[str]) -> None:
        """Texts are read when a budget asks for them."""

    def hit(self, hit_id: str) -> Hit:
        """What a hit delivers: a range, a whole document, or a text of its own."""
        if (own := self.foreign.get(hit_id)) is not None:
            return own
        place = None if hit_id in self.corpus.texts else as_range(hit_id)
        text = self.corpus.texts.get(place.doc_id if place else hit_id, "")
        doc_id, start, end = place or (hit_id, 0, len(text))
        place = Place(doc_id, min(start, len(text)), min(end, len(text)))
        return Hit((place,), text[place.start : place.end])

    def filled(self, doc_ids: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Ranks at which spans are whole for the first time, in one hit or in several together."""
        stretches: dict[str, Stretches] = {}
        open_ = list(dict.fromkeys(self.truth))
        for rank, hit_id in enumerate(doc_ids, start=1):
            for place in self.hit(hit_id).places:
                if place.doc_id in self.of_document:
                    known = stretches.get(place.doc_id, [])
                    stretches[place.doc_id] = union([*known, (place.start, place.end)])
            for span in list(open_):
                if covered(stretches.get(span.doc_id, []), span.start, span.end):
                    open_.remove(span)
                    yield rank, span.id

    def delivery(self, doc_ids: Sequence[str]) -> Delivery:
        """Delivery of these hits to a reader."""
        asked = [*doc_ids]
        if self._delivery is None or self._delivery[0] != asked:
            hits = [self.hit(hit_id) for hit_id in asked]
            self._delivery = asked, Delivery(hits, self.of_document, self.counter)
        return self._delivery[1]


def read_spans(source: Source, queries: Mapping[str, Query], faults: Faults) -> Qrels:
    """The spans of queries as judgements; none where documents are judged, or no query has any."""
    with_spans = [query for query in queries.values() if query.metadata.get(KEY)]
    report = faults.of(source.queries.label)
    if not with_spans:
        return {}
    if source.judgements is not None and any(source.judgements.read(Faults())):
        for query in with_spans:
            report.warn("queries whose spans are not read beside judgements", None, query.id)
        return {}
    if source.documents is None:
        report.error(None, "spans without documents", "a corpus, which spans are characters of")
        return {}
    corpus = Corpus(source.documents)
    qrels: dict[str, Spans] = {}
    for query in with_spans:
        spans, where = query.metadata[KEY], f"query {shown(query.id)}, {KEY}"
        if not isinstance(spans, list | tuple):
            report.error(where, shown(spans), f"a list of {_ACCEPTED}")
            continue
        read = (
            _place_of(given, corpus, f"{where}[{at}]", report) for at, given in enumerate(spans)
        )
        truth = list(dict.fromkeys(place for place in read if place is not None))
        if truth:
            qrels[query.id] = Spans(truth, corpus)
        elif query.answerable and not report.count:
            report.warn("queries of which no span is found, left out", None, query.id)
    return qrels


def _place_of(given: Any, corpus: Corpus, where: str, report: FileFaults) -> Place | None:
    """Find a span, and tell how; None where it is not found, or after a fault."""
    if not isinstance(given, Mapping) or not isinstance(given.get("document"), str):
        report.error(where, shown(given), _ACCEPTED)
        return None
    doc_id, quote = given["document"], given.get("quote")
    text = corpus.texts.get(doc_id)
    start: Any = given.get("start")
    end: Any = given.get("end")
    ranged = type(start) is int and type(end) is int
    if text is None:
        report.error(where, f"document {shown(doc_id)}, which is not in the corpus", _ACCEPTED)
        return None
    if not (ranged or isinstance(quote, str)) or not (quote is None or isinstance(quote, str)):
        report.error(where, shown(given), _ACCEPTED)
        return None
    inside = ranged and 0 <= start < end <= len(text)
    if inside and quote in (None, text[start:end]):
        if quote is None and given.get("hash") not in (None, hash_of(text)):
            report.warn(_STALE, where)
        return Place(doc_id, start, end)
    if not quote:
        report.error(
            where,
            f"characters {start} to {end} of {len(text):,}, without a quote",
            "0 <= start < end, within the document; or a quote that is looked for",
        )
        return None
    context = (str(given.get("before") or ""), str(given.get("after") or ""))
    sought = corpus.finder.within(doc_id, quote, *context)
    if sought.way != EXACT or ranged:
        report.warn(_TOLD[sought.way], where)
    return sought.places[0] if len(sought.places) == 1 else None
