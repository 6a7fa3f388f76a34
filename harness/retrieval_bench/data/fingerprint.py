"""A hash of what a dataset contains, independent of the order in which it lies in its files.

Each document, query and judgement is hashed on its own, from its fields with their lengths in
front (so that no text can move from one field to another unnoticed). The 256-bit digests of one
kind are *added* modulo 2**256. A sum needs no order and no memory: sorting the digests would keep
32 bytes for each of ten million documents, and exclusive-or would lose an item that comes twice.
(Someone who wants to could construct two corpora with one sum; this guards against mistakes.)

What is in it is what can change a result: ids, titles and texts of documents, and their relevance
unit where judgements are on units; ids, texts, turns and the flag "answerable" of those queries
that are run; the judgements of the split, or its rules; the filters of these queries, and the
metadata fields that filters of any query of the source name; whether hits on the query itself are
dropped. Not in it: names, language, queries of other splits, and all other metadata, so that a
corrected tag or answer does not make old results incomparable. A retriever that filters by metadata
of its own accord must therefore treat a change of that metadata as a new dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from retrieval_bench.core.filters import MISSING, value_at
from retrieval_bench.core.types import DROP, Dataset, Document, Qrels, Query, by_rule

_VERSION = b"1"
_MODULUS = 1 << 256
_NO_CORPUS = (1 << 64) - 1


class Sum:
    """Items of one kind, counted and added up in any order."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0

    def add(self, digest: bytes) -> None:
        """One more item."""
        self.count += 1
        self.total = (self.total + int.from_bytes(digest, "little")) % _MODULUS


def document_digest(document: Document, unit: str | None, filtered: Sequence[str] = ()) -> bytes:
    """32 bytes for one document.

    Args:
        unit: None where judgements are on documents.
        filtered: metadata fields that filters of the queries name.
    """
    fields = [document.id, document.title, document.text]
    if unit is not None:
        fields.append(unit)
    for name in filtered:
        value = value_at(document.metadata, name)
        fields += [name, "" if value is MISSING else _told(value)]
    return _digest(b"document", fields)


def combined(documents: Sum | None, queries: Iterable[Query], qrels: Qrels) -> str:
    """The fingerprint, 32 hexadecimal digits, of documents already added up and the rest."""
    asked, judged = Sum(), Sum()
    for query in queries:
        if query.id in qrels or not query.answerable:
            turns = [part for m in query.messages for part in (m.role, m.content)]
            flag = "answerable" if query.answerable else "unanswerable"
            condition = [] if query.filter is None else ["filter", query.filter.canonical]
            asked.add(_digest(b"query", [query.id, query.text, flag, *turns, *condition]))
    slots = {query_id: of.slots for query_id, of in by_rule(qrels).items()}
    for query_id, grades in (slots or qrels).items():
        for doc_id, grade in grades.items():
            judged.add(_digest(b"judgement", [query_id, doc_id, str(grade)]))
    hashed = blake2b(_VERSION, digest_size=16, person=b"dataset")
    for part in (documents, asked, judged):
        count, total = (_NO_CORPUS, 0) if part is None else (part.count, part.total)
        hashed.update(count.to_bytes(8, "little") + total.to_bytes(32, "little"))
    return hashed.hexdigest()


def dataset_fingerprint(dataset: Dataset) -> str:
    """The fingerprint of ``dataset``, computed anew: 32 hexadecimal digits, in any order the same.

    Walks the corpus once and keeps nothing of it.
    """
    digest = combined(_added(dataset), dataset.queries, dataset.qrels)
    return without_self_hits(digest) if dataset.self_hits == DROP else digest


def corpus_fingerprint(dataset: Dataset) -> str | None:
    """Hash the documents alone, 32 hexadecimal digits; None without a corpus. Walks the corpus
    where it was not found while it was read."""
    documents = dataset.documents
    if documents is None:
        return None
    known = getattr(documents, "fingerprint", None)
    return known if isinstance(known, str) else combined(_added(dataset), (), {})


def without_self_hits(fingerprint: str) -> str:
    """The fingerprint of the same data with hits on the query itself dropped; of that one, the
    first again."""
    rule = int.from_bytes(blake2b(b"self_hits: drop", digest_size=16, person=b"dataset").digest())
    return f"{int(fingerprint, 16) ^ rule:032x}"


def texts_fingerprint(dataset: Dataset) -> str:
    """The same of documents and of all queries, whatever is judged: 32 hexadecimal digits."""
    return combined(_added(dataset), dataset.queries, {query.id: {} for query in dataset.queries})


def _added(dataset: Dataset) -> Sum | None:
    if dataset.documents is None:
        return None
    added, filtered = Sum(), dataset.filter_fields
    for document in dataset.documents:
        unit = None if dataset.unit_key is None else dataset.unit_of[document.id]
        added.add(document_digest(document, unit, filtered))
    return added


def _told(value: object) -> str:
    """A value of metadata with its type, so that ``5`` and ``"5"`` are two; sets in an order."""
    if isinstance(value, Mapping):
        inside = sorted(f"{_told(key)}: {_told(item)}" for key, item in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_told, value)))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    if value is None or isinstance(value, str | bool | int | float):
        return json.dumps(value)
    return f"{type(value).__name__} {value!r}"


def _digest(kind: bytes, fields: Iterable[str]) -> bytes:
    parts: list[bytes] = []
    for text in fields:
        data = text.encode("utf-8", "surrogatepass")
        parts += (len(data).to_bytes(8, "little"), data)
    return blake2b(b"".join(parts), digest_size=32, person=kind).digest()
