"""The way from a source to a checked dataset: one walk over everything, all faults in one error."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from retrieval_bench.capabilities import offered
from retrieval_bench.core.filters import Filter, fields_of
from retrieval_bench.core.metadata import Filtering, MetadataTable
from retrieval_bench.core.types import (
    Dataset,
    Document,
    Documents,
    Qrels,
    Query,
    Selves,
    kind_of_truth,
)
from retrieval_bench.data import fingerprint
from retrieval_bench.data.faults import Faults, FileFaults, Place, reporting, shown
from retrieval_bench.data.id_spaces import apart, beside, cause_of, misspelt, misspelt_notice
from retrieval_bench.data.qrels import UNASKED, collect
from retrieval_bench.data.self_queries import SelfFinder
from retrieval_bench.data.source import (
    FileCorpus,
    Judgement,
    Located,
    Source,
    Stream,
    changed,
    stamps,
    take_grade,
    take_id,
)

Record = TypeVar("Record", Document, Query)

UNJUDGED = (
    "nothing is judged yet, so quality cannot be measured: pool what the systems find with "
    "`retrieval-bench label pool`, and judge it"
)
"""What is said of a dataset without judgements."""

_FLAGS = ("answerable", "is_impossible")


@dataclass(slots=True)
class _Scanned:
    """Record of one walk over the corpus."""

    metadata: MetadataTable
    digests: fingerprint.Sum = field(default_factory=fingerprint.Sum)
    places: dict[str, Place] = field(default_factory=dict)
    unit_of: dict[str, str] = field(default_factory=dict)
    selves: SelfFinder = field(default_factory=lambda: SelfFinder({}))
    keys: set[str] = field(default_factory=set)
    """Of the metadata, where queries have filters."""

    def filtering(self, unit_key: str | None) -> Filtering:
        """Build the test of filters, hits being documents or units."""
        return Filtering(self.metadata, list(self.places), self.unit_of if unit_key else {})

    def judged_ids(self, unit_key: str | None) -> Collection[str]:
        return self.places if unit_key is None else set(self.unit_of.values())


def build_dataset(
    name: str,
    documents: Documents | None,
    queries: Iterable[Query],
    qrels: Qrels | None,
    *,
    split: str = "test",
    language: str | None = None,
    unit_key: str | None = None,
) -> Dataset:
    """A checked dataset from records in memory; for notebooks and dataset plug-ins.

    Args:
        qrels: None where nothing is judged yet.

    Raises:
        DataError: all faults at once, as for a dataset from files.
    """
    given: Any = documents
    documents = list(given) if isinstance(given, Iterator) else documents  # walked several times
    source = Source(
        None
        if documents is None
        else Stream(
            "documents", partial(_typed, "documents", documents, Document, ("title", "text"))
        ),
        Stream("queries", partial(_typed, "queries", queries, Query, ("text",))),
        None
        if qrels is None or kind_of_truth(qrels)  # which queries say themselves
        else Stream("judgements", partial(_held_judgements, qrels)),
    )
    with reporting(f"dataset {name!r}", "in memory") as faults:
        built = assemble(
            source, faults, name=name, split=split, language=language, unit_key=unit_key
        )
    return replace(built, documents=documents)


def assemble(
    source: Source,
    faults: Faults,
    *,
    name: str,
    split: str,
    language: str | None,
    unit_key: str | None,
) -> Dataset:
    """The dataset that ``source`` holds; usable only when ``faults`` has none afterwards."""
    corpus = source.documents
    before = stamps(corpus) if corpus else ()
    if corpus:
        faults.of(corpus.label)  # its faults are told first
    queries = _scan_queries(source.queries, faults)
    fields = fields_of(query.filter for query in queries.values())
    scanned = _scan_documents(corpus, faults, unit_key, fields, queries) if corpus else None
    readers = filter(None, map(offered, ("read rules", "read spans")))
    qrels: Qrels = next(filter(None, (read(source, queries, faults) for read in readers)), {})
    if corpus and unit_key is not None and (kind := kind_of_truth(qrels)):
        fault = f"`unit_key` beside truth by {kind}, which is held against each hit"
        faults.of(corpus.label).error(None, fault, "a dataset.yaml without it")
    if source.judgements is None and not qrels:
        faults.note(UNJUDGED)
    elif source.judgements is not None and not qrels:
        known = None if scanned is None else scanned.judged_ids(unit_key)
        qrels = _scan_judgements(source.judgements, faults, queries, known)
    filtering = scanned.filtering(unit_key) if scanned and fields else None
    if filtering is not None and scanned is not None:
        _check_filters(source.queries, queries, qrels, filtering, faults, keys=scanned.keys)
    documents: Documents | None = None
    if corpus and scanned:
        if stamps(corpus) != before:
            raise changed(corpus.label)
        of_documents = fingerprint.combined(scanned.digests, (), {})
        documents = FileCorpus(corpus, scanned.digests.count, before, of_documents)
    return Dataset(
        name=name,
        documents=documents,
        queries=tuple(queries.values()),
        qrels=qrels,
        split=split,
        language=language,
        fingerprint=fingerprint.combined(
            scanned.digests if scanned else None, queries.values(), qrels
        ),
        unit_key=unit_key,
        unit_of=scanned.unit_of if scanned else {},
        warnings=faults.warnings(),
        filtering=filtering,
        selves=scanned.selves.result(qrels) if scanned else Selves(),
    )


def _check_filters(
    stream: Stream[Query],
    queries: Mapping[str, Query],
    qrels: Qrels,
    filtering: Filtering,
    faults: Faults,
    *,
    keys: Collection[str],
) -> None:
    """Report fields that no document has, and warn of filters that leave nothing, that write a
    value otherwise than documents do, or leave out what is relevant: such documents can never be
    found.

    Args:
        keys: of the documents' metadata.
    """
    report = faults.of(stream.label)
    known = filtering.table.known
    for field_name in filtering.table.fields:
        if field_name not in known:
            fault = f"a filter names the field {field_name!r}, which no document has"
            for _, near in misspelt([field_name], keys):
                fault += f"; documents have {near!r}"
            report.error(None, fault, "a key of the documents' metadata")
    if set(filtering.table.fields) - known:
        return
    for query in queries.values():
        if query.filter is None:
            continue
        if not filtering.share(query.filter):
            report.warn("filters that no document fits", None, shown(query.id))
        for text in _written_otherwise(query.filter, filtering.table):
            report.warn(text, None, shown(query.id))
        grades = qrels.get(query.id, {})
        relevant = [doc_id for doc_id, grade in grades.items() if grade >= 1]
        if not all(filtering.fits(query.filter, relevant)):
            report.warn(
                "queries with a relevant document that their filter leaves out: it counts as "
                "missed",
                None,
                shown(query.id),
            )


def _written_otherwise(given: Filter, table: MetadataTable) -> Iterator[str]:
    """Tell values that no document has, but for the way they are written, or their type."""
    for condition in given.conditions:
        asked, known = table.written(condition)
        pairs = misspelt(asked, known)
        for value in sorted(asked & known):
            yield (
                f"filters on {condition.field!r} by {value}, which documents have as another type: "
                "number and text are told apart"
            )
        for pair in pairs:
            yield (
                f"filters on {condition.field!r} by a value that documents write otherwise "
                f"({beside(*pair)}; they differ in {cause_of(pair)})"
            )


def _scan_documents(
    stream: Stream[Document],
    faults: Faults,
    unit_key: str | None,
    fields: Sequence[str],
    queries: Mapping[str, Query],
) -> _Scanned:
    """One walk.

    Args:
        fields: metadata fields that filters name.
        queries: by id; some may be documents, too.
    """
    report = faults.of(stream.label)
    scanned = _Scanned(metadata=MetadataTable(fields), selves=SelfFinder(queries))
    places = scanned.places
    for place, document in stream.read(faults):
        if report.repeats("document id", document.id, place, places):
            continue
        scanned.metadata.add(document.metadata)
        if fields:
            scanned.keys.update(document.metadata)
        if not document.text.strip():
            report.warn("documents with an empty text", place, shown(document.id))
        unit: str | None = None
        if unit_key is not None:
            unit = take_id(document.metadata, unit_key, place, report)
            if unit is None:
                continue
            scanned.unit_of[document.id] = unit
        scanned.selves.add(document, document.id if unit is None else unit)
        scanned.digests.add(fingerprint.document_digest(document, unit, fields))
    if not places and not report.count:
        report.error(None, "no documents", "at least one; leave the file out for no corpus")
    return scanned


def _scan_queries(stream: Stream[Query], faults: Faults) -> dict[str, Query]:
    report = faults.of(stream.label)
    queries: dict[str, Query] = {}
    places: dict[str, Place] = {}
    for place, query in stream.read(faults):
        if report.repeats("query id", query.id, place, places):
            continue
        if not query.text.strip():
            report.warn("queries with an empty text, left out", place, shown(query.id))
            continue
        for flag in _FLAGS:
            if not isinstance(query.metadata.get(flag, True), bool):
                fault = f"{flag} is {shown(query.metadata[flag])}"
                report.error(place, fault, "true or false")
        queries[query.id] = query
    if not queries and not report.count:
        report.error(None, "no queries", "at least one with a text")
    return queries


def _scan_judgements(
    stream: Stream[Judgement],
    faults: Faults,
    queries: Mapping[str, Query],
    known: Collection[str] | None,
) -> dict[str, dict[str, int]]:
    """The judgements of queries that are there; those of others are counted."""
    report = faults.of(stream.label)
    qrels, places = collect(stream, faults)
    dangling, unasked = list[str](), list[str]()
    for (query_id, doc_id), place in places.items():
        query = queries.get(query_id)
        if query is None:
            unasked.append(query_id)
            report.warn(UNASKED, place, shown(query_id))
            continue
        if not query.answerable and qrels[query_id][doc_id] >= 1:
            fault = f"query {shown(query_id)} is flagged unanswerable, but {shown(doc_id)} is"
            report.error(place, f"{fault} relevant", "grade 0, or a query without the flag")
        if known is not None and doc_id not in known:
            dangling.append(doc_id)
            kind = "judgements on documents that are not in the corpus"
            report.warn(kind, place, shown(doc_id))
    if not places and not report.count:
        report.error(None, "no judgements in this split", "at least one")
    if queries and unasked and len(unasked) == len(places):
        _tell_apart(
            "query", "among the queries", [query_id for query_id, _ in places], queries, report
        )
    elif known and dangling and len(dangling) == len(places) - len(unasked):
        ids = [doc_id for query_id, doc_id in places if query_id in queries]
        _tell_apart("document", "in the corpus", ids, known, report)
    else:
        for what, own, others, where in (
            ("query", unasked, queries, "the queries"),
            ("document", dangling, known or (), "the corpus"),
        ):
            if pairs := misspelt(own, others):
                noun = (
                    f"judged {what}",
                    "judged queries" if what == "query" else "judged documents",
                )
                effect = "nothing that is returned meets such judgements"
                faults.note(misspelt_notice(pairs, noun, f"those of {where}", effect))
    return {query_id: grades for query_id, grades in qrels.items() if query_id in queries}


def _tell_apart(
    what: str, where: str, ids: Sequence[str], known: Collection[str], report: FileFaults
) -> None:
    """Report that none of the judged ids is known, with what sets the two apart where it shows."""
    examples, accepted = ids[0], next(iter(known))
    other = apart(ids, known)
    cause = "" if other is None or not other.cause else f": they differ in {other.cause}"
    if other is not None and cause:
        examples, accepted = other.example
    more = ""
    if "chunks" in cause:
        more = "; where documents are chunks, `unit_key: NAME` says which of their keys is judged"
    message = f"not one judged {what} is {where}, {shown(examples)} for example{cause}"
    report.error(None, message, f"ids such as {shown(accepted)}{more}")


def _typed(
    label: str,
    items: Iterable[Any],
    kind: type[Record],
    texts: tuple[str, ...],
    faults: Faults,
) -> Located[Record]:
    """Items of the right type with an id and texts that are text; type hints of callers are not
    enough, the items come from plug-ins."""
    report = faults.of(label)
    for position, item in enumerate(items):
        place = f"item {position}"
        if not isinstance(item, kind):
            report.error(place, shown(item), f"retrieval_bench.core.types.{kind.__name__}")
            continue
        wrong = [name for name in ("id", *texts) if not isinstance(getattr(item, name), str)]
        for name in wrong:
            report.error(place, f"{name} is {shown(getattr(item, name))}", "text")
        if not wrong and take_id({"id": item.id}, "id", place, report) is not None:
            yield place, item


def _held_judgements(qrels: Any, faults: Faults) -> Located[Judgement]:
    report = faults.of("judgements")
    pairs = qrels.items() if isinstance(qrels, Mapping) else [("", qrels)]
    for query_id, grades in pairs:
        place = f"query {shown(query_id)}"
        if not isinstance(grades, Mapping):
            report.error(place, shown(grades), "query id -> document id -> grade")
            continue
        for doc_id, given in grades.items():
            grade = take_grade({"grade": given}, "grade", place, report)
            if not isinstance(query_id, str) or not isinstance(doc_id, str):
                report.error(place, f"ids {shown(query_id)} and {shown(doc_id)}", "text")
            elif grade is not None:
                yield place, Judgement(query_id, doc_id, grade)
